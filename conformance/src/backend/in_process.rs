//! Crate `sqlite` itself, without log, service or server.

use std::path::Path;

use base::Result;
use sqlite::{Batch, Conn, OpenOptions, StatementResult, execute};
use tempfile::TempDir;

use super::{Backend, Shape};

/// Runs cases in this process, under the profile `d1-paid`.
#[derive(Default)]
pub struct InProcess {
    // In this order, so that the connection is closed before its folder goes.
    conn: Option<Conn>,
    folder: Option<TempDir>,
}

impl InProcess {
    /// Without a database until [`Backend::fresh`].
    pub fn new() -> Self {
        Self::default()
    }
}

impl Backend for InProcess {
    fn name(&self) -> &'static str {
        "in-process"
    }

    fn shape(&self) -> Shape {
        Shape::Exact
    }

    fn fresh(&mut self) -> std::result::Result<(), String> {
        self.conn = None;
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        self.conn = Some(open(folder.path()).map_err(|e| format!("{e:?}"))?);
        self.folder = Some(folder);
        Ok(())
    }

    fn run(&mut self, batch: &Batch) -> std::result::Result<Vec<StatementResult>, String> {
        let conn = self.conn.as_mut().ok_or("no database: `fresh` was not called")?;
        match execute::batch(conn, batch, &execute::Options::default()) {
            Ok(items) => Ok(items.into_iter().flatten().collect()),
            Err(error) => Err(error.message),
        }
    }
}

fn open(folder: &Path) -> Result<Conn> {
    let path = folder.join("case.db");
    std::fs::write(&path, sqlite::empty_database()).map_err(|e| base::Error::io("the case's database", e))?;
    Conn::open(&path, &OpenOptions::default())
}
