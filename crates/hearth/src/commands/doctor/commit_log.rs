//! The commit log of a stopped folder: every record's checksum, and whether log and files hold every page.

use std::{collections::HashSet, path::Path};

use base::{Code, DatabaseId};
use log::{Log, ReadOnlyDisk};

use super::{Report, Severity};
use crate::failure::Failure;

/// Reads all of the log. Returns the databases whose files the next start writes; `None` if the log is damaged.
pub(super) fn check(data: &Path, report: &mut Report) -> Option<HashSet<DatabaseId>> {
    match Log::check(&ReadOnlyDisk, data) {
        Ok(found) => {
            report.add(Severity::Ok, "log", format!("{} commits of {} databases, all whole", found.commits, found.databases.len()), "");
            if found.torn_bytes > 0 {
                let found = format!(
                    "its last {} bytes were being written when the server ended; they were not acknowledged, and the next start cuts them off",
                    found.torn_bytes
                );
                report.add(Severity::Note, "log", found, "");
            }
            Some(found.databases.into_keys().collect())
        }
        Err(error) => {
            let remedy = match error.code {
                Code::Corrupt => "restore the data folder from a backup; until then a start is refused",
                _ => "make the folder readable and writable for Hearth's user",
            };
            report.add(Severity::Error, "log", Failure::from(error).message, remedy);
            None
        }
    }
}
