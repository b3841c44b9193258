//! `hearth doctor`: looks at a data folder without changing it, and says what is wrong and how to mend it.

mod catalogue;
mod commit_log;
mod files;
mod folder;

use std::{
    fmt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::Serialize;

use crate::{config::DATA_DEFAULT, failure::Failure, lock, printer::Printer, table::Table, variables};

/// Check a data folder: permissions, key, lock, space, log, files, catalogue; exit code 1 if anything is wrong
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The data folder [env: HEARTH_DATA] [default: hearth-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// How bad a finding is. `Warning` and `Error` make the exit code 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Works, and should be mended.
    Warning,
    /// Hearth cannot work with this, or data is in danger.
    Error,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    severity: Severity,
    /// What was looked at, in a word.
    check: &'static str,
    /// What was found.
    found: String,
    /// How to mend it; empty if nothing is wrong.
    remedy: String,
}

/// What the checks write to.
struct Report {
    findings: Vec<Finding>,
}

impl Report {
    fn add(&mut self, severity: Severity, check: &'static str, found: impl Into<String>, remedy: impl Into<String>) {
        self.findings.push(Finding { severity, check, found: found.into(), remedy: remedy.into() });
    }

    fn is_bad(&self) -> bool {
        self.findings.iter().any(|finding| matches!(finding.severity, Severity::Warning | Severity::Error))
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Runs the command.
///
/// # Errors
/// If the report cannot be printed. What is wrong with the folder is in the report and the exit code.
pub(crate) fn run(args: &Args, printer: &Printer) -> Result<ExitCode, Failure> {
    let data =
        args.data.clone().or_else(|| variables::read(variables::HEARTH_DATA).map(PathBuf::from)).unwrap_or_else(|| DATA_DEFAULT.into());
    let report = examine(&data);
    let mut table = Table::new(["severity", "check", "found", "remedy"]);
    for finding in &report.findings {
        table.push([&finding.severity.to_string(), finding.check, &finding.found, &finding.remedy]);
    }
    printer.result(&report.findings, &table)?;
    Ok(if report.is_bad() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn examine(data: &Path) -> Report {
    let mut report = Report { findings: Vec::new() };
    if !folder::check_folder(data, &mut report) {
        return report;
    }
    let running = folder::check_lock(data, lock::holder(data), &mut report);
    folder::check_key(data, variables::read(variables::HEARTH_KEY).is_some(), &mut report);
    folder::check_space(data, &mut report);
    match running {
        Some(holder) => {
            files::check(data, files::State::InMotion, &mut report);
            catalogue::check_running(data, &holder, &mut report);
        }
        None => {
            let logged = commit_log::check(data, &mut report);
            files::check(data, files::State::Stopped { logged: logged.as_ref() }, &mut report);
            catalogue::check_stopped(data, logged.as_ref(), &mut report);
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{DirBuilderExt, PermissionsExt},
    };

    use base::SystemRng;

    use super::*;
    use crate::owner_key;

    /// A folder as `serve` makes it, inside a temporary one.
    fn healthy() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        fs::DirBuilder::new().mode(0o700).create(&data).unwrap();
        owner_key::read_or_make(&data, &SystemRng).unwrap();
        (dir, data)
    }

    fn bad(data: &Path) -> Vec<(Severity, &'static str)> {
        let findings = examine(data).findings;
        let bad: Vec<_> = findings.iter().filter(|finding| finding.severity as u8 >= Severity::Warning as u8).collect();
        assert!(bad.iter().all(|finding| !finding.remedy.is_empty()), "{bad:?}");
        bad.iter().map(|finding| (finding.severity, finding.check)).collect()
    }

    /// The first 100 bytes of a database of `pages` pages of 4,096 bytes, and the rest as zeros.
    fn database(pages: usize) -> Vec<u8> {
        let mut bytes = vec![0; pages * 4_096];
        bytes[..16].copy_from_slice(b"SQLite format 3\0");
        bytes[16..18].copy_from_slice(&4_096u16.to_be_bytes());
        bytes
    }

    #[test]
    fn a_healthy_folder_has_nothing_wrong() {
        let (_dir, data) = healthy();
        fs::write(data.join("a.sqlite"), database(3)).unwrap();
        fs::write(data.join("empty.sqlite"), "").unwrap();
        assert_eq!(bad(&data), []);
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        assert_eq!(bad(Path::new("/nonexistent/hearth")), [(Severity::Error, "folder")]);
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(bad(file.path()), [(Severity::Error, "folder")]);
    }

    #[test]
    fn permissions_that_are_too_wide_are_found() {
        let (_dir, data) = healthy();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(bad(&data), [(Severity::Warning, "folder")]);
        fs::set_permissions(&data, fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(bad(&data), [(Severity::Error, "folder")]);
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(data.join(owner_key::KEY_FILE), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(bad(&data), [(Severity::Error, "key")]);
    }

    #[test]
    fn damaged_databases_and_leftovers_are_found() {
        let (_dir, data) = healthy();
        let sub = data.join("sub");
        fs::create_dir(&sub).unwrap();
        let mut torn = database(3);
        torn.truncate(3 * 4_096 - 1);
        let mut sized = database(1);
        sized[16..18].copy_from_slice(&1_000u16.to_be_bytes());
        for (name, bytes) in [("torn", torn), ("magic", vec![b'x'; 4_096]), ("short", b"SQLite".to_vec()), ("page", sized)] {
            let path = sub.join(format!("{name}.sqlite"));
            fs::write(&path, bytes).unwrap();
            assert_eq!(bad(&data), [(Severity::Error, "database")], "{name}");
            fs::remove_file(path).unwrap();
        }
        fs::write(data.join(owner_key::KEY_FILE_UNFINISHED), "").unwrap();
        assert_eq!(bad(&data), [(Severity::Warning, "leftover")]);
    }

    #[test]
    fn databases_without_their_catalogue_are_an_error() {
        let (_dir, data) = healthy();
        let folder = data.join("databases/6f");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("6f1a2f5e-27e0-4a35-9d7a-1e0d0f5ac3b1.db"), database(1)).unwrap();
        assert_eq!(bad(&data), [(Severity::Error, "catalogue")]);
    }

    #[test]
    fn while_a_server_runs_its_files_are_in_motion_and_not_judged() {
        let (_dir, data) = healthy();
        fs::write(data.join("a.sqlite"), vec![b'x'; 10]).unwrap();
        let lock = lock::DataLock::acquire(&data).unwrap();
        assert_eq!(bad(&data), []);
        let findings = examine(&data).findings;
        assert!(findings.iter().any(|finding| finding.check == "server" && finding.found.contains(&std::process::id().to_string())));
        drop(lock);
        assert_eq!(bad(&data), [(Severity::Error, "database")]);
    }
}
