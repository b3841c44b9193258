//! Child processes: started, watched, counted, and always ended.

use std::{
    io::{self, Read, Write},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::{
    counts::{Counts, Runner},
    date::Stopwatch,
    steps::Stop,
};

/// Time limit of a step that only reads the tree.
pub(crate) const SHORT: Duration = Duration::from_secs(5 * 60);
/// Time limit of a step that compiles or tests.
pub(crate) const LONG: Duration = Duration::from_secs(40 * 60);
/// Time that a child gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(15);
/// Bytes of one output line that are looked at for counts; the rest of a longer line is only shown.
const LINE_BYTES_MAX: usize = 4_096;

/// `cargo` as it runs this tool, in the workspace's root.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Whether `program` can be started at all.
pub(crate) fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// First line that a command prints, `None` if it cannot be run or fails.
pub(crate) fn first_line(mut command: Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default().trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}

/// Runs a command to its end with our own terminal.
///
/// # Errors
/// [`Stop::Failed`] if it cannot start, fails, or runs past `limit`.
pub(crate) fn run(mut command: Command, limit: Duration) -> Result<(), Stop> {
    let name = show(&command);
    eprintln!("$ {name}");
    let child = command.stdin(Stdio::null()).spawn().map_err(|e| Stop::Failed(format!("`{name}` did not start: {e}")))?;
    finish(&name, Guard::new(child), limit)
}

/// As [`run`], and gives every line of its output to `line` besides showing it.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_reading(mut command: Command, limit: Duration, mut line: impl FnMut(&str)) -> Result<(), Stop> {
    let name = show(&command);
    eprintln!("$ {name}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| Stop::Failed(format!("`{name}` did not start: {e}")))?;
    let (send, receive) = mpsc::sync_channel(1_024);
    let out = child.stdout.take().expect("stdout is piped");
    let err = child.stderr.take().expect("stderr is piped");
    let readers = [tee(out, io::stdout(), send.clone()), tee(err, io::stderr(), send)];
    let guard = Guard::new(child);
    let watcher = thread::spawn(move || finish(&name, guard, limit));
    // Ends when both pipes are closed. A grandchild that outlives its parent would hold them open, so
    // once the child is gone a quiet pipe ends the wait too.
    loop {
        match receive.recv_timeout(Duration::from_secs(5)) {
            Ok(text) => line(&text),
            Err(mpsc::RecvTimeoutError::Timeout) if !watcher.is_finished() => {}
            Err(_) => break,
        }
    }
    let result = watcher.join().expect("the watcher does not panic");
    if readers.iter().all(thread::JoinHandle::is_finished) {
        for reader in readers {
            reader.join().expect("a reader does not panic");
        }
    }
    result
}

/// As [`run_reading`], adding up the runner's summary lines.
///
/// # Errors
/// As [`run`], and [`Stop::Failed`] if a runner counted a failure and still ended well.
pub(crate) fn run_counting(command: Command, limit: Duration, runner: Runner, counts: &mut Counts) -> Result<(), Stop> {
    run_reading(command, limit, |line| *counts += Counts::of_line(runner, line))?;
    if counts.failed > 0 {
        return Err(Stop::Failed(format!("{} tests failed, and the runner ended with status 0", counts.failed)));
    }
    Ok(())
}

/// Copies a child's pipe to our own and sends its lines on.
fn tee(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    lines: mpsc::SyncSender<String>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut chunk = [0; 8_192];
        let mut line = Vec::new();
        while let Ok(n) = from.read(&mut chunk) {
            if n == 0 {
                break;
            }
            // A closed terminal must not stop the counting.
            let _ = to.write_all(&chunk[..n]).and_then(|()| to.flush());
            for byte in &chunk[..n] {
                if *byte == b'\n' {
                    let _ = lines.send(String::from_utf8_lossy(&line).into_owned());
                    line.clear();
                } else if line.len() < LINE_BYTES_MAX {
                    line.push(*byte);
                }
            }
        }
        if !line.is_empty() {
            let _ = lines.send(String::from_utf8_lossy(&line).into_owned());
        }
    })
}

fn finish(name: &str, mut guard: Guard, limit: Duration) -> Result<(), Stop> {
    match guard.wait(limit) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => Err(Stop::Failed(format!("`{name}` ended with {status}"))),
        Ok(None) => Err(Stop::Failed(format!("`{name}` ran past its limit of {} s and was ended", limit.as_secs()))),
        Err(error) => Err(Stop::Failed(format!("`{name}` could not be waited for: {error}"))),
    }
}

/// The command line as a person would type it; arguments only, no environment.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned();
    command.get_args().fold(program, |text, arg| text + " " + &arg.to_string_lossy())
}

/// A child that is ended when this is dropped: SIGTERM, then SIGKILL after [`GRACE`].
pub(crate) struct Guard(Child);

impl Guard {
    pub(crate) fn new(child: Child) -> Self {
        Self(child)
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// The status, or `None` when `limit` passed first; the child then still runs.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let clock = Stopwatch::start();
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            if clock.elapsed() > limit {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks the child to end and waits; `Ok(false)` if it had to be killed.
    pub(crate) fn stop(&mut self) -> io::Result<bool> {
        if self.0.try_wait()?.is_some() {
            return Ok(true);
        }
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        }
        if self.wait(GRACE)?.is_some() {
            return Ok(true);
        }
        self.0.kill()?;
        self.0.wait()?;
        Ok(false)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("warning: process {} could not be ended: {error}", self.0.id());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_pipes_are_counted() {
        let mut counts = Counts::default();
        run_counting(sh("echo '3 passed, 0 failed'; echo '4 passed, 0 failed' >&2"), SHORT, Runner::Own, &mut counts).unwrap();
        assert_eq!(counts.passed, 7);
    }

    #[test]
    fn a_counted_failure_fails_even_with_status_0() {
        let mut counts = Counts::default();
        let stop = run_counting(sh("echo '3 passed, 1 failed'"), SHORT, Runner::Own, &mut counts).unwrap_err();
        assert_eq!(stop.to_string(), "1 tests failed, and the runner ended with status 0");
    }

    #[test]
    fn a_child_past_its_limit_is_ended() {
        let clock = Stopwatch::start();
        let stop = run(sh("exec sleep 60"), Duration::from_millis(100)).unwrap_err();
        assert!(stop.to_string().contains("ran past its limit"), "{stop}");
        assert!(clock.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_child_s_status_and_a_missing_program_are_named() {
        assert_eq!(run(sh("exit 3"), SHORT).unwrap_err().to_string(), "`sh -c exit 3` ended with exit status: 3");
        assert!(run(Command::new("no-such-program-of-hearth"), SHORT).unwrap_err().to_string().contains("did not start"));
    }
}
