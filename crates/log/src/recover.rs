//! Start-up: reads the log, checks it, and writes what it holds over the database files.
//!
//! The whole log is read once and checked before any file is touched, so a corrupt log changes
//! nothing. Then, database by database, the last version of every logged page is written, the file
//! is cut to its logged length and synced, and its WAL is dropped: what the WAL held past the log
//! was never acknowledged.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use base::{Code, DatabaseId, Error, Result, Timestamp};
use sqlite::PAGE_BYTES;

use crate::{
    Disk, DiskFile, layout,
    record::{self, HEADER_BYTES, RECORD_BYTES_MAX},
    segment::{self, Found},
};

/// What start-up found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Databases that had commits in the log, with the time of their last one.
    pub databases: HashMap<DatabaseId, Timestamp>,
    /// Whole commits found.
    pub commits: u64,
    /// Pages written to database files.
    pub pages: u64,
    /// Bytes of a torn tail that were cut.
    pub torn_bytes: u64,
    /// No commit so far has a later time.
    pub(crate) time: Option<Timestamp>,
    /// The number of the next segment.
    pub(crate) next_sequence: u64,
    /// The highest position that a record calls durable.
    durable_lsn: u64,
    /// Where the log goes on.
    pub(crate) end_lsn: u64,
    /// Segments that are not needed any more.
    pub(crate) segments: Vec<PathBuf>,
}

/// A segment as it is read.
struct Source {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    base: u64,
    log_id: u64,
    len: u64,
}

/// Where a page's bytes stand: segment and byte.
type Place = (usize, u64);

/// What the log says of one database.
#[derive(Default)]
struct Image {
    pages: BTreeMap<u32, Place>,
    database_pages: u32,
    time: Option<Timestamp>,
    /// Pages of a commit whose marker has not come yet, and the transaction they belong to.
    open: Vec<(u32, Place)>,
    open_transaction: u64,
}

/// A log that was read to its end.
pub(crate) struct Logged {
    sources: Vec<Source>,
    images: HashMap<DatabaseId, Image>,
    pub(crate) found: Recovered,
}

impl Logged {
    /// Reads and checks all segments; changes nothing.
    pub(crate) fn read(disk: &dyn Disk, root: &Path) -> Result<Self> {
        let mut found = Recovered::default();
        let sources = sources(disk, root, &mut found)?;
        if found.segments.is_empty() {
            refuse_lost_log(disk, root)?;
        }
        let mut images: HashMap<DatabaseId, Image> = HashMap::new();
        for (at, source) in sources.iter().enumerate() {
            let bound = sources.get(at + 1).map(|next| next.base);
            found.end_lsn = read(at, source, bound, &mut images, &mut found)?;
        }
        Ok(Self { sources, images, found })
    }

    /// The databases that can be redone; changes nothing.
    pub(crate) fn whole(&self, disk: &dyn Disk, root: &Path) -> Result<HashSet<DatabaseId>> {
        let mut whole = HashSet::new();
        for (id, image) in &self.images {
            if can_be_redone(disk, root, *id, image)? {
                whole.insert(*id);
            }
        }
        Ok(whole)
    }

    /// Pages that `id` has after its last commit in the log; `None` if it has no commit there.
    pub(crate) fn database_pages(&self, id: DatabaseId) -> Option<u32> {
        self.images.get(&id).filter(|image| image.time.is_some()).map(|image| image.database_pages)
    }

    /// Gives the last version of each logged page of `id` to `on_page`, with the page's number.
    pub(crate) fn pages(&self, id: DatabaseId, mut on_page: impl FnMut(u32, &[u8]) -> Result<()>) -> Result<()> {
        let Some(image) = self.images.get(&id).filter(|image| image.time.is_some()) else { return Ok(()) };
        let mut page = [0; PAGE_BYTES];
        for (number, (at, offset)) in image.pages.range(..=image.database_pages) {
            let source = &self.sources[*at];
            source.file.read_exact_at(&mut page, *offset).map_err(|error| Error::io(name(&source.path), error))?;
            on_page(*number, &page)?;
        }
        Ok(())
    }
}

