//! `hearth d1 export`: a database as SQL, into a file or to standard output.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use api::export::{DumpOptions, ExportPoll, ExportRequest, ExportResult, OutputFormat, Status};
use serde_json::json;

use super::{Step, database_path, wait_for};
use crate::{
    client::{Client, typed},
    failure::Failure,
    printer::Printer,
    progress::Progress,
    table::Table,
};

/// Write a database out as SQL
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or id
    database: String,
    /// The file to write, replaced if it is there; standard output if left out
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave out CREATE statements
    #[arg(long)]
    no_schema: bool,
    /// Leave out rows
    #[arg(long, conflicts_with = "no_schema")]
    no_data: bool,
    /// Only this table; may be given several times
    #[arg(long = "table", value_name = "TABLE")]
    tables: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// If the server cannot export, or the file cannot be written; a file that was there before is then as it was.
pub(crate) fn run(args: &Args, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let path = format!("{}/export", database_path(&args.database));
    let options = DumpOptions { no_schema: args.no_schema, no_data: args.no_data, tables: args.tables.clone() };
    let mut request = ExportRequest { output_format: OutputFormat::Polling, dump_options: Some(options), current_bookmark: None };
    let progress = Progress::start(printer, "exporting", None);
    let first = step(typed(client.post(&path, &request)?)?, &progress)?;
    let result = wait_for(first, |bookmark| {
        request.current_bookmark = Some(bookmark.to_owned());
        step(typed(client.post(&path, &request)?)?, &progress)
    })?;
    drop(progress);

    let progress = Progress::start(printer, "downloading", None);
    let Some(output) = &args.output else {
        let mut out = BufWriter::new(io::stdout().lock());
        client.download(&result.signed_url, &mut out, &progress)?;
        out.flush().map_err(|error| Failure::output("the download", &error))?;
        return Ok(ExitCode::SUCCESS);
    };
    let bytes = download_to(client, &result.signed_url, output, &progress)?;
    drop(progress);
    let file = output.display().to_string();
    let mut table = Table::new(["file", "bytes"]);
    table.push([file.clone(), bytes.to_string()]);
    printer.result(&json!({ "file": file, "bytes": bytes }), &table)?;
    Ok(ExitCode::SUCCESS)
}

fn step(poll: ExportPoll, progress: &Progress) -> Result<Step<ExportResult>, Failure> {
    for line in &poll.messages {
        progress.line(line);
    }
    match (poll.status, poll.result) {
        (Status::Active, _) => Ok(Step::Again(poll.at_bookmark)),
        (Status::Complete, Some(result)) => Ok(Step::Done(result)),
        (Status::Complete, None) => Err(Failure::new("the export is complete, but the server sent no link")),
        (Status::Error, _) => Err(Failure::new(poll.error.unwrap_or_else(|| "the export failed".to_owned()))),
    }
}

/// Downloads beside `output` and renames, so that a file with its name is always a whole export.
/// What is there and no file of its own (a device, a pipe, a link) is written to as it is.
fn download_to(client: &Client, link: &str, output: &Path, progress: &Progress) -> Result<u64, Failure> {
    if fs::symlink_metadata(output).is_ok_and(|found| !found.is_file()) {
        let unwritable = |error: io::Error| Failure::io(format!("{} could not be written", output.display()), &error);
        let mut file = File::options().write(true).truncate(true).open(output).map_err(unwritable)?;
        return client.download(link, &mut file, progress);
    }
    let mut name = output.file_name().ok_or_else(|| Failure::usage(format!("{} is not the name of a file", output.display())))?.to_owned();
    name.push(".part");
    let part = output.with_file_name(name);
    let unwritable = |error: io::Error| Failure::io(format!("{} could not be written", part.display()), &error);
    let mut file = File::create(&part).map_err(unwritable)?;
    let written = client.download(link, &mut file, progress).and_then(|bytes| {
        file.sync_all().map_err(unwritable)?;
        fs::rename(&part, output).map_err(|error| Failure::io(format!("{} could not be written", output.display()), &error))?;
        Ok(bytes)
    });
    if written.is_err() {
        // The first failure is the one to report; what is left over carries its name.
        let _ = fs::remove_file(&part);
    }
    written
}
