//! The methods of an open file.

use std::{
    ffi::{c_int, c_void},
    io,
    path::PathBuf,
    sync::{MutexGuard, atomic::Ordering},
};

use sqlite::ffi;

use super::{Untyped, Vfs, shm};
use crate::disk::{
    Shared,
    file::SECTOR,
    locks::{Holder, Level},
    names::InodeId,
    state::State,
};

/// What SQLite allocates for a file: its own part first, then ours.
#[repr(C)]
pub(super) struct RawFile {
    base: ffi::sqlite3_file,
    open: *mut OpenFile,
}

pub(super) struct OpenFile {
    /// Outlives the file: a VFS with open files is never freed.
    pub(super) vfs: *const Vfs,
    pub(super) holder: Holder,
    pub(super) inode: InodeId,
    /// The folder of a new journal or WAL, until the first sync has made its name durable.
    pub(super) sync_dir_first: Option<PathBuf>,
    pub(super) delete_on_close: Option<PathBuf>,
    pub(super) persist_wal: bool,
    pub(super) last_errno: i32,
}

impl RawFile {
    /// # Safety
    /// `at` has room for a `RawFile`.
    pub(super) unsafe fn write(at: *mut Self, open: OpenFile) {
        let base = ffi::sqlite3_file { pMethods: &raw const METHODS };
        // SAFETY: the caller's promise.
        unsafe { at.write(Self { base, open: Box::into_raw(Box::new(open)) }) };
    }
}

impl OpenFile {
    fn shared(&self) -> &Shared {
        // SAFETY: see the field.
        &unsafe { &*self.vfs }.shared
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared().state()
    }

    /// SQLite's code for `result`: `code` if it failed. Keeps the system's for whoever asks.
    fn code(&mut self, result: io::Result<()>, code: c_int) -> c_int {
        let Err(error) = result else { return ffi::SQLITE_OK };
        self.last_errno = error.raw_os_error().unwrap_or(0);
        code
    }
}

/// # Safety
/// `file` was opened by this VFS and is not closed. SQLite uses a file from one thread at a time.
pub(super) unsafe fn this<'a>(file: *mut ffi::sqlite3_file) -> &'a mut OpenFile {
    // SAFETY: `RawFile::write` filled it; the box is freed only in `close`.
    unsafe { &mut *(*file.cast::<RawFile>()).open }
}

