//! `cargo xtask soak`: the same tests with long settings, and a result file that says what ran.

use std::{fs, hash::BuildHasher, path::Path, time::Duration};

use crate::{
    date, process,
    steps::{Steps, Stop},
    test,
};

/// What tests read to run long, with the value that a soak gives. Without the variable a test runs
/// its short form. The table in CONTRIBUTING.md says what each means.
const SETTINGS: [(&str, &str); 4] = [
    ("HEARTH_SOAK_CRASH_POINTS", "20000"),
    ("HEARTH_SOAK_KILL_ROUNDS", "200"),
    ("HEARTH_SOAK_IMPORT_BYTES", "1000000000"),
    ("PROPTEST_CASES", "20000"),
];

/// Time limit of the whole soak.
const LIMIT: Duration = Duration::from_secs(12 * 3_600);

/// A test's output line that begins so is copied into the result file.
const FIGURE: &str = "soak: ";
/// Figures kept; more than this is a test that prints in a loop.
const FIGURES_MAX: usize = 500;

/// Runs all Rust tests long and writes `docs/results/<date>-soak-<commit>.md`, whether they pass or not.
/// Returns whether they passed and the file was written.
pub(crate) fn run(root: &Path, seed: Option<u64>) -> bool {
    let seed = seed.unwrap_or_else(|| std::hash::RandomState::new().hash_one(std::process::id()));
    eprintln!("seed {seed}: repeat with `cargo xtask soak --seed {seed}`");
    let mut environment: Vec<(&str, String)> =
        SETTINGS.iter().map(|&(name, value)| (name, std::env::var(name).unwrap_or_else(|_| value.to_owned()))).collect();
    environment.push(("HEARTH_SOAK_SEED", seed.to_string()));
    environment.push(("PROPTEST_RNG_SEED", seed.to_string()));

    let mut figures = Vec::new();
    let mut steps = Steps::new(true);
    steps.step("tests, long", |counts| {
        let settings = test::Settings {
            nextest_args: &["--profile", "soak", "--success-output", "immediate"],
            environment: &environment,
            limit: LIMIT,
        };
        test::tests(root, &settings, counts, |line| {
            if let Some((_, figure)) = line.split_once(FIGURE)
                && figures.len() < FIGURES_MAX
            {
                figures.push(figure.trim().to_owned());
            }
        })
    });
    let passed = steps.finish();
    let text = result(root, &environment, &steps, &figures);
    let commit = commit(root);
    let path = root.join(format!("docs/results/{}-soak-{}.md", date::today(), &commit[..commit.len().min(10)]));
    let written = fs::create_dir_all(root.join("docs/results")).and_then(|()| fs::write(&path, text));
    match &written {
        Ok(()) => eprintln!("result: {}", path.strip_prefix(root).unwrap_or(&path).display()),
        Err(error) => eprintln!("error: the result file could not be written: {error}"),
    }
    passed && written.is_ok()
}

/// The result file. It names no path and no host of the machine.
fn result(root: &Path, environment: &[(&str, String)], steps: &Steps, figures: &[String]) -> String {
    let dirty = git(root, &["status", "--porcelain", "--untracked-files=no"]).is_some();
    let mut rustc = std::process::Command::new("rustc");
    rustc.arg("--version");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text = format!(
        "# Soak of {}\n\n- commit: `{}`{}\n- compiler: {}\n- cores: {cores}\n",
        date::today(),
        commit(root),
        if dirty { ", with uncommitted changes" } else { "" },
        process::first_line(rustc).unwrap_or_else(|| "unknown".to_owned()),
    );
    for (name, value) in environment {
        text += &format!("- `{name}={value}`\n");
    }
    for step in steps.list() {
        let outcome = match &step.stop {
            None => "passed".to_owned(),
            Some(Stop::Failed(why) | Stop::Skipped(why)) => format!("FAILED: {why}"),
        };
        text += &format!(
            "\n## {}\n\n{outcome}: {} tests passed, {} failed, in {:.0} s\n",
            step.name, step.counts.passed, step.counts.failed, step.seconds
        );
    }
    text += "\n## Figures that the tests printed\n\n";
    for figure in figures {
        text += &format!("- {figure}\n");
    }
    if figures.is_empty() {
        text += "None.\n";
    }
    text
}

fn commit(root: &Path) -> String {
    git(root, &["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned())
}

/// First line of a git command; `None` too where git or the repository is missing.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let mut command = std::process::Command::new("git");
    command.current_dir(root).args(args);
    process::first_line(command)
}
