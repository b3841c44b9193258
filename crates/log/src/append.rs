//! The log in memory: reserve, append, wait.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::JoinHandle,
};

use base::{Clock, Code, DatabaseId, Error, Result, Rng, Timestamp};
use sqlite::{Conn, wal::Commit};
use tokio::sync::oneshot;

use crate::{
    Disk, Recovered, Ticket,
    database::{Database, Inner as DatabaseInner},
    flush, keeper, layout,
    position::{Epochs, Fate},
    record::{self, Draft, Header},
    recover,
    segment::{self, GROWTH_BYTES, Head, Segment},
};

/// What [`Log::open`] needs.
#[derive(Clone)]
pub struct Config {
    /// The data folder.
    pub root: PathBuf,
    /// The disk that holds it.
    pub disk: Arc<dyn Disk>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub rng: Arc<dyn Rng>,
    /// Database files kept open at once.
    pub open_databases_max: usize,
    /// Called once if the log can no longer promise anything; the process must then stop.
    pub on_poison: Arc<dyn Fn(String) + Send + Sync>,
}

/// What a request gets that a stop or a restart cut off.
pub(crate) const RESET: &str = "D1 DB reset because its code was updated.";

/// Bytes that may wait in memory for the disk; an append past it waits.
const BUFFER_BYTES_MAX: usize = 8 << 20;

/// Figures of the log since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commits appended.
    pub commits: u64,
    /// `fdatasync` calls for commits.
    pub syncs: u64,
    /// Bytes appended.
    pub bytes: u64,
    /// Checkpoints of database files.
    pub checkpoints: u64,
}

/// The commit log of the process.
pub struct Log {
    pub(crate) config: Config,
    pub(crate) dir: PathBuf,
    pub(crate) state: Mutex<State>,
    /// Wakes the flusher: something was appended, or the end.
    pub(crate) work: Condvar,
    /// Wakes appenders and blocking waiters: the durable position moved.
    pub(crate) moved: Condvar,
    pub(crate) databases: Mutex<HashMap<DatabaseId, Arc<DatabaseInner>>>,
    base_lsn: u64,
    /// No commit before this start has a later time, so that commit times never go back.
    time_floor: Timestamp,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What the log's lock guards.
pub(crate) struct State {
    pub(crate) segment: Segment,
    /// Paths and first positions of the segments before the open one, oldest first.
    pub(crate) old: VecDeque<(PathBuf, u64)>,
    pub(crate) next_sequence: u64,
    /// The latest time of any commit.
    pub(crate) time: Timestamp,
    pub(crate) log_id: u64,
    /// Appended and not yet with the disk.
    pub(crate) buffer: Vec<u8>,
    /// Position of the buffer's first byte.
    pub(crate) buffer_lsn: u64,
    pub(crate) durable: u64,
    /// Databases with records in the buffer.
    pub(crate) waiting_databases: HashSet<DatabaseId>,
    /// Databases whose last commits could not be written; they must cut themselves back.
    pub(crate) fenced: HashSet<DatabaseId>,
    pub(crate) waiters: Vec<(Ticket, oneshot::Sender<Result<()>>)>,
    pub(crate) epochs: Epochs,
    /// The oldest position that each database needs for recovery.
    pub(crate) pins: HashMap<DatabaseId, u64>,
    reserved: u64,
    next_transaction: u64,
    pub(crate) poisoned: Option<String>,
    pub(crate) stopping: bool,
    pub(crate) stats: Stats,
}

impl State {
    pub(crate) fn next_lsn(&self) -> u64 {
        self.buffer_lsn + self.buffer.len() as u64
    }
}

impl Log {
    /// Recovers the data folder and opens its log. Blocks; long after a crash with much in the log.
    ///
    /// # Errors
    /// [`Code::Corrupt`] by file name for damage before the last durable position; [`Code::Io`] and
    /// [`Code::DiskFull`] from the disk. Nothing is changed by a refused start but what redo had written.
    pub fn open(config: Config) -> Result<(Arc<Self>, Recovered)> {
        let dir = layout::log_dir(&config.root);
        let failed = |error: io::Error| Error::io("the log's folder", error);
        config.disk.create_dir(&dir).map_err(failed)?;
        let recovered = recover::run(config.disk.as_ref(), &config.root)?;
        let mut id = [0; 8];
        config.rng.fill(&mut id);
        let log_id = u64::from_le_bytes(id);
        let base = recovered.end_lsn;
        let time = recovered.time.unwrap_or_default();
        let head = Head { sequence: recovered.next_sequence, base_lsn: base, log_id, time };
        // On a disk that is full the log begins small: reads need no room in it.
        let segment = Segment::create(config.disk.as_ref(), &dir, head, GROWTH_BYTES)
            .or_else(|_| Segment::create(config.disk.as_ref(), &dir, head, segment::HEADER_BYTES))
            .map_err(|failure| failed(failure.error))?;
        // All that the old segments held is in the database files, synced.
        for path in &recovered.segments {
            config.disk.remove(path).map_err(failed)?;
        }
        config.disk.sync_dir(&dir).map_err(failed)?;
        let state = State {
            segment,
            old: VecDeque::new(),
            next_sequence: head.sequence + 1,
            time,
            log_id,
            buffer: Vec::new(),
            buffer_lsn: base,
            durable: base,
            waiting_databases: HashSet::new(),
            fenced: HashSet::new(),
            waiters: Vec::new(),
            epochs: Epochs::default(),
            pins: HashMap::new(),
            reserved: 0,
            next_transaction: 1,
            poisoned: None,
            stopping: false,
            stats: Stats::default(),
        };
        let log = Arc::new(Self {
            config,
            dir,
            state: Mutex::new(state),
            work: Condvar::new(),
            moved: Condvar::new(),
            databases: Mutex::new(HashMap::new()),
            base_lsn: base,
            time_floor: time,
            threads: Mutex::new(Vec::new()),
        });
        let spawn = |name: &str, body: fn(&Arc<Self>)| {
            let log = Arc::clone(&log);
            let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || body(&log));
            spawned.map_err(|error| Error::io("a thread of the log", error))
        };
        let threads = vec![spawn("log-flush", flush::run)?, spawn("log-keep", keeper::run)?];
        log.threads.lock().expect("no thread panics with this lock").extend(threads);
        Ok((log, recovered))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the log's lock")
    }

