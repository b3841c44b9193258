//! The WAL index: memory that the connections to one database share.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    collections::BTreeSet,
    ffi::{c_int, c_void},
    ptr::NonNull,
    sync::atomic::{Ordering, fence},
};

use sqlite::ffi;

use super::io::this;
use crate::disk::locks::{Holder, SHM_SLOTS, ShmLocks};

/// The WAL index of one database: gone when the last connection has left it, as on unix, where the
/// first to come empties the file.
#[derive(Default)]
pub(in crate::disk) struct WalIndex {
    locks: ShmLocks,
    users: BTreeSet<Holder>,
    regions: Vec<Region>,
}

impl WalIndex {
    /// Ends the use by one connection; true if it was the last.
    pub(in crate::disk) fn leave(&mut self, who: Holder) -> bool {
        self.locks.release(who, 0..SHM_SLOTS);
        self.users.remove(&who);
        self.users.is_empty()
    }
}

/// Zeroed memory at a fixed address, as SQLite wants to keep pointers into it.
struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is owned; who reads and writes it when is SQLite's protocol of shm locks.
unsafe impl Send for Region {}

impl Region {
    /// `bytes` is not 0.
    fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, 4096).expect("a region is 32 KiB");
        // SAFETY: the size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        Self { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

pub(super) unsafe extern "C" fn map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    region_bytes: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: `file` is ours.
    let open = unsafe { this(file) };
    let mut state = open.state();
    if state.plan.dead {
        return ffi::SQLITE_IOERR_SHMMAP;
    }
    let index = state.wal_index(open.inode);
    index.users.insert(open.holder);
    let region = region as usize;
    while extend != 0 && index.regions.len() <= region {
        index.regions.push(Region::new(region_bytes as usize));
    }
    let start = index.regions.get(region).map_or(std::ptr::null_mut(), |region| region.start.as_ptr());
    // SAFETY: `out` is writable. The region lives until this connection has called `xShmUnmap` or closed.
    unsafe { *out = start.cast() };
    ffi::SQLITE_OK
}

pub(super) unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, first: c_int, n: c_int, flags: c_int) -> c_int {
    // SAFETY: `file` is ours.
    let open = unsafe { this(file) };
    let slots = first as usize..(first + n) as usize;
    let mut state = open.state();
    let index = state.wal_index(open.inode);
    let done = if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
        index.locks.release(open.holder, slots);
        true
    } else if flags & ffi::SQLITE_SHM_SHARED != 0 {
        index.locks.share(open.holder, slots.start)
    } else {
        index.locks.exclude(open.holder, slots)
    };
    if done { ffi::SQLITE_OK } else { ffi::SQLITE_BUSY }
}

pub(super) unsafe extern "C" fn barrier(file: *mut ffi::sqlite3_file) {
    fence(Ordering::SeqCst);
    // The fence orders this thread; taking the lock orders it with the others, as on unix.
    // SAFETY: `file` is ours.
    drop(unsafe { this(file) }.state());
}

pub(super) unsafe extern "C" fn unmap(file: *mut ffi::sqlite3_file, _delete: c_int) -> c_int {
    // SAFETY: `file` is ours.
    let open = unsafe { this(file) };
    open.state().leave_wal_index(open.inode, open.holder);
    ffi::SQLITE_OK
}
