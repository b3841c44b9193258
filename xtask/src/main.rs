//! `cargo xtask`: what a person or CI runs on this repository.
//!
//! `test` is the whole gate: formatting, house rules (`tidy`), lints, all Rust tests, and the real
//! Cloudflare clients against a server that is built and started here. `soak` runs the same tests
//! long and keeps the result. The one design decision: every step runs as a child process with a
//! time limit and is counted, so that the last line says what was run and what was not.

mod bench;
mod clients;
mod counts;
mod date;
mod process;
mod server;
mod soak;
mod steps;
mod test;
mod tidy;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

const USAGE: &str = "usage: cargo xtask <command>

  test [--quick] [--release]   fmt check, tidy, clippy, all tests, then the real clients against a running server
                               --quick leaves the real clients out; --release builds that server optimised
  ci [--release]               the same as `test`, and a step that had to be skipped is a failure (as with CI=true)
  tidy                         only the house rules: crate edges, sizes, forbidden words, pinned versions
  fmt                          formats all Rust code
  soak [--seed N]              all Rust tests with the long settings HEARTH_SOAK_*; writes docs/results/<date>-soak-<commit>.md
  bench [arguments]            runs the binaries and benchmarks of the crate `benches`, optimised";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    match dispatch(&root, &args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Runs one command. `Ok(false)` is a failure that was already reported; `Err` is a wrong command line.
fn dispatch(root: &Path, args: &[String]) -> Result<bool, String> {
    let Some((command, rest)) = args.split_first() else {
        return Err("no command given".to_owned());
    };
    let env_strict = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    match command.as_str() {
        "ci" | "test" => {
            let quick = flag(rest, "--quick");
            let release = flag(rest, "--release");
            only(rest, &["--quick", "--release"])?;
            let strict = env_strict || command == "ci";
            if quick && command == "ci" {
                return Err("`ci` takes no --quick: it is the run that leaves nothing out (use `test --quick`)".to_owned());
            }
            Ok(test::run(root, &test::Options { quick, release, strict }))
        }
        "tidy" => {
            only(rest, &[])?;
            Ok(tidy::run(root).is_ok())
        }
        "fmt" => {
            only(rest, &[])?;
            let mut cargo = process::cargo(root);
            cargo.args(["fmt", "--all"]);
            Ok(report(process::run(cargo, process::SHORT)))
        }
        "soak" => {
            let seed = match rest {
                [] => None,
                [name, value] if name == "--seed" => {
                    Some(value.parse::<u64>().map_err(|e| format!("--seed is not a whole number (got `{value}`): {e}"))?)
                }
                _ => return Err(format!("soak takes nothing or `--seed N` (got `{}`)", rest.join(" "))),
            };
            Ok(soak::run(root, seed))
        }
        "bench" => Ok(bench::run(root, rest)),
        "help" | "--help" | "-h" => {
            eprintln!("{USAGE}");
            Ok(true)
        }
        other => Err(format!("no such command: `{other}`")),
    }
}

fn flag(args: &[String], name: &str) -> bool {
    args.iter().any(|arg| arg == name)
}

fn only(args: &[String], known: &[&str]) -> Result<(), String> {
    match args.iter().find(|arg| !known.contains(&arg.as_str())) {
        Some(arg) => Err(format!("argument not known: `{arg}`")),
        None => Ok(()),
    }
}

/// Prints why a single command stopped; the exit status follows from it.
fn report(result: Result<(), steps::Stop>) -> bool {
    match result {
        Ok(()) => true,
        Err(stop) => {
            eprintln!("error: {stop}");
            false
        }
    }
}

/// The workspace's root: the folder above this crate.
fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_line_is_refused_by_name() {
        let refused = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
            dispatch(&root(), &args).expect_err("the command line is wrong")
        };
        assert_eq!(refused(&[]), "no command given");
        assert_eq!(refused(&["tset"]), "no such command: `tset`");
        assert_eq!(refused(&["tidy", "--fix"]), "argument not known: `--fix`");
        assert!(refused(&["soak", "--seed", "x"]).starts_with("--seed is not a whole number (got `x`)"));
        assert!(refused(&["ci", "--quick"]).contains("leaves nothing out"));
    }
}
