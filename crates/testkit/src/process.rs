//! The real server as a child process, and a run that kills it again and again.

mod client;
mod kill;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

pub use client::Client;
pub use kill::{KillConfig, KillReport, kill_run};

/// How long a start may take; recovery is part of it.
const START_MAX: Duration = Duration::from_secs(120);

/// Bytes of standard error that are kept for messages.
const STDERR_BYTES_MAX: usize = 64 << 10;

/// A running `hearth serve`. Killed when dropped.
pub struct Server {
    child: Child,
    url: String,
    stderr: Arc<Mutex<String>>,
}

/// A server that was started and may not listen yet. Killed when dropped.
pub struct Starting {
    server: Server,
    listening: mpsc::Receiver<String>,
}

impl Server {
    /// Starts `binary` on the folder `data` and a free port of the loopback, and waits until it listens.
    ///
    /// # Errors
    /// Why it did not start, with what it wrote to standard error.
    pub fn start(binary: &Path, data: &Path) -> Result<Self, String> {
        Self::spawn(binary, data)?.wait()
    }

    /// As [`Self::start`], without waiting. No `HEARTH_*` variable of the caller reaches the server.
    ///
    /// # Errors
    /// The binary does not run.
    pub fn spawn(binary: &Path, data: &Path) -> Result<Starting, String> {
        let mut command = Command::new(binary);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HEARTH_")) {
            command.env_remove(name);
        }
        command.arg("serve").arg("--data").arg(data).args(["--listen", "127.0.0.1:0", "--log-level", "warn"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot run {}: {error}", binary.display()))?;
        let stderr = Arc::new(Mutex::new(String::new()));
        let (sender, listening) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let kept = Arc::clone(&stderr);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(url) = line.strip_prefix("listening on ") {
                    // Nobody waits if the server is killed while it starts.
                    let _ = sender.send(url.to_owned());
                }
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() + line.len() < STDERR_BYTES_MAX {
                    kept.push_str(&line);
                    kept.push('\n');
                }
            }
        });
        Ok(Starting { server: Self { child, url: String::new(), stderr }, listening })
    }

    /// Where it listens, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it has written to standard error, up to 64 KiB.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `kill -9`, and waits for the end.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Starting {
    /// Waits until it listens.
    ///
    /// # Errors
    /// It ended, or did not listen within two minutes; with what it wrote to standard error.
    pub fn wait(self) -> Result<Server, String> {
        let Self { mut server, listening } = self;
        match listening.recv_timeout(START_MAX) {
            Ok(url) => {
                server.url = url;
                Ok(server)
            }
            Err(error) => {
                server.end();
                Err(format!("the server does not listen ({error}); it wrote:\n{}", server.stderr()))
            }
        }
    }

    /// `kill -9` while it starts; says whether it listened already.
    pub fn kill(self) -> bool {
        let Self { server, listening } = self;
        server.kill();
        listening.recv_timeout(Duration::ZERO).is_ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
