//! A server in a folder of its own, and commands that talk to it.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long anything is waited for. Far more than it takes; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a finished command left behind.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// The exit code must be 0; returns standard output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// The exit code must be 0; returns standard output as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let text = self.ok();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The exit code must be `code`, nothing may be on standard output, and standard error must hold each of `parts`.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, parts: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is not in {self:?}");
        }
    }
}

/// The binary without any of its variables set, in an empty folder of its own.
pub(crate) fn hearth(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
    for (name, _) in std::env::vars() {
        if name.starts_with("HEARTH_") || name.starts_with("CLOUDFLARE_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).args(args).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command) -> Output {
    let output = command.output().unwrap();
    Output {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A running `hearth serve` or `hearth demo`. Killed when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) url: String,
    stderr: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts `command` and waits until it says that it listens.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = Arc::new(Mutex::new(String::new()));
        let (sender, listening) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let reader = thread::spawn({
            let stderr = Arc::clone(&stderr);
            move || {
                for line in lines.map_while(Result::ok) {
                    if let Some(url) = line.strip_prefix("listening on ") {
                        let _ = sender.send(url.to_owned());
                    }
                    let mut all = stderr.lock().unwrap();
                    all.push_str(&line);
                    all.push('\n');
                }
            }
        });
        let Ok(url) = listening.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            panic!("the server did not start: {}", stderr.lock().unwrap());
        };
        Self { child, url, stderr, reader: Some(reader) }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end; returns the status and all of standard error.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let (sender, ended) = mpsc::channel();
        let pid = Pid::from_child(&self.child);
        let watchdog = thread::spawn(move || {
            if ended.recv_timeout(PATIENCE).is_err() {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let status = self.child.wait().unwrap();
        let _ = sender.send(());
        watchdog.join().unwrap();
        self.reader.take().unwrap().join().unwrap();
        let text = self.stderr.lock().unwrap().clone();
        (status, text)
    }

    /// What it has written to standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Reads standard output until it holds one whole JSON value.
    pub(crate) fn stdout_json(&mut self) -> Value {
        let reader = BufReader::new(self.child.stdout.as_mut().unwrap());
        serde_json::Deserializer::from_reader(reader).into_iter().next().unwrap().unwrap()
    }

    /// The rest of standard output, once the process has ended.
    pub(crate) fn stdout(&mut self) -> String {
        let mut text = String::new();
        self.child.stdout.as_mut().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has most often ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server on a data folder, and a folder for the commands that talk to it.
pub(crate) struct Site {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) server: Server,
}

impl Site {
    pub(crate) fn start() -> Self {
        Self::on(tempfile::tempdir().unwrap())
    }

    /// A server on the data folder that is in `dir` already, or on a new one.
    pub(crate) fn on(dir: tempfile::TempDir) -> Self {
        let server = Server::start(hearth(dir.path(), &["serve", "--data", "data", "--listen", "127.0.0.1:0"]));
        Self { dir, server }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn owner_key(&self) -> String {
        std::fs::read_to_string(self.data().join("owner.key")).unwrap().trim_end().to_owned()
    }

    /// A command that finds the server by its data folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = hearth(self.dir.path(), args);
        command.env("HEARTH_DATA", "data");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        run(self.command(args))
    }

    /// With the key `key` and the address from the environment, as on another machine.
    pub(crate) fn run_as(&self, key: &str, args: &[&str]) -> Output {
        let mut command = hearth(self.dir.path(), args);
        command.env("HEARTH_KEY", key).env("HEARTH_URL", &self.server.url);
        run(command)
    }

    /// The rows of one statement, as objects.
    #[track_caller]
    pub(crate) fn rows(&self, database: &str, sql: &str) -> Value {
        self.run(&["d1", "execute", database, "--json", "--command", sql]).json()[0]["results"].clone()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}
