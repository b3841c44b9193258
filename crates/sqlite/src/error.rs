//! SQLite's errors in the words that production uses for them.
//!
//! Wire form: `<message>[ at offset N]: SQLITE_<NAME>[ (extended: SQLITE_<EXTENDED>)]`.

use std::ffi::CStr;

use base::{Code, Error};
use rusqlite::ffi;

use crate::conn::{Conn, Denial};

/// What a transaction statement gets: the runtime under D1 answers this text.
pub(crate) const TRANSACTION_DENIED: &str = "To execute a transaction, please use the state.storage.transaction() or state.storage.transactionSync() APIs instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. The JavaScript API is safer because it will automatically roll back on exceptions, and because it interacts correctly with Durable Objects' automatic atomic write coalescing.";
/// A reading statement that ran past its time.
pub(crate) const CPU_LIMIT: &str = "D1 DB exceeded its CPU time limit and was reset.";
/// A writing statement that ran past its time.
pub(crate) const STORAGE_TIMEOUT: &str = "D1 DB storage operation exceeded timeout which caused object to be reset.";
const SIZE_MAX: &str = "Exceeded maximum DB size.";
/// The extended code that `build.rs` gives a database at its profile's size; a full disk has none.
const FULL_BY_PAGE_LIMIT: i32 = ffi::SQLITE_FULL | (1 << 8);
const MEMORY_LIMIT: &str = "D1 DB's isolate exceeded its memory limit and was reset.";
const RESET: &str = "D1 DB reset because its code was updated.";

/// Where an error arose; it decides between texts that SQLite gives one code for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Prepare,
    ReadStep,
    WriteStep,
}

/// Turns the connection's last error into Hearth's.
pub(crate) fn from_conn(conn: &Conn, rc: i32, stage: Stage) -> Error {
    from_conn_mapped(conn, rc, stage, Some)
}

/// As [`from_conn`], for SQL that was rewritten: `map` leads from its offsets to the user's.
pub(crate) fn from_conn_mapped(conn: &Conn, rc: i32, stage: Stage, map: impl Fn(u32) -> Option<u32>) -> Error {
    let primary = rc & 0xff;
    let (message, offset) = conn.last_message();
    let offset = offset.and_then(map);
    match primary {
        ffi::SQLITE_INTERRUPT => return interrupted(conn, stage),
        ffi::SQLITE_FULL if rc == FULL_BY_PAGE_LIMIT => return Error::new(Code::Sql, SIZE_MAX),
        // Reading writes to temporary files only, to sort; the data folder may have room.
        ffi::SQLITE_FULL if stage == Stage::ReadStep => {
            let text = "the disk for temporary files is full; the statement sorts more than it has room for";
            return Error::new(Code::DiskFull, text).with_retryable(false);
        }
        ffi::SQLITE_FULL => {
            return Error::io("database file", std::io::Error::from(std::io::ErrorKind::StorageFull));
        }
        ffi::SQLITE_NOMEM => return Error::new(Code::Sql, MEMORY_LIMIT),
        ffi::SQLITE_IOERR | ffi::SQLITE_CANTOPEN | ffi::SQLITE_READONLY if stage != Stage::Prepare || primary != ffi::SQLITE_READONLY => {
            let detail = format!("{message} (code {rc})");
            return Error::new(Code::Io, "the database's file could not be read or written; nothing was changed").with_internal(detail);
        }
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => {
            let detail = format!("{message} (code {rc})");
            return Error::new(Code::Corrupt, format!("{message}: {}", name(primary))).with_internal(detail);
        }
        ffi::SQLITE_AUTH if conn.denial() == Denial::Transaction => return Error::new(Code::Sql, TRANSACTION_DENIED),
        ffi::SQLITE_TOOBIG if stage == Stage::Prepare => {
            return Error::new(Code::Sql, "statement too long: SQLITE_TOOBIG");
        }
        _ => {}
    }
    let at = offset.map(|offset| format!(" at offset {offset}")).unwrap_or_default();
    let extended = extended_name(rc).map(|name| format!(" (extended: {name})")).unwrap_or_default();
    Error::new(Code::Sql, format!("{message}{at}: {}{extended}", name(primary)))
}

fn interrupted(conn: &Conn, stage: Stage) -> Error {
    if conn.is_cancelled() {
        return Error::new(Code::Reset, RESET);
    }
    let text = if stage == Stage::WriteStep { STORAGE_TIMEOUT } else { CPU_LIMIT };
    Error::new(Code::Timeout, text)
}

