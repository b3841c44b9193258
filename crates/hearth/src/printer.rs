//! The one way out: data on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::{failure::Failure, table::Table};

/// What every command prints through.
#[derive(Clone, Copy)]
pub(crate) struct Printer {
    json: bool,
    out_is_terminal: bool,
    err_is_terminal: bool,
}

impl Printer {
    /// `json`: results are JSON and tables are not printed.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, out_is_terminal: io::stdout().is_terminal(), err_is_terminal: io::stderr().is_terminal() }
    }

    /// Whether `--json` was given.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person reads standard error, so that progress may be drawn there.
    pub(crate) fn shows_progress(&self) -> bool {
        self.err_is_terminal
    }

    /// Whether a person can be asked something.
    pub(crate) fn can_ask(&self) -> bool {
        self.err_is_terminal && io::stdin().is_terminal()
    }

    /// Prints a result: `value` with `--json`, else the table.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn result(&self, value: &impl Serialize, table: &Table) -> Result<(), Failure> {
        if self.json { self.json_value(value) } else { self.table(table) }
    }

    /// Prints a value as JSON, indented by two spaces as `JSON.stringify(value, null, 2)` does.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn json_value(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).expect("our own values have text keys and always serialise");
        self.line(&text)
    }

    /// Prints a table, aligned on a terminal and tab-separated elsewhere.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn table(&self, table: &Table) -> Result<(), Failure> {
        self.text(&if self.out_is_terminal { table.aligned() } else { table.tab_separated() })
    }

    /// Prints a line of data.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        self.text(&format!("{line}\n"))
    }

    /// Prints text as it is.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::output("standard output", &error))
    }

    /// Tells the person something that is not the result. Lost if standard error is closed.
    pub(crate) fn note(&self, line: &str) {
        note(line);
    }

    /// Tells the person of a danger.
    pub(crate) fn warn(&self, line: &str) {
        note(&format!("warning: {line}"));
    }

    /// Asks for a yes; anything but `y` or `yes` is a no.
    ///
    /// # Errors
    /// If the answer cannot be read.
    pub(crate) fn confirm(&self, question: &str) -> Result<bool, Failure> {
        let mut err = io::stderr().lock();
        let asked = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
        drop(err);
        let mut answer = String::new();
        asked
            .and_then(|()| io::stdin().read_line(&mut answer))
            .map_err(|error| Failure::io("the answer could not be read from standard input", &error))?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Prints why a command failed.
    pub(crate) fn failure(&self, failure: &Failure) {
        if failure.message.is_empty() {
            return;
        }
        note(&format!("error: {}", failure.message));
        if let Some(hint) = &failure.hint {
            note(&format!("hint: {hint}"));
        }
    }
}

/// A line on standard error, for the places that have no printer (signal and poison handlers). An
/// error is left out: nothing remains to report it to.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