/// Recovers the data folder.
pub(crate) fn run(disk: &dyn Disk, root: &Path) -> Result<Recovered> {
    let mut logged = Logged::read(disk, root)?;
    let whole = logged.whole(disk, root)?;
    secure_tail(&logged.sources, &logged.found)?;
    for id in whole {
        logged.found.pages += redo(disk, root, id, &logged)?;
    }
    Ok(logged.found)
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| "the log".to_owned(), |name| format!("log/{}", name.to_string_lossy()))
}

/// The segments in order of creation, without those that were never used.
fn sources(disk: &dyn Disk, root: &Path, found: &mut Recovered) -> Result<Vec<Source>> {
    let dir = layout::log_dir(root);
    let mut paths = disk.list(&dir).map_err(|error| Error::io("the log's folder", error))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    let mut sources: Vec<(u64, Source)> = Vec::new();
    for path in paths {
        let failed = |error: io::Error| Error::io(name(&path), error);
        let file = disk.open(&path, false).map_err(failed)?;
        let len = file.len().map_err(failed)?;
        found.segments.push(path.clone());
        // An unused file may have taken a number too.
        let number = path.file_stem().and_then(|stem| u64::from_str_radix(stem.to_str()?, 16).ok()).unwrap_or_default();
        found.next_sequence = found.next_sequence.max(number + 1);
        match segment::read_header(file.as_ref()).map_err(failed)? {
            Found::Head(head) => {
                found.time = found.time.max(Some(head.time));
                sources.push((head.sequence, Source { path, file, base: head.base_lsn, log_id: head.log_id, len }));
            }
            Found::Unused => {}
            Found::Broken => {
                // A segment is used only after its header was synced, so one that holds a record had
                // a whole header once.
                let source = Source { path, file, base: 0, log_id: 0, len };
                if Reader::new(&source).any_record()? {
                    return Err(corrupt(&source.path, 0, "its header is damaged"));
                }
            }
        }
    }
    sources.sort_by_key(|(sequence, _)| *sequence);
    Ok(sources.into_iter().map(|(_, source)| source).collect())
}

/// Reads a segment up to `bound` (the next one's first position); returns where its records end.
fn read(at: usize, source: &Source, bound: Option<u64>, images: &mut HashMap<DatabaseId, Image>, found: &mut Recovered) -> Result<u64> {
    let mut reader = Reader::new(source);
    let mut lsn = source.base;
    while bound != Some(lsn) {
        let offset = segment::HEADER_BYTES + (lsn - source.base);
        let Some(header) = reader.record(offset)?.filter(|header| header.lsn == lsn && header.log_id == source.log_id) else {
            if bound.is_some() {
                return Err(corrupt(&source.path, offset, "a record before the next segment is damaged"));
            }
            if let Some(later) = reader.durable_past(offset, lsn)? {
                let what = format!("a record that was durable is damaged: the one at byte {later} says so");
                return Err(corrupt(&source.path, offset, &what));
            }
            found.torn_bytes += reader.written_past(offset)?;
            return Ok(lsn);
        };
        found.durable_lsn = found.durable_lsn.max(header.durable_lsn);
        let image = images.entry(header.database).or_default();
        if header.first || image.open_transaction != header.transaction {
            image.open.clear();
            image.open_transaction = header.transaction;
        }
        let bytes = reader.last_record();
        image.open.extend(record::pages(bytes, header.pages).map(|(page, within)| (page, (at, offset + within as u64))));
        lsn += bytes.len() as u64;
        if header.last {
            image.pages.extend(image.open.drain(..));
            image.database_pages = header.database_pages;
            image.time = Some(header.time);
            found.databases.insert(header.database, header.time);
            found.time = found.time.max(Some(header.time));
            found.commits += 1;
        }
    }
    Ok(lsn)
}

/// A server leaves at least one segment. Without any, a WAL that holds something says that commits
/// were acknowledged that are only in the log that is gone.
fn refuse_lost_log(disk: &dyn Disk, root: &Path) -> Result<()> {
    let [wal, _] = layout::side_files(&layout::database_path(root, DatabaseId::SYSTEM));
    let is_empty =
        !disk.exists(&wal) || disk.open(&wal, false).and_then(|file| file.len()).map_err(|error| Error::io("the catalogue", error))? == 0;
    if is_empty {
        return Ok(());
    }
    Err(Error::new(
        Code::Corrupt,
        "the commit log is missing (the folder `log` holds no segment) and the server was not stopped cleanly. Nothing was changed; put the folder `log` back from where it went",
    ))
}

