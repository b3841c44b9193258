//! Which file has which name: in the durable directories, as seen, and the changes in between.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use crate::rng::Rng;

/// A file's identity, apart from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InodeId(pub(super) u64);

type Entries = BTreeMap<PathBuf, InodeId>;

enum Change {
    Link {
        path: PathBuf,
        inode: InodeId,
    },
    Unlink {
        path: PathBuf,
        inode: InodeId,
    },
    /// The file's old name is not held: whatever names it then is replaced.
    Rename {
        to: PathBuf,
        inode: InodeId,
    },
}

impl Change {
    /// The directory whose sync makes this durable. For a rename it is the target's.
    fn dir(&self) -> Option<&Path> {
        match self {
            Self::Link { path, .. } | Self::Unlink { path, .. } | Self::Rename { to: path, .. } => path.parent(),
        }
    }

    fn inode(&self) -> InodeId {
        match self {
            Self::Link { inode, .. } | Self::Unlink { inode, .. } | Self::Rename { inode, .. } => *inode,
        }
    }
}

pub(super) struct Names {
    durable: Entries,
    current: Entries,
    /// The changes that lead from `durable` to `current`, oldest first.
    pending: Vec<Change>,
    /// Directories are made durably, so there is one set of them.
    dirs: BTreeSet<PathBuf>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { durable: Entries::new(), current: Entries::new(), pending: Vec::new(), dirs: BTreeSet::from([PathBuf::from("/")]) }
    }

    pub(super) fn find(&self, path: &Path) -> Option<InodeId> {
        self.current.get(path).copied()
    }

    pub(super) fn has_dir(&self, dir: &Path) -> bool {
        self.dirs.contains(dir)
    }

    pub(super) fn make_dir(&mut self, dir: &Path) {
        self.dirs.extend(dir.ancestors().map(Path::to_path_buf));
    }

    pub(super) fn files_in<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.current.keys().map(PathBuf::as_path).filter(move |path| path.parent() == Some(dir))
    }

    pub(super) fn link(&mut self, path: &Path, inode: InodeId) {
        self.change(Change::Link { path: path.to_path_buf(), inode });
    }

    pub(super) fn unlink(&mut self, path: &Path, inode: InodeId) {
        self.change(Change::Unlink { path: path.to_path_buf(), inode });
    }

    pub(super) fn rename(&mut self, inode: InodeId, to: &Path) {
        self.change(Change::Rename { to: to.to_path_buf(), inode });
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let (synced, rest) = std::mem::take(&mut self.pending).into_iter().partition(|change: &Change| change.dir() == Some(dir));
        self.pending = rest;
        for change in synced {
            apply(&mut self.durable, &change);
        }
    }

    pub(super) fn after_kill(&mut self) -> Self {
        Self {
            durable: self.durable.clone(),
            current: self.current.clone(),
            pending: std::mem::take(&mut self.pending),
            dirs: self.dirs.clone(),
        }
    }

    /// The names as found after power loss: a random subset of the unsynced changes, in order.
    pub(super) fn after_power_loss(&self, rng: &mut Rng) -> Self {
        let survival_percent = [0, 20, 50, 80, 100][rng.index(5)];
        let mut found = self.durable.clone();
        for change in &self.pending {
            if rng.percent(survival_percent) {
                apply(&mut found, change);
            }
        }
        Self { durable: found.clone(), current: found, pending: Vec::new(), dirs: self.dirs.clone() }
    }

    /// Every file that has a name, or may have one after a crash.
    pub(super) fn reachable(&self) -> BTreeSet<InodeId> {
        let pending = self.pending.iter().map(Change::inode);
        self.durable.values().chain(self.current.values()).copied().chain(pending).collect()
    }

    pub(super) fn visible(&self) -> impl Iterator<Item = (&Path, InodeId)> {
        self.current.iter().map(|(path, inode)| (path.as_path(), *inode))
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.current, &change);
        self.pending.push(change);
    }
}

/// Applies a change to a table that need not be the one that it was made for: earlier changes may
/// be missing from it. A file never ends up with two names.
fn apply(entries: &mut Entries, change: &Change) {
    match change {
        Change::Link { path, inode } => {
            entries.insert(path.clone(), *inode);
        }
        Change::Unlink { path, inode } => {
            if entries.get(path) == Some(inode) {
                entries.remove(path);
            }
        }
        Change::Rename { to, inode } => {
            entries.retain(|_, held| held != inode);
            entries.insert(to.clone(), *inode);
        }
    }
}

/// The one form of a path: absolute, without `.` and `..`. A relative path is taken from the root.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    out
}