/// The text of `rc` without a connection.
pub(crate) fn code_text(rc: i32) -> String {
    // SAFETY: sqlite3_errstr returns a static NUL-terminated string for every integer.
    #[expect(unsafe_code, reason = "a static C string")]
    let text = unsafe { CStr::from_ptr(ffi::sqlite3_errstr(rc)) };
    format!("{}: {}", text.to_string_lossy(), name(rc & 0xff))
}

const fn name(primary: i32) -> &'static str {
    match primary {
        ffi::SQLITE_ERROR => "SQLITE_ERROR",
        ffi::SQLITE_INTERNAL => "SQLITE_INTERNAL",
        ffi::SQLITE_PERM => "SQLITE_PERM",
        ffi::SQLITE_ABORT => "SQLITE_ABORT",
        ffi::SQLITE_BUSY => "SQLITE_BUSY",
        ffi::SQLITE_LOCKED => "SQLITE_LOCKED",
        ffi::SQLITE_NOMEM => "SQLITE_NOMEM",
        ffi::SQLITE_READONLY => "SQLITE_READONLY",
        ffi::SQLITE_INTERRUPT => "SQLITE_INTERRUPT",
        ffi::SQLITE_IOERR => "SQLITE_IOERR",
        ffi::SQLITE_CORRUPT => "SQLITE_CORRUPT",
        ffi::SQLITE_NOTFOUND => "SQLITE_NOTFOUND",
        ffi::SQLITE_FULL => "SQLITE_FULL",
        ffi::SQLITE_CANTOPEN => "SQLITE_CANTOPEN",
        ffi::SQLITE_PROTOCOL => "SQLITE_PROTOCOL",
        ffi::SQLITE_SCHEMA => "SQLITE_SCHEMA",
        ffi::SQLITE_TOOBIG => "SQLITE_TOOBIG",
        ffi::SQLITE_CONSTRAINT => "SQLITE_CONSTRAINT",
        ffi::SQLITE_MISMATCH => "SQLITE_MISMATCH",
        ffi::SQLITE_MISUSE => "SQLITE_MISUSE",
        ffi::SQLITE_AUTH => "SQLITE_AUTH",
        ffi::SQLITE_RANGE => "SQLITE_RANGE",
        ffi::SQLITE_NOTADB => "SQLITE_NOTADB",
        _ => "SQLITE_UNKNOWN",
    }
}

/// Extended codes that an answer names. Those of I/O and corruption go to the log, not to callers.
const fn extended_name(rc: i32) -> Option<&'static str> {
    Some(match rc {
        ffi::SQLITE_ERROR_MISSING_COLLSEQ => "SQLITE_ERROR_MISSING_COLLSEQ",
        ffi::SQLITE_ERROR_RETRY => "SQLITE_ERROR_RETRY",
        ffi::SQLITE_ERROR_SNAPSHOT => "SQLITE_ERROR_SNAPSHOT",
        ffi::SQLITE_LOCKED_VTAB => "SQLITE_LOCKED_VTAB",
        ffi::SQLITE_ABORT_ROLLBACK => "SQLITE_ABORT_ROLLBACK",
        ffi::SQLITE_CONSTRAINT_CHECK => "SQLITE_CONSTRAINT_CHECK",
        ffi::SQLITE_CONSTRAINT_COMMITHOOK => "SQLITE_CONSTRAINT_COMMITHOOK",
        ffi::SQLITE_CONSTRAINT_DATATYPE => "SQLITE_CONSTRAINT_DATATYPE",
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => "SQLITE_CONSTRAINT_FOREIGNKEY",
        ffi::SQLITE_CONSTRAINT_FUNCTION => "SQLITE_CONSTRAINT_FUNCTION",
        ffi::SQLITE_CONSTRAINT_NOTNULL => "SQLITE_CONSTRAINT_NOTNULL",
        ffi::SQLITE_CONSTRAINT_PINNED => "SQLITE_CONSTRAINT_PINNED",
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY => "SQLITE_CONSTRAINT_PRIMARYKEY",
        ffi::SQLITE_CONSTRAINT_ROWID => "SQLITE_CONSTRAINT_ROWID",
        ffi::SQLITE_CONSTRAINT_TRIGGER => "SQLITE_CONSTRAINT_TRIGGER",
        ffi::SQLITE_CONSTRAINT_UNIQUE => "SQLITE_CONSTRAINT_UNIQUE",
        ffi::SQLITE_CONSTRAINT_VTAB => "SQLITE_CONSTRAINT_VTAB",
        _ => return None,
    })
}
