//! The table in which a run is printed.

use std::{fmt, time::Duration};

use crate::measure::Sample;

/// One line: a measurement, beside the baseline that it is held against.
pub struct Line {
    name: String,
    sample: Sample,
    baseline_rate: f64,
    /// CPU time of what is measured, without the callers'.
    cpu: Option<Duration>,
    note: String,
}

impl Line {
    /// A line; a baseline is held against itself.
    pub fn new(name: impl Into<String>, sample: Sample, baseline: &Sample) -> Self {
        Self { name: name.into(), baseline_rate: baseline.rate(), sample, cpu: None, note: String::new() }
    }

    /// The same line with the CPU time that the operations took on the measured side.
    #[must_use]
    pub fn with_cpu(mut self, cpu: Duration) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// The same line with a remark.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e6);
        let cpu = self.cpu.map_or_else(|| "-".to_owned(), |cpu| us(cpu / u32::try_from(self.sample.ops.max(1)).unwrap_or(u32::MAX)));
        write!(
            f,
            "{:<44} {:>10.0} {:>8.3} {:>10} {:>10} {:>10}  {}",
            self.name,
            self.sample.rate(),
            self.sample.rate() / self.baseline_rate,
            us(self.sample.percentile(50)),
            us(self.sample.percentile(99)),
            cpu,
            self.note
        )
    }
}

/// The line over the columns.
pub fn head(title: &str) -> String {
    format!("\n{title}\n{:<44} {:>10} {:>8} {:>10} {:>10} {:>10}", "", "ops/s", "ratio", "p50 us", "p99 us", "cpu us/op")
}
