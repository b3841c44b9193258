//! The thin unsafe layer over SQLite's C interface: statements, binding, stepping, reading.
//!
//! Everything above works with [`RawStatement`] and never sees a pointer.
#![expect(unsafe_code, reason = "SQLite is a C library; this module is the boundary")]

use std::{ffi::c_int, ptr};

use rusqlite::ffi;

use crate::Value;

unsafe extern "C" {
    /// From `build.rs`: the meter's two counters of a statement.
    fn hearth_stmt_rows(stmt: *mut ffi::sqlite3_stmt, read: *mut u64, written: *mut u64);
    /// From `build.rs`: sets both counters to zero.
    fn hearth_stmt_rows_reset(stmt: *mut ffi::sqlite3_stmt);
}

/// SQL text that SQLite can parse without a copy: it ends in a NUL that is not part of the text.
pub(crate) struct SqlText(Vec<u8>);

impl SqlText {
    /// `None` if the text holds a NUL, at which SQLite would silently stop.
    pub(crate) fn new(sql: &str) -> Option<Self> {
        Self::from_bytes(sql.as_bytes())
    }

    /// As [`Self::new`], for bytes that need not be UTF-8.
    pub(crate) fn from_bytes(sql: &[u8]) -> Option<Self> {
        if sql.contains(&0) {
            return None;
        }
        let mut bytes = Vec::with_capacity(sql.len() + 1);
        bytes.extend_from_slice(sql);
        bytes.push(0);
        Some(Self(bytes))
    }

    /// Takes the bytes back, without the NUL.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.0.pop();
        self.0
    }

    /// As [`Self::from_bytes`] without a copy; the caller has looked for NULs.
    pub(crate) fn from_checked(mut bytes: Vec<u8>) -> Self {
        debug_assert!(!bytes.contains(&0));
        bytes.push(0);
        Self(bytes)
    }

    /// The text without its NUL.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..self.0.len() - 1]
    }
}

/// A prepared statement. Finalized on drop.
pub(crate) struct RawStatement {
    stmt: *mut ffi::sqlite3_stmt,
}

// SAFETY: the library is built with SQLITE_THREADSAFE=2, and a statement is only used by the
// thread that holds its connection; it may move between threads together with it.
unsafe impl Send for RawStatement {}

impl Drop for RawStatement {
    fn drop(&mut self) {
        // SAFETY: `stmt` came from sqlite3_prepare_v3 and is finalized once.
        unsafe { ffi::sqlite3_finalize(self.stmt) };
    }
}

/// Prepares the statement that begins at `from`; returns it (`None` for blank text or a lone `;`)
/// and where the next one begins.
pub(crate) fn prepare(
    db: *mut ffi::sqlite3,
    text: &SqlText,
    from: usize,
    persistent: bool,
) -> Result<(Option<RawStatement>, usize), c_int> {
    debug_assert!(from < text.0.len());
    let mut stmt = ptr::null_mut();
    let mut tail = ptr::null();
    let flags = if persistent { ffi::SQLITE_PREPARE_PERSISTENT } else { 0 };
    let start = text.0[from..].as_ptr();
    // SAFETY: `start` points into a NUL-terminated buffer that outlives the call; a negative length
    // makes SQLite read up to that NUL and keeps it from copying the rest of a long script.
    let rc = unsafe { ffi::sqlite3_prepare_v3(db, start.cast(), -1, flags, &raw mut stmt, &raw mut tail) };
    if rc != ffi::SQLITE_OK {
        return Err(rc);
    }
    // SAFETY: SQLite sets `tail` to a position inside the buffer that it was given.
    let used = unsafe { tail.cast::<u8>().offset_from(start) };
    let next = from + usize::try_from(used).expect("the tail is not before the start");
    Ok(((!stmt.is_null()).then_some(RawStatement { stmt }), next))
}

/// Runs a statement whose cost is known, so that a program with another SQLite stops at its start.
pub(crate) fn assert_metered() {
    let db = rusqlite::Connection::open_in_memory().expect("SQLite opens a database in memory");
    db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES(1),(2),(3)").expect("SQLite runs three inserts");
    let text = SqlText::new("SELECT count(*) FROM t").expect("no NUL");
    // SAFETY: the handle is used while `db` lives and is not closed here.
    let (stmt, _) = prepare(unsafe { db.handle() }, &text, 0, false).expect("SQLite prepares a count");
    let stmt = stmt.expect("a SELECT is a statement");
    stmt.step().expect("SQLite counts three rows");
    assert_eq!(stmt.rows(), (3, 0), "the linked SQLite does not count rows: it is not the one that crates/sqlite builds");
}

impl RawStatement {
    pub(crate) fn is_readonly(&self) -> bool {
        // SAFETY: `stmt` is a live statement.
        unsafe { ffi::sqlite3_stmt_readonly(self.stmt) != 0 }
    }

    pub(crate) fn parameter_count(&self) -> usize {
        // SAFETY: `stmt` is a live statement.
        unsafe { ffi::sqlite3_bind_parameter_count(self.stmt) as usize }
    }

