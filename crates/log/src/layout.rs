//! Where files stand in the data folder.

use std::path::{Path, PathBuf};

use base::DatabaseId;

/// The folder of the log's segments.
pub fn log_dir(root: &Path) -> PathBuf {
    root.join("log")
}

/// The folder of the user's databases; each stands in a folder of its id's first two digits.
pub fn databases_dir(root: &Path) -> PathBuf {
    root.join("databases")
}

/// A database's file.
pub fn database_path(root: &Path, id: DatabaseId) -> PathBuf {
    if id == DatabaseId::SYSTEM {
        return root.join("system").join("system.db");
    }
    let name = id.to_string();
    databases_dir(root).join(&name[..2]).join(format!("{name}.db"))
}

/// The files that SQLite puts beside a database: its WAL and the WAL's index.
pub fn side_files(database: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|suffix| {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}

/// A segment's file, named by its place in the order of creation.
pub(crate) fn segment_path(dir: &Path, sequence: u64) -> PathBuf {
    dir.join(format!("{sequence:016x}.log"))
}
