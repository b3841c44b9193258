//! The files in the folder: readable, of the right shape, and nothing left over.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use base::DatabaseId;
use log::layout;

use super::{Report, Severity};

/// Files that are looked at.
const FILES_MAX: usize = 1_000_000;
/// Folders inside folders that are looked at.
const DEPTH_MAX: usize = 8;
/// What every SQLite database begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Endings of SQLite databases.
const DATABASE_EXTENSIONS: [&str; 2] = ["sqlite", "db"];
/// Endings of files that are renamed once they are whole.
const UNFINISHED_EXTENSIONS: [&str; 2] = ["tmp", "part"];

/// Whether what files hold can be judged.
pub(super) enum State<'a> {
    /// A server runs: only whether they can be read is checked.
    InMotion,
    /// None runs.
    Stopped {
        /// Databases whose files the next start writes, which are not judged either; `None` if the log is damaged.
        logged: Option<&'a HashSet<DatabaseId>>,
    },
}

/// Looks at all files.
pub(super) fn check(data: &Path, state: State<'_>, report: &mut Report) {
    let running = matches!(state, State::InMotion);
    let rewritten: HashSet<PathBuf> = match state {
        State::Stopped { logged: Some(logged) } => logged.iter().map(|id| layout::database_path(data, *id)).collect(),
        _ => HashSet::new(),
    };
    let mut walk = Walk { files: Vec::new(), report };
    walk.folder(data, 0);
    let Walk { files, report } = walk;
    let mut n_databases = 0_usize;
    for path in &files {
        let shown = path.strip_prefix(data).unwrap_or(path).display().to_string();
        let opened = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                report.add(
                    Severity::Error,
                    "file",
                    format!("{shown} cannot be opened: {error}"),
                    "make it readable and writable for Hearth's user",
                );
                continue;
            }
        };
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if UNFINISHED_EXTENSIONS.contains(&extension) && !running {
            report.add(Severity::Warning, "leftover", format!("{shown} was left by a start or a step that was cut short"), "remove it");
        }
        if DATABASE_EXTENSIONS.contains(&extension) {
            n_databases += 1;
            if let (false, Err(why)) = (running || rewritten.contains(path), database_shape(opened, has_wal(path))) {
                let remedy =
                    "put it back from a backup, or start `hearth serve`, which recovers what its log holds and names what it cannot";
                report.add(Severity::Error, "database", format!("{shown}: {why}"), remedy);
            }
        }
    }
    report.add(Severity::Ok, "files", format!("{} files, {n_databases} of them databases", files.len()), "");
}

struct Walk<'a> {
    files: Vec<PathBuf>,
    report: &'a mut Report,
}

impl Walk<'_> {
    /// Collects files; links are not followed.
    fn folder(&mut self, folder: &Path, depth: usize) {
        let entries = match fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
            Ok(entries) => entries,
            Err(error) => {
                let found = format!("the folder {} cannot be read: {error}", folder.display());
                self.report.add(Severity::Error, "file", found, "make it readable for Hearth's user");
                return;
            }
        };
        for entry in entries {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => self.folder(&entry.path(), depth + 1),
                Ok(kind) if kind.is_file() && self.files.len() < FILES_MAX => self.files.push(entry.path()),
                _ => {}
            }
        }
    }
}

fn has_wal(path: &Path) -> bool {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    fs::metadata(wal).is_ok_and(|metadata| metadata.len() > 0)
}

/// Checks a database's header and length. One with a write-ahead log may be behind it, so its
/// length says nothing. An empty file is a database that nothing was written to yet.
fn database_shape(file: File, has_wal: bool) -> Result<(), String> {
    let bytes = file.metadata().map_err(|error| error.to_string())?.len();
    if bytes == 0 {
        return Ok(());
    }
    let mut header = Vec::new();
    file.take(100).read_to_end(&mut header).map_err(|error| error.to_string())?;
    if header.len() < 100 {
        return Err(format!("it is cut off after {bytes} bytes (expected a header of 100)"));
    }
    if !header.starts_with(MAGIC) {
        return Err("its header is not that of a SQLite database".to_owned());
    }
    // 65,536 does not fit the field's two bytes and is written as 1.
    let page_bytes = match u64::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 65_536,
        n => n,
    };
    if !(512..=65_536).contains(&page_bytes) || !page_bytes.is_power_of_two() {
        return Err(format!("its header names pages of {page_bytes} bytes (expected a power of two from 512 to 65536)"));
    }
    if has_wal {
        return Ok(());
    }
    if !bytes.is_multiple_of(page_bytes) {
        return Err(format!("its {bytes} bytes are no whole number of pages of {page_bytes}"));
    }
    let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
    // The count of pages in the header is good if the change counter beside it is the file's.
    let pages = if word(24) == word(92) { u64::from(word(28)) } else { 0 };
    if bytes < pages * page_bytes {
        return Err(format!("it is cut off after {bytes} bytes (its header names {pages} pages of {page_bytes})"));
    }
    Ok(())
}