    /// Binds `value` to parameter `index`, counted from 1.
    ///
    /// The value is not copied: it must live, unmoved, until the bindings are cleared or the
    /// statement is dropped. [`crate::execute`] owns the batch for that long.
    pub(crate) fn bind(&self, index: usize, value: &Value) -> Result<(), c_int> {
        let index = index as c_int;
        // SAFETY: `stmt` is live; pointers stay valid as the caller promises above. A null pointer
        // with length 0 would bind NULL, so empty values pass a pointer that is not null.
        let rc = unsafe {
            match value {
                Value::Null => ffi::sqlite3_bind_null(self.stmt, index),
                Value::Integer(i) => ffi::sqlite3_bind_int64(self.stmt, index, *i),
                Value::Real(r) => ffi::sqlite3_bind_double(self.stmt, index, *r),
                Value::Text(s) => ffi::sqlite3_bind_text64(
                    self.stmt,
                    index,
                    s.as_ptr().cast(),
                    s.len() as u64,
                    ffi::SQLITE_STATIC(),
                    ffi::SQLITE_UTF8 as u8,
                ),
                Value::Blob(b) if b.is_empty() => ffi::sqlite3_bind_zeroblob(self.stmt, index, 0),
                Value::Blob(b) => ffi::sqlite3_bind_blob64(self.stmt, index, b.as_ptr().cast(), b.len() as u64, ffi::SQLITE_STATIC()),
            }
        };
        if rc == ffi::SQLITE_OK { Ok(()) } else { Err(rc) }
    }

    /// Resets the statement, its bindings and its meter for a new run.
    pub(crate) fn reset(&self) {
        // SAFETY: `stmt` is live. The result code of sqlite3_reset repeats the last step's error.
        unsafe {
            ffi::sqlite3_reset(self.stmt);
            ffi::sqlite3_clear_bindings(self.stmt);
            hearth_stmt_rows_reset(self.stmt);
        }
    }

    /// Advances to the next row: `true` if there is one.
    pub(crate) fn step(&self) -> Result<bool, c_int> {
        // SAFETY: `stmt` is live.
        match unsafe { ffi::sqlite3_step(self.stmt) } {
            ffi::SQLITE_ROW => Ok(true),
            ffi::SQLITE_DONE => Ok(false),
            rc => Err(rc),
        }
    }

    /// Rows read and written since the last reset.
    pub(crate) fn rows(&self) -> (u64, u64) {
        let (mut read, mut written) = (0, 0);
        // SAFETY: `stmt` is live and both pointers are valid for writes.
        unsafe { hearth_stmt_rows(self.stmt, &raw mut read, &raw mut written) };
        (read, written)
    }

    pub(crate) fn column_count(&self) -> usize {
        // SAFETY: `stmt` is live.
        unsafe { ffi::sqlite3_column_count(self.stmt) as usize }
    }

    pub(crate) fn column_name(&self, index: usize) -> String {
        // SAFETY: `stmt` is live, `index` is below the column count, and the name is read at once.
        unsafe {
            let name = ffi::sqlite3_column_name(self.stmt, index as c_int);
            if name.is_null() {
                return String::new();
            }
            std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned()
        }
    }

    /// The text or blob of a column as bytes, without conversion of its type.
    pub(crate) fn column_bytes(&self, index: usize) -> &[u8] {
        let index = index as c_int;
        // SAFETY: `stmt` is on a row; sqlite3_column_blob does not convert, and its memory stays
        // valid until the next step, which needs a new borrow of `self` after this one ended.
        unsafe {
            let start = ffi::sqlite3_column_blob(self.stmt, index).cast::<u8>();
            let len = ffi::sqlite3_column_bytes(self.stmt, index) as usize;
            if start.is_null() { &[] } else { std::slice::from_raw_parts(start, len) }
        }
    }

    /// The storage class of a column: one of `SQLITE_INTEGER`, `_FLOAT`, `_TEXT`, `_BLOB`, `_NULL`.
    pub(crate) fn column_type(&self, index: usize) -> c_int {
        // SAFETY: `stmt` is on a row and `index` below the column count.
        unsafe { ffi::sqlite3_column_type(self.stmt, index as c_int) }
    }

    pub(crate) fn column_i64(&self, index: usize) -> i64 {
        // SAFETY: as above.
        unsafe { ffi::sqlite3_column_int64(self.stmt, index as c_int) }
    }

    pub(crate) fn column_f64(&self, index: usize) -> f64 {
        // SAFETY: as above.
        unsafe { ffi::sqlite3_column_double(self.stmt, index as c_int) }
    }

    /// The value of a column; invalid UTF-8 in text becomes U+FFFD.
    pub(crate) fn column(&self, index: usize) -> Value {
        match self.column_type(index) {
            ffi::SQLITE_INTEGER => Value::Integer(self.column_i64(index)),
            ffi::SQLITE_FLOAT => Value::Real(self.column_f64(index)),
            ffi::SQLITE_TEXT => Value::Text(String::from_utf8_lossy(self.column_bytes(index)).into_owned()),
            ffi::SQLITE_BLOB => Value::Blob(self.column_bytes(index).to_vec()),
            _ => Value::Null,
        }
    }
}
