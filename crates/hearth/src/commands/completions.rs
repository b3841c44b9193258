//! `hearth completions`: prints a script that teaches a shell our commands.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::{cli::Cli, failure::Failure, printer::Printer};

/// Print a completion script for a shell
///
/// For bash: `hearth completions bash > /etc/bash_completion.d/hearth`; for zsh, into a folder of
/// `$fpath` as `_hearth`; for fish, into `~/.config/fish/completions/hearth.fish`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

/// Runs the command.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn run(args: &Args, printer: &Printer) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hearth", &mut script);
    printer.text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
