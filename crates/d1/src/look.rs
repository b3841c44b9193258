//! Looks at the catalogue of a folder that no server uses, as the next start will find it.

use std::{collections::HashSet, path::Path};

use base::{DatabaseId, Result};
use log::{Disk, Log};
use sqlite::{Value, image};

use crate::{
    DatabaseInfo,
    catalogue::{DATABASES, REMOVED, Row, database_info},
};

/// What a folder's catalogue says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// The databases, in no order.
    pub databases: Vec<DatabaseInfo>,
    /// Databases that were deleted and whose files may still be there.
    pub deleted: HashSet<DatabaseId>,
}

impl Look {
    /// Reads the catalogue of the folder `root`, with the commits that only the log has; `None` if there
    /// is no catalogue. Nothing is recovered, locked or changed. Blocks.
    ///
    /// # Errors
    /// [`base::Code::Corrupt`] if the log or the catalogue is damaged; [`base::Code::Io`].
    pub fn at(disk: &dyn Disk, root: &Path) -> Result<Option<Self>> {
        let Some(bytes) = Log::read_database(disk, root, DatabaseId::SYSTEM)? else { return Ok(None) };
        let tables = image::query(bytes.clone(), "SELECT name FROM sqlite_schema WHERE type = 'table'")?;
        let has = |name: &str| tables.iter().any(|row| matches!(&row[..], [Value::Text(text)] if text == name));
        let mut look = Self::default();
        // A first start that was cut short has not made the tables yet.
        if has("databases") {
            look.databases = image::query(bytes.clone(), DATABASES)?.into_iter().map(database_info).collect::<Result<_>>()?;
        }
        if has("removed") {
            let ids = image::query(bytes, REMOVED)?.into_iter().map(|row| Row(row.into_iter()).text()?.parse());
            look.deleted = ids.collect::<Result<_>>()?;
        }
        Ok(Some(look))
    }
}
