//! A disk in memory that loses, tears and reorders what was not synced.
//!
//! [`LossyDisk`] is a [`log::Disk`], and a SQLite VFS over the same files ([`log::Disk::vfs`]). It promises no more than a real one does:
//! - A write may be lost until its file is synced. In a crash a random subset of the unsynced
//!   writes survives, in any order, in pieces of 512 bytes; a sector itself is never torn. The new
//!   length of a file may survive without the bytes, which are zeros then.
//! - A sync of a file says nothing of its name: a created, removed or renamed file is that for sure
//!   only after the sync of its folder. A rename is whole or not at all; a removed file may come back.
//! - After a sync that failed, the writes that it covered may be lost whatever later syncs say.
//!
//! Each operation has a number, so that a test can end the disk at every one of them in turn
//! ([`LossyDisk::crash_at`]), and syncs can be taken out ([`LossyDisk::drop_syncs`]) to show that
//! the test would notice. Everything follows from the seed and the order of the operations.
//!
//! ```
//! use std::path::Path;
//! use log::{Disk, DiskFile};
//! use testkit::disk::LossyDisk;
//!
//! let disk = LossyDisk::new(7);
//! let file = disk.open(Path::new("/log"), true).unwrap();
//! file.write_all_at(b"kept", 0).unwrap();
//! file.sync().unwrap();
//! disk.sync_dir(Path::new("/")).unwrap();
//! file.write_all_at(b"LOST", 0).unwrap();
//! let found = disk.crash(1).content(Path::new("/log")).unwrap();
//! assert!(found == b"kept" || found == b"LOST");
//! ```

mod file;
mod locks;
mod names;
mod plan;
mod sparse;
mod state;
// The callbacks of a C library: pointers in, pointers out.
#[allow(unsafe_code)]
mod vfs;

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use log::{Disk, DiskFile};

pub use plan::{Fault, OpKind, Target, Traced};

use names::{InodeId, normal};
use state::State;
use vfs::Registered;

use crate::rng::mix;

/// What a file is, for [`LossyDisk::drop_syncs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncClass {
    /// Any file that is none of the others: the commit log.
    Log,
    /// A SQLite database: opened as one, or named `*.db`, `*.sqlite`, `*.sqlite3`.
    Database,
    /// A SQLite write-ahead log, `*-wal`.
    Wal,
    /// A SQLite rollback journal, `*-journal`.
    Journal,
    /// The names in a folder.
    Directory,
    /// A nameless file that SQLite makes for itself. Not numbered, and gone after a crash.
    Temporary,
}

impl SyncClass {
    fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with("-wal") {
            Self::Wal
        } else if name.ends_with("-journal") {
            Self::Journal
        } else if [".db", ".sqlite", ".sqlite3"].iter().any(|end| name.ends_with(end)) {
            Self::Database
        } else {
            Self::Log
        }
    }
}

/// The disk. A crash ends it and yields the next one, so that threads and connections of the dead
/// process cannot reach what its successor works on: all that they try fails with `EIO`.
pub struct LossyDisk {
    shared: Arc<Shared>,
    /// Registered when first asked for.
    vfs: OnceLock<Registered>,
}

/// What the disk, its open files and its VFS have in common.
struct Shared {
    seed: u64,
    state: Mutex<State>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs a file: what was written until now. Others may use the disk while it takes its time.
    fn sync(&self, inode: InodeId) -> io::Result<()> {
        let (last, duration) = self.state().begin_sync(inode)?;
        if !duration.is_zero() {
            std::thread::sleep(duration);
        }
        self.state().end_sync(inode, last)
    }
}

impl LossyDisk {
    /// An empty disk with the folder `/`. Relative paths are taken from there.
    #[must_use]
    pub fn new(seed: u64) -> Arc<Self> {
        Self::with(seed, State::new(seed))
    }

    fn with(seed: u64, state: State) -> Arc<Self> {
        Arc::new(Self { shared: Arc::new(Shared { seed, state: Mutex::new(state) }), vfs: OnceLock::new() })
    }

