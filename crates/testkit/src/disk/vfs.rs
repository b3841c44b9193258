//! A SQLite VFS over the files of a [`super::LossyDisk`].
//!
//! It asks for the same syncs as SQLite's own unix VFS and forgives nothing that it does not: it
//! claims no property of the device, so SQLite assumes that only a sync makes anything durable.
//!
//! Two things differ from unix: locks and the WAL index live in memory, so the connections to a
//! file must all be in this process; and SQLite seeds its own random numbers (a WAL's salts) from
//! the default VFS, so those do not follow the disk's seed.

mod io;
mod shm;

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    mem::size_of,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use sqlite::ffi;

use super::{Shared, SyncClass, names::normal};

pub(super) use shm::WalIndex;

const PATH_BYTES_MAX: usize = 1024;

/// 2026-01-01T00:00:00Z in milliseconds of the Julian calendar.
const FIRST_MS: i64 = 210_866_760_000_000 + 1_767_225_600_000;

/// What SQLite has registered. It stays at one address until it is freed.
struct Vfs {
    raw: ffi::sqlite3_vfs,
    name: CString,
    shared: Arc<Shared>,
    open_files: AtomicUsize,
    next_holder: AtomicU64,
}

/// A registration; ends with the disk that owns it.
pub(super) struct Registered {
    vfs: *mut Vfs,
    name: String,
}

// SAFETY: the pointee is shared with SQLite's threads anyway; all its mutable parts are atomics or
// behind the disk's mutex, and `raw.pNext` is guarded by SQLite's own lock.
unsafe impl Send for Registered {}
// SAFETY: as above.
unsafe impl Sync for Registered {}

