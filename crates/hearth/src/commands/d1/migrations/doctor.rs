//! `hearth d1 migrations doctor`: where folder and ledger disagree.

use std::{
    collections::{BTreeMap, HashSet},
    process::ExitCode,
};

use serde::Serialize;

use super::{Places, folder, ledger::Ledger};
use crate::{client::Client, failure::Failure, printer::Printer, table::Table};

/// Compare files and ledger in both directions; exit code 1 if they disagree
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or id
    database: String,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Report {
    /// Files in the folder.
    files: usize,
    /// Rows in the ledger.
    ledger_rows: usize,
    /// The row that sorts last.
    latest_applied: Option<String>,
    /// Files that `apply` would run.
    files_without_ledger_row: Vec<String>,
    /// Of these, the ones that sort before a file that is applied: most often their change was made by hand.
    out_of_order: Vec<String>,
    /// Rows whose file is gone or was renamed.
    ledger_rows_without_file: Vec<String>,
    /// Files that share a number.
    same_number: Vec<Vec<String>>,
}

/// Runs the command. Changes nothing.
///
/// # Errors
/// If the folder or the database cannot be read.
pub(super) fn run(args: &Args, places: &Places, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let files = folder::names(&places.migrations_dir)?;
    let applied = Ledger::new(client, &args.database, &places.migrations_table)?.names()?;
    let report = compare(&files, &applied);
    if printer.is_json() || !report.is_clean() {
        printer.result(&report, &table(&report))?;
    }
    printer.note(&format!(
        "{} files, {} rows in the ledger, latest {}",
        report.files,
        report.ledger_rows,
        report.latest_applied.as_deref().unwrap_or("none")
    ));
    if report.is_clean() {
        return Ok(ExitCode::SUCCESS);
    }
    if !report.out_of_order.is_empty() {
        printer
            .note("hint: if those changes are in the schema already, `hearth d1 migrations mark-applied` notes them without running them");
    }
    Ok(ExitCode::FAILURE)
}

impl Report {
    fn is_clean(&self) -> bool {
        self.files_without_ledger_row.is_empty() && self.ledger_rows_without_file.is_empty() && self.same_number.is_empty()
    }
}

fn compare(files: &[String], applied: &[String]) -> Report {
    let (in_folder, in_ledger): (HashSet<_>, HashSet<_>) = (files.iter().collect(), applied.iter().collect());
    let latest = applied.iter().max_by_key(|name| folder::order(name));
    let missing: Vec<String> = files.iter().filter(|name| !in_ledger.contains(name)).cloned().collect();
    let is_early = |name: &&String| latest.is_some_and(|latest| folder::order(name) < folder::order(latest));
    let mut numbers: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for name in files {
        if let Some(number) = folder::number(name) {
            numbers.entry(number).or_default().push(name.clone());
        }
    }
    Report {
        files: files.len(),
        ledger_rows: applied.len(),
        latest_applied: latest.cloned(),
        out_of_order: missing.iter().filter(is_early).cloned().collect(),
        files_without_ledger_row: missing,
        ledger_rows_without_file: applied.iter().filter(|name| !in_folder.contains(name)).cloned().collect(),
        same_number: numbers.into_values().filter(|names| names.len() > 1).collect(),
    }
}

fn table(report: &Report) -> Table {
    let mut table = Table::new(["problem", "migration", "remedy"]);
    for name in &report.files_without_ledger_row {
        if report.out_of_order.contains(name) {
            table.push(["not applied, but a later one is", name, "mark-applied if its change is there, else apply"]);
        } else {
            table.push(["not applied", name, "apply"]);
        }
    }
    for name in &report.ledger_rows_without_file {
        table.push(["applied, but the file is gone", name, "put the file back from version control"]);
    }
    for names in &report.same_number {
        table.push(["share a number", &names.join(", "), "renumber the one that is not applied"]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn both_directions_of_drift_are_found() {
        let files = names(&["0001_a.sql", "0002_b.sql", "0003_c.sql", "0003_d.sql", "0004_e.sql"]);
        let report = compare(&files, &names(&["0001_a.sql", "0003_c.sql", "0000_gone.sql"]));
        let expected = Report {
            files: 5,
            ledger_rows: 3,
            latest_applied: Some("0003_c.sql".into()),
            files_without_ledger_row: names(&["0002_b.sql", "0003_d.sql", "0004_e.sql"]),
            out_of_order: names(&["0002_b.sql"]),
            ledger_rows_without_file: names(&["0000_gone.sql"]),
            same_number: vec![names(&["0003_c.sql", "0003_d.sql"])],
        };
        assert_eq!(report, expected);
        assert!(!report.is_clean());
        assert_eq!(table(&report).tab_separated().lines().count(), 6);
    }

    #[test]
    fn agreement_is_clean() {
        assert!(compare(&names(&["0001_a.sql"]), &names(&["0001_a.sql"])).is_clean());
        assert!(compare(&[], &[]).is_clean());
    }
}