/// Version 2: with a WAL index, without memory-mapped reads.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm::map),
    xShmLock: Some(shm::lock),
    xShmBarrier: Some(shm::barrier),
    xShmUnmap: Some(shm::unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: `file` is ours and open; it is taken apart here, once, and SQLite forgets it.
    let open = unsafe {
        (*file).pMethods = std::ptr::null();
        Box::from_raw((*file.cast::<RawFile>()).open)
    };
    let mut state = open.state();
    state.unlock_all(open.inode, open.holder);
    state.close(open.inode);
    if let Some(path) = &open.delete_on_close {
        // As on unix, nobody is told of a failure; a file that is left over does no harm.
        state.remove(path).ok();
    }
    drop(state);
    // SAFETY: the VFS is freed only when the count is 0, and this is the last use of it here.
    unsafe { &*open.vfs }.open_files.fetch_sub(1, Ordering::AcqRel);
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, out: *mut c_void, n_bytes: c_int, offset: ffi::sqlite3_int64) -> c_int {
    // SAFETY: `file` is ours, `out` has `n_bytes` writable bytes.
    let (open, out) = unsafe { (this(file), std::slice::from_raw_parts_mut(out.cast::<u8>(), n_bytes as usize)) };
    let got = open.state().read(open.inode, out, offset as u64);
    match got {
        Ok(got) if got < out.len() => ffi::SQLITE_IOERR_SHORT_READ,
        Ok(_) => ffi::SQLITE_OK,
        Err(error) => open.code(Err(error), ffi::SQLITE_IOERR_READ),
    }
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, bytes: *const c_void, n_bytes: c_int, offset: ffi::sqlite3_int64) -> c_int {
    // SAFETY: `file` is ours, `bytes` has `n_bytes` readable bytes.
    let (open, bytes) = unsafe { (this(file), std::slice::from_raw_parts(bytes.cast::<u8>(), n_bytes as usize)) };
    let done = open.state().write(open.inode, bytes, offset as u64);
    let full = done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::StorageFull);
    open.code(done, if full { ffi::SQLITE_FULL } else { ffi::SQLITE_IOERR_WRITE })
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, len: ffi::sqlite3_int64) -> c_int {
    // SAFETY: `file` is ours.
    let open = unsafe { this(file) };
    let done = open.state().set_len(open.inode, len as u64);
    open.code(done, ffi::SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: `file` is ours.
    let open = unsafe { this(file) };
    let done = open.shared().sync(open.inode);
    if done.is_ok()
        && let Some(dir) = open.sync_dir_first.take()
    {
        // As on unix, a failure of this one is not reported.
        open.state().sync_dir(&dir).ok();
    }
    open.code(done, ffi::SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, out: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: `file` is ours.
    let open = unsafe { this(file) };
    let len = open.state().len(open.inode);
    match len {
        Ok(len) => {
            // SAFETY: SQLite passes a writable result.
            unsafe { *out = len as i64 };
            ffi::SQLITE_OK
        }
        Err(error) => open.code(Err(error), ffi::SQLITE_IOERR_FSTAT),
    }
}

fn level(code: c_int) -> Level {
    match code {
        ffi::SQLITE_LOCK_NONE => Level::None,
        ffi::SQLITE_LOCK_SHARED => Level::Shared,
        ffi::SQLITE_LOCK_RESERVED => Level::Reserved,
        ffi::SQLITE_LOCK_PENDING => Level::Pending,
        _ => Level::Exclusive,
    }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, to: c_int) -> c_int {
    // SAFETY: `file` is ours.
    let open = unsafe { this(file) };
    let raised = open.state().locks(open.inode).raise(open.holder, level(to));
    if raised { ffi::SQLITE_OK } else { ffi::SQLITE_BUSY }
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, to: c_int) -> c_int {
    // SAFETY: `file` is ours.
    let open = unsafe { this(file) };
    open.state().locks(open.inode).lower(open.holder, level(to));
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: `file` is ours and `out` is writable.
    unsafe {
        let open = this(file);
        *out = c_int::from(open.state().locks(open.inode).is_reserved());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(file: *mut ffi::sqlite3_file, op: c_int, arg: Untyped) -> c_int {
    // SAFETY: `file` is ours.
    let open = unsafe { this(file) };
    // SAFETY: `arg` has the type that SQLite's documentation gives for each operation.
    unsafe {
        match op {
            ffi::SQLITE_FCNTL_LOCKSTATE => *arg.cast::<c_int>() = open.state().locks(open.inode).level(open.holder) as c_int,
            ffi::SQLITE_FCNTL_LAST_ERRNO => *arg.cast::<c_int>() = open.last_errno,
            ffi::SQLITE_FCNTL_VFSNAME => {
                let name = (*open.vfs).name.as_ptr();
                *arg.cast::<*mut std::ffi::c_char>() = ffi::sqlite3_mprintf(c"%s".as_ptr(), name);
            }
            ffi::SQLITE_FCNTL_HAS_MOVED => *arg.cast::<c_int>() = c_int::from(!open.state().has_name(open.inode)),
            ffi::SQLITE_FCNTL_PERSIST_WAL => {
                let set = arg.cast::<c_int>();
                if *set >= 0 {
                    open.persist_wal = *set != 0;
                }
                *set = c_int::from(open.persist_wal);
            }
            // Never claimed, whatever is asked for: a write may take its neighbours in the sector along.
            ffi::SQLITE_FCNTL_POWERSAFE_OVERWRITE => *arg.cast::<c_int>() = 0,
            // Hints that change nothing here. SQLite extends and reserves nothing without them.
            ffi::SQLITE_FCNTL_SIZE_HINT | ffi::SQLITE_FCNTL_CHUNK_SIZE => {}
            // SQLITE_FCNTL_JOURNAL_POINTER and FILE_POINTER never come here: SQLite answers them itself.
            _ => return ffi::SQLITE_NOTFOUND,
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    SECTOR as c_int
}

unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    0
}
