//! One connection to one database file, under a profile.
#![expect(unsafe_code, reason = "hooks and limits are set through SQLite's C interface")]

use std::{
    cell::{Cell, OnceCell},
    ffi::{CStr, c_char, c_int, c_void},
    path::Path,
    ptr,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base::{Clock, Code, Error, Limits, Result, SystemClock};
use rusqlite::{OpenFlags, ffi};

use crate::{
    PAGE_BYTES, authorizer,
    error::{self, Stage},
    raw::{self, RawStatement, SqlText},
    wal,
};

/// Whose SQL the connection runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A user's: authorizer, limits and reduced modules.
    User,
    /// Hearth's own: no authorizer.
    Internal,
}

/// How to open a database.
pub struct OpenOptions {
    /// Whose SQL will run.
    pub role: Role,
    /// The profile.
    pub limits: Arc<Limits>,
    /// The SQLite VFS; `None` is the machine's disk.
    pub vfs: Option<String>,
    /// Time, for limits and durations.
    pub clock: Arc<dyn Clock>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { role: Role::User, limits: Arc::new(Limits::d1_paid()), vfs: None, clock: Arc::new(SystemClock::default()) }
    }
}

/// Why the authorizer last said no.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    None,
    Transaction,
    Other,
}

/// What the callbacks from C see. Boxed, so that its address is stable.
pub(crate) struct Shared {
    /// SQL of ours runs: the authorizer lets all pass.
    pub(crate) internal: Cell<bool>,
    pub(crate) denial: Cell<Denial>,
    /// User SQL may have set a pragma of the connection.
    pub(crate) pragma_set: Cell<bool>,
    /// Monotonic time at which the running request must end.
    deadline: Cell<Option<Duration>>,
    clock: Arc<dyn Clock>,
    cancelled: Arc<AtomicBool>,
    /// Frames in the WAL after the last commit that wrote; set by the WAL hook, taken by capture.
    committed_frames: Cell<Option<u32>>,
}

/// A connection with the one write position of its file.
///
/// It is `Send` and not `Sync`: one thread at a time uses it.
pub struct Conn {
    // Fields drop in order: statements before the connection, the connection before what its callbacks see.
    page_count: OnceCell<RawStatement>,
    free_count: OnceCell<RawStatement>,
    begin: OnceCell<RawStatement>,
    commit: OnceCell<RawStatement>,
    db: rusqlite::Connection,
    shared: Box<Shared>,
    limits: Arc<Limits>,
    role: Role,
    pub(crate) wal: wal::Position,
}

/// Ops between two looks at the clock: about 20 microseconds of work.
const PROGRESS_OPS: c_int = 1000;

