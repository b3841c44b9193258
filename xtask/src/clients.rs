//! The real clients: installs them pinned, starts a server, and runs `conformance/clients/all.mjs`.

use std::{path::Path, process::Command, time::Duration};

use crate::{
    counts::{Counts, Runner},
    process::{self, exists},
    server::Server,
    steps::{Steps, Stop},
};

const FOLDER: &str = "conformance/clients";
const INSTALL: Duration = Duration::from_secs(10 * 60);
const RUN: Duration = Duration::from_secs(25 * 60);

/// Adds the steps of the real clients to a run.
///
/// `all.mjs` gets `HEARTH_URL`, `HEARTH_KEY` (the owner's), `HEARTH_BIN` (absolute path of the binary)
/// and `CI=true` in a strict run. It must end with a line `N passed, N failed`.
pub(crate) fn steps(root: &Path, release: bool, strict: bool, steps: &mut Steps) {
    let installed = steps.step("clients: npm ci", |_| install(root));
    let built = steps.step("clients: build hearth", |_| build(root, release));
    steps.step("clients: run", |counts| {
        if !(installed && built) {
            return Err(Stop::Skipped("an earlier step did not pass".to_owned()));
        }
        run(root, release, strict, counts)
    });
}

fn install(root: &Path) -> Result<(), Stop> {
    for program in ["node", "npm"] {
        if !exists(program) {
            return Err(Stop::Skipped(format!("`{program}` is not on the PATH; install Node 20.3 or newer to run the real clients")));
        }
    }
    let mut npm = Command::new("npm");
    npm.current_dir(root.join(FOLDER)).args(["ci", "--ignore-scripts"]);
    // No package here needs an install script to work, so none is run.
    process::run(npm, INSTALL).map_err(|stop| {
        Stop::Failed(format!("{stop}\n  hint: npm ci needs the network once, and a package-lock.json that fits package.json in {FOLDER}"))
    })
}

fn build(root: &Path, release: bool) -> Result<(), Stop> {
    let mut cargo = process::cargo(root);
    cargo.args(["build", "--locked", "--package", "hearth"]).args(release.then_some("--release"));
    process::run(cargo, process::LONG)
}

fn run(root: &Path, release: bool, strict: bool, counts: &mut Counts) -> Result<(), Stop> {
    let binary = target(root)?.join(if release { "release" } else { "debug" }).join("hearth");
    let server = Server::start(&binary)?;
    let mut node = Command::new("node");
    node.current_dir(root.join(FOLDER)).arg("all.mjs");
    node.env("HEARTH_URL", server.url()).env("HEARTH_KEY", server.owner_key()?).env("HEARTH_BIN", &binary);
    if strict {
        node.env("CI", "true");
    }
    let clients = process::run_counting(node, RUN, Runner::Own, counts).and_then(|()| {
        if counts.passed > 0 { Ok(()) } else { Err(Stop::Failed("all.mjs ended without a line `N passed, N failed`".to_owned())) }
    });
    if clients.is_err() {
        eprintln!("the server's last lines:\n{}", server.log_tail());
    }
    clients.and(server.stop())
}

/// The folder that cargo builds into.
fn target(root: &Path) -> Result<std::path::PathBuf, Stop> {
    let mut cargo = process::cargo(root);
    cargo.args(["metadata", "--format-version=1", "--no-deps", "--locked"]);
    let output = cargo.output().map_err(|e| Stop::Failed(format!("`cargo metadata` did not start: {e}")))?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| Stop::Failed(format!("`cargo metadata` gave no JSON ({}): {e}", output.status)))?;
    match metadata["target_directory"].as_str() {
        Some(path) => Ok(path.into()),
        None => Err(Stop::Failed("`cargo metadata` names no target_directory".to_owned())),
    }
}
