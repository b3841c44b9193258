//! `hearth d1 migrations list`: exactly what `apply` would run.

use std::{collections::HashSet, process::ExitCode};

use serde_json::json;

use super::{Places, folder, ledger::Ledger};
use crate::{client::Client, failure::Failure, printer::Printer, table::Table};

/// List the migrations that are not applied, in the order in which they would run
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or id
    database: String,
}

/// Runs the command. Changes nothing.
///
/// # Errors
/// If the folder or the database cannot be read.
pub(super) fn run(args: &Args, places: &Places, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let pending = pending(places, &Ledger::new(client, &args.database, &places.migrations_table)?)?;
    let mut table = Table::new(["migration"]);
    for name in &pending {
        table.push([name.as_str()]);
    }
    printer.result(&pending.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(), &table)?;
    if pending.is_empty() {
        printer.note("no migrations to apply");
    }
    Ok(ExitCode::SUCCESS)
}

/// Files without a row in the ledger, in order.
pub(super) fn pending(places: &Places, ledger: &Ledger<'_>) -> Result<Vec<String>, Failure> {
    let mut names = folder::names(&places.migrations_dir)?;
    let applied: HashSet<_> = ledger.names()?.into_iter().collect();
    names.retain(|name| !applied.contains(name));
    Ok(names)
}