    /// Where the log began when it was opened.
    pub(crate) const fn base_lsn(&self) -> u64 {
        self.base_lsn
    }

    /// A time that no commit before this start is later than.
    pub(crate) const fn time_floor(&self) -> Timestamp {
        self.time_floor
    }

    /// The data folder.
    pub fn root(&self) -> &std::path::Path {
        &self.config.root
    }

    /// The disk.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.config.disk
    }

    /// Figures since the start.
    pub fn stats(&self) -> Stats {
        self.lock().stats
    }

    /// Makes sure that a commit of up to `bytes` bytes of pages will find room in the log.
    ///
    /// Each part of the commit that is appended takes its share of the reservation; what is left ends by [`Self::release`].
    ///
    /// # Errors
    /// [`Code::DiskFull`] if the disk has no room: nothing has been committed then.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<u64> {
        // Each page costs its number, each record its header; the rest of the estimate is slack.
        let bytes = bytes + bytes / 64 + 2 * record::HEADER_BYTES as u64 + record::ENTRY_BYTES as u64;
        let mut state = self.lock();
        check_poison(&state)?;
        let end = state.segment.offset(state.next_lsn()) + state.reserved + bytes;
        if end > state.segment.allocated {
            let file = Arc::clone(&state.segment.file);
            // More than is needed, so that the next commits find room; if that fails, just what is needed.
            let more = end.next_multiple_of(GROWTH_BYTES);
            let allocated = file.allocate(more).map(|()| more).or_else(|_| file.allocate(end).map(|()| end));
            state.segment.allocated = allocated.map_err(|error| Error::io("the log", error))?;
        }
        state.reserved += bytes;
        Ok(bytes)
    }

    pub(crate) fn release(&self, reserved: u64) {
        let mut state = self.lock();
        state.reserved = state.reserved.saturating_sub(reserved);
    }

    /// Bytes that are promised to commits under way.
    pub(crate) fn reserved(state: &State) -> u64 {
        state.reserved
    }

    /// Appends a commit that SQLite has made. The ticket is durable some milliseconds later.
    ///
    /// A large commit goes in parts of about 1 MiB, with its marker in the last; other databases'
    /// records may come between them. Blocks while too much waits for the disk. `reserved` is what is
    /// left of the commit's reservation, and goes down with each part.
    ///
    /// # Errors
    /// If the log is poisoned, the database fenced, or the WAL cannot be read back: the database must
    /// then cut itself back before it serves again.
    pub(crate) fn append(&self, database: DatabaseId, conn: &Conn, commit: &Commit, time: Timestamp, reserved: &mut u64) -> Result<Ticket> {
        let transaction = {
            let mut state = self.lock();
            state.next_transaction += 1;
            state.next_transaction
        };
        let mut header = Header {
            first: true,
            last: false,
            pages: 0,
            log_id: 0,
            lsn: 0,
            durable_lsn: 0,
            database,
            transaction,
            database_pages: commit.database_pages,
            frames: (commit.first_frame, commit.last_frame),
            salts: commit.salts,
            time,
        };
        let mut draft = Draft::new();
        for (number, frame) in &commit.pages {
            if draft.is_full() {
                self.push(&mut header, draft, reserved)?;
                header.first = false;
                draft = Draft::new();
            }
            draft.page(*number, |page| conn.read_page(commit, *frame, page))?;
        }
        header.last = true;
        let ticket = self.push(&mut header, draft, reserved)?;
        self.lock().stats.commits += 1;
        Ok(ticket)
    }

    fn push(&self, header: &mut Header, draft: Draft, reserved: &mut u64) -> Result<Ticket> {
        let mut state = self.lock();
        while state.buffer.len() >= BUFFER_BYTES_MAX && state.poisoned.is_none() && !state.fenced.contains(&header.database) {
            state = self.moved.wait(state).expect("no thread panics while it holds the log's lock");
        }
        check_poison(&state)?;
        if state.fenced.contains(&header.database) {
            return Err(lost());
        }
        header.log_id = state.log_id;
        header.lsn = state.next_lsn();
        header.durable_lsn = state.durable;
        state.time = state.time.max(header.time);
        let bytes = draft.len() as u64;
        draft.finish(header, &mut state.buffer);
        // Otherwise each segment that a large commit goes on in would be made with room for all of it.
        let taken = bytes.min(*reserved);
        *reserved -= taken;
        state.reserved = state.reserved.saturating_sub(taken);
        state.waiting_databases.insert(header.database);
        state.pins.entry(header.database).or_insert(header.lsn);
        state.stats.bytes += bytes;
        self.work.notify_one();
        Ok(Ticket { lsn: state.next_lsn(), epoch: state.epochs.current() })
    }

    /// Waits until `ticket` is durable.
    ///
    /// # Errors
    /// If its write failed or the log is poisoned: what it stands for is not durable.
    pub async fn wait(&self, ticket: Ticket) -> Result<()> {
        let receiver = {
            let mut state = self.lock();
            match state.epochs.fate(ticket, state.durable) {
                Fate::Durable => return Ok(()),
                Fate::Lost => return Err(lost()),
                Fate::Pending => check_poison(&state)?,
            }
            let (sender, receiver) = oneshot::channel();
            state.waiters.push((ticket, sender));
            receiver
        };
        receiver.await.unwrap_or_else(|_| Err(lost()))
    }

    /// As [`Self::wait`], for threads that may block.
    pub(crate) fn wait_blocking(&self, ticket: Ticket) -> Result<()> {
        let mut state = self.lock();
        loop {
            match state.epochs.fate(ticket, state.durable) {
                Fate::Durable => return Ok(()),
                Fate::Lost => return Err(lost()),
                Fate::Pending => check_poison(&state)?,
            }
            state = self.moved.wait(state).expect("no thread panics while it holds the log's lock");
        }
    }

    pub(crate) fn fate(&self, ticket: Ticket) -> Fate {
        let state = self.lock();
        state.epochs.fate(ticket, state.durable)
    }

    /// The handle of a database whose file exists.
    pub fn database(self: &Arc<Self>, id: DatabaseId, role: sqlite::Role, limits: &Arc<base::Limits>) -> Database {
        let mut databases = self.databases.lock().expect("no thread panics with this lock");
        let inner = databases.entry(id).or_insert_with(|| DatabaseInner::new(self, id, role, Arc::clone(limits)));
        Database::new(Arc::clone(inner))
    }

    /// Ends a database for good: closes it, removes its files and forgets it.
    ///
    /// To be called only when nothing that is durable names the database any more.
    ///
    /// # Errors
    /// From the disk; what is left is an orphan that start-up sweeps.
    pub async fn remove_database(&self, id: DatabaseId, refusal: &Error) -> Result<()> {
        let inner = self.databases.lock().expect("no thread panics with this lock").remove(&id);
        if let Some(inner) = inner {
            inner.interrupt();
            Database::new(inner).close(refusal).await;
        }
        self.lock().pins.remove(&id);
        let path = layout::database_path(&self.config.root, id);
        let dir = path.parent().expect("a database stands in a folder");
        let remove = || {
            for file in layout::side_files(&path).iter().chain([&path]) {
                self.config.disk.remove(file)?;
            }
            self.config.disk.sync_dir(dir)
        };
        remove().map_err(|error| Error::io(format!("database {id}"), error))
    }

    /// Makes the file of a new, empty database. Durable when it returns.
    ///
    /// # Errors
    /// From the disk; nothing is left then but, at worst, an orphan that start-up sweeps.
    pub fn create_database_file(&self, id: DatabaseId) -> Result<()> {
        let path = layout::database_path(&self.config.root, id);
        let dir = path.parent().expect("a database stands in a folder");
        let disk = &self.config.disk;
        // A file that stands under its own name is whole, whenever a crash came.
        let draft = path.with_extension("new");
        let make = || {
            disk.create_dir(dir)?;
            let file = disk.open(&draft, true)?;
            file.write_all_at(&sqlite::empty_database(), 0)?;
            file.set_len(sqlite::PAGE_BYTES as u64)?;
            file.sync()?;
            disk.rename(&draft, &path)?;
            disk.sync_dir(dir)
        };
        make().map_err(|error| {
            let _ = disk.remove(&draft);
            Error::io("the new database's file", error)
        })
    }

    /// Ends the statements that run now with a reset; their transactions are undone.
    pub fn interrupt_all(&self) {
        for inner in self.databases.lock().expect("no thread panics with this lock").values() {
            inner.interrupt();
        }
    }

    /// Ends all work: databases finish their queues, are checkpointed and closed, the flusher ends.
    pub async fn shutdown(self: &Arc<Self>) {
        let databases: Vec<_> = self.databases.lock().expect("no thread panics with this lock").values().cloned().collect();
        for database in databases {
            Database::new(database).close(&Error::new(Code::Reset, RESET)).await;
        }
        self.stop();
        self.leave_nothing();
    }

    /// After a clean stop all that was logged stands in the database files: the next start finds an
    /// empty log.
    fn leave_nothing(&self) {
        let mut state = self.lock();
        if state.poisoned.is_some() || !state.pins.is_empty() || !state.buffer.is_empty() || flush::roll(self, &mut state).is_err() {
            return;
        }
        for (path, _) in std::mem::take(&mut state.old) {
            let _ = self.config.disk.remove(&path);
        }
    }

    /// Ends the log without closing the databases: what a process does that has to stop at once.
    /// What is appended is still written if the disk works.
    pub fn halt(&self) {
        self.stop();
    }

    /// Ends the log's threads. What is appended is still written.
    fn stop(&self) {
        self.lock().stopping = true;
        self.work.notify_all();
        self.moved.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock().expect("no thread panics with this lock"));
        for thread in threads {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

pub(crate) fn check_poison(state: &State) -> Result<()> {
    match &state.poisoned {
        None => Ok(()),
        Some(reason) => {
            Err(Error::new(Code::Io, "the commit log could not be synced; the server must be started again").with_internal(reason.clone()))
        }
    }
}

/// What a caller gets whose commit could not be made durable.
pub(crate) fn lost() -> Error {
    Error::new(Code::Io, "the commit could not be written to the log and was undone").with_retryable(true)
}
