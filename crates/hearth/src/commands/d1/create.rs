//! `hearth d1 create`.

use std::process::ExitCode;

use api::database::CreateDatabase;

use super::{DATABASES, object_table};
use crate::{client::Client, failure::Failure, printer::Printer, shell::Shell};

/// Create a database
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its name: 1 to 64 of A-Z a-z 0-9 _ -, not starting with -
    name: String,
    /// Where most writes come from, for example weur; kept and shown, without effect on one machine
    #[arg(long)]
    location: Option<String>,
    /// eu, fedramp or us; kept and shown
    #[arg(long, conflicts_with = "location")]
    jurisdiction: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// If the name is taken or wrong, or the account is full.
pub(crate) fn run(args: &Args, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let body = CreateDatabase {
        name: args.name.clone(),
        primary_location_hint: args.location.clone(),
        jurisdiction: args.jurisdiction.clone(),
        read_replication: None,
    };
    let database = client.post(DATABASES, &body)?;
    printer.result(&database, &object_table(&database))?;
    printer.note(&format!("created; try: hearth d1 execute {} --command \"SELECT 1\"", Shell::Sh.quote(&args.name)));
    Ok(ExitCode::SUCCESS)
}
