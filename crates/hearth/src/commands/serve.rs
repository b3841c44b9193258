//! `hearth serve`: runs the server until it is told to stop.

use std::process::ExitCode;

use crate::{
    config::{Flags, Settings},
    failure::Failure,
    node::{self, IfTaken, Node},
    printer::Printer,
    signals, variables,
};

/// Run the server
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Show every setting with where it came from, and end
    #[arg(long)]
    print_config: bool,
}

/// Runs the command.
///
/// # Errors
/// If a setting is wrong, the folder is in use or damaged, or the address cannot be had.
pub(crate) fn run(args: &Args, printer: &Printer) -> Result<ExitCode, Failure> {
    let settings = Settings::load(&args.flags, &variables::read)?;
    if args.print_config {
        printer.result(&settings.json(), &settings.table())?;
        return Ok(ExitCode::SUCCESS);
    }
    node::start_log(&settings);
    node::runtime()?.block_on(async {
        let stop = signals::stop()?;
        let node = Node::open(&settings, IfTaken::Fail).await?;
        if !node.address.ip().is_loopback() {
            printer.warn(&format!(
                "{} can be reached from other machines, and Hearth speaks plain HTTP: put a proxy with TLS before it, or listen on 127.0.0.1",
                node.address
            ));
        }
        printer.note(&format!("listening on {}", node.url));
        node.run(stop).await
    })?;
    printer.note("stopped");
    Ok(ExitCode::SUCCESS)
}
