//! Each file of the corpus on crate `sqlite`, a test for each, so that they run side by side.

use std::path::Path;

use conformance::{
    backend::InProcess,
    corpus::{self, File},
};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"))
}

fn read(name: &str) -> File {
    let name = format!("{name}.sqltest");
    let text = std::fs::read_to_string(folder().join(&name)).unwrap();
    corpus::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"))
}

fn check(name: &str) {
    let report = corpus::run(&read(name), &mut InProcess::new(), "");
    println!("{name}.sqltest: {} passed, {} failed", report.passed, report.failures.len());
    let failures: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("corpus/{name}.sqltest:{}: {}\n{}", failure.line, failure.case, failure.message))
        .collect();
    assert!(failures.is_empty(), "{} cases do not hold:\n\n{}", failures.len(), failures.join("\n\n"));
    assert!(report.passed > 0, "{name}.sqltest holds no case for this backend");
}

macro_rules! files {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        const FILES: &[&str] = &[$(stringify!($name)),*];
    };
}

files! {
    batches constraints denied errors functions json limit_clause limits metering metering_indexes metering_writes names schema
    search seed select statements text triggers_views types
}

#[test]
fn every_file_of_the_folder_is_run() {
    let mut found: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".sqltest").unwrap_or_else(|| panic!("`{name}` is no .sqltest file")).to_owned())
        .collect();
    found.sort();
    assert_eq!(found, FILES);
}

#[test]
fn the_corpus_has_its_300_cases() {
    let cases: usize = FILES.iter().map(|name| read(name).cases.len()).sum();
    println!("the corpus has {cases} cases");
    assert!(cases >= 300, "the corpus has {cases} cases (expected at least 300)");
}
