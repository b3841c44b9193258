//! A run is a list of steps; each passes, fails or is skipped, and all are shown at the end.

use std::fmt;

use crate::{counts::Counts, date::Stopwatch};

/// Why a step did not pass.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Something is wrong; the text says what and where.
    Failed(String),
    /// The machine lacks what the step needs; the text says what to install.
    Skipped(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => write!(f, "{why}"),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
        }
    }
}

/// One finished step.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) stop: Option<Stop>,
    pub(crate) counts: Counts,
    pub(crate) seconds: f64,
}

/// All steps of a run so far.
pub(crate) struct Steps {
    /// Whether a skipped step is a failure, as in CI.
    strict: bool,
    started: Stopwatch,
    list: Vec<Step>,
}

impl Steps {
    pub(crate) fn new(strict: bool) -> Self {
        Self { strict, started: Stopwatch::start(), list: Vec::new() }
    }

    /// Runs one step and keeps its outcome. Returns whether later steps may build on it.
    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce(&mut Counts) -> Result<(), Stop>) -> bool {
        eprintln!("\n== {name}");
        let clock = Stopwatch::start();
        let mut counts = Counts::default();
        let stop = work(&mut counts).err();
        if let Some(stop) = &stop {
            eprintln!("\n== {name}: {}{stop}", if matches!(stop, Stop::Failed(_)) { "FAILED: " } else { "" });
        }
        let passed = stop.is_none();
        self.list.push(Step { name, stop, counts, seconds: clock.elapsed().as_secs_f64() });
        passed
    }

    pub(crate) fn list(&self) -> &[Step] {
        &self.list
    }

    /// Prints the table of steps, then one line `N passed, N failed`. A step that counts no tests is
    /// one check. Returns whether the run passed.
    pub(crate) fn finish(&self) -> bool {
        let (table, total) = self.summary();
        eprintln!("\n{table}");
        let effect = if self.strict { "counted as a failure, because CI=true" } else { "NOT run; CI would fail here" };
        for step in &self.list {
            match &step.stop {
                None => {}
                Some(Stop::Failed(why)) => eprintln!("FAILED  {}: {why}", step.name),
                Some(Stop::Skipped(why)) => eprintln!("SKIPPED {}: {why} ({effect})", step.name),
            }
        }
        eprintln!("{} passed, {} failed in {:.0} s", total.passed, total.failed, self.started.elapsed().as_secs_f64());
        total.failed == 0
    }

    /// The table, and the sums over all steps. `skipped` counts steps, not tests.
    fn summary(&self) -> (String, Counts) {
        let mut table = format!("{:<28} {:>9} {:>8} {:>8} {:>9}\n", "step", "outcome", "passed", "failed", "seconds");
        let mut total = Counts::default();
        for step in &self.list {
            let (outcome, shown) = self.outcome(step);
            total += shown;
            table += &format!("{:<28} {outcome:>9} {:>8} {:>8} {:>9.1}\n", step.name, shown.passed, shown.failed, step.seconds);
        }
        (table, total)
    }

    fn outcome(&self, step: &Step) -> (&'static str, Counts) {
        let one = Counts { passed: 1, ..Counts::default() };
        match &step.stop {
            None if step.counts.is_empty() => ("ok", one),
            None => ("ok", Counts { skipped: 0, ..step.counts }),
            // A runner that broke off before its first count still failed.
            Some(Stop::Failed(_)) => ("FAILED", Counts { failed: step.counts.failed.max(1), skipped: 0, ..step.counts }),
            Some(Stop::Skipped(_)) => ("SKIPPED", Counts { failed: u64::from(self.strict), skipped: 1, passed: 0 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(strict: bool, stop: Option<Stop>, counts: Counts) -> Counts {
        let mut steps = Steps::new(strict);
        steps.list.push(Step { name: "x", stop, counts, seconds: 0.0 });
        steps.summary().1
    }

    #[test]
    fn a_skip_fails_only_a_strict_run() {
        let skip = || Some(Stop::Skipped("node is missing".to_owned()));
        assert_eq!(outcome(false, skip(), Counts::default()).failed, 0);
        assert_eq!(outcome(true, skip(), Counts::default()).failed, 1);
    }

    #[test]
    fn a_failure_without_a_count_is_one_failure_and_a_pass_without_a_count_one_pass() {
        let failed = || Some(Stop::Failed("exit status 101".to_owned()));
        assert_eq!(outcome(false, failed(), Counts::default()).failed, 1);
        assert_eq!(outcome(false, failed(), Counts { passed: 5, failed: 2, skipped: 0 }).failed, 2);
        assert_eq!(outcome(false, failed(), Counts { passed: 5, failed: 0, skipped: 0 }).failed, 1);
        assert_eq!(outcome(false, None, Counts::default()), Counts { passed: 1, failed: 0, skipped: 0 });
    }
}
