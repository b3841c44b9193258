//! The actor of one database file: a queue, one connection, one job at a time.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use base::{Code, DatabaseId, Error, Limits, Result, Timestamp};
use sqlite::{Conn, OpenOptions, Role, wal};
use tokio::sync::oneshot;

use crate::{Disk, Log, Ticket, append::RESET, layout, position::Fate};

const QUEUE_FULL: &str = "D1 DB is overloaded. Too many requests queued.";
const QUEUE_LATE: &str = "D1 DB is overloaded. Requests queued for too long.";
/// Frames after which the WAL is emptied as soon as they are durable: 4 MiB.
const CHECKPOINT_FRAMES: u32 = 1_000;
/// Frames after which the next job waits for that.
const CHECKPOINT_FRAMES_MAX: u32 = 8_000;

/// How long after a failed checkpoint the next one is tried.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(10);

/// A job runs once: on the open database, or with the reason why it cannot be had.
type Job = Box<dyn FnOnce(&Inner, Option<Error>) + Send>;

/// A database's handle. Cheap to clone; all handles of one file share its queue.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

/// What a job may use besides the connection: makes room in the log before a commit.
pub type Reserve<'a> = &'a mut dyn FnMut(u64) -> Result<()>;

pub(crate) struct Inner {
    log: Weak<Log>,
    id: DatabaseId,
    path: PathBuf,
    role: Role,
    limits: Arc<Limits>,
    queue: Mutex<Queue>,
    slot: Mutex<Slot>,
    /// Monotonic milliseconds of the last job.
    last_used: AtomicU64,
    is_open: AtomicBool,
    /// Outlives the connection, whose files are the disk's: fields are dropped in this order.
    _disk: Arc<dyn Disk>,
}

struct Queue {
    jobs: VecDeque<(Duration, Job)>,
    running: bool,
    /// Set once the database takes no more work.
    closed: Option<(Code, String)>,
    cancel: Option<Arc<AtomicBool>>,
}

/// What only the running job touches.
#[derive(Default)]
struct Slot {
    conn: Option<Conn>,
    opened_before: bool,
    /// The last commit's ticket: what an answer must wait for.
    last: Ticket,
    /// The last commit that a checkpoint has put into the file.
    durable: Ticket,
    /// Commits in the WAL: those that may still be lost, and the last one that cannot.
    commits: VecDeque<Logged>,
    frames: u32,
    /// Monotonic time before which a checkpoint that failed is not tried again.
    checkpoint_not_before: Duration,
    time: Timestamp,
}

#[derive(Clone, Copy)]
struct Logged {
    ticket: Ticket,
    salts: [u32; 2],
    last_frame: u32,
}

impl Database {
    pub(crate) const fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// The database's id.
    pub fn id(&self) -> DatabaseId {
        self.inner.id
    }

    /// As [`Self::run_at`], without the position.
    ///
    /// # Errors
    /// As there.
    pub async fn run<T, F>(&self, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Conn, Reserve<'_>) -> Result<T> + Send + 'static,
    {
        self.run_at(job).await.map(|(value, _)| value)
    }

    /// Runs `job` on the database's connection, after all jobs that came before, and answers when
    /// everything that it saw or wrote is durable: with the job's value and the position of the last commit
    /// that it saw or made.
    ///
    /// The job goes on to its end if the caller goes away.
    ///
    /// # Errors
    /// The job's; [`Code::Overloaded`] for a full queue or a long wait; [`Code::Reset`] after
    /// [`Self::close`]; [`Code::Io`] if what it wrote could not be logged and was undone.
    pub async fn run_at<T, F>(&self, job: F) -> Result<(T, Ticket)>
    where
        T: Send + 'static,
        F: FnOnce(&mut Conn, Reserve<'_>) -> Result<T> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let job: Job = Box::new(move |inner, refused| {
            let answer = match refused {
                Some(error) => (Err(error), Ticket::default()),
                None => inner.work(job),
            };
            let _ = sender.send(answer);
        });
        let log = self.inner.push(job)?;
        let (outcome, ticket) = receiver.await.map_err(|_| Error::internal("a job of a database was dropped"))?;
        // A refusal tells of the database's state too, so it waits like an answer does.
        log.wait(ticket).await?;
        Ok((outcome?, ticket))
    }

    /// Takes no more jobs; those that wait get `refusal` at once, the one that runs comes to its end;
    /// then the file is checkpointed and closed.
    pub async fn close(&self, refusal: &Error) {
        let waiting = {
            let mut queue = self.inner.lock_queue();
            queue.closed.get_or_insert_with(|| (refusal.code, refusal.message.clone()));
            std::mem::take(&mut queue.jobs)
        };
        for (_, job) in waiting {
            job(&self.inner, Some(Error::new(refusal.code, refusal.message.clone())));
        }
        let inner = Arc::clone(&self.inner);
        let _ = tokio::task::spawn_blocking(move || inner.close_file()).await;
    }
}

