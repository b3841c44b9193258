//! `hearth env`: the variables that point wrangler, the SDK and this program at a server.

use std::process::ExitCode;

use base::AccountId;
use serde_json::Value;

use crate::{
    failure::Failure,
    printer::Printer,
    shell::Shell,
    target::{Target, TargetFlags},
    variables,
};

/// Print exports for wrangler and the SDK: eval "$(hearth env)"
///
/// What it prints holds the owner's key (or the token in HEARTH_KEY). For fish: `hearth env --shell fish | source`;
/// for PowerShell: `hearth env --shell powershell | Out-String | Invoke-Expression`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetFlags,
    /// The shell that shall read it
    #[arg(long, value_enum, default_value = "sh")]
    shell: Shell,
}

/// Runs the command.
///
/// # Errors
/// If there is no key.
pub(crate) fn run(args: &Args, printer: &Printer) -> Result<ExitCode, Failure> {
    let target = Target::find(&args.target, &variables::read)?;
    let exports = exports(&target);
    if printer.is_json() {
        let object = exports.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value)));
        printer.json_value(&Value::Object(object.collect()))?;
    } else {
        for (name, value) in exports {
            printer.line(&args.shell.export(name, &value))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Variables and their values. The account is named for our own commands only if it is not the default one.
fn exports(target: &Target) -> Vec<(&'static str, String)> {
    let api = format!("{}/client/v4", target.url);
    let key = target.key.reveal();
    let account = target.account.as_str();
    let mut exports = vec![
        (variables::CLOUDFLARE_API_BASE_URL, api.clone()),
        (variables::CLOUDFLARE_BASE_URL, api),
        (variables::CLOUDFLARE_API_TOKEN, key.to_owned()),
        (variables::CLOUDFLARE_ACCOUNT_ID, account.to_owned()),
        (variables::HEARTH_URL, target.url.clone()),
        (variables::HEARTH_KEY, key.to_owned()),
    ];
    if account != AccountId::DEFAULT {
        exports.push((variables::HEARTH_ACCOUNT_ID, account.to_owned()));
    }
    exports
}
