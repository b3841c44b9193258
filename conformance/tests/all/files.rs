//! The files of the corpus, and a test for each of them on any backend.

use std::path::Path;

use conformance::{
    backend::Backend,
    corpus::{self, File},
};

/// Calls the macro `$with` with the name of every file of the corpus.
macro_rules! for_each_file {
    ($with:ident) => {
        $with! {
            batches constraints denied errors functions json limit_clause limits metering metering_indexes
            metering_writes names schema search seed select statements text triggers_views types
        }
    };
}
pub(crate) use for_each_file;

pub(crate) fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"))
}

pub(crate) fn read(name: &str) -> File {
    let name = format!("{name}.sqltest");
    let text = std::fs::read_to_string(folder().join(&name)).unwrap();
    corpus::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs every case of a file; prints how many held, and fails with those that did not.
pub(crate) fn check(name: &str, backend: &mut dyn Backend) {
    let report = corpus::run(&read(name), backend, "");
    println!("{name}.sqltest on {}: {} passed, {} failed", backend.name(), report.passed, report.failures.len());
    let failures: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("corpus/{name}.sqltest:{}: {}\n{}", failure.line, failure.case, failure.message))
        .collect();
    assert!(failures.is_empty(), "{} cases do not hold:\n\n{}", failures.len(), failures.join("\n\n"));
    assert!(report.passed > 0, "{name}.sqltest holds no case for this backend");
}

macro_rules! names {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

for_each_file!(names);

#[test]
fn every_file_of_the_folder_is_run() {
    let mut found: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".sqltest").unwrap_or_else(|| panic!("`{name}` is no .sqltest file")).to_owned())
        .collect();
    found.sort();
    assert_eq!(found, NAMES);
}

#[test]
fn the_corpus_has_its_300_cases() {
    let cases: usize = NAMES.iter().map(|name| read(name).cases.len()).sum();
    println!("the corpus has {cases} cases");
    assert!(cases >= 300, "the corpus has {cases} cases (expected at least 300)");
}

#[test]
fn the_example_of_the_readme_holds() {
    let readme = std::fs::read_to_string(folder().with_file_name("README.md")).unwrap();
    let start = readme.find("```\n* people\n").expect("README.md shows an example") + 4;
    let end = start + readme[start..].find("```").unwrap();
    let file = corpus::parse("README.md", &readme[start..end]).unwrap_or_else(|error| panic!("{error}"));
    let report = corpus::run(&file, &mut conformance::backend::InProcess::new(), "");
    assert_eq!((report.passed, report.failures.len()), (2, 0), "{:?}", report.failures);
}
