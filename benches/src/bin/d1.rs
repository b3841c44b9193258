//! `cargo xtask bench d1`: the engine, the log and the server, each beside bare SQLite, in one run.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use benches::{
    commits, engine,
    http::{self, Baselines},
    table::{self, Line},
};

const USAGE: &str = "usage: d1 [--seconds N] [--dir DIR]
  --seconds N  how long each line is measured (default 2; the whole run takes about 20 times as long)
  --dir DIR    folder on the disk to measure (default: the system's temporary folder)";

/// What the command line asks for.
struct Args {
    time: Duration,
    dir: PathBuf,
}

fn main() -> ExitCode {
    let outcome = args(std::env::args().skip(1)).and_then(|args| run(&args).map_err(|error| error.to_string()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn args(mut args: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut parsed = Args { time: Duration::from_secs(2), dir: std::env::temp_dir() };
    while let Some(arg) = args.next() {
        let value = args.next().ok_or_else(|| format!("`{arg}` has no value"))?;
        match arg.as_str() {
            "--seconds" => {
                let seconds = value.parse().ok().filter(|seconds| (0.01..=600.0).contains(seconds));
                parsed.time = Duration::from_secs_f64(seconds.ok_or(format!("--seconds is from 0.01 to 600 (got `{value}`)"))?);
            }
            "--dir" => parsed.dir = PathBuf::from(value),
            _ => return Err(format!("no such argument: `{arg}`")),
        }
    }
    Ok(parsed)
}

fn run(args: &Args) -> io::Result<()> {
    let folder = tempfile::tempdir_in(&args.dir)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // The server makes its log lines as it does in earnest; only their way to the terminal is left out.
    tracing_subscriber::fmt().with_ansi(false).with_writer(io::sink).init();
    let mut out = io::stdout().lock();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    writeln!(
        out,
        "{cores} cores; each line is measured for {:.1} s; callers and what they measure share the machine",
        args.time.as_secs_f64()
    )?;
    let (lines, [read, scan]) = engine::run(folder.path(), args.time);
    print(&mut out, "(a) the engine on one file; ratio to rusqlite with the statement kept", &lines)?;
    let (lines, insert) = commits::run(folder.path(), args.time, &runtime);
    print(&mut out, "(b) durable single-row inserts; ratio to rusqlite; cpu of the whole process", &lines)?;
    let lines = http::run(folder.path(), args.time, &runtime, &Baselines { read, scan, insert });
    print(&mut out, "(c) the same over loopback HTTP; ratio to rusqlite in (a) and (b); cpu of the server", &lines)
}

fn print(out: &mut impl Write, title: &str, lines: &[Line]) -> io::Result<()> {
    writeln!(out, "{}", table::head(title))?;
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    out.flush()
}
