//! How a command fails: a message, apart from it a hint, and an exit code.

use std::{fmt, io};

/// Exit code of a command that could not do its work.
const EXIT_FAILURE: u8 = 1;
/// Exit code of a command that was called in the wrong way; clap's own errors have it too.
const EXIT_USAGE: u8 = 2;

/// Why a command failed. Printed as `error: …`, then `hint: …`.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What was got and what was expected. Holds no secret.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// 1 or 2; 0 with an empty message if the reader of our output has gone and nobody is to be told.
    pub exit: u8,
}

impl Failure {
    /// The work could not be done.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: EXIT_FAILURE }
    }

    /// The command, its settings or its files are wrong; nothing was tried.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: EXIT_USAGE }
    }

    /// A file or folder could not be read or written.
    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(format!("{what}: {error}"))
    }

    /// The same failure with a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An error of writing `what` out. A closed pipe (`hearth d1 list | head -1`) is no failure.
    pub(crate) fn output(what: &str, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self { message: String::new(), hint: None, exit: 0 }
        } else {
            Self::io(format!("{what} could not be written"), error)
        }
    }
}

/// Errors of the services reach the operator here, so the detail meant for the log is shown too.
impl From<base::Error> for Failure {
    fn from(error: base::Error) -> Self {
        match error.internal {
            Some(internal) => Self::new(format!("{} ({internal})", error.message)),
            None => Self::new(error.message),
        }
    }
}
