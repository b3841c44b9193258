//! `hearth d1 delete`: asks first, because nothing brings a database back.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::database_path;
use crate::{client::Client, failure::Failure, printer::Printer, shell::Shell, table::Table};

/// Delete a database and all that is in it
///
/// There is no undelete: this release has no Time Travel yet, and a backup is the only way back.
/// `hearth d1 export NAME --output NAME.sql` writes one, and `hearth d1 create` with `hearth d1 import` restore it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or id
    database: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Runs the command.
///
/// # Errors
/// If there is no such database, or nobody could be asked.
pub(crate) fn run(args: &Args, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let path = database_path(&args.database);
    let database = client.get(&path)?;
    let (name, uuid) = (text(&database["name"]), text(&database["uuid"]));
    let quoted = Shell::Sh.quote(name);
    let backup = format!("hearth d1 export {quoted} --output {quoted}.sql");
    if !args.yes {
        if !printer.can_ask() {
            return Err(Failure::usage(format!("`{name}` was not deleted: nobody can be asked here (expected -y)"))
                .hint(format!("there is no undelete; keep a copy with `{backup}`, then repeat with -y")));
        }
        printer.note(&format!("There is no undelete: this release has no Time Travel yet. Keep a copy first: {backup}"));
        if !printer.confirm(&format!("Delete `{name}` ({uuid}) and all that is in it?"))? {
            return Err(Failure::new(format!("`{name}` was not deleted")));
        }
    }
    // By id, so that a database which took the name meanwhile is safe.
    client.delete(&database_path(uuid))?;
    let mut table = Table::new(["deleted", "uuid"]);
    table.push([name, uuid]);
    printer.result(&json!({ "deleted": name, "uuid": uuid }), &table)?;
    printer.note("it cannot be undeleted; to restore a copy: `hearth d1 create NAME`, then `hearth d1 import NAME FILE`");
    Ok(ExitCode::SUCCESS)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