impl Conn {
    /// Opens an existing database file that [`empty_database`] began.
    ///
    /// Nothing is read yet but what SQLite needs to know the file.
    ///
    /// # Errors
    /// [`Code::Io`] if the file is not there or cannot be opened.
    ///
    /// # Panics
    /// If the program was linked with another SQLite than the metered one: every figure would be wrong.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        static LINKED: Once = Once::new();
        LINKED.call_once(raw::assert_metered);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let opened = match &options.vfs {
            Some(vfs) => rusqlite::Connection::open_with_flags_and_vfs(path, flags, vfs.as_str()),
            None => rusqlite::Connection::open_with_flags(path, flags),
        };
        let db = opened.map_err(|error| {
            Error::new(Code::Io, "the database's file could not be opened").with_internal(format!("{}: {error}", path.display()))
        })?;
        let shared = Box::new(Shared {
            internal: Cell::new(true),
            denial: Cell::new(Denial::None),
            pragma_set: Cell::new(false),
            deadline: Cell::new(None),
            clock: Arc::clone(&options.clock),
            cancelled: Arc::new(AtomicBool::new(false)),
            committed_frames: Cell::new(None),
        });
        let conn = Self {
            page_count: OnceCell::new(),
            free_count: OnceCell::new(),
            begin: OnceCell::new(),
            commit: OnceCell::new(),
            db,
            shared,
            limits: Arc::clone(&options.limits),
            role: options.role,
            wal: wal::Position::default(),
        };
        conn.configure()?;
        conn.shared.internal.set(options.role == Role::Internal);
        Ok(conn)
    }

    fn configure(&self) -> Result<()> {
        let db = self.handle();
        let shared = ptr::from_ref::<Shared>(&self.shared).cast_mut().cast::<c_void>();
        // SAFETY: `db` is open; `shared` is boxed, outlives the connection (field order) and is only
        // used from the thread that uses the connection.
        unsafe {
            ffi::sqlite3_db_config(db, ffi::SQLITE_DBCONFIG_DEFENSIVE, 1 as c_int, ptr::null_mut::<c_int>());
            ffi::sqlite3_db_config(db, ffi::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1 as c_int, ptr::null_mut::<c_int>());
            ffi::sqlite3_progress_handler(db, PROGRESS_OPS, Some(on_progress), shared);
            ffi::sqlite3_wal_hook(db, Some(on_commit), shared);
            if self.role == Role::User {
                ffi::sqlite3_set_authorizer(db, Some(authorizer::callback), shared);
                let keep = [c"fts5", c"fts5vocab", c"rtree", c"rtree_i32", c"json_each", c"json_tree"];
                let mut names: Vec<*const c_char> = keep.iter().map(|name| name.as_ptr()).collect();
                names.push(ptr::null());
                ffi::sqlite3_drop_modules(db, names.as_mut_ptr());
            }
        }
        self.limit_all();
        let pages = (self.limits.database_bytes_max / PAGE_BYTES as u64).min(u64::from(u32::MAX) - 1);
        self.run_internal(&format!("PRAGMA max_page_count={pages}"))?;
        self.run_internal("PRAGMA wal_autocheckpoint=0")?;
        // Setting it again installs our hook's place: the pragma above would replace it.
        // SAFETY: as above.
        unsafe { ffi::sqlite3_wal_hook(db, Some(on_commit), shared) };
        Ok(())
    }

    fn limit_all(&self) {
        let limits = &self.limits;
        let set = |id: c_int, value: u32| {
            // SAFETY: the connection is open; SQLite clamps the value to its compile-time maximum.
            unsafe { ffi::sqlite3_limit(self.handle(), id, c_int::try_from(value).unwrap_or(c_int::MAX)) };
        };
        set(ffi::SQLITE_LIMIT_LENGTH, limits.value_bytes_max);
        set(ffi::SQLITE_LIMIT_SQL_LENGTH, limits.statement_bytes_max);
        set(ffi::SQLITE_LIMIT_COLUMN, limits.columns_max);
        set(ffi::SQLITE_LIMIT_EXPR_DEPTH, limits.expression_depth_max);
        set(ffi::SQLITE_LIMIT_COMPOUND_SELECT, limits.compound_select_terms_max);
        set(ffi::SQLITE_LIMIT_VDBE_OP, limits.vdbe_ops_max);
        set(ffi::SQLITE_LIMIT_FUNCTION_ARG, limits.function_args_max);
        set(ffi::SQLITE_LIMIT_ATTACHED, 0);
        set(ffi::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, limits.like_pattern_bytes_max);
        set(ffi::SQLITE_LIMIT_VARIABLE_NUMBER, limits.parameters_max);
        set(ffi::SQLITE_LIMIT_TRIGGER_DEPTH, limits.trigger_depth_max);
        set(ffi::SQLITE_LIMIT_WORKER_THREADS, 0);
    }

    /// Sets how long a value may be for the next statement: reads may touch longer ones than writes.
    pub(crate) fn limit_values(&self, readonly: bool) {
        let bytes = if readonly { self.limits.read_value_bytes_max } else { self.limits.value_bytes_max };
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_limit(self.handle(), ffi::SQLITE_LIMIT_LENGTH, c_int::try_from(bytes).unwrap_or(c_int::MAX)) };
    }

    pub(crate) fn handle(&self) -> *mut ffi::sqlite3 {
        // SAFETY: the handle is used within the life of `self` and never closed by us.
        unsafe { self.db.handle() }
    }

    /// The profile that the connection was opened under.
    pub fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// Time since an arbitrary start, from the connection's clock.
    pub(crate) fn monotonic(&self) -> Duration {
        self.shared.clock.monotonic()
    }

    /// A flag that, once set, ends the running statement and each later one with
    /// `D1 DB reset because its code was updated.`.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.cancelled)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }

    /// Statements that still run `after` from now are interrupted; `None` lifts the limit.
    pub fn set_time_limit(&self, after: Option<Duration>) {
        self.shared.deadline.set(after.map(|after| self.monotonic() + after));
    }

    pub(crate) fn denial(&self) -> Denial {
        self.shared.denial.replace(Denial::None)
    }

    /// The last error's text and, if SQLite knows it, the byte in the SQL that it points to.
    pub(crate) fn last_message(&self) -> (String, Option<u32>) {
        // SAFETY: the connection is open; the text is copied before the next call.
        unsafe {
            let text = CStr::from_ptr(ffi::sqlite3_errmsg(self.handle())).to_string_lossy().into_owned();
            (text, u32::try_from(ffi::sqlite3_error_offset(self.handle())).ok())
        }
    }

    pub(crate) fn total_changes(&self) -> u64 {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_total_changes64(self.handle()) as u64 }
    }

    pub(crate) fn last_row_id(&self) -> i64 {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_last_insert_rowid(self.handle()) }
    }

    /// Bytes of the pages that hold something, as the running transaction sees them. The file may be
    /// longer: pages that were freed stay in it for later use, and production does not count them.
    ///
    /// # Errors
    /// SQLite's, if the file cannot be read.
    pub fn size(&self) -> Result<u64> {
        let pages = self.count(&self.page_count, "PRAGMA page_count")?;
        let free = self.count(&self.free_count, "PRAGMA freelist_count")?;
        Ok(pages.saturating_sub(free) * PAGE_BYTES as u64)
    }

    fn count(&self, cell: &OnceCell<RawStatement>, sql: &str) -> Result<u64> {
        let stmt = self.cached(cell, sql)?;
        let stepped = self.unauthorized(|| stmt.step());
        let count = stmt.column_i64(0) as u64;
        stmt.reset();
        stepped.map_err(|rc| error::from_conn(self, rc, Stage::ReadStep))?;
        Ok(count)
    }

    fn cached<'a>(&self, cell: &'a OnceCell<RawStatement>, sql: &str) -> Result<&'a RawStatement> {
        if let Some(stmt) = cell.get() {
            return Ok(stmt);
        }
        let stmt = self.prepare_internal(sql)?;
        Ok(cell.get_or_init(|| stmt))
    }

    fn prepare_internal(&self, sql: &str) -> Result<RawStatement> {
        let internal = self.shared.internal.replace(true);
        let text = SqlText::new(sql).expect("our SQL holds no NUL");
        let prepared = raw::prepare(self.handle(), &text, 0, true);
        self.shared.internal.set(internal);
        let (stmt, _) = prepared.map_err(|rc| error::from_conn(self, rc, Stage::Prepare))?;
        Ok(stmt.expect("our SQL holds a statement"))
    }

    /// Runs one statement of ours, without authorizer, and returns its rows.
    pub(crate) fn query_internal(&self, sql: &str, params: &[crate::Value]) -> Result<Vec<Vec<crate::Value>>> {
        let stmt = self.prepare_internal(sql)?;
        for (i, value) in params.iter().enumerate() {
            stmt.bind(i + 1, value).map_err(|rc| error::from_conn(self, rc, Stage::Prepare))?;
        }
        let internal = self.shared.internal.replace(true);
        let mut rows = Vec::new();
        let stepped = loop {
            match stmt.step() {
                Ok(true) => rows.push((0..stmt.column_count()).map(|i| stmt.column(i)).collect()),
                Ok(false) => break Ok(()),
                Err(rc) => break Err(rc),
            }
        };
        let outcome = stepped.map_err(|rc| error::from_conn(self, rc, Stage::ReadStep));
        drop(stmt);
        self.shared.internal.set(internal);
        outcome.map(|()| rows)
    }

    /// Runs `body` with the authorizer out of the way.
    pub(crate) fn unauthorized<T>(&self, body: impl FnOnce() -> T) -> T {
        let internal = self.shared.internal.replace(true);
        let value = body();
        self.shared.internal.set(internal);
        value
    }

    pub(crate) fn run_internal(&self, sql: &str) -> Result<()> {
        self.query_internal(sql, &[]).map(drop)
    }

    fn is_autocommit(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_get_autocommit(self.handle()) != 0 }
    }

    /// Runs `body` as one transaction: committed if it returns `Ok`, undone otherwise.
    ///
    /// `reserve` is called once before a commit that writes, with an upper bound of the bytes that
    /// the commit's pages take; if it refuses, the transaction is undone and nothing has changed.
    ///
    /// # Errors
    /// The body's, the reservation's or the commit's; the transaction is then undone.
    pub fn transaction<T>(&mut self, reserve: &mut dyn FnMut(u64) -> Result<()>, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.step_cached(&self.begin, "BEGIN")?;
        self.spilled_bytes(true);
        let outcome = body(self).and_then(|value| {
            if self.is_autocommit() {
                return Err(Error::new(Code::Sql, "the transaction was rolled back by one of its statements"));
            }
            if self.is_writing() {
                reserve(self.dirty_bytes_max()?)?;
            }
            self.step_cached(&self.commit, "COMMIT")?;
            Ok(value)
        });
        if outcome.is_err() && !self.is_autocommit() {
            // The time limit must not end the undoing too.
            self.set_time_limit(None);
            self.run_internal("ROLLBACK")?;
        }
        self.reset_pragmas();
        outcome
    }

    /// Takes back what user SQL set on the connection: it holds for its own request and no longer, as
    /// others use the connection too.
    fn reset_pragmas(&self) {
        if !self.shared.pragma_set.replace(false) {
            return;
        }
        self.set_time_limit(None);
        for pragma in [
            "case_sensitive_like=0",
            "foreign_keys=1",
            "ignore_check_constraints=0",
            "legacy_alter_table=0",
            "recursive_triggers=0",
            "reverse_unordered_selects=0",
        ] {
            // A pragma of a flag reads and writes no file; only a cancelled connection refuses it, and that one is closed.
            let _ = self.run_internal(&format!("PRAGMA {pragma}"));
        }
    }

    fn step_cached(&self, cell: &OnceCell<RawStatement>, sql: &str) -> Result<()> {
        let stmt = self.cached(cell, sql)?;
        let internal = self.shared.internal.replace(true);
        let stepped = stmt.step();
        // The connection still holds the step's message here; a reset would keep it, too.
        let outcome = stepped.map(drop).map_err(|rc| error::from_conn(self, rc, Stage::WriteStep));
        stmt.reset();
        self.shared.internal.set(internal);
        outcome
    }

    fn is_writing(&self) -> bool {
        // SAFETY: the connection is open; a null schema asks for the highest state of all.
        unsafe { ffi::sqlite3_txn_state(self.handle(), ptr::null()) == ffi::SQLITE_TXN_WRITE }
    }

    fn status(&self, op: c_int, reset: bool) -> u64 {
        let (mut now, mut high) = (0, 0);
        // SAFETY: the connection is open and both pointers are valid for writes.
        unsafe { ffi::sqlite3_db_status(self.handle(), op, &raw mut now, &raw mut high, c_int::from(reset)) };
        u64::try_from(now).unwrap_or(u64::MAX)
    }

    /// Bytes that the transaction has already had to write to the WAL because its cache was full.
    fn spilled_bytes(&self, reset: bool) -> u64 {
        self.status(ffi::SQLITE_DBSTATUS_CACHE_WRITE, reset) * PAGE_BYTES as u64
    }

    /// No more than this can be dirty: all that is cached and all that was spilled, and never more
    /// than the database has. A page may be spilled many times, so the spilled bytes alone can be fifty
    /// times the database: a gigabyte with an index asked for 47 GB of room.
    fn dirty_bytes_max(&self) -> Result<u64> {
        let spilled = self.spilled_bytes(false);
        let touched = self.status(ffi::SQLITE_DBSTATUS_CACHE_USED, false) + spilled;
        if spilled == 0 {
            return Ok(touched);
        }
        let pages = self.count(&self.page_count, "PRAGMA page_count")?;
        Ok(touched.min(pages * PAGE_BYTES as u64))
    }

    /// Frames in the WAL after the last commit that wrote, once.
    pub(crate) fn take_committed_frames(&self) -> Option<u32> {
        self.shared.committed_frames.take()
    }

    /// The first line of `PRAGMA integrity_check`: `ok`, or what is wrong.
    ///
    /// # Errors
    /// SQLite's, if the file cannot be read.
    pub fn check_integrity(&mut self) -> Result<String> {
        let rows = self.query_internal("PRAGMA integrity_check(1)", &[])?;
        match rows.first().and_then(|row| row.first()) {
            Some(crate::Value::Text(line)) => Ok(line.clone()),
            _ => Err(Error::internal("the integrity check gave no line")),
        }
    }

    /// Moves all frames into the database file, syncs it and empties the WAL.
    ///
    /// Only to be called when every frame is durable elsewhere. Returns whether it came to its end;
    /// `false` means that a reader still needs the WAL.
    ///
    /// # Errors
    /// SQLite's, if a file cannot be written.
    pub fn checkpoint(&mut self) -> Result<bool> {
        let (mut frames, mut moved) = (0, 0);
        // SAFETY: the connection is open, no statement runs, and both pointers are valid for writes.
        let rc = unsafe {
            ffi::sqlite3_wal_checkpoint_v2(self.handle(), ptr::null(), ffi::SQLITE_CHECKPOINT_TRUNCATE, &raw mut frames, &raw mut moved)
        };
        match rc & 0xff {
            ffi::SQLITE_OK => Ok(true),
            ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => Ok(false),
            _ => Err(error::from_conn(self, rc, Stage::WriteStep)),
        }
    }

    /// The open WAL as the VFS gives it; null while there is none.
    pub(crate) fn wal_file(&self) -> *mut ffi::sqlite3_file {
        let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
        // SAFETY: the connection is open and the operation writes one pointer.
        unsafe {
            ffi::sqlite3_file_control(self.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_JOURNAL_POINTER, ptr::from_mut(&mut file).cast());
        }
        file
    }
}

