//! `hearth d1 migrations create`: an empty file with the next number.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    process::ExitCode,
};

use base::{Clock, SystemClock};
use serde_json::json;

use super::{Places, folder};
use crate::{failure::Failure, printer::Printer};

/// Bytes of the words in a file's name.
const NAME_BYTES_MAX: usize = 200;

/// Make an empty migration file with the next number, and print its path
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the database, as wrangler takes it; the file does not depend on it
    database: String,
    /// A few words that say what it does
    name: String,
}

/// Runs the command.
///
/// # Errors
/// If the name cannot be part of a file's name, or the file cannot be written.
pub(super) fn run(args: &Args, places: &Places, printer: &Printer) -> Result<ExitCode, Failure> {
    let words = file_words(&args.name)?;
    let dir = &places.migrations_dir;
    let unwritable = |error: io::Error| Failure::io(format!("no migration could be made in {}", dir.display()), &error);
    fs::create_dir_all(dir).map_err(unwritable)?;
    let number = folder::next_number(&folder::names(dir)?);
    let path = dir.join(format!("{number:04}_{words}.sql"));
    let head = format!("-- Migration number: {number:04} \t {}\n", api::time::iso(SystemClock::default().now()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(unwritable)?;
    file.write_all(head.as_bytes()).map_err(unwritable)?;
    let shown = path.display().to_string();
    if printer.is_json() {
        printer.json_value(&json!({ "path": shown, "number": number }))?;
    } else {
        printer.line(&shown)?;
    }
    printer.note(&format!("write its SQL, then apply it to `{}` with `hearth d1 migrations apply`", args.database));
    Ok(ExitCode::SUCCESS)
}

/// The name as part of a file's name, blanks as `_` as wrangler writes them.
fn file_words(name: &str) -> Result<String, Failure> {
    let wrong = |why: &str| Failure::usage(format!("wrong name of a migration `{}`: {why}", name.escape_debug()));
    if name.contains(['/', '\\']) {
        return Err(wrong("it holds a path separator (expected a few words; the folder is --migrations-dir)"));
    }
    if name.trim().is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(wrong(&format!("expected 1 to {NAME_BYTES_MAX} bytes that are not all blank")));
    }
    if name.chars().any(char::is_control) {
        return Err(wrong("it holds a control character"));
    }
    Ok(name.trim().replace(' ', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_part_of_a_file_name_or_is_refused() {
        assert_eq!(file_words("add tenant index").unwrap(), "add_tenant_index");
        assert_eq!(file_words(" ünïcode ").unwrap(), "ünïcode");
        for name in ["", "  ", "a/b", "..\\b", "a\nb", "a\0b", &"x".repeat(201)] {
            assert_eq!(file_words(name).unwrap_err().exit, 2, "{name}");
        }
        assert!(file_words(&"x".repeat(200)).is_ok());
    }
}
