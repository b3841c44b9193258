//! One server per data folder: `hearth.lock`, locked while the server runs, names who holds it.
//!
//! The kernel's lock decides, never the file's text: a server that was killed leaves the file but
//! not the lock. The text (process id, then address) is for messages and for `hearth env`.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    thread,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::failure::Failure;

/// The lock's file inside the data folder.
pub(crate) const LOCK_FILE: &str = "hearth.lock";
/// Bytes of the file that are read.
const TEXT_BYTES_MAX: u64 = 1_024;
/// Times that the lock is asked for. [`holder`] takes a shared lock for an instant, which must not
/// refuse a server that starts just then.
const ATTEMPTS: u32 = 5;
/// Time between two of them.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(40);

/// The lock; let go when dropped.
pub(crate) struct DataLock {
    file: File,
}

/// The running server of a data folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Its process id, if the file names it.
    pub pid: Option<u32>,
    /// Its address, once it listens.
    pub url: Option<String>,
}

impl DataLock {
    /// Takes the lock of the folder `data`, which must exist.
    ///
    /// # Errors
    /// Names the process that holds it.
    pub(crate) fn acquire(data: &Path) -> Result<Self, Failure> {
        let path = data.join(LOCK_FILE);
        let failed = |error: &io::Error| Failure::io(format!("the lock {} could not be taken", path.display()), error);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| failed(&error))?;
        for attempt in 1.. {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if attempt < ATTEMPTS => thread::sleep(ATTEMPT_PAUSE),
                Err(Errno::WOULDBLOCK) => return Err(refusal(data, &parse(&file))),
                Err(error) => return Err(failed(&error.into())),
            }
        }
        let lock = Self { file };
        lock.write(&format!("{}\n", std::process::id())).map_err(|error| failed(&error))?;
        Ok(lock)
    }

    /// Notes the address once the server listens.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn set_url(&self, url: &str) -> Result<(), Failure> {
        self.write(&format!("{}\n{url}\n", std::process::id()))
            .map_err(|error| Failure::io(format!("{LOCK_FILE} could not be written"), &error))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(text.as_bytes())
    }
}

/// Who runs a server on `data`; `None` if nobody does.
///
/// # Errors
/// If the lock's file is there and cannot be read.
pub(crate) fn holder(data: &Path) -> io::Result<Option<Holder>> {
    let file = match File::open(data.join(LOCK_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(Errno::WOULDBLOCK) => Ok(Some(parse(&file))),
        Err(error) => Err(error.into()),
    }
}

fn parse(mut file: &File) -> Holder {
    let mut text = String::new();
    // The text only serves messages; one that cannot be read leaves them shorter.
    let _ = file.rewind().and_then(|()| file.take(TEXT_BYTES_MAX).read_to_string(&mut text));
    let mut lines = text.lines();
    Holder { pid: lines.next().and_then(|line| line.parse().ok()), url: lines.next().map(str::to_owned) }
}

fn refusal(data: &Path, holder: &Holder) -> Failure {
    let who = holder.pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
    let at = holder.url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
    let failure = Failure::new(format!("the data folder {} is in use by {who}{at} (expected one server per folder)", data.display()));
    match holder.pid {
        Some(pid) => failure.hint(format!("stop it with `kill {pid}`, or give this server another folder with --data")),
        None => failure.hint("stop the other server, or give this one another folder with --data"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_held_until_dropped_and_names_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(holder(dir.path()).unwrap(), None);
        let lock = DataLock::acquire(dir.path()).unwrap();
        lock.set_url("http://127.0.0.1:1").unwrap();
        let pid = std::process::id();
        assert_eq!(holder(dir.path()).unwrap(), Some(Holder { pid: Some(pid), url: Some("http://127.0.0.1:1".into()) }));
        let refused = DataLock::acquire(dir.path()).err().unwrap();
        assert!(refused.message.contains(&format!("process {pid} at http://127.0.0.1:1")), "{}", refused.message);
        drop(lock);
        assert_eq!(holder(dir.path()).unwrap(), None);
        DataLock::acquire(dir.path()).unwrap();
    }
}
