//! The metered engine: the only crate that knows SQLite.
//!
//! It compiles the pinned amalgamation with a row meter in it (see `build.rs`), opens databases
//! under a profile's limits and an authorizer, runs batches and scripts, and hands each commit's
//! pages to whoever logs them. It knows no network, no log and no catalogue.
//!
//! The one design decision: the meter is inside SQLite's virtual machine, at the places where
//! production counts, and not an estimate beside it; so `rows_read` is a fact.
//!
//! ```
//! use sqlite::{Batch, Conn, OpenOptions, execute};
//! let dir = tempfile::tempdir().unwrap();
//! let path = dir.path().join("a.db");
//! std::fs::write(&path, sqlite::empty_database()).unwrap();
//! let mut conn = Conn::open(&path, &OpenOptions::default()).unwrap();
//! let results = execute::batch(&mut conn, &Batch::sql("CREATE TABLE t(a); INSERT INTO t VALUES(1),(2); SELECT * FROM t"), &execute::Options::default()).unwrap();
//! assert_eq!(results[0][2].meta.rows_read, 2);
//! ```

mod authorizer;
pub mod conn;
pub mod dump;
mod error;
pub mod execute;
pub mod image;
mod lexer;
mod limit_clause;
mod page_cache;
mod raw;
pub mod script;
pub mod value;
pub mod wal;

pub use conn::{Conn, OpenOptions, Role, empty_database};
pub use rusqlite::ffi;
pub use value::{Batch, ItemResults, Meta, Statement, StatementResult, Value};

/// Bytes of a page in every database of Hearth.
pub const PAGE_BYTES: usize = 4096;
