//! Reads a database that is in memory: a look at one without a file, a WAL or a lock.

use base::{Code, Error, Result};
use rusqlite::{Connection, MAIN_DB, types::ValueRef};

use crate::{PAGE_BYTES, Value};

/// Runs one statement of ours on the database that `image` holds, read-only, and returns its rows.
///
/// # Errors
/// [`Code::Corrupt`] if `image` is no sound database or lacks what the statement reads.
pub fn query(mut image: Vec<u8>, sql: &str) -> Result<Vec<Vec<Value>>> {
    if image.is_empty() || !image.len().is_multiple_of(PAGE_BYTES) {
        // SQLite would take what is shorter than a page for an empty database.
        let text = format!("a database is cut off (got {} bytes, expected a whole number of pages of {PAGE_BYTES})", image.len());
        return Err(Error::new(Code::Corrupt, text));
    }
    // In memory there is no WAL, and SQLite refuses a header that asks for one.
    image[18..20].fill(1);
    rows(&image, sql).map_err(|error| Error::new(Code::Corrupt, format!("a database cannot be read: {error}")))
}

fn rows(image: &[u8], sql: &str) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut db = Connection::open_in_memory()?;
    db.deserialize_read_exact(MAIN_DB, image, image.len(), true)?;
    let mut statement = db.prepare(sql)?;
    let columns = statement.column_count();
    let mut found = statement.query([])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        rows.push((0..columns).map(|i| row.get_ref(i).map(value)).collect::<rusqlite::Result<_>>()?);
    }
    Ok(rows)
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(i) => Value::Integer(i),
        ValueRef::Real(r) => Value::Real(r),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_in_memory_is_read_and_a_broken_one_refused() {
        let image = crate::empty_database().to_vec();
        let count = "SELECT count(*) FROM sqlite_schema";
        assert_eq!(query(image.clone(), count).unwrap(), [[Value::Integer(0)]]);
        assert_eq!(query(image.clone(), "SELECT 1 FROM nope").unwrap_err().code, Code::Corrupt);
        for broken in [vec![0; 10], vec![b'x'; 4096], image[..512].to_vec()] {
            assert_eq!(query(broken, count).unwrap_err().code, Code::Corrupt);
        }
    }
}