    /// The seed, for messages.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.shared.seed
    }

    /// The number of the last operation; 0 on a new disk and after a crash.
    ///
    /// Numbered are writes, syncs, lengths set, space reserved, files created, removed and renamed,
    /// folders made and synced; reads only after [`Self::count_reads`].
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.shared.state().plan.ops
    }

    /// Ends the disk at operation `op`: a random part of it is done, and it and all later ones fail
    /// with `EIO`. A number that is past already has no effect.
    pub fn crash_at(&self, op: u64) {
        self.shared.state().plan.crash_at = Some(op);
    }

    /// Ends the disk at the operation that `target` names, counted from now.
    pub fn crash_at_next(&self, target: Target) {
        self.shared.state().plan.crash_at_next = Some(target);
    }

    /// Ends the disk at the `nth` sync from now, of a file or a folder: the moments at which most is
    /// written and least is safe. `nth` counts from 1.
    pub fn crash_at_sync(&self, nth: u64) {
        self.shared.state().plan.crash_at_sync = Some(nth.max(1));
    }

    /// Lets operation `op` fail; later ones work. A random part of a write may be done. What a
    /// failed sync covered stays visible, may be lost in a crash, and no later sync saves it.
    pub fn fail_at(&self, op: u64, fault: Fault) {
        self.shared.state().plan.fail_at.insert(op, fault);
    }

    /// Lets the `nth` sync from now fail, as [`Self::fail_at`] does. `nth` counts from 1.
    pub fn fail_at_sync(&self, nth: u64, fault: Fault) {
        self.shared.state().plan.fail_at_sync = Some((nth, fault));
    }

    /// Lets the operation that `target` names fail, counted from now, as [`Self::fail_at`] does.
    pub fn fail_at_next(&self, target: Target, fault: Fault) {
        self.shared.state().plan.fail_at_next = Some((target, fault));
    }

    /// Takes back all planned deaths and faults.
    pub fn forget_faults(&self) {
        let plan = &mut self.shared.state().plan;
        plan.crash_at = None;
        plan.crash_at_sync = None;
        plan.crash_at_next = None;
        plan.fail_at_sync = None;
        plan.fail_at_next = None;
        plan.fail_at.clear();
    }

    /// Whether [`Self::crash_at`] has struck, or a crash has ended this disk.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.shared.state().plan.dead
    }

    /// While set, all that would change the disk fails with `EROFS`.
    pub fn read_only(&self, read_only: bool) {
        self.shared.state().plan.read_only = read_only;
    }

    /// Limits the bytes of all files together; growth past it fails with `ENOSPC`. `None` lifts it.
    pub fn capacity(&self, bytes: Option<u64>) {
        self.shared.state().plan.capacity_bytes = bytes;
    }

    /// The bytes of all files together, holes included.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.shared.state().used_bytes()
    }

    /// From now on syncs of these classes do nothing and report success; an empty list undoes it.
    pub fn drop_syncs(&self, classes: &[SyncClass]) {
        self.shared.state().plan.dropped = classes.iter().copied().collect();
    }

    /// Until the next crash syncs of this class take `duration`, in which others go on: what they
    /// write meanwhile is not part of it, and a crash meanwhile loses what it would have saved.
    pub fn slow_syncs(&self, class: SyncClass, duration: Duration) {
        self.shared.state().plan.slow.insert(class, duration);
    }

    /// Whether reads are numbered too, and so can fail.
    pub fn count_reads(&self, count: bool) {
        self.shared.state().plan.count_reads = count;
    }

    /// The last operations (at most 400), oldest first.
    #[must_use]
    pub fn trace(&self) -> Vec<Traced> {
        self.shared.state().plan.trace()
    }

    /// All bytes of a file as a reader sees them; `None` if it is not there.
    #[must_use]
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        self.shared.state().content(&normal(path))
    }

    /// The classes of the files that are there.
    #[must_use]
    pub fn classes(&self) -> BTreeSet<SyncClass> {
        self.shared.state().classes()
    }

    /// Turns over the bits of `mask` in the byte at `offset`, durably: a fault of the medium, not of
    /// a crash. Returns false if the file is not there.
    pub fn damage(&self, path: &Path, offset: u64, mask: u8) -> bool {
        self.shared.state().damage(&normal(path), offset, mask)
    }

    /// Cuts the power and returns the disk as found afterwards. This one is dead from then on.
    /// Read-only, capacity and dropped syncs stay; planned faults do not.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Arc<Self> {
        let state = self.shared.state().after_power_loss(mix(seed));
        Self::with(seed, state)
    }

    /// Ends the process but not the machine: all that was written is there, and what was not synced
    /// can still be lost in a later [`Self::crash`]. This disk is dead from then on.
    #[must_use]
    pub fn kill(&self) -> Arc<Self> {
        let mut state = self.shared.state();
        let seed = state.rng.next_u64();
        Self::with(seed, state.after_kill(seed))
    }
}

impl Disk for LossyDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.shared.state().open(&normal(path), create, None)?;
        Ok(Arc::new(LossyFile { shared: Arc::clone(&self.shared), inode }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.shared.state().remove(&normal(path)).map(|_was_there| ())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.shared.state().rename(&normal(from), &normal(to))
    }

    fn exists(&self, path: &Path) -> bool {
        self.shared.state().exists(&normal(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.shared.state().list(&normal(dir))?;
        // As `read_dir` does: the caller's spelling of the folder, with the name added.
        Ok(files.iter().filter_map(|file| file.file_name()).map(|name| dir.join(name)).collect())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.shared.state().create_dir(&normal(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.shared.state().sync_dir(&normal(dir))
    }

    /// The name of a VFS over these files, as SQLite's own for unix, with locks and WAL index in
    /// memory: a database is open in one process only.
    /// Close all connections before the disk is dropped; a VFS that is in use then is never freed.
    fn vfs(&self) -> Option<&str> {
        Some(self.vfs.get_or_init(|| Registered::new(Arc::clone(&self.shared))).name())
    }
}

/// An open file; it stays usable after its name is gone.
struct LossyFile {
    shared: Arc<Shared>,
    inode: InodeId,
}

impl DiskFile for LossyFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let got = self.shared.state().read(self.inode, buffer, offset)?;
        if got < buffer.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.shared.state().write(self.inode, bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.shared.state().len(self.inode)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.shared.state().set_len(self.inode, len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.shared.state().allocate(self.inode, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.shared.sync(self.inode)
    }
}

impl Drop for LossyFile {
    fn drop(&mut self) {
        self.shared.state().close(self.inode);
    }
}