/// Whether the log and the file together hold every page: redo must not make a file with holes.
///
/// A file that is not there was deleted, after which nobody asks for it, or was lost: then what the
/// log has of it is of no use. Only the catalogue is never deleted.
///
/// # Errors
/// [`Code::Corrupt`] if a file has become shorter than it was, or the catalogue is gone.
fn can_be_redone(disk: &dyn Disk, root: &Path, id: DatabaseId, image: &Image) -> Result<bool> {
    let path = layout::database_path(root, id);
    let failed = |error: io::Error| Error::io(format!("database {id}"), error);
    let is_there = disk.exists(&path);
    let pages = if is_there { disk.open(&path, false).and_then(|file| file.len()).map_err(failed)? / PAGE_BYTES as u64 } else { 0 };
    let first = u32::try_from(pages).unwrap_or(u32::MAX).saturating_add(1);
    let missing = (first..=image.database_pages).find(|page| !image.pages.contains_key(page));
    let Some(page) = missing else { return Ok(true) };
    if !is_there && id != DatabaseId::SYSTEM {
        tracing::warn!(database = %id, "the log holds commits of a database whose file is not there; they are dropped");
        return Ok(false);
    }
    let name = if id == DatabaseId::SYSTEM { "the catalogue system/system.db".to_owned() } else { format!("the file of database {id}") };
    Err(Error::new(
        Code::Corrupt,
        format!(
            "{name} has {pages} pages, the log ends at {}, and page {page} is in neither. Nothing was changed; put the file back from a backup",
            image.database_pages
        ),
    ))
}

/// Writes what no record calls durable once more, and syncs it.
///
/// If a sync failed before this start, the system may have marked pages as clean that never reached
/// the disk: they are read from its cache, a later sync passes over them, and power loss takes them.
/// Redo must not put into a database file what the log could still lose.
fn secure_tail(sources: &[Source], found: &Recovered) -> Result<()> {
    for (at, source) in sources.iter().enumerate() {
        let end = sources.get(at + 1).map_or(found.end_lsn, |next| next.base);
        let mut lsn = found.durable_lsn.max(source.base);
        if lsn >= end {
            continue;
        }
        let failed = |error: io::Error| Error::io(name(&source.path), error);
        let mut chunk = vec![0; 1 << 20];
        while lsn < end {
            let n = (end - lsn).min(chunk.len() as u64) as usize;
            let offset = segment::HEADER_BYTES + (lsn - source.base);
            source.file.read_exact_at(&mut chunk[..n], offset).map_err(failed)?;
            source.file.write_all_at(&chunk[..n], offset).map_err(failed)?;
            lsn += n as u64;
        }
        source.file.sync().map_err(failed)?;
    }
    Ok(())
}

/// Writes a database's logged pages, makes them durable and drops its WAL. Returns the pages written.
fn redo(disk: &dyn Disk, root: &Path, id: DatabaseId, logged: &Logged) -> Result<u64> {
    let path = layout::database_path(root, id);
    let dir = path.parent().expect("a database stands in a folder");
    let failed = |error: io::Error| Error::io(format!("database {id}"), error);
    let mut n_pages = 0;
    let database_pages = logged.database_pages(id);
    if let Some(database_pages) = database_pages {
        disk.create_dir(dir).map_err(failed)?;
        let file = disk.open(&path, true).map_err(failed)?;
        logged.pages(id, |number, page| {
            n_pages += 1;
            file.write_all_at(page, u64::from(number - 1) * PAGE_BYTES as u64).map_err(failed)
        })?;
        file.set_len(u64::from(database_pages) * PAGE_BYTES as u64).map_err(failed)?;
        file.sync().map_err(failed)?;
    }
    for side in layout::side_files(&path) {
        disk.remove(&side).map_err(failed)?;
    }
    if database_pages.is_some() {
        disk.sync_dir(dir).map_err(failed)?;
    }
    Ok(n_pages)
}

