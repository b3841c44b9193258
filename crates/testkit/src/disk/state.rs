//! All of a disk, behind one lock: files, names, and the plan of what goes wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Fault, OpKind, SyncClass,
    file::{Change, Inode},
    locks::{FileLocks, Holder, Level},
    names::{InodeId, Names},
    plan::{Plan, Step},
    vfs::WalIndex,
};
use crate::rng::Rng;

pub(super) struct State {
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    names: Names,
    inodes: BTreeMap<InodeId, Held>,
    next_inode: u64,
    /// Of databases that connections have open; both live no longer than the process.
    locks: BTreeMap<InodeId, FileLocks>,
    wal_indexes: BTreeMap<InodeId, WalIndex>,
}

struct Held {
    inode: Inode,
    /// The name that it was last given, for the trace.
    label: PathBuf,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self::with(Plan::default(), Rng::new(seed), Names::new(), BTreeMap::new(), 1)
    }

    fn with(plan: Plan, rng: Rng, names: Names, inodes: BTreeMap<InodeId, Held>, next_inode: u64) -> Self {
        Self { plan, rng, names, inodes, next_inode, locks: BTreeMap::new(), wal_indexes: BTreeMap::new() }
    }

    // Names. -----------------------------------------------------------------------------------

    /// Opens a file and counts a handle on it; see [`Self::close`]. `class` is what a new file is,
    /// and what an old one turns out to be.
    pub(super) fn open(&mut self, path: &Path, create: bool, class: Option<SyncClass>) -> io::Result<InodeId> {
        self.plan.check_alive()?;
        let id = match self.names.find(path) {
            Some(id) => id,
            None if create => self.create(path, class)?,
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        let held = self.held(id)?;
        held.inode.handles += 1;
        if let Some(class) = class {
            held.inode.class = class;
        }
        Ok(id)
    }

    fn create(&mut self, path: &Path, class: Option<SyncClass>) -> io::Result<InodeId> {
        if !path.parent().is_some_and(|dir| self.names.has_dir(dir)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let class = class.unwrap_or_else(|| SyncClass::of(path));
        let step = self.plan.begin(OpKind::Create, class, path, 0, 0)?;
        let id = self.new_inode(path, class);
        self.finish(step, |state| state.names.link(path, id)).map(|()| id)
    }

    /// A file without a name, which no crash leaves anything of.
    pub(super) fn open_temporary(&mut self) -> io::Result<InodeId> {
        self.plan.check_alive()?;
        let id = self.new_inode(Path::new("(temporary)"), SyncClass::Temporary);
        self.held(id)?.inode.handles = 1;
        Ok(id)
    }

    /// Ends what [`Self::open`] began.
    pub(super) fn close(&mut self, id: InodeId) {
        if let Some(held) = self.inodes.get_mut(&id) {
            held.inode.handles -= 1;
            if held.inode.handles == 0 {
                self.forget_unreachable();
            }
        }
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.names.find(path).is_some()
    }

    pub(super) fn len_of(&self, path: &Path) -> Option<u64> {
        let held = self.inodes.get(&self.names.find(path)?)?;
        Some(held.inode.current().len())
    }

    pub(super) fn has_name(&self, id: InodeId) -> bool {
        self.names.visible().any(|(_, named)| named == id)
    }

    /// Takes a name away; false if it was not there.
    pub(super) fn remove(&mut self, path: &Path) -> io::Result<bool> {
        self.plan.check_alive()?;
        let Some(id) = self.names.find(path) else { return Ok(false) };
        let step = self.begin_as(id, OpKind::Remove, path)?;
        self.finish(step, |state| state.names.unlink(path, id)).map(|()| true)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.check_alive()?;
        let Some(id) = self.names.find(from) else { return Err(io::ErrorKind::NotFound.into()) };
        if !to.parent().is_some_and(|dir| self.names.has_dir(dir)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let step = self.begin_as(id, OpKind::Rename, to)?;
        self.finish(step, |state| {
            state.names.rename(id, to);
            if let Ok(held) = state.held(id) {
                held.label = to.to_path_buf();
            }
        })
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.plan.check_alive()?;
        Ok(self.names.files_in(dir).map(Path::to_path_buf).collect())
    }

    pub(super) fn create_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.plan.check_alive()?;
        if self.names.has_dir(dir) {
            return Ok(());
        }
        let step = self.plan.begin(OpKind::CreateDir, SyncClass::Directory, dir, 0, 0)?;
        self.finish(step, |state| state.names.make_dir(dir))
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.plan.check_alive()?;
        if !self.names.has_dir(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let step = self.plan.begin(OpKind::SyncDir, SyncClass::Directory, dir, 0, 0)?;
        if self.plan.drops(SyncClass::Directory) && matches!(step, Step::Whole) {
            return Ok(());
        }
        let done = self.finish(step, |state| state.names.sync_dir(dir));
        self.forget_unreachable();
        done
    }

    // Content. ---------------------------------------------------------------------------------

    /// Reads, and returns how many bytes lay inside the file; the rest of `out` is zeros.
    pub(super) fn read(&mut self, id: InodeId, out: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.begin(id, OpKind::Read, offset, out.len() as u64)? {
            Step::Whole => Ok(self.held(id)?.inode.current().read(out, offset)),
            Step::Die => Err(Fault::Io.error()),
            Step::Fail(fault) => Err(fault.error()),
        }
    }

    pub(super) fn len(&mut self, id: InodeId) -> io::Result<u64> {
        self.plan.check_alive()?;
        Ok(self.held(id)?.inode.current().len())
    }

    pub(super) fn write(&mut self, id: InodeId, bytes: &[u8], offset: u64) -> io::Result<()> {
        let step = self.begin(id, OpKind::Write, offset, bytes.len() as u64)?;
        let room = self.room(id, offset + bytes.len() as u64)?;
        let fits = (room.saturating_sub(offset) as usize).min(bytes.len());
        let change = Change::Write { offset, bytes: bytes[..fits].to_vec() };
        self.change(id, step, change)?;
        if fits < bytes.len() { Err(Fault::Full.error()) } else { Ok(()) }
    }

    pub(super) fn set_len(&mut self, id: InodeId, len: u64) -> io::Result<()> {
        let step = self.begin(id, OpKind::SetLen, 0, len)?;
        if self.room(id, len)? < len {
            return Err(Fault::Full.error());
        }
        self.change(id, step, Change::SetLen(len))
    }

    pub(super) fn allocate(&mut self, id: InodeId, len: u64) -> io::Result<()> {
        let step = self.begin(id, OpKind::Allocate, 0, len)?;
        if self.room(id, len)? < len {
            return Err(Fault::Full.error());
        }
        self.change(id, step, Change::Extend(len))
    }

    /// What a sync that begins now has to cover, and how long it takes.
    pub(super) fn begin_sync(&mut self, id: InodeId) -> io::Result<(u64, Duration)> {
        self.plan.check_alive()?;
        let inode = &self.held(id)?.inode;
        let (last, class) = (inode.n_changes(), inode.class);
        Ok((last, self.plan.slow.get(&class).copied().unwrap_or_default()))
    }

    /// Ends a sync of the changes up to number `last`.
    pub(super) fn end_sync(&mut self, id: InodeId, last: u64) -> io::Result<()> {
        let step = self.begin(id, OpKind::Sync, 0, 0)?;
        let class = self.held(id)?.inode.class;
        let drops = self.plan.drops(class);
        let done_before_death = self.rng.percent(50);
        let inode = &mut self.held(id)?.inode;
        match step {
            Step::Whole if drops => {}
            Step::Whole => inode.sync(last),
            Step::Die => {
                if done_before_death && !drops {
                    inode.sync(last);
                }
                return Err(Fault::Io.error());
            }
            Step::Fail(fault) => {
                inode.fail_sync();
                return Err(fault.error());
            }
        }
        Ok(())
    }

    pub(super) fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let held = self.inodes.get(&self.names.find(path)?)?;
        Some(held.inode.current().to_vec())
    }

    pub(super) fn damage(&mut self, path: &Path, offset: u64, mask: u8) -> bool {
        let Some(held) = self.names.find(path).and_then(|id| self.inodes.get_mut(&id)) else { return false };
        held.inode.damage(offset, mask);
        true
    }

    /// What kinds of files are there.
    pub(super) fn classes(&self) -> BTreeSet<SyncClass> {
        let named = self.names.visible().filter_map(|(_, id)| self.inodes.get(&id));
        named.map(|held| held.inode.class).collect()
    }

    /// Bytes that the files take, holes included.
    pub(super) fn used_bytes(&self) -> u64 {
        let named = self.names.visible().filter_map(|(_, id)| self.inodes.get(&id));
        named.map(|held| held.inode.current().len()).sum()
    }

    // Connections of this process. -------------------------------------------------------------

    pub(super) fn locks(&mut self, id: InodeId) -> &mut FileLocks {
        self.locks.entry(id).or_default()
    }

    pub(super) fn wal_index(&mut self, id: InodeId) -> &mut WalIndex {
        self.wal_indexes.entry(id).or_default()
    }

    pub(super) fn leave_wal_index(&mut self, id: InodeId, who: Holder) {
        if self.wal_indexes.get_mut(&id).is_some_and(|index| index.leave(who)) {
            self.wal_indexes.remove(&id);
        }
    }

    /// What a connection that closes its file still held.
    pub(super) fn unlock_all(&mut self, id: InodeId, who: Holder) {
        self.locks(id).lower(who, Level::None);
        self.leave_wal_index(id, who);
    }

    // Crashes. ---------------------------------------------------------------------------------

    /// Ends this disk and returns it as the next process finds it.
    pub(super) fn after_kill(&mut self, seed: u64) -> Self {
        self.plan.dead = true;
        let names = self.names.after_kill();
        self.next(seed, names, |inode, _| inode.after_kill())
    }

    /// Ends this disk and returns it as found when the power is back.
    pub(super) fn after_power_loss(&mut self, seed: u64) -> Self {
        self.plan.dead = true;
        let names = self.names.after_power_loss(&mut Rng::new(seed ^ 1));
        self.next(seed, names, |inode, rng| inode.after_power_loss(rng))
    }

    fn next(&mut self, seed: u64, names: Names, mut found: impl FnMut(&mut Inode, &mut Rng) -> Inode) -> Self {
        let mut rng = Rng::new(seed);
        let mut inodes = BTreeMap::new();
        for id in names.reachable() {
            if let Some(held) = self.inodes.get_mut(&id) {
                inodes.insert(id, Held { inode: found(&mut held.inode, &mut rng), label: held.label.clone() });
            }
        }
        Self::with(self.plan.after_crash(), rng, names, inodes, self.next_inode)
    }

    // Helpers. ---------------------------------------------------------------------------------

    fn begin(&mut self, id: InodeId, kind: OpKind, offset: u64, len: u64) -> io::Result<Step> {
        let Some(held) = self.inodes.get(&id) else { return Err(Fault::Io.error()) };
        if held.inode.class == SyncClass::Temporary {
            return self.plan.check_alive().map(|()| Step::Whole);
        }
        self.plan.begin(kind, held.inode.class, &held.label, offset, len)
    }

    /// Begins a change of a file's name.
    fn begin_as(&mut self, id: InodeId, kind: OpKind, path: &Path) -> io::Result<Step> {
        let class = self.held(id)?.inode.class;
        self.plan.begin(kind, class, path, 0, 0)
    }

    fn change(&mut self, id: InodeId, step: Step, change: Change) -> io::Result<()> {
        let mut rng = self.rng.clone();
        let inode = &mut self.held(id)?.inode;
        let done = match step {
            Step::Whole => {
                inode.change(change);
                Ok(())
            }
            Step::Die => {
                inode.change_in_part(change, &mut rng);
                Err(Fault::Io.error())
            }
            Step::Fail(fault) => {
                inode.change_in_part(change, &mut rng);
                Err(fault.error())
            }
        };
        self.rng = rng;
        done
    }

    /// Does a change of names: whole, or at the moment of death whole or not at all.
    fn finish(&mut self, step: Step, change: impl FnOnce(&mut Self)) -> io::Result<()> {
        match step {
            Step::Whole => {
                change(self);
                Ok(())
            }
            Step::Die => {
                if self.rng.percent(50) {
                    change(self);
                }
                Err(Fault::Io.error())
            }
            Step::Fail(fault) => Err(fault.error()),
        }
    }

    /// The length up to which the file may be written, at most `wanted`.
    fn room(&mut self, id: InodeId, wanted: u64) -> io::Result<u64> {
        let have = self.held(id)?.inode.current().len();
        let Some(capacity) = self.plan.capacity_bytes else { return Ok(wanted) };
        let free = capacity.saturating_sub(self.used_bytes());
        Ok(wanted.min(have + free))
    }

    fn held(&mut self, id: InodeId) -> io::Result<&mut Held> {
        self.inodes.get_mut(&id).ok_or_else(|| Fault::Io.error())
    }

    fn new_inode(&mut self, path: &Path, class: SyncClass) -> InodeId {
        let id = InodeId(self.next_inode);
        self.next_inode += 1;
        self.inodes.insert(id, Held { inode: Inode::new(class), label: path.to_path_buf() });
        id
    }

    fn forget_unreachable(&mut self) {
        let reachable = self.names.reachable();
        self.inodes.retain(|id, held| held.inode.handles > 0 || reachable.contains(id));
    }
}
