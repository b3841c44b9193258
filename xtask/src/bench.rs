//! `cargo xtask bench`: the crate `benches`, optimised.

use std::{fs, path::Path};

use crate::{process, steps::Steps};

/// Runs each binary of `benches/src/bin` with `args`, then the divan benchmarks of `benches/benches`
/// if there are any. Returns whether all ran well; no benchmark at all is a failure.
pub(crate) fn run(root: &Path, args: &[String]) -> bool {
    let mut steps = Steps::new(true);
    for name in programs(&root.join("benches/src/bin")) {
        steps.step("bench", |_| {
            let mut cargo = process::cargo(root);
            cargo.args(["run", "--release", "--locked", "--package", "hearth-benches", "--bin", &name, "--"]).args(args);
            process::run(cargo, process::LONG)
        });
    }
    if !programs(&root.join("benches/benches")).is_empty() {
        steps.step("cargo bench", |_| {
            let mut cargo = process::cargo(root);
            cargo.args(["bench", "--locked", "--package", "hearth-benches", "--"]).args(args);
            process::run(cargo, process::LONG)
        });
    }
    if steps.list().is_empty() {
        eprintln!("error: the crate `benches` has no benchmark (expected a file in benches/src/bin or benches/benches)");
        return false;
    }
    steps.finish()
}

/// Names of the Rust files in a folder, sorted; empty if there is no such folder.
fn programs(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned)).collect();
    names.sort();
    names
}