impl Inner {
    pub(crate) fn new(log: &Arc<Log>, id: DatabaseId, role: Role, limits: Arc<Limits>) -> Arc<Self> {
        // All before this start is durable, so its last position is one that nobody waits for.
        let last = Ticket { lsn: log.base_lsn(), epoch: 0 };
        Arc::new(Self {
            path: layout::database_path(log.root(), id),
            log: Arc::downgrade(log),
            id,
            role,
            limits,
            queue: Mutex::new(Queue { jobs: VecDeque::new(), running: false, closed: None, cancel: None }),
            slot: Mutex::new(Slot { last, durable: last, time: log.time_floor(), ..Slot::default() }),
            last_used: AtomicU64::new(0),
            is_open: AtomicBool::new(false),
            _disk: Arc::clone(log.disk()),
        })
    }

    fn lock_queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().expect("no thread panics while it holds a queue's lock")
    }

    fn lock_slot(&self) -> std::sync::MutexGuard<'_, Slot> {
        // A job's panic is caught inside, so the lock is never poisoned.
        self.slot.lock().expect("jobs do not unwind through the slot's lock")
    }

    /// Ends the statement that runs now, and every later one of this connection, with a reset.
    pub(crate) fn interrupt(&self) {
        if let Some(cancel) = &self.lock_queue().cancel {
            cancel.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) const fn id(&self) -> DatabaseId {
        self.id
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    pub(crate) fn last_used_ms(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    fn push(self: &Arc<Self>, job: Job) -> Result<Arc<Log>> {
        let log = self.log.upgrade().ok_or_else(|| Error::new(Code::Reset, RESET))?;
        let now = log.config.clock.monotonic();
        let mut queue = self.lock_queue();
        if let Some((code, message)) = &queue.closed {
            return Err(Error::new(*code, message.clone()));
        }
        if queue.jobs.len() >= self.limits.queued_requests_max as usize {
            return Err(Error::new(Code::Overloaded, QUEUE_FULL));
        }
        queue.jobs.push_back((now, job));
        self.last_used.store(now.as_millis() as u64, Ordering::Relaxed);
        if !queue.running {
            queue.running = true;
            drop(queue);
            let inner = Arc::clone(self);
            tokio::task::spawn_blocking(move || inner.drain());
        }
        Ok(log)
    }

    /// Runs jobs until none waits.
    fn drain(&self) {
        loop {
            let (since, job) = {
                let mut queue = self.lock_queue();
                let Some(next) = queue.jobs.pop_front() else {
                    queue.running = false;
                    return;
                };
                next
            };
            let late = self.log.upgrade().is_none_or(|log| {
                let waited = log.config.clock.monotonic().saturating_sub(since);
                waited > Duration::from_millis(self.limits.queued_ms_max)
            });
            job(self, late.then(|| Error::new(Code::Overloaded, QUEUE_LATE)));
            self.tidy(false);
        }
    }

    /// Runs `job` on the open connection; logs what it committed. Returns its outcome and the
    /// position that the answer must wait for.
    fn work<T>(&self, job: impl FnOnce(&mut Conn, Reserve<'_>) -> Result<T>) -> (Result<T>, Ticket) {
        let Some(log) = self.log.upgrade() else {
            return (Err(Error::new(Code::Reset, RESET)), Ticket::default());
        };
        let mut slot = self.lock_slot();
        if let Err(error) = self.ready(&log, &mut slot) {
            return (Err(error), Ticket::default());
        }
        let Slot { conn, .. } = &mut *slot;
        let conn = conn.as_mut().expect("ready opened it");
        let mut reserved = 0;
        let ran = catch_unwind(AssertUnwindSafe(|| {
            job(conn, &mut |bytes| {
                reserved += log.reserve(bytes)?;
                Ok(())
            })
        }));
        let logged = match &ran {
            Ok(_) => self.log_commit(&log, &mut slot, &mut reserved),
            Err(_) => Err(Error::internal(format!("a job on database {} panicked", self.id))),
        };
        log.release(reserved);
        if let Err(error) = logged {
            // SQLite may hold a commit that the log does not: it must not be seen by anyone.
            tracing::error!(database = %self.id, ?error, "a commit could not be logged; the database is cut back");
            self.cut_back(&log, &mut slot);
            return (Err(error), slot.last);
        }
        let outcome = ran.unwrap_or_else(|_| unreachable!("a panic has returned above"));
        (outcome, slot.last)
    }

    fn log_commit(&self, log: &Log, slot: &mut Slot, reserved: &mut u64) -> Result<()> {
        let conn = slot.conn.as_mut().expect("a job has run on it");
        let Some(commit) = conn.take_commit()? else { return Ok(()) };
        let now = log.config.clock.now();
        let time = now.max(Timestamp(slot.time.0 + 1));
        let ticket = log.append(self.id, conn, &commit, time, reserved)?;
        slot.last = ticket;
        slot.time = time;
        slot.frames = commit.last_frame;
        slot.commits.push_back(Logged { ticket, salts: commit.salts, last_frame: commit.last_frame });
        // Only the last durable commit and those after it can be cut back to.
        while slot.commits.len() > 1 && log.fate(slot.commits[1].ticket) == Fate::Durable {
            slot.commits.pop_front();
        }
        Ok(())
    }

    /// Opens the file, or cuts it back first if its last commits were lost.
    fn ready(&self, log: &Arc<Log>, slot: &mut Slot) -> Result<()> {
        if log.lock().fenced.contains(&self.id) {
            self.cut_back(log, slot);
        }
        if log.lock().fenced.contains(&self.id) {
            return Err(Error::new(Code::Io, "the database is fenced after a failed write; start the server again"));
        }
        if slot.conn.is_some() {
            return Ok(());
        }
        let disk = log.disk();
        if !slot.opened_before {
            self.check_file(disk.as_ref())?;
            // Recovery has put all that was acknowledged into the file. What a WAL still holds is
            // older than that or was never acknowledged.
            for side in layout::side_files(&self.path) {
                disk.remove(&side).map_err(|error| Error::io(format!("database {}", self.id), error))?;
            }
        }
        let options = OpenOptions {
            role: self.role,
            limits: Arc::clone(&self.limits),
            vfs: disk.vfs().map(ToOwned::to_owned),
            clock: Arc::clone(&log.config.clock),
        };
        let conn = Conn::open(&self.path, &options)?;
        self.lock_queue().cancel = Some(conn.cancel_flag());
        slot.conn = Some(conn);
        slot.opened_before = true;
        self.is_open.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Looks at a file that is opened for the first time: a header of ours, and as many pages as it says.
    fn check_file(&self, disk: &dyn Disk) -> Result<()> {
        let failed = |error: std::io::Error| Error::io(format!("database {}", self.id), error);
        let file = disk.open(&self.path, false).map_err(failed)?;
        let len = file.len().map_err(failed)?;
        let mut header = [0; 100];
        let read = if len < header.len() as u64 { None } else { Some(file.read_exact_at(&mut header, 0).map_err(failed)?) };
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let pages = len / sqlite::PAGE_BYTES as u64;
        // The count of pages in the header is good if the change counter beside it is the file's.
        let counted = if word(24) == word(92) { u64::from(word(28)) } else { 1 };
        if read.is_some() && header.starts_with(b"SQLite format 3\0") && pages >= counted.max(1) {
            return Ok(());
        }
        let detail = format!("{} bytes, {counted} pages by its header", len);
        Err(Error::new(Code::Corrupt, format!("the file of database {} is damaged or cut; put it back from a backup", self.id))
            .with_internal(detail))
    }

    /// Takes the file back to its last commit that is durable in the log.
    fn cut_back(&self, log: &Log, slot: &mut Slot) {
        log.lock().fenced.insert(self.id);
        // What is with the flusher now must be known first.
        if let Some(last) = slot.commits.back() {
            let _ = log.wait_blocking(last.ticket);
        }
        while slot.commits.back().is_some_and(|last| log.fate(last.ticket) != Fate::Durable) {
            slot.commits.pop_back();
        }
        self.drop_conn(slot);
        match self.cut_wal(log, slot.commits.back().copied()) {
            Ok(frames) => {
                slot.frames = frames;
                slot.last = slot.commits.back().map_or(slot.durable, |last| last.ticket);
                log.lock().fenced.remove(&self.id);
            }
            Err(error) => tracing::error!(database = %self.id, %error, "the WAL could not be cut back; the database stays fenced"),
        }
    }

    /// Cuts the WAL to `keep`'s last frame, or empties it if `keep` stands in the database file already.
    fn cut_wal(&self, log: &Log, keep: Option<Logged>) -> std::io::Result<u32> {
        let disk = log.disk();
        let [wal_path, shm_path] = layout::side_files(&self.path);
        disk.remove(&shm_path)?;
        if !disk.exists(&wal_path) {
            return Ok(0);
        }
        let wal = disk.open(&wal_path, false)?;
        let mut header = [0; wal::HEADER_BYTES];
        let salts = wal
            .read_exact_at(&mut header, 0)
            .ok()
            .map(|()| [16, 20].map(|at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"))));
        match keep.filter(|keep| Some(keep.salts) == salts) {
            Some(keep) => {
                wal.set_len(wal::file_bytes(keep.last_frame))?;
                Ok(keep.last_frame)
            }
            None => {
                wal.set_len(0)?;
                Ok(0)
            }
        }
    }

    fn drop_conn(&self, slot: &mut Slot) {
        self.lock_queue().cancel = None;
        slot.conn = None;
        self.is_open.store(false, Ordering::Relaxed);
    }

    /// Empties the WAL if it is long (or `force`) and all of it is durable.
    pub(crate) fn tidy(&self, force: bool) {
        let Some(log) = self.log.upgrade() else { return };
        let mut slot = self.lock_slot();
        let Some(conn) = &slot.conn else { return };
        // A large transaction that was undone leaves its frames in the file, past the last commit's.
        let is_long = slot.frames >= CHECKPOINT_FRAMES || conn.wal_bytes() > wal::file_bytes(CHECKPOINT_FRAMES_MAX);
        if !is_long && (slot.frames == 0 || !force) {
            return;
        }
        if log.config.clock.monotonic() < slot.checkpoint_not_before {
            return;
        }
        // A checkpoint puts pages into the database file; a commit that could still be lost must not
        // be among them.
        let last = slot.last;
        if slot.frames >= CHECKPOINT_FRAMES_MAX {
            if log.wait_blocking(last).is_err() {
                return;
            }
        } else if log.fate(last) != Fate::Durable {
            return;
        }
        let conn = slot.conn.as_mut().expect("just looked at");
        match conn.checkpoint() {
            Ok(true) => {
                conn.reset_capture();
                slot.frames = 0;
                slot.commits.clear();
                slot.durable = last;
                let mut state = log.lock();
                state.pins.remove(&self.id);
                state.stats.checkpoints += 1;
            }
            Ok(false) => {}
            Err(error) => {
                slot.checkpoint_not_before = log.config.clock.monotonic() + CHECKPOINT_RETRY;
                tracing::error!(database = %self.id, ?error, "a checkpoint failed; the log keeps what it needs, and it is tried again later");
            }
        }
    }

    /// [`Self::tidy`] by force, unless a job holds the file: then the job's own end does it.
    pub(crate) fn tidy_if_free(&self) {
        if self.slot.try_lock().is_ok() {
            self.tidy(true);
        }
    }

    /// Checkpoints and closes, if nothing runs or waits.
    pub(crate) fn evict(self: &Arc<Self>) {
        {
            let mut queue = self.lock_queue();
            if queue.running || !queue.jobs.is_empty() {
                return;
            }
            // Jobs that come meanwhile wait behind this one.
            queue.running = true;
        }
        self.close_file();
        let mut queue = self.lock_queue();
        if queue.jobs.is_empty() {
            queue.running = false;
            return;
        }
        drop(queue);
        let inner = Arc::clone(self);
        std::thread::spawn(move || inner.drain());
    }

    fn close_file(&self) {
        let Some(log) = self.log.upgrade() else { return };
        let last = self.lock_slot().last;
        if log.wait_blocking(last).is_err() {
            return;
        }
        self.tidy(true);
        let mut slot = self.lock_slot();
        if slot.conn.is_none() || slot.frames > 0 {
            return;
        }
        self.drop_conn(&mut slot);
        // The WAL is empty and its index means nothing without it.
        for side in layout::side_files(&self.path) {
            let _ = log.disk().remove(&side);
        }
    }
}
