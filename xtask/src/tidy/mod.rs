//! The house rules that a machine can hold. Each check reads the same in-memory tree and returns
//! findings; each finding says what was found, where, and what to do.

mod edges;
mod fences;
mod functions;
mod lexer;
mod npm;
mod sizes;
mod statements;
mod tree;
mod words;

use std::{fmt, path::Path};

use crate::steps::Stop;
use tree::Tree;

/// One breach of a rule, or a warning of one to come.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path in the workspace.
    path: String,
    /// Line from 1; 0 for the file as a whole.
    line: usize,
    /// A warning does not fail the run.
    warning: bool,
    /// What was got and what was expected.
    message: String,
    /// What to do.
    hint: String,
}

impl Finding {
    fn error(path: &str, line: usize, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, warning: false, message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", if self.warning { "warning" } else { "error" }, self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}\n  hint: {}", self.message, self.hint)
    }
}

/// Checks the workspace below `root` and prints every finding on stderr.
///
/// # Errors
/// [`Stop::Failed`] if there is at least one error, or the tree cannot be read.
pub(crate) fn run(root: &Path) -> Result<(), Stop> {
    let tree = Tree::read(root).map_err(|e| Stop::Failed(format!("the source tree could not be read: {e}")))?;
    let findings = check(&tree);
    for finding in &findings {
        eprintln!("{finding}");
    }
    let errors = findings.iter().filter(|finding| !finding.warning).count();
    eprintln!("tidy: {} files, {errors} errors, {} warnings", tree.files.len(), findings.len() - errors);
    if errors > 0 { Err(Stop::Failed(format!("{errors} house rules are broken; each error above says what to do"))) } else { Ok(()) }
}

/// All findings, warnings first.
fn check(tree: &Tree) -> Vec<Finding> {
    let checks: [fn(&Tree) -> Vec<Finding>; 7] =
        [edges::check, fences::check, sizes::check, words::check, npm::check, statements::check, words::lockfiles];
    let mut findings: Vec<Finding> = checks.into_iter().flat_map(|check| check(tree)).collect();
    findings.sort_by(|a, b| b.warning.cmp(&a.warning).then_with(|| a.cmp(b)));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_keeps_its_own_rules() {
        let errors: Vec<String> = check(&Tree::read(&crate::root()).unwrap())
            .into_iter()
            .filter(|finding| !finding.warning)
            .map(|finding| finding.to_string())
            .collect();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }
}
