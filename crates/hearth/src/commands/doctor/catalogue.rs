//! The catalogue against the files: each database has its file, and each file its database.
//!
//! The catalogue is a database itself, and opening it would recover it, which changes the folder. So
//! a running server is asked, and for a stopped one only the catalogue's own file is looked for.

use std::{collections::HashSet, fs, path::Path};

use base::DatabaseId;
use log::layout;

use super::{Report, Severity};
use crate::{
    client::Client,
    commands::d1,
    failure::Failure,
    lock::Holder,
    target::{Target, TargetFlags},
    variables,
};

/// Compares, as far as it can be done without changing anything.
pub(super) fn check(data: &Path, running: Option<&Holder>, report: &mut Report) {
    let files = database_files(data);
    match running {
        Some(Holder { url: Some(_), .. }) => {
            if let Err(failure) = compare(data, &files, report) {
                report.add(Severity::Note, "catalogue", format!("not compared with the files: {}", failure.message), "");
            }
        }
        Some(_) => report.add(Severity::Note, "catalogue", "not compared with the files: the server has no address yet", ""),
        None if files.is_empty() || layout::database_path(data, DatabaseId::SYSTEM).exists() => {
            report.add(Severity::Note, "catalogue", "compared with the files only while a server runs", "");
        }
        None => {
            let found = format!("there are {} databases, but the catalogue that names them is missing", files.len());
            report.add(Severity::Error, "catalogue", found, "put the folder `system` back from a backup before a start: a new catalogue is empty, and files that it does not name are removed");
        }
    }
}

fn compare(data: &Path, files: &HashSet<DatabaseId>, report: &mut Report) -> Result<(), Failure> {
    let flags = TargetFlags { url: None, data: Some(data.to_owned()) };
    let client = Client::new(Target::find(&flags, &variables::read)?);
    let databases = client.list(d1::DATABASES)?;
    let mut known = HashSet::new();
    for database in &databases {
        let Some(id) = database["uuid"].as_str().and_then(|uuid| uuid.parse::<DatabaseId>().ok()) else { continue };
        known.insert(id);
        // Asked again, as it may have been deleted since the list was made.
        if !layout::database_path(data, id).exists() && !client.is_missing(&d1::database_path(&id.to_string()))? {
            let found = format!("the file of the database {} ({id}) is missing", database["name"]);
            report.add(
                Severity::Error,
                "catalogue",
                found,
                "put it back from a backup; without one, delete the database with `hearth d1 delete`",
            );
        }
    }
    for id in files.difference(&known) {
        // Asked again, as it may have been made since. A token that may not look gets no 404.
        if client.is_missing(&d1::database_path(&id.to_string()))? {
            report.add(Severity::Note, "catalogue", format!("no database has the file of {id}; the next start removes it"), "");
        }
    }
    report.add(Severity::Ok, "catalogue", format!("{} databases", databases.len()), "");
    Ok(())
}

/// The databases that have a file. What cannot be read is reported by the walk over all files.
fn database_files(data: &Path) -> HashSet<DatabaseId> {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    let files = entries(&layout::databases_dir(data)).into_iter().flat_map(|dir| entries(&dir));
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
        .filter_map(|path| path.file_stem()?.to_str()?.parse().ok())
        .collect()
}
