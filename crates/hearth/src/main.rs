//! The `hearth` binary: runs the server, and talks to one over the same HTTP that wrangler speaks.
//!
//! It stands above every other crate and holds no service logic of its own. The one design decision:
//! client commands reach a server through its public API only, never through the data folder, so
//! whatever they can do a script can do too. `serve` and `demo` put a server together; `doctor` looks
//! at a data folder without changing it.
//!
//! Data goes to standard output and everything else to standard error; errors are `error: …`, then
//! `hint: …`. Exit codes: 0 done, 1 failed, 2 called in the wrong way, 70 the commit log gave up.

mod cli;
mod client;
mod commands;
mod config;
mod duration;
mod failure;
mod lock;
mod node;
mod owner_key;
mod printer;
mod progress;
mod shell;
mod signals;
mod table;
mod target;
mod variables;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let printer = printer::Printer::new(cli.json);
    variables::check().and_then(|()| cli::run(&cli, &printer)).unwrap_or_else(|failure| {
        printer.failure(&failure);
        ExitCode::from(failure.exit)
    })
}