impl Registered {
    /// Registers a VFS of a new name, not as the default.
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let name = format!("lossy-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let c_name = CString::new(name.clone()).expect("the name has no NUL");
        let vfs =
            Box::new(Vfs { raw: raw(&c_name), name: c_name, shared, open_files: AtomicUsize::new(0), next_holder: AtomicU64::new(1) });
        let vfs = Box::into_raw(vfs);
        // SAFETY: `vfs` was just allocated and stays valid until `drop` has unregistered it.
        let code = unsafe {
            (*vfs).raw.pAppData = vfs.cast();
            ffi::sqlite3_vfs_register(&raw mut (*vfs).raw, 0)
        };
        assert_eq!(code, ffi::SQLITE_OK, "SQLite could not be initialized");
        Self { vfs, name }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Registered {
    /// Frees the VFS if no connection has a file open. If one has, it stays in memory for good, so
    /// that the connection can still be closed: close connections before the disk is dropped.
    fn drop(&mut self) {
        // SAFETY: `self.vfs` came from `Box::into_raw` in `new` and is freed nowhere else.
        unsafe {
            ffi::sqlite3_vfs_unregister(&raw mut (*self.vfs).raw);
            if (*self.vfs).open_files.load(Ordering::Acquire) == 0 {
                drop(Box::from_raw(self.vfs));
            }
        }
    }
}

fn raw(name: &CStr) -> ffi::sqlite3_vfs {
    ffi::sqlite3_vfs {
        iVersion: 2,
        szOsFile: size_of::<io::RawFile>() as c_int,
        mxPathname: PATH_BYTES_MAX as c_int,
        pNext: std::ptr::null_mut(),
        zName: name.as_ptr(),
        pAppData: std::ptr::null_mut(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(get_last_error),
        xCurrentTimeInt64: Some(current_time_ms),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }
}

/// # Safety
/// `raw` is a VFS that [`Registered::new`] registered and that is not freed yet. SQLite passes no other.
unsafe fn this<'a>(raw: *mut ffi::sqlite3_vfs) -> &'a Vfs {
    // SAFETY: `pAppData` was set to the whole `Vfs` before the registration; see above.
    unsafe { &*(*raw).pAppData.cast::<Vfs>() }
}

/// # Safety
/// `name` is null or a C string that outlives the call.
unsafe fn path(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: not null, and NUL-terminated by SQLite.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_str().ok().map(|name| normal(Path::new(name)))
}

fn class(flags: c_int) -> Option<SyncClass> {
    if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        Some(SyncClass::Database)
    } else if flags & ffi::SQLITE_OPEN_WAL != 0 {
        Some(SyncClass::Wal)
    } else if flags & (ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL) != 0 {
        Some(SyncClass::Journal)
    } else {
        None
    }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes its registered VFS, `szOsFile` writable bytes at `file`, and a name that
    // is null or a C string. Without methods SQLite will not call `xClose`.
    let (vfs, path) = unsafe {
        (*file).pMethods = std::ptr::null();
        (this(vfs), path(name))
    };
    if path.is_none() && !name.is_null() {
        return ffi::SQLITE_CANTOPEN; // Not UTF-8.
    }
    let mut flags = flags;
    let mut state = vfs.shared.state();
    let opened = match &path {
        None => state.open_temporary(),
        Some(path) => {
            let create = flags & ffi::SQLITE_OPEN_CREATE != 0;
            // As on unix: a file that cannot be opened for writing is opened for reading.
            if state.plan.read_only && state.exists(path) && flags & ffi::SQLITE_OPEN_READWRITE != 0 {
                flags &= !(ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE);
                flags |= ffi::SQLITE_OPEN_READONLY;
            }
            state.open(path, create, class(flags))
        }
    };
    drop(state);
    let Ok(inode) = opened else { return ffi::SQLITE_CANTOPEN };
    let new_journal = flags & ffi::SQLITE_OPEN_CREATE != 0 && matches!(class(flags), Some(SyncClass::Journal | SyncClass::Wal));
    vfs.open_files.fetch_add(1, Ordering::AcqRel);
    let open_file = io::OpenFile {
        vfs: std::ptr::from_ref(vfs),
        holder: vfs.next_holder.fetch_add(1, Ordering::Relaxed),
        inode,
        sync_dir_first: if new_journal { path.as_deref().and_then(Path::parent).map(Path::to_path_buf) } else { None },
        delete_on_close: path.filter(|_| flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0),
        persist_wal: false,
        last_errno: 0,
    };
    // SAFETY: `file` has room for a `RawFile` (`szOsFile`); `out_flags` is null or writable.
    unsafe {
        io::RawFile::write(file.cast(), open_file);
        if !out_flags.is_null() {
            *out_flags = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_dir: c_int) -> c_int {
    // SAFETY: SQLite passes its registered VFS and a C string.
    let (vfs, path) = unsafe { (this(vfs), path(name)) };
    let Some(path) = path else { return ffi::SQLITE_IOERR_DELETE };
    let mut state = vfs.shared.state();
    match state.remove(&path) {
        Ok(false) => return ffi::SQLITE_IOERR_DELETE_NOENT,
        Err(_) => return ffi::SQLITE_IOERR_DELETE,
        Ok(true) => {}
    }
    if sync_dir & 1 != 0 && state.sync_dir(path.parent().unwrap_or(Path::new("/"))).is_err() {
        return ffi::SQLITE_IOERR_DIR_FSYNC;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn access(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, flags: c_int, out: *mut c_int) -> c_int {
    // SAFETY: SQLite passes its registered VFS and a C string.
    let (vfs, path) = unsafe { (this(vfs), path(name)) };
    let state = vfs.shared.state();
    if state.plan.dead {
        return ffi::SQLITE_IOERR_ACCESS;
    }
    let len = path.as_deref().and_then(|path| state.len_of(path));
    // As on unix: an empty file does not count as existing, and so is no hot journal.
    let answer = if flags == ffi::SQLITE_ACCESS_EXISTS { len.is_some_and(|len| len > 0) } else { len.is_some() && !state.plan.read_only };
    // SAFETY: SQLite passes a writable result.
    unsafe { *out = c_int::from(answer) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_pathname(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, out_bytes: c_int, out: *mut c_char) -> c_int {
    // SAFETY: SQLite passes a C string.
    let Some(path) = (unsafe { path(name) }) else { return ffi::SQLITE_CANTOPEN };
    let full = path.as_os_str().as_encoded_bytes();
    if full.len() + 1 > out_bytes as usize {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has `out_bytes` writable bytes, checked to be enough for the name and its NUL.
    unsafe {
        std::ptr::copy_nonoverlapping(full.as_ptr().cast(), out, full.len());
        *out.add(full.len()) = 0;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(vfs: *mut ffi::sqlite3_vfs, n_bytes: c_int, out: *mut c_char) -> c_int {
    // SAFETY: SQLite passes its registered VFS and `n_bytes` writable bytes.
    let (vfs, out) = unsafe { (this(vfs), std::slice::from_raw_parts_mut(out.cast::<u8>(), n_bytes as usize)) };
    vfs.shared.state().rng.fill(out);
    n_bytes
}

unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    std::thread::sleep(Duration::from_micros(microseconds as u64));
    microseconds
}

/// The clock stands at a fixed day and goes on by a millisecond with each operation of the disk.
unsafe extern "C" fn current_time_ms(vfs: *mut ffi::sqlite3_vfs, out: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite passes its registered VFS and a writable result.
    unsafe { *out = FIRST_MS + this(vfs).shared.state().plan.ops as i64 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn current_time(vfs: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    // SAFETY: SQLite passes its registered VFS and a writable result.
    unsafe { *out = (FIRST_MS + this(vfs).shared.state().plan.ops as i64) as f64 / 86_400_000.0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn get_last_error(vfs: *mut ffi::sqlite3_vfs, _n_bytes: c_int, _out: *mut c_char) -> c_int {
    // SAFETY: SQLite passes its registered VFS.
    if unsafe { this(vfs) }.shared.state().plan.dead { libc::EIO } else { 0 }
}

/// The `void*` that SQLite hands around for results of unknown type.
type Untyped = *mut c_void;