fn corrupt(path: &Path, offset: u64, what: &str) -> Error {
    Error::new(
        Code::Corrupt,
        format!("{} is damaged at byte {offset}: {what}. Nothing was changed; restore the data folder from a backup", name(path)),
    )
}

/// Reads records of one segment through a window.
struct Reader<'a> {
    source: &'a Source,
    window: Vec<u8>,
    window_at: u64,
    /// The last record's place in the window.
    last: (usize, usize),
}

const WINDOW_BYTES: usize = 4 << 20;
const _: () = assert!(WINDOW_BYTES > 2 * RECORD_BYTES_MAX);

impl<'a> Reader<'a> {
    fn new(source: &'a Source) -> Self {
        Self { source, window: Vec::new(), window_at: 0, last: (0, 0) }
    }

    /// The bytes at `offset`, at least `want` of them unless the file ends.
    fn at(&mut self, offset: u64, want: usize) -> Result<&[u8]> {
        let end = self.window_at + self.window.len() as u64;
        if offset < self.window_at || (offset + want as u64 > end && end < self.source.len) {
            let bytes = (self.source.len.saturating_sub(offset)).min(WINDOW_BYTES as u64) as usize;
            self.window.resize(bytes, 0);
            self.window_at = offset;
            self.source.file.read_exact_at(&mut self.window, offset).map_err(|error| Error::io(name(&self.source.path), error))?;
        }
        let from = (offset - self.window_at).min(self.window.len() as u64) as usize;
        Ok(&self.window[from..])
    }

    /// The whole record at `offset`, if there is one.
    fn record(&mut self, offset: u64) -> Result<Option<record::Header>> {
        let Some(len) = record::claimed_len(self.at(offset, HEADER_BYTES)?) else { return Ok(None) };
        let bytes = self.at(offset, len)?;
        let header = bytes.get(..len).and_then(record::decode);
        self.last = ((offset - self.window_at) as usize, len);
        Ok(header)
    }

    fn last_record(&self) -> &[u8] {
        &self.window[self.last.0..self.last.0 + self.last.1]
    }

    /// A record past `offset` that was written when `lsn` was already durable, if there is one: then
    /// the damage at `offset` is no torn tail.
    fn durable_past(&mut self, offset: u64, lsn: u64) -> Result<Option<u64>> {
        let (base, log_id) = (self.source.base, self.source.log_id);
        self.find_past(offset, |at, header| {
            header.log_id == log_id && segment::HEADER_BYTES + header.lsn.wrapping_sub(base) == at && header.durable_lsn > lsn
        })
    }

    /// Whether any whole record stands in the file.
    fn any_record(&mut self) -> Result<bool> {
        Ok(self.find_past(0, |_, _| true)?.is_some())
    }

    fn find_past(&mut self, offset: u64, wanted: impl Fn(u64, &record::Header) -> bool) -> Result<Option<u64>> {
        const BLOCK: usize = 4096;
        let mut at = offset + 8;
        while at + (HEADER_BYTES as u64) <= self.source.len {
            // Room that was never written is passed over in blocks.
            if at.is_multiple_of(BLOCK as u64) && self.at(at, BLOCK)?.get(..BLOCK).is_some_and(|block| block == [0; BLOCK]) {
                at += BLOCK as u64;
                continue;
            }
            if record::claimed_len(self.at(at, HEADER_BYTES)?).is_some()
                && let Some(header) = self.record(at)?
                && wanted(at, &header)
            {
                return Ok(Some(at));
            }
            at += 8;
        }
        Ok(None)
    }

    /// Bytes past `offset` up to the last one that is not zero.
    fn written_past(&mut self, offset: u64) -> Result<u64> {
        let mut at = offset;
        let mut last = offset;
        while at < self.source.len {
            let bytes = self.at(at, 1)?;
            let n = bytes.len() as u64;
            if let Some(position) = bytes.iter().rposition(|b| *b != 0) {
                last = at + position as u64 + 1;
            }
            at += n.max(1);
        }
        Ok(last - offset)
    }
}
