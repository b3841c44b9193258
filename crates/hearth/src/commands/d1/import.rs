//! `hearth d1 import`: a file of SQL, sent by link and run as one atomic unit.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read, Seek},
    path::{Path, PathBuf},
    process::ExitCode,
};

use api::import::{ImportPoll, ImportRequest, ImportResult, ImportUpload, Status};
use md5::{Digest, Md5};

use super::{Step, database_path, wait_for};
use crate::{
    client::{Client, typed},
    failure::Failure,
    printer::Printer,
    progress::Progress,
    table::Table,
};

/// Bytes read at once for the digest.
const READ_BYTES: usize = 256 * 1_024;

/// Run a file of SQL of any size; all of it takes effect or none
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or id
    database: String,
    /// The file
    file: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// If the file cannot be read or sent, or a statement in it fails; the database is then as it was.
pub(crate) fn run(args: &Args, client: &Client, printer: &Printer) -> Result<ExitCode, Failure> {
    let unreadable = |error: io::Error| Failure::io(format!("{} could not be read", args.file.display()), &error);
    let mut file = File::open(&args.file).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Failure::usage(format!("{} is not a file (expected one with SQL)", args.file.display())));
    }
    let bytes = metadata.len();
    let etag = digest(&mut file, bytes, printer).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;

    let path = format!("{}/import", database_path(&args.database));
    let answer = client.post(&path, &ImportRequest::Init { etag: etag.clone() })?;
    let first = if answer.get("upload_url").is_some() {
        let upload: ImportUpload = typed(answer)?;
        send(client, &upload, file, bytes, &etag, &args.file, printer)?;
        typed(client.post(&path, &ImportRequest::Ingest { filename: upload.filename, etag })?)?
    } else {
        printer.note("the server has this file already");
        typed(answer)?
    };
    let progress = Progress::start(printer, "running the statements", None);
    let result = wait_for(step(first, &progress)?, |bookmark| {
        step(typed(client.post(&path, &ImportRequest::Poll { current_bookmark: bookmark.to_owned() })?)?, &progress)
    })?;
    drop(progress);

    let mut table = Table::new(["queries", "rows_read", "rows_written", "size_after"]);
    table.push([result.num_queries, result.meta.rows_read, result.meta.rows_written, result.meta.size_after].map(|n| n.to_string()));
    printer.result(&result, &table)?;
    Ok(ExitCode::SUCCESS)
}

/// What an answer means; its lines are shown.
fn step(poll: ImportPoll, progress: &Progress) -> Result<Step<ImportResult>, Failure> {
    for line in &poll.messages {
        progress.line(line);
    }
    match (poll.status, poll.result) {
        (Status::Active, _) => Ok(Step::Again(poll.at_bookmark)),
        (Status::Complete, Some(result)) => Ok(Step::Done(result)),
        (Status::Complete, None) => Err(Failure::new("the import is complete, but the server sent no figures")),
        (Status::Error, _) => {
            let why =
                if poll.errors.is_empty() { poll.error.unwrap_or_else(|| "the import failed".to_owned()) } else { poll.errors.join("; ") };
            Err(Failure::new(why).hint("nothing of the file took effect: mend it and run the command again"))
        }
    }
}

fn send(client: &Client, upload: &ImportUpload, file: File, bytes: u64, etag: &str, path: &Path, printer: &Printer) -> Result<(), Failure> {
    let progress = Progress::start(printer, "uploading", Some(bytes));
    let arrived = client.upload(&upload.upload_url, file, bytes, &progress)?;
    if arrived != etag {
        return Err(Failure::new(format!("{} did not arrive as it was read (MD5 sent {etag}, arrived {arrived})", path.display()))
            .hint("run the command again; do not change the file meanwhile"));
    }
    Ok(())
}

/// The file's MD5 as lower-case hex.
fn digest(file: &mut File, bytes: u64, printer: &Printer) -> io::Result<String> {
    let progress = Progress::start(printer, "reading", Some(bytes));
    let mut md5 = Md5::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        md5.update(&buffer[..n]);
        progress.advance(n as u64);
    }
    let mut hex = String::with_capacity(32);
    for byte in md5.finalize() {
        write!(hex, "{byte:02x}").expect("a String takes all that is written");
    }
    Ok(hex)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_digest_is_that_of_the_whole_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"hello world").unwrap();
        file.rewind().unwrap();
        assert_eq!(digest(&mut file, 11, &Printer::new(true)).unwrap(), "5eb63bbbe01eeed093cb22bb8f5acdc3");
    }
}
