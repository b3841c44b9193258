//! `hearth d1 migrations`: the same folder, ledger and order as wrangler's, and the repair of drift.

mod apply;
mod create;
mod doctor;
mod folder;
mod ledger;
mod list;
mod mark_applied;
mod sql_text;

use std::{path::PathBuf, process::ExitCode};

use clap::Subcommand;

use crate::{client::Client, failure::Failure, printer::Printer};

/// Create, list and apply migrations, and find and mend drift
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(flatten)]
    places: Places,
    #[command(subcommand)]
    command: Command,
}

/// Where migrations are kept.
#[derive(Debug, clap::Args)]
struct Places {
    /// Folder of the migration files
    #[arg(long, global = true, help_heading = "Migrations", value_name = "DIR", default_value = "migrations")]
    migrations_dir: PathBuf,
    /// Table that records what was applied
    #[arg(long, global = true, help_heading = "Migrations", value_name = "NAME", default_value = "d1_migrations")]
    migrations_table: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::Args),
    List(list::Args),
    Apply(apply::Args),
    Doctor(doctor::Args),
    MarkApplied(mark_applied::Args),
}

/// Runs what needs no server; `None` if the command needs one.
pub(crate) fn run_offline(args: &Args, printer: &Printer) -> Option<Result<ExitCode, Failure>> {
    match &args.command {
        Command::Create(create) => Some(create::run(create, &args.places, printer)),
        _ => None,
    }
}

/// Runs the command.
///
/// # Errors
/// The command's own failure.
pub(crate) fn run(args: &Args, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Create(create) => create::run(create, &args.places, printer),
        Command::List(list) => list::run(list, &args.places, client, printer),
        Command::Apply(apply) => apply::run(apply, &args.places, client, printer),
        Command::Doctor(doctor) => doctor::run(doctor, &args.places, client, printer),
        Command::MarkApplied(mark) => mark_applied::run(mark, &args.places, client, printer),
    }
}
