//! Runs the cases of a file on a backend.

use sqlite::{Batch, Statement};

use super::{
    compare::{Answer, compare},
    model::{Case, File, Request},
    template::expand,
};
use crate::backend::{self, Backend};

/// A case that did not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Name of the case.
    pub case: String,
    /// Line of the request, or of the case if its setup failed; from 1.
    pub line: usize,
    /// What was got and what was expected.
    pub message: String,
}

/// What a run of one file gave.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Name of the file.
    pub file: String,
    /// Cases that held.
    pub passed: usize,
    /// Cases that say that they do not hold on this backend.
    pub skipped: usize,
    /// Cases that did not hold.
    pub failures: Vec<Failure>,
}

/// Runs every case whose name holds `filter`, each on a fresh database.
pub fn run(file: &File, backend: &mut dyn Backend, filter: &str) -> Report {
    let mut report = Report { file: file.name.clone(), ..Report::default() };
    for case in file.cases.iter().filter(|case| case.name.contains(filter)) {
        if case.skips.iter().any(|(name, _)| name == backend.name()) {
            report.skipped += 1;
            continue;
        }
        match run_case(file, case, backend) {
            Ok(()) => report.passed += 1,
            Err(failure) => report.failures.push(failure),
        }
    }
    report
}

fn run_case(file: &File, case: &Case, backend: &mut dyn Backend) -> Result<(), Failure> {
    let failure = |line: usize, message: String| Failure { case: case.name.clone(), line, message };
    prepare(file, case, backend).map_err(|message| failure(case.line, message))?;
    for request in &case.requests {
        let answer = send(request, backend).map_err(|message| failure(request.line, message))?;
        compare(&request.expect, &answer, backend.shape()).map_err(|message| failure(request.line, message))?;
    }
    Ok(())
}

/// A fresh database with the case's setups done.
///
/// # Errors
/// Says which statement of the setup failed and how.
pub(super) fn prepare(file: &File, case: &Case, backend: &mut dyn Backend) -> Result<(), String> {
    backend.fresh().map_err(|error| format!("no fresh database: {error}"))?;
    let named = case.uses.iter().filter_map(|name| file.setups.iter().find(|setup| setup.name == *name)).flat_map(|setup| &setup.sql);
    for sql in named.chain(&case.setup) {
        let sql = expand(sql)?;
        backend
            .run(&Batch::sql(sql.as_str()))
            .map_err(|error| format!("the setup `{}` failed: {error}", sql.chars().take(80).collect::<String>()))?;
    }
    Ok(())
}

/// Sends one request. `Err` is a fault of the case itself.
pub(super) fn send(request: &Request, backend: &mut dyn Backend) -> Result<Answer, String> {
    let mut items = Vec::new();
    for item in &request.items {
        let params = match &item.params {
            Some(json) => backend::params(&expand(json)?)?,
            None => Vec::new(),
        };
        items.push(Statement { sql: expand(&item.sql)?, params });
    }
    Ok(backend.run(&Batch { items, is_prepared: request.prepared }))
}
