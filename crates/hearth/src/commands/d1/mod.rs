//! `hearth d1`: databases over REST, as wrangler does it.

mod create;
mod delete;
mod execute;
mod export;
mod import;
mod info;
mod list;
mod migrations;

use std::{process::ExitCode, thread, time::Duration};

use base::{Clock, SystemClock};
use clap::Subcommand;
use serde_json::Value;

use crate::{
    client::{Client, segment},
    failure::Failure,
    printer::Printer,
    table::Table,
    target::{Target, TargetFlags},
    variables,
};

/// Path of the databases inside the account.
pub(crate) const DATABASES: &str = "/d1/database";
/// Time after which an import or export is no longer waited for.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);
/// Pause between two questions. The server holds each back for about a second while nothing is new,
/// so this only matters if it does not.
const POLL_PAUSE: Duration = Duration::from_millis(50);

/// Work with D1 databases
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetFlags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::Args),
    List(list::Args),
    Info(info::Args),
    Execute(execute::Args),
    Import(import::Args),
    Export(export::Args),
    Delete(delete::Args),
    Migrations(migrations::Args),
}

/// Runs the command.
///
/// # Errors
/// The command's own failure.
pub(crate) fn run(args: &Args, printer: &Printer) -> Result<ExitCode, Failure> {
    // What needs no server must not ask for an address or a key.
    if let Command::Migrations(migrations) = &args.command
        && let Some(outcome) = migrations::run_offline(migrations, printer)
    {
        return outcome;
    }
    let client = Client::new(Target::find(&args.target, &variables::read)?);
    match &args.command {
        Command::Create(args) => create::run(args, &client, printer),
        Command::List(args) => list::run(args, &client, printer),
        Command::Info(args) => info::run(args, &client, printer),
        Command::Execute(args) => execute::run(args, &client, printer),
        Command::Import(args) => import::run(args, &client, printer),
        Command::Export(args) => export::run(args, &client, printer),
        Command::Delete(args) => delete::run(args, &client, printer),
        Command::Migrations(args) => migrations::run(args, &client, printer),
    }
}

/// Path of one database, by name or id.
pub(crate) fn database_path(name_or_id: &str) -> String {
    format!("{DATABASES}/{}", segment(name_or_id))
}

/// A JSON value as the text of a cell: texts bare, null as `NULL`, anything else as JSON.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// An object as a table of two columns; members that are null are left out.
fn object_table(object: &Value) -> Table {
    let mut table = Table::new(["field", "value"]);
    for (name, value) in object.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let value = match value.get("mode") {
            Some(mode) => cell(mode),
            None => cell(value),
        };
        table.push([name.clone(), value]);
    }
    table
}

/// Asks `poll` until it gives an outcome. It gets the bookmark of the answer before and returns the next one.
fn wait_for<T>(first: Step<T>, mut poll: impl FnMut(&str) -> Result<Step<T>, Failure>) -> Result<T, Failure> {
    let clock = SystemClock::default();
    let mut step = first;
    loop {
        match step {
            Step::Done(outcome) => return Ok(outcome),
            Step::Again(bookmark) if clock.monotonic() < TRANSFER_TIMEOUT => {
                thread::sleep(POLL_PAUSE);
                step = poll(&bookmark)?;
            }
            Step::Again(_) => {
                let hours = TRANSFER_TIMEOUT.as_secs() / 3_600;
                return Err(Failure::new(format!("still running after {hours} hours; no longer waited for"))
                    .hint("the server goes on: look at its log, and at the database with `hearth d1 info`"));
            }
        }
    }
}

/// One answer of a long operation.
enum Step<T> {
    /// Ask again with this bookmark.
    Again(String),
    /// It has ended.
    Done(T),
}
