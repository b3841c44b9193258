//! `cargo xtask test`: everything that must pass before a change is merged.

use std::{path::Path, time::Duration};

use crate::{
    clients,
    counts::{Counts, Runner},
    process,
    steps::{Steps, Stop},
    tidy,
};

/// What to leave out and how strict to be.
pub(crate) struct Options {
    /// Leave the real clients out.
    pub(crate) quick: bool,
    /// Build the clients' server optimised.
    pub(crate) release: bool,
    /// A step that cannot run here is a failure.
    pub(crate) strict: bool,
}

/// Runs all steps, also after one failed, so that one run shows everything. Returns whether all passed.
pub(crate) fn run(root: &Path, options: &Options) -> bool {
    let mut steps = Steps::new(options.strict);
    steps.step("fmt", |_| {
        let mut cargo = process::cargo(root);
        cargo.args(["fmt", "--all", "--check"]);
        process::run(cargo, process::SHORT).map_err(|stop| Stop::Failed(format!("{stop}\n  hint: run `cargo xtask fmt`")))
    });
    steps.step("tidy", |_| tidy::run(root));
    steps.step("clippy", |_| {
        let mut cargo = process::cargo(root);
        cargo.args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]);
        process::run(cargo, process::LONG)
    });
    steps.step("tests", |counts| tests(root, &Settings::default(), counts, |_| {}));
    steps.step("doc tests", |counts| {
        let mut cargo = process::cargo(root);
        cargo.args(["test", "--workspace", "--doc", "--locked"]);
        process::run_counting(cargo, process::LONG, Runner::Libtest, counts)
    });
    if options.quick {
        eprintln!("\n--quick: the real clients are left out");
    } else {
        clients::steps(root, options.release, options.strict, &mut steps);
    }
    steps.finish()
}

/// How [`tests`] runs.
pub(crate) struct Settings<'a> {
    /// Further arguments for nextest. With any, `cargo test` shows what passing tests print, too.
    pub(crate) nextest_args: &'a [&'a str],
    /// Environment that the tests read.
    pub(crate) environment: &'a [(&'a str, String)],
    /// Time limit of the whole run.
    pub(crate) limit: Duration,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self { nextest_args: &[], environment: &[], limit: process::LONG }
    }
}

/// All Rust tests but the doc tests, through nextest where it is installed. `line` gets each output line.
///
/// # Errors
/// [`Stop::Failed`] if a test fails.
pub(crate) fn tests(root: &Path, settings: &Settings<'_>, counts: &mut Counts, mut line: impl FnMut(&str)) -> Result<(), Stop> {
    let mut probe = process::cargo(root);
    probe.args(["nextest", "--version"]);
    let mut cargo = process::cargo(root);
    cargo.envs(settings.environment.iter().map(|(name, value)| (name, value)));
    let runner = if process::first_line(probe).is_some() {
        cargo.args(["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]).args(settings.nextest_args);
        Runner::Nextest
    } else {
        eprintln!("cargo-nextest is not installed: `cargo test` runs the same tests, slower and without a limit for each test");
        cargo.args(["test", "--workspace", "--lib", "--bins", "--tests", "--locked", "--no-fail-fast"]);
        if !settings.nextest_args.is_empty() {
            cargo.args(["--", "--nocapture"]);
        }
        Runner::Libtest
    };
    process::run_reading(cargo, settings.limit, |text| {
        *counts += Counts::of_line(runner, text);
        line(text);
    })
}
