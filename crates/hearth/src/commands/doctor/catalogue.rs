//! The catalogue against the files: each database has its file, and each file its database.
//!
//! A running server is asked. For a stopped one the catalogue is read as the next start will find it,
//! with what only the log holds of it, and without a start's recovery.

use std::{collections::HashSet, fs, path::Path};

use base::DatabaseId;
use d1::Look;
use log::{ReadOnlyDisk, layout};

use super::{Report, Severity};
use crate::{
    client::Client,
    commands::d1 as routes,
    failure::Failure,
    lock::Holder,
    target::{Target, TargetFlags},
    variables,
};

/// Bytes of a database that nothing was written to.
const EMPTY_BYTES: u64 = 4_096;

/// Asks the server of `holder`.
pub(super) fn check_running(data: &Path, holder: &Holder, report: &mut Report) {
    let why = match holder.url {
        Some(_) => ask(data, report).err().map(|failure| failure.message),
        None => Some("the server has no address yet".to_owned()),
    };
    if let Some(why) = why {
        report.add(Severity::Note, "catalogue", format!("not compared with the files: {why}"), "");
    }
}

fn ask(data: &Path, report: &mut Report) -> Result<(), Failure> {
    let files = database_files(data);
    let flags = TargetFlags { url: None, data: Some(data.to_owned()) };
    let client = Client::new(Target::find(&flags, &variables::read)?);
    let databases = client.list(routes::DATABASES)?;
    let mut known = HashSet::new();
    for database in &databases {
        let Some(id) = database["uuid"].as_str().and_then(|uuid| uuid.parse::<DatabaseId>().ok()) else { continue };
        known.insert(id);
        // Asked again, as it may have been deleted since the list was made.
        if !layout::database_path(data, id).exists() && !client.is_missing(&routes::database_path(&id.to_string()))? {
            missing(id, database["name"].as_str().unwrap_or_default(), report);
        }
    }
    for id in files.difference(&known) {
        // Asked again, as it may have been made since. A token that may not look gets no 404.
        if client.is_missing(&routes::database_path(&id.to_string()))? {
            orphan(data, *id, report);
        }
    }
    report.add(Severity::Ok, "catalogue", format!("{} databases", databases.len()), "");
    Ok(())
}

/// Reads the catalogue of a stopped folder. `logged` are the databases whose files the next start writes.
pub(super) fn check_stopped(data: &Path, logged: Option<&HashSet<DatabaseId>>, report: &mut Report) {
    let Some(logged) = logged else {
        let found = "not compared with the files: the log, which may hold its last changes, is damaged";
        return report.add(Severity::Note, "catalogue", found, "");
    };
    let files = database_files(data);
    let look = match Look::at(&ReadOnlyDisk, data) {
        Ok(Some(look)) => look,
        Ok(None) if files.is_empty() => {
            return report.add(Severity::Note, "catalogue", "there is none yet; the first start makes it", "");
        }
        Ok(None) => {
            let found = format!("there are {} databases, but the catalogue that names them is missing", files.len());
            let remedy = "put the folder `system` back from a backup; until then a start is refused";
            return report.add(Severity::Error, "catalogue", found, remedy);
        }
        Err(error) => {
            let remedy = "put the folder `system` back from a backup";
            return report.add(Severity::Error, "catalogue", Failure::from(error).message, remedy);
        }
    };
    let known: HashSet<DatabaseId> = look.databases.iter().map(|database| database.id).collect();
    for database in look.databases.iter().filter(|database| !files.contains(&database.id) && !logged.contains(&database.id)) {
        missing(database.id, &database.name, report);
    }
    for id in files.difference(&known) {
        if look.deleted.contains(id) {
            report.add(
                Severity::Note,
                "catalogue",
                format!("the file of {id} is left of a deleted database; the next start removes it"),
                "",
            );
        } else {
            orphan(data, *id, report);
        }
    }
    report.add(Severity::Ok, "catalogue", format!("{} databases", look.databases.len()), "");
}

fn missing(id: DatabaseId, name: &str, report: &mut Report) {
    let found = format!("the file of the database `{name}` ({id}) is missing");
    report.add(Severity::Error, "catalogue", found, "put it back from a backup; without one, delete the database with `hearth d1 delete`");
}

fn orphan(data: &Path, id: DatabaseId, report: &mut Report) {
    let bytes = fs::metadata(layout::database_path(data, id)).map_or(0, |metadata| metadata.len());
    if bytes <= EMPTY_BYTES {
        report.add(Severity::Note, "catalogue", format!("no database has the file of {id}, which is empty; the next start removes it"), "");
    } else {
        let found = format!("no database has the file of {id}, which has {bytes} bytes");
        report.add(
            Severity::Warning,
            "catalogue",
            found,
            "the next start moves it to the folder `lost`: look there for data that you miss, then remove it",
        );
    }
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
