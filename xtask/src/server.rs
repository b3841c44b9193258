//! A `hearth` server in a folder of its own, ended and removed when dropped.

use std::{
    fs::{self, DirBuilder, File},
    io::{BufRead, BufReader, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::{process::Guard, steps::Stop};

/// Time that a server may take until it says where it listens.
const START: Duration = Duration::from_secs(60);
/// What the server prints on stderr, before its address, when it answers.
const READY: &str = "listening on ";
/// Lines of the server's log that a failure shows.
const LOG_LINES_SHOWN: usize = 40;

/// A running server.
pub(crate) struct Server {
    guard: Guard,
    url: String,
    folder: Folder,
}

impl Server {
    /// Starts `binary` on a free port with an empty data folder and waits until it answers.
    ///
    /// # Errors
    /// [`Stop::Failed`] with the server's last lines if it ends or stays silent.
    pub(crate) fn start(binary: &Path) -> Result<Self, Stop> {
        let folder = Folder::create().map_err(|e| Stop::Failed(format!("no folder for the server's data: {e}")))?;
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.data())
            .env_remove("HEARTH_KEY")
            .env_remove("HEARTH_DATA")
            .env_remove("HEARTH_LISTEN")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| Stop::Failed(format!("{} did not start: {e}", binary.display())))?;
        let stderr = child.stderr.take().expect("stderr is piped");
        let guard = Guard::new(child);
        let log = File::create(folder.log()).map_err(|e| Stop::Failed(format!("no file for the server's log: {e}")))?;
        let (send, receive) = mpsc::sync_channel(1);
        thread::spawn(move || keep_log(BufReader::new(stderr), log, &send));
        match receive.recv_timeout(START) {
            Ok(url) => Ok(Self { guard, url, folder }),
            Err(why) => {
                let why = match why {
                    mpsc::RecvTimeoutError::Timeout => format!("did not say `{READY}http://…` within {} s", START.as_secs()),
                    mpsc::RecvTimeoutError::Disconnected => format!("ended before it said `{READY}http://…`"),
                };
                Err(Stop::Failed(format!("{} {why}; its last lines:\n{}", binary.display(), last_lines(&folder.log()))))
            }
        }
    }

    /// Where it listens, without a slash at the end.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The owner key that the first start made.
    ///
    /// # Errors
    /// [`Stop::Failed`] if the file is not there.
    pub(crate) fn owner_key(&self) -> Result<String, Stop> {
        let path = self.folder.data().join("owner.key");
        let key =
            fs::read_to_string(&path).map_err(|e| Stop::Failed(format!("the first start left no owner.key in its data folder: {e}")))?;
        Ok(key.trim().to_owned())
    }

    /// The last lines of its log, for a failure's report.
    pub(crate) fn log_tail(&self) -> String {
        last_lines(&self.folder.log())
    }

    /// Ends it and says whether SIGTERM was enough.
    ///
    /// # Errors
    /// [`Stop::Failed`] if it had to be killed, or had ended before.
    pub(crate) fn stop(mut self) -> Result<(), Stop> {
        let tail = |server: &Self| format!("its last lines:\n{}", server.log_tail());
        if let Ok(Some(status)) = self.guard.child().try_wait() {
            return Err(Stop::Failed(format!("the server ended by itself ({status}) while clients ran; {}", tail(&self))));
        }
        match self.guard.stop() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Stop::Failed(format!("the server did not end on SIGTERM and was killed; {}", tail(&self)))),
            Err(error) => Err(Stop::Failed(format!("the server could not be ended: {error}"))),
        }
    }
}

/// Copies the server's stderr to a file and sends the address once. Reads on to the end: a full pipe
/// would block the server.
fn keep_log(stderr: impl BufRead, mut log: File, ready: &mpsc::SyncSender<String>) {
    let mut announced = false;
    for line in stderr.split(b'\n').map_while(Result::ok) {
        let text = String::from_utf8_lossy(&line);
        // A full disk costs the log, not the run.
        let _ = writeln!(log, "{text}");
        if !announced && let Some((_, address)) = text.split_once(READY) {
            announced = true;
            let _ = ready.send(address.split_whitespace().next().unwrap_or_default().trim_end_matches('/').to_owned());
        }
    }
}

fn last_lines(path: &Path) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
}

/// A private folder under the system's temporary one.
struct Folder(PathBuf);

impl Folder {
    fn create() -> std::io::Result<Self> {
        let unique = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
        let path = std::env::temp_dir().join(format!("hearth-xtask-{unique:016x}"));
        // Not recursive, so that a folder which another user made first is an error.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    fn log(&self) -> PathBuf {
        self.0.join("server.log")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("warning: {} could not be removed: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that behaves as the script says, in place of the server. A child writes it: a file that
    /// this process still had open for writing in some thread's fork could not be executed.
    fn fake(script: &str) -> (Folder, PathBuf) {
        let folder = Folder::create().unwrap();
        let path = folder.0.join("fake");
        let script = format!("#!/bin/sh\n{script}\n");
        let write = r#"printf %s "$2" > "$1" && chmod 700 "$1""#;
        assert!(Command::new("sh").args(["-c", write, "sh"]).arg(&path).arg(script).status().unwrap().success());
        (folder, path)
    }

    #[test]
    fn the_address_is_read_and_sigterm_ends_the_server() {
        let (_folder, path) = fake("echo starting >&2; echo 'listening on http://127.0.0.1:4242/' >&2; exec sleep 60");
        let server = Server::start(&path).unwrap();
        assert_eq!(server.url(), "http://127.0.0.1:4242");
        assert!(server.owner_key().unwrap_err().to_string().contains("left no owner.key"));
        let home = server.folder.0.clone();
        server.stop().unwrap();
        assert!(!home.exists());
    }

    #[test]
    fn a_server_that_ends_early_shows_its_last_lines() {
        let (_folder, path) = fake("echo 'data folder is locked' >&2; exit 1");
        let text = Server::start(&path).err().expect("it never listens").to_string();
        assert!(text.contains("ended before it said") && text.contains("data folder is locked"), "{text}");
    }

    #[test]
    fn a_server_that_dies_under_its_clients_is_a_failure() {
        let (_folder, path) = fake("echo 'listening on http://127.0.0.1:1' >&2; echo 'poisoned' >&2; exit 7");
        let mut server = Server::start(&path).unwrap();
        server.guard.wait(Duration::from_secs(10)).unwrap();
        let text = server.stop().unwrap_err().to_string();
        assert!(text.contains("ended by itself (exit status: 7)"), "{text}");
    }
}
