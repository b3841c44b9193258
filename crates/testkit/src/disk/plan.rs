//! What goes wrong and when, and the record of what was done.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::SyncClass;

/// How many operations [`super::LossyDisk::trace`] remembers.
const TRACE_MAX: usize = 400;

/// An error that one operation answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `EIO`: the device failed.
    Io,
    /// `ENOSPC`: the disk is full.
    Full,
}

impl Fault {
    pub(super) fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Self::Io => libc::EIO,
            Self::Full => libc::ENOSPC,
        })
    }
}

/// What an operation does to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Bytes read. Numbered only after [`super::LossyDisk::count_reads`].
    Read,
    /// Bytes written.
    Write,
    /// A file cut or extended.
    SetLen,
    /// Space reserved.
    Allocate,
    /// A file made durable.
    Sync,
    /// A new file.
    Create,
    /// A file's name taken away.
    Remove,
    /// A file renamed.
    Rename,
    /// A folder made.
    CreateDir,
    /// A folder's names made durable.
    SyncDir,
}

impl OpKind {
    fn is_sync(self) -> bool {
        matches!(self, Self::Sync | Self::SyncDir)
    }
}

/// An operation to come, named by what it does to which files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// What it does.
    pub kind: OpKind,
    /// To what. `CreateDir` and `SyncDir` are done to [`SyncClass::Directory`], all others to files.
    pub class: SyncClass,
    /// Which of them, counted from 1.
    pub nth: u64,
}

impl Target {
    fn is(&self, kind: OpKind, class: SyncClass) -> bool {
        (self.kind, self.class) == (kind, class)
    }
}

/// One operation that has reached the disk.
#[derive(Clone, Debug)]
pub struct Traced {
    /// Its running number, from 1.
    pub op: u64,
    /// What it did.
    pub kind: OpKind,
    /// The file or folder.
    pub path: PathBuf,
    /// Where in the file; 0 where that has no meaning.
    pub offset: u64,
    /// How many bytes, or the new length for `SetLen` and `Allocate`.
    pub len: u64,
    /// What the plan made of it, if it was not simply done: `died`, `failed`, `dropped`.
    pub note: &'static str,
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {:?} {} at {} len {}", self.op, self.kind, self.path.display(), self.offset, self.len)?;
        if self.note.is_empty() { Ok(()) } else { write!(f, " ({})", self.note) }
    }
}

/// What the caller of [`Plan::begin`] has to do.
pub(super) enum Step {
    Whole,
    /// The disk dies in the middle of this operation.
    Die,
    /// This operation fails, later ones work.
    Fail(Fault),
}

#[derive(Default)]
pub(super) struct Plan {
    pub(super) ops: u64,
    pub(super) dead: bool,
    pub(super) crash_at: Option<u64>,
    /// How many syncs are left before the disk dies, that one included.
    pub(super) crash_at_sync: Option<u64>,
    pub(super) crash_at_next: Option<Target>,
    /// How many syncs are left before one fails, that one included.
    pub(super) fail_at_sync: Option<(u64, Fault)>,
    pub(super) fail_at_next: Option<(Target, Fault)>,
    pub(super) fail_at: BTreeMap<u64, Fault>,
    pub(super) read_only: bool,
    pub(super) capacity_bytes: Option<u64>,
    pub(super) dropped: BTreeSet<SyncClass>,
    pub(super) slow: BTreeMap<SyncClass, Duration>,
    pub(super) count_reads: bool,
    trace: VecDeque<Traced>,
}

impl Plan {
    /// Numbers an operation and decides its fate.
    pub(super) fn begin(&mut self, kind: OpKind, class: SyncClass, path: &Path, offset: u64, len: u64) -> io::Result<Step> {
        self.check_alive()?;
        if kind == OpKind::Read && !self.count_reads {
            return Ok(Step::Whole);
        }
        self.ops += 1;
        let mut step = Ok(Step::Whole);
        let mut note = "";
        if self.dies_at(kind, class) {
            self.dead = true;
            note = "died";
            step = Ok(Step::Die);
        } else if let Some(fault) = self.fault(kind, class) {
            note = "failed";
            step = Ok(Step::Fail(fault));
        } else if self.read_only && !matches!(kind, OpKind::Read | OpKind::Sync | OpKind::SyncDir) {
            note = "read-only";
            step = Err(io::Error::from_raw_os_error(libc::EROFS));
        }
        if self.trace.len() == TRACE_MAX {
            self.trace.pop_front();
        }
        self.trace.push_back(Traced { op: self.ops, kind, path: path.to_path_buf(), offset, len, note });
        step
    }

    /// The fault planned for this operation, which is then done with.
    fn fault(&mut self, kind: OpKind, class: SyncClass) -> Option<Fault> {
        if let Some((target, fault)) = self.fail_at_next.take_if(|(target, _)| target.is(kind, class)) {
            if target.nth <= 1 {
                return Some(fault);
            }
            self.fail_at_next = Some((Target { nth: target.nth - 1, ..target }, fault));
        }
        if let Some((left, fault)) = self.fail_at_sync.take_if(|_| kind.is_sync()) {
            if left <= 1 {
                return Some(fault);
            }
            self.fail_at_sync = Some((left - 1, fault));
        }
        self.fail_at.remove(&self.ops)
    }

    fn dies_at(&mut self, kind: OpKind, class: SyncClass) -> bool {
        let mut dies = self.crash_at == Some(self.ops);
        if let Some(target) = self.crash_at_next.as_mut().filter(|target| target.is(kind, class)) {
            target.nth = target.nth.saturating_sub(1);
            dies |= target.nth == 0;
        }
        if let Some(left) = self.crash_at_sync.as_mut().filter(|_| kind.is_sync()) {
            *left = left.saturating_sub(1);
            dies |= *left == 0;
        }
        dies
    }

    /// After the disk has died nothing works, reads included.
    pub(super) fn check_alive(&self) -> io::Result<()> {
        if self.dead { Err(Fault::Io.error()) } else { Ok(()) }
    }

    /// Whether syncs of this class do nothing; says so in the trace.
    pub(super) fn drops(&mut self, class: SyncClass) -> bool {
        let drops = self.dropped.contains(&class);
        if drops && let Some(last) = self.trace.back_mut() {
            last.note = "dropped";
        }
        drops
    }

    pub(super) fn trace(&self) -> Vec<Traced> {
        self.trace.iter().cloned().collect()
    }

    /// What is a property of the device outlives a crash; what was planned for one run does not.
    /// Slow syncs are planned: each run has its own.
    pub(super) fn after_crash(&self) -> Self {
        Self {
            read_only: self.read_only,
            capacity_bytes: self.capacity_bytes,
            dropped: self.dropped.clone(),
            count_reads: self.count_reads,
            ..Self::default()
        }
    }
}
