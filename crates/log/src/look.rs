//! Looks at a folder that no server uses, as the next start will find it, and changes nothing.

use std::{collections::HashMap, path::Path};

use base::{Code, DatabaseId, Error, Result, Timestamp};
use sqlite::PAGE_BYTES;

use crate::{Disk, Log, Recovered, layout, recover::Logged};

/// Bytes of a database that is read into memory.
const DATABASE_BYTES_MAX: u64 = 1 << 30;

/// What a look at a log found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Whole commits.
    pub commits: u64,
    /// Bytes at the end that were being written when the process ended; nobody was told that they are durable.
    pub torn_bytes: u64,
    /// Databases whose files the next start writes, with the time of their last commit: what the files
    /// hold now says nothing.
    pub databases: HashMap<DatabaseId, Timestamp>,
}

impl Log {
    /// Reads the log of a folder that no server uses and checks every record, and that log and files
    /// together hold every page; changes nothing. A start refuses what this refuses.
    ///
    /// # Errors
    /// [`Code::Corrupt`] by file name and byte for damage before the last durable position, or for a
    /// database file that was cut; [`Code::Io`].
    pub fn check(disk: &dyn Disk, root: &Path) -> Result<Checked> {
        let logged = Logged::read(disk, root)?;
        let whole = logged.whole(disk, root)?;
        let Recovered { commits, torn_bytes, mut databases, .. } = logged.found;
        databases.retain(|id, _| whole.contains(id));
        Ok(Checked { commits, torn_bytes, databases })
    }

    /// The bytes of a database as the next start will make them: its file with the logged pages over
    /// it. `None` if it has neither. A WAL is left out, as a start drops it.
    ///
    /// Cost: reads the whole log, and holds the database in memory.
    ///
    /// # Errors
    /// As [`Self::check`], and [`Code::Corrupt`] for a database of more than 1 GiB: Hearth's own are small.
    pub fn read_database(disk: &dyn Disk, root: &Path, id: DatabaseId) -> Result<Option<Vec<u8>>> {
        let logged = Logged::read(disk, root)?;
        let path = layout::database_path(root, id);
        let failed = |error| Error::io(format!("database {id}"), error);
        let file = if disk.exists(&path) { Some(disk.open(&path, false).map_err(failed)?) } else { None };
        let file_bytes = file.as_ref().map_or(Ok(0), |file| file.len()).map_err(failed)?;
        let bytes = match logged.database_pages(id) {
            Some(pages) => u64::from(pages) * PAGE_BYTES as u64,
            None if file.is_none() => return Ok(None),
            None => file_bytes,
        };
        if bytes > DATABASE_BYTES_MAX {
            let text = format!("database {id} is too large to be looked at (got {bytes} bytes, expected at most {DATABASE_BYTES_MAX})");
            return Err(Error::new(Code::Corrupt, text));
        }
        let mut image = vec![0; bytes as usize];
        if let Some(file) = file {
            file.read_exact_at(&mut image[..bytes.min(file_bytes) as usize], 0).map_err(failed)?;
        }
        logged.pages(id, |number, page| {
            let at = (number as usize - 1) * PAGE_BYTES;
            image[at..at + PAGE_BYTES].copy_from_slice(page);
            Ok(())
        })?;
        Ok(Some(image))
    }
}
