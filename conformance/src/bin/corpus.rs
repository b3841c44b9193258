//! Runs the corpus by hand: on this process, a running server, or the reference engine.
#![expect(clippy::print_stdout, reason = "a command's result goes to stdout")]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use conformance::{
    backend::{Backend, InProcess, Reference, Rest},
    corpus,
};

const USAGE: &str = "usage: corpus [--on in-process|rest|miniflare] [FILE or part of a case's name]…

  --on in-process   crate `sqlite` in this process (the default)
  --on rest         a running server: HEARTH_URL, HEARTH_KEY
  --on miniflare    the D1 of Miniflare, after `npm ci` in conformance/clients
  UPDATE_EXPECT=1   replaces what does not hold by what was measured; read the difference before you commit it";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Whether every case held.
fn run() -> Result<bool, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut on = "in-process".to_owned();
    if words.first().is_some_and(|word| word == "--on") {
        on = words.get(1).cloned().ok_or("--on takes a backend")?;
        words.drain(..2);
    }
    let (files, filters): (Vec<String>, Vec<String>) = words.into_iter().partition(|word| word.ends_with(".sqltest"));
    let filter = match filters.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        more => return Err(format!("only one part of a name can be given (got {})", more.join(" "))),
    };
    let mut backend: Box<dyn Backend> = match on.as_str() {
        "in-process" => Box::new(InProcess::new()),
        "miniflare" => Box::new(Reference::start(folder)?),
        "rest" => {
            let var = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set; `eval \"$(hearth env)\"` shows how"));
            Box::new(Rest::new(&var("HEARTH_URL")?, &var("HEARTH_KEY")?, &base::AccountId::default(), u64::from(std::process::id())))
        }
        other => return Err(format!("no backend is called `{other}`")),
    };
    let all = corpus_files(&folder.join("corpus"))?;
    let chosen = all.iter().filter(|path| files.is_empty() || files.iter().any(|name| path.ends_with(name)));
    let updating = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
    let (mut passed, mut failed) = (0, 0);
    for path in chosen {
        let report = one(path, backend.as_mut(), &filter, updating)?;
        passed += report.passed;
        failed += report.failures.len();
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn one(path: &Path, backend: &mut dyn Backend, filter: &str, updating: bool) -> Result<corpus::Report, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if updating {
        let mut file = corpus::parse_unfinished(&name, &text).map_err(|e| e.to_string())?;
        file.cases.retain(|case| case.name.contains(filter));
        let updated = corpus::update(&file, &text, backend).map_err(|e| format!("{name}: {e}"))?;
        std::fs::write(path, updated).map_err(|e| format!("{}: {e}", path.display()))?;
        return Ok(corpus::Report::default());
    }
    let file = corpus::parse(&name, &text).map_err(|e| e.to_string())?;
    let report = corpus::run(&file, backend, filter);
    for failure in &report.failures {
        println!("{name}:{}: {}\n{}\n", failure.line, failure.case, failure.message);
    }
    println!("{name}: {} passed, {} failed, {} not on {}", report.passed, report.failures.len(), report.skipped, backend.name());
    Ok(report)
}

fn corpus_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|x| x == "sqltest")).collect();
    files.sort();
    Ok(files)
}
