//! `hearth token`: API tokens over REST. The secret is shown once, alone on standard output.

use std::process::ExitCode;

use api::token::{CreateToken, Token};
use base::{Clock, SystemClock, Timestamp};
use clap::Subcommand;
use serde_json::json;

use crate::{
    client::{Client, segment, typed},
    duration,
    failure::Failure,
    printer::Printer,
    table::Table,
    target::{Target, TargetFlags},
    variables,
};

/// Path of the tokens inside the account.
const TOKENS: &str = "/tokens";

/// Make, list and revoke API tokens
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
    /// Make a token; its secret is shown now and never again
    Create {
        /// What it is for
        #[arg(long)]
        name: String,
        /// What it allows, service:resource:access, for example d1:*:read or d1:shop:write; may be given several times
        #[arg(long = "scope", required = true, value_name = "SCOPE")]
        scopes: Vec<String>,
        /// When it ends: 90s, 15m, 12h, 30d, 2w from now, or a time such as 2027-01-31T00:00:00Z; never if left out
        #[arg(long, value_name = "WHEN")]
        expires: Option<String>,
    },
    /// List tokens, newest first, revoked ones too; secrets are not stored and not shown
    List,
    /// End a token at once
    Revoke {
        /// Its id, as `token list` shows it
        id: String,
    },
}

/// Runs the command.
///
/// # Errors
/// If a scope or time is wrong, or the server refuses.
pub(crate) fn run(args: &Args, printer: &Printer) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Create { name, scopes, expires } => {
            let expires_on = expires.as_ref().map(|when| expiry(when, SystemClock::default().now())).transpose()?;
            for scope in scopes {
                scope.parse::<base::Scope>().map_err(|error| Failure::usage(error.message))?;
            }
            let body = CreateToken { name: name.clone(), scopes: scopes.clone(), expires_on };
            create(&connect(args)?, &body, printer)?;
        }
        Command::List => list(&connect(args)?, printer)?,
        Command::Revoke { id } => revoke(&connect(args)?, id, printer)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn connect(args: &Args) -> Result<Client, Failure> {
    Ok(Client::new(Target::find(&args.target, &variables::read)?))
}

fn create(client: &Client, body: &CreateToken, printer: &Printer) -> Result<(), Failure> {
    let answer = client.post(TOKENS, body)?;
    let token: Token = typed(answer.clone())?;
    let Some(secret) = &token.value else {
        return Err(Failure::new("the server made a token but did not send its secret").hint(format!("hearth token revoke {}", token.id)));
    };
    if printer.is_json() {
        printer.json_value(&answer)?;
    } else {
        printer.line(secret)?;
    }
    let end = token.expires_on.as_deref().unwrap_or("never");
    printer.note(&format!("token {} `{}`: {}; expires {end}", token.id, token.name, token.scopes.join(", ")));
    printer.note("the line above is its secret, shown only now; use it as HEARTH_KEY or CLOUDFLARE_API_TOKEN");
    Ok(())
}

fn list(client: &Client, printer: &Printer) -> Result<(), Failure> {
    let tokens = client.list(TOKENS)?;
    let mut table = Table::new(["id", "name", "status", "scopes", "issued_on", "expires_on"]);
    for token in &tokens {
        let token: Token = typed(token.clone())?;
        table.push([token.id, token.name, token.status, token.scopes.join(" "), token.issued_on, token.expires_on.unwrap_or_default()]);
    }
    printer.result(&tokens, &table)?;
    if tokens.is_empty() {
        printer.note("no tokens; make one with `hearth token create --name NAME --scope d1:*:read`");
    }
    Ok(())
}

fn revoke(client: &Client, id: &str, printer: &Printer) -> Result<(), Failure> {
    client.delete(&format!("{TOKENS}/{}", segment(id)))?;
    let mut table = Table::new(["revoked"]);
    table.push([id]);
    printer.result(&json!({ "revoked": id }), &table)
}

/// The end of a token as RFC 3339.
fn expiry(when: &str, now: Timestamp) -> Result<String, Failure> {
    let after = duration::parse(when).and_then(|duration| i64::try_from(duration.as_millis()).ok()).and_then(|ms| now.0.checked_add(ms));
    let at = match after {
        Some(at) => Timestamp(at),
        None => api::time::parse("--expires", when).map_err(|_| {
            let expected = "expected a length such as `12h` or `30d`, or a time such as `2027-01-31T00:00:00Z`";
            Failure::usage(format!("wrong --expires `{when}`: {expected}"))
        })?,
    };
    Ok(api::time::iso(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_length_from_now_or_a_time() {
        let now = Timestamp(1_785_040_579_832);
        assert_eq!(expiry("30d", now).unwrap(), "2026-08-25T04:36:19.832Z");
        assert_eq!(expiry("2027-01-31T02:00:00+02:00", now).unwrap(), "2027-01-31T00:00:00.000Z");
        for when in ["", "soon", "30", "2027-01-31", "99999999999999d"] {
            assert_eq!(expiry(when, now).unwrap_err().exit, 2, "{when}");
        }
    }
}
