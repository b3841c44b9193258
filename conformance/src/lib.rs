//! What Hearth promises, as data: a corpus of SQL cases, and the backends that it runs on.
//!
//! A case is a few lines in `corpus/*.sqltest`: SQL, and the exact rows, figures or error that production
//! gives. README.md describes the format. The same cases run inside the process on crate `sqlite`, over
//! HTTP on a running server, and on the D1 that Miniflare ships. The one design decision: an expectation
//! is never taken from the engine that it judges. It was measured on production or on Miniflare, or
//! follows from SQLite's documentation, and where our engine is known to differ the case says so.
//!
//! ```
//! use conformance::{backend::InProcess, corpus};
//!
//! let text = "= one_row_is_read\n: CREATE TABLE t(a)\n: INSERT INTO t VALUES(7)\n> SELECT a FROM t\n- a\n| 7\n~ rows_read=1\n";
//! let file = corpus::parse("example.sqltest", text).unwrap();
//! let report = corpus::run(&file, &mut InProcess::new(), "");
//! assert_eq!((report.passed, report.failures.len()), (1, 0));
//! ```

pub mod backend;
pub mod corpus;
