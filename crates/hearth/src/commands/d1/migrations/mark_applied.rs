//! `hearth d1 migrations mark-applied`: notes migrations whose change was made by hand.

use std::{path::Path, process::ExitCode};

use serde_json::json;

use super::{Places, folder, ledger::Ledger, list};
use crate::{client::Client, failure::Failure, printer::Printer, table::Table};

/// Note migrations as applied without running them
///
/// For changes that are in the schema already, made with `execute`. Look with `migrations doctor` first.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(crate) struct Args {
    /// Name or id
    database: String,
    /// Files of the migrations folder
    #[arg(group = "which", value_name = "MIGRATION")]
    names: Vec<String>,
    /// All files that the ledger lacks
    #[arg(long, group = "which")]
    all: bool,
}

/// Runs the command: all the names are noted, or none.
///
/// # Errors
/// If a name is no file of the folder, or the database refuses.
pub(super) fn run(args: &Args, places: &Places, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let ledger = Ledger::new(client, &args.database, &places.migrations_table)?;
    let mut names = list::pending(places, &ledger)?;
    if !args.all {
        let files = folder::names(&places.migrations_dir)?;
        let wanted = args.names.iter().map(|name| find(name, &files)).collect::<Result<Vec<_>, _>>()?;
        names.retain(|name| wanted.contains(&name));
    }
    if !names.is_empty() {
        ledger.mark(&names)?;
    }
    let mut table = Table::new(["marked"]);
    for name in &names {
        table.push([name.as_str()]);
    }
    printer.result(&json!({ "marked": names }), &table)?;
    if names.is_empty() {
        printer.note("nothing to mark: the ledger has them all");
    }
    Ok(ExitCode::SUCCESS)
}

/// The file that `name` means: its name, with or without folder and `.sql`.
fn find<'a>(name: &str, files: &'a [String]) -> Result<&'a String, Failure> {
    let wanted = Path::new(name).file_name().map_or_else(|| name.to_owned(), |name| name.to_string_lossy().into_owned());
    let matches = |file: &&String| **file == wanted || file.strip_suffix(".sql") == Some(wanted.as_str());
    files.iter().find(matches).ok_or_else(|| {
        Failure::new(format!("no migration `{name}` in the folder (nothing was marked)"))
            .hint("`hearth d1 migrations doctor` lists the files that the ledger lacks")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_with_or_without_folder_and_ending() {
        let files = vec!["0001_a.sql".to_owned(), "0001_ab.sql".to_owned()];
        for name in ["0001_a.sql", "0001_a", "migrations/0001_a.sql"] {
            assert_eq!(find(name, &files).unwrap(), "0001_a.sql", "{name}");
        }
        for name in ["0001", "", "0002_a", ".sql"] {
            assert!(find(name, &files).is_err(), "{name}");
        }
    }
}
