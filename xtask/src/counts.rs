//! Counts tests by reading the summary lines that test runners print.

use std::ops::AddAssign;

/// Tests of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Whose summary lines to read. Each runner shows the output of the tests that it runs, other runners'
/// summaries among it, so only its own may count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `Summary [ 1.2s] 5 tests run: 4 passed, 1 failed`
    Nextest,
    /// `test result: ok. 4 passed; 0 failed`, once for each binary
    Libtest,
    /// `4 passed, 0 failed`, once for each part
    Own,
}

impl Counts {
    /// What one line of a runner's output adds; nothing if it is no summary of that runner.
    pub(crate) fn of_line(runner: Runner, line: &str) -> Self {
        let line = line.trim();
        let is_summary = match runner {
            Runner::Nextest => line.starts_with("Summary ["),
            Runner::Libtest => line.starts_with("test result:"),
            Runner::Own => line.split_once(' ').is_some_and(|(first, rest)| first.parse::<u64>().is_ok() && rest.starts_with("passed, ")),
        };
        if !is_summary {
            return Self::default();
        }
        let before = |word: &str| number_before(line, word);
        Self {
            passed: before("passed"),
            failed: before("failed") + before("timed out") + before("exec failed"),
            skipped: before("skipped") + before("ignored"),
        }
    }

    /// Whether the step counted anything at all.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// The number right before `word`, 0 if there is none. `2 exec failed` is no `failed`.
fn number_before(line: &str, word: &str) -> u64 {
    line.match_indices(word)
        .find_map(|(at, _)| line[..at].trim_end().rsplit([' ', '(', '.']).next().and_then(|text| text.parse().ok()))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(runner: Runner, line: &str, passed: u64, failed: u64, skipped: u64) {
        for other in [Runner::Nextest, Runner::Libtest, Runner::Own] {
            let expected = if other == runner { Counts { passed, failed, skipped } } else { Counts::default() };
            assert_eq!(Counts::of_line(other, line), expected, "{other:?}: {line}");
        }
    }

    #[test]
    fn a_runner_s_own_summary_is_counted_and_nothing_else() {
        check(Runner::Nextest, "     Summary [   0.012s] 5 tests run: 5 passed, 1 skipped", 5, 0, 1);
        check(
            Runner::Nextest,
            "     Summary [  12.000s] 9 tests run: 6 passed (1 slow, 1 leaky), 2 failed, 1 timed out, 0 skipped",
            6,
            3,
            0,
        );
        check(Runner::Nextest, "     Summary [  12.000s] 3/9 tests run: 1 passed, 1 failed, 1 exec failed, 0 skipped", 1, 2, 0);
        check(Runner::Libtest, "test result: ok. 7 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s", 7, 0, 2);
        check(Runner::Own, "312 passed, 4 failed", 312, 4, 0);
        check(Runner::Own, "312 passed, 4 failed, 1 skipped", 312, 4, 1);
        check(Runner::Own, "joins.sqltest: 20 passed, 0 failed", 0, 0, 0);
        check(Runner::Own, "20 passed", 0, 0, 0);
        check(Runner::Own, "the test failed", 0, 0, 0);
    }
}