unsafe extern "C" fn on_progress(data: *mut c_void) -> c_int {
    // SAFETY: `data` is the connection's Shared, see `configure`.
    let shared = unsafe { &*data.cast::<Shared>() };
    let late = shared.deadline.get().is_some_and(|deadline| shared.clock.monotonic() >= deadline);
    c_int::from(late || shared.cancelled.load(Ordering::Relaxed))
}

unsafe extern "C" fn on_commit(data: *mut c_void, _db: *mut ffi::sqlite3, _name: *const c_char, frames: c_int) -> c_int {
    // SAFETY: `data` is the connection's Shared, see `configure`.
    let shared = unsafe { &*data.cast::<Shared>() };
    shared.committed_frames.set(u32::try_from(frames).ok());
    ffi::SQLITE_OK
}

/// The first page of an empty database in WAL mode: UTF-8, pages of 4,096 bytes.
///
/// Source: the file format's description, sections 1.3 and 1.6.
pub fn empty_database() -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    page[..16].copy_from_slice(b"SQLite format 3\0");
    page[16..18].copy_from_slice(&(PAGE_BYTES as u16).to_be_bytes());
    page[18..24].copy_from_slice(&[2, 2, 0, 64, 32, 32]); // WAL for reading and writing, no reserve, payload fractions
    page[24..28].copy_from_slice(&1_u32.to_be_bytes()); // change counter
    page[28..32].copy_from_slice(&1_u32.to_be_bytes()); // pages
    page[44..48].copy_from_slice(&4_u32.to_be_bytes()); // schema format
    page[56..60].copy_from_slice(&1_u32.to_be_bytes()); // UTF-8
    page[92..96].copy_from_slice(&1_u32.to_be_bytes()); // change counter that the next field belongs to
    page[96..100].copy_from_slice(&(ffi::SQLITE_VERSION_NUMBER as u32).to_be_bytes());
    page[100] = 0x0d; // a leaf of a table, without cells
    page[105..107].copy_from_slice(&(PAGE_BYTES as u16).to_be_bytes()); // cells begin at the page's end
    page
}
