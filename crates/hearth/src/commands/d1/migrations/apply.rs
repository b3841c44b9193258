//! `hearth d1 migrations apply`: runs what is pending, each file as one transaction with its row in the ledger.

use std::process::ExitCode;

use serde_json::json;

use super::{
    Places, folder,
    ledger::Ledger,
    list,
    sql_text::{Tail, tail},
};
use crate::{client::Client, failure::Failure, printer::Printer, table::Table};

/// Apply pending migrations, stopping at the first that fails
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or id
    database: String,
}

/// Runs the command.
///
/// # Errors
/// Names the migration that failed. Those before it stay applied; nothing of it took effect.
pub(super) fn run(args: &Args, places: &Places, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let ledger = Ledger::new(client, &args.database, &places.migrations_table)?;
    let pending = list::pending(places, &ledger)?;
    if pending.is_empty() {
        printer.result(&json!([]), &Table::new(["migration", "status"]))?;
        printer.note("no migrations to apply");
        return Ok(ExitCode::SUCCESS);
    }
    ledger.make()?;
    let mut outcomes = Vec::new();
    let mut failed = None;
    for name in &pending {
        let status = if failed.is_some() {
            "not run"
        } else {
            match apply(places, &ledger, name) {
                Ok(()) => {
                    printer.note(&format!("applied {name}"));
                    "applied"
                }
                Err(failure) => {
                    failed = Some(describe(failure, name, outcomes.len()));
                    "failed"
                }
            }
        };
        outcomes.push((name, status));
    }
    let mut table = Table::new(["migration", "status"]);
    for (name, status) in &outcomes {
        table.push([name.as_str(), status]);
    }
    let json: Vec<_> = outcomes.iter().map(|(name, status)| json!({ "name": name, "status": status.replace(' ', "_") })).collect();
    printer.result(&json, &table)?;
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

fn apply(places: &Places, ledger: &Ledger<'_>, name: &str) -> Result<(), Failure> {
    let sql = folder::read(&places.migrations_dir, name)?;
    let sql = match tail(&sql) {
        Tail::Empty => String::new(),
        Tail::Complete => format!("{sql}\n"),
        // On a line of its own, for the text may end with a remark.
        Tail::Open => format!("{sql}\n;\n"),
        Tail::Unterminated(opened) => {
            return Err(Failure::new(format!("it ends inside what {opened} opened")).hint("close it: what follows would be lost in it"));
        }
    };
    ledger.apply(&sql, name)
}

fn describe(failure: Failure, name: &str, n_applied: usize) -> Failure {
    let hint = failure.hint.unwrap_or_else(|| "mend the file and run the command again: it goes on with this one".to_owned());
    Failure::new(format!("{name} failed, {n_applied} before it applied: {}", failure.message)).hint(hint)
}
