//! `hearth d1 list`.

use std::process::ExitCode;

use super::{DATABASES, cell};
use crate::{client::Client, failure::Failure, printer::Printer, table::Table};

/// List databases, oldest first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
///
/// # Errors
/// If the server refuses.
pub(crate) fn run(_args: &Args, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let databases = client.list(DATABASES)?;
    let columns = ["name", "uuid", "created_at", "jurisdiction"];
    let mut table = Table::new(columns);
    for database in &databases {
        table.push(columns.map(|column| if database[column].is_null() { String::new() } else { cell(&database[column]) }));
    }
    printer.result(&databases, &table)?;
    if databases.is_empty() {
        printer.note("no databases; make one with `hearth d1 create NAME`");
    }
    Ok(ExitCode::SUCCESS)
}
