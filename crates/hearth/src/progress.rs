//! Progress of long work: a bar on a terminal, a few plain lines elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::printer::{Printer, note};

/// Time between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(120);

/// Work that is under way. Nothing stays on a terminal when it is dropped.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Begins; `total` bytes if they are known.
    pub(crate) fn start(printer: &Printer, what: &str, total: Option<u64>) -> Self {
        if !printer.shows_progress() {
            match total {
                Some(total) => note(&format!("{what} ({total} bytes)")),
                None => note(what),
            }
            return Self { bar: None };
        }
        let bar = ProgressBar::no_length();
        bar.set_style(style("{spinner} {msg}"));
        bar.enable_steady_tick(TICK);
        bar.set_message(what.to_owned());
        let progress = Self { bar: Some(bar) };
        progress.set_total(total);
        progress
    }

    /// Sets the bytes in all once they are known.
    pub(crate) fn set_total(&self, total: Option<u64>) {
        if let (Some(bar), Some(total)) = (&self.bar, total) {
            bar.set_style(style("{spinner} {msg} {decimal_bytes} {wide_bar} {decimal_total_bytes}"));
            bar.set_length(total);
        }
    }

    /// `bytes` more are done.
    pub(crate) fn advance(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    /// A line that stays.
    pub(crate) fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note(line)),
            None => note(line),
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates of this file are well-formed")
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
