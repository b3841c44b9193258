//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{commands, failure::Failure, printer::Printer};

/// Cloudflare's data platform on a machine you own
#[derive(Debug, Parser)]
#[command(name = "hearth", version, propagate_version = true, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// Print results as JSON
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<commands::serve::Args>),
    Demo(commands::demo::Args),
    Env(commands::env::Args),
    D1(Box<commands::d1::Args>),
    Doctor(commands::doctor::Args),
    Token(commands::token::Args),
    Completions(commands::completions::Args),
}

/// Runs the command that was asked for.
///
/// # Errors
/// The command's failure.
pub(crate) fn run(cli: &Cli, printer: &Printer) -> Result<ExitCode, Failure> {
    match &cli.command {
        Command::Serve(args) => commands::serve::run(args, printer),
        Command::Demo(args) => commands::demo::run(args, printer),
        Command::Env(args) => commands::env::run(args, printer),
        Command::D1(args) => commands::d1::run(args, printer),
        Command::Doctor(args) => commands::doctor::run(args, printer),
        Command::Token(args) => commands::token::run(args, printer),
        Command::Completions(args) => commands::completions::run(args, printer),
    }
}
