//! The engine from outside: meter, limits, splitting, capture, dump and script.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod capture;
mod dump;
mod limits;
mod meter;
mod statements;

use std::{path::PathBuf, sync::Arc};

use base::Limits;
use sqlite::{Batch, Conn, OpenOptions, Statement, StatementResult, Value, execute};

/// A database in a folder of its own.
pub(crate) struct Db {
    pub(crate) conn: Conn,
    pub(crate) path: PathBuf,
    _dir: tempfile::TempDir,
}

impl Db {
    pub(crate) fn new() -> Self {
        Self::with(Limits::d1_paid())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        std::fs::write(&path, sqlite::empty_database()).unwrap();
        let conn = Conn::open(&path, &OpenOptions { limits: Arc::new(limits), ..OpenOptions::default() }).unwrap();
        Self { conn, path, _dir: dir }
    }

    /// All statements' results, or the error's text.
    pub(crate) fn run(&mut self, sql: &str) -> Result<Vec<StatementResult>, String> {
        self.bind(sql, &[])
    }

    pub(crate) fn bind(&mut self, sql: &str, params: &[Value]) -> Result<Vec<StatementResult>, String> {
        let batch = Batch { items: vec![Statement { sql: sql.to_owned(), params: params.to_vec() }], is_prepared: false };
        let results = execute::batch(&mut self.conn, &batch, &execute::Options::default()).map_err(|error| error.to_string())?;
        Ok(results.into_iter().flatten().collect())
    }

    /// The last statement's result.
    pub(crate) fn last(&mut self, sql: &str) -> StatementResult {
        self.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop().unwrap()
    }

    /// The last statement's rows read and written.
    pub(crate) fn cost(&mut self, sql: &str) -> (u64, u64) {
        let meta = self.last(sql).meta;
        (meta.rows_read, meta.rows_written)
    }

    pub(crate) fn error(&mut self, sql: &str) -> String {
        self.run(sql).expect_err(sql)
    }

    /// The first column of the first row.
    pub(crate) fn value(&mut self, sql: &str) -> Value {
        self.last(sql).rows[0][0].clone()
    }
}
