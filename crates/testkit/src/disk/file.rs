//! One file: what is on stable storage, what a reader sees, and the changes in between.

use super::{SyncClass, sparse::Sparse};
use crate::rng::Rng;

/// What the disk writes whole or not at all.
pub(super) const SECTOR: u64 = 512;

pub(super) enum Change {
    Write {
        offset: u64,
        bytes: Vec<u8>,
    },
    SetLen(u64),
    /// Reserved space: the file is at least this long.
    Extend(u64),
}

struct Pending {
    /// Which of the file's changes it is, from 1.
    number: u64,
    change: Change,
    /// A sync that covered this change has failed. As on Linux, the page counts as clean from then
    /// on: a later sync that succeeds says nothing about it.
    abandoned: bool,
}

/// A file's content, apart from its name.
pub(super) struct Inode {
    durable: Sparse,
    current: Sparse,
    /// The changes that lead from `durable` to `current`, oldest first.
    pending: Vec<Pending>,
    n_changes: u64,
    pub(super) class: SyncClass,
    /// Open handles. A file without a name lives until the last of them is closed.
    pub(super) handles: usize,
}

impl Inode {
    pub(super) fn new(class: SyncClass) -> Self {
        Self::clean(&Sparse::default(), class)
    }

    pub(super) fn current(&self) -> &Sparse {
        &self.current
    }

    pub(super) fn change(&mut self, change: Change) {
        apply(&mut self.current, &change);
        self.n_changes += 1;
        self.pending.push(Pending { number: self.n_changes, change, abandoned: false });
    }

    /// Does a random part of a change, as a disk that dies or fills up in its middle does.
    pub(super) fn change_in_part(&mut self, change: Change, rng: &mut Rng) {
        match change {
            Change::Write { offset, bytes } => {
                let cut = rng.index(bytes.len() + 1);
                if cut > 0 {
                    self.change(Change::Write { offset, bytes: bytes[..cut].to_vec() });
                }
            }
            other if rng.percent(50) => self.change(other),
            _ => {}
        }
    }

    /// The last change so far: what a sync that begins now has to cover.
    pub(super) fn n_changes(&self) -> u64 {
        self.n_changes
    }

    /// Makes the changes up to number `last` durable, but for what an earlier failed sync has abandoned.
    pub(super) fn sync(&mut self, last: u64) {
        let later = self.pending.split_off(self.pending.partition_point(|pending| pending.number <= last));
        let mut kept: Vec<(u64, Vec<u8>)> = Vec::new();
        for Pending { change, abandoned, .. } in self.pending.drain(..) {
            match change {
                Change::Write { offset, bytes } if abandoned => kept.extend(sectors(offset, &bytes)),
                Change::Write { offset, bytes } => {
                    // The device gets whole sectors from the cache, older bytes in them included.
                    let touched = offset / SECTOR..(offset + bytes.len() as u64).div_ceil(SECTOR);
                    kept.retain(|(at, piece)| {
                        let flushed = touched.contains(&(at / SECTOR));
                        if flushed {
                            self.durable.write(piece, *at);
                        }
                        !flushed
                    });
                    self.durable.write(&bytes, offset);
                }
                // Lengths are metadata: the file system's journal writes them with the next sync.
                change => {
                    apply(&mut self.durable, &change);
                    if let Change::SetLen(len) = change {
                        kept.retain(|(at, _)| *at < len);
                    }
                }
            }
        }
        let kept = kept.into_iter().map(|(offset, bytes)| Pending { number: 0, change: Change::Write { offset, bytes }, abandoned: true });
        self.pending = kept.chain(later).collect();
    }

    /// A sync that reported an error: some of the data may be there, and none will be tried again.
    pub(super) fn fail_sync(&mut self) {
        for pending in &mut self.pending {
            pending.abandoned = true;
        }
    }

    /// The file after the machine went on running but its process did not: nothing is lost, and
    /// nothing more is durable.
    pub(super) fn after_kill(&mut self) -> Self {
        let pending = std::mem::take(&mut self.pending);
        Self { durable: self.durable.clone(), pending, n_changes: self.n_changes, ..Self::clean(&self.current, self.class) }
    }

    /// The file as found after power loss.
    pub(super) fn after_power_loss(&self, rng: &mut Rng) -> Self {
        let mut found = self.durable.clone();
        let luck = Luck::draw(rng);
        let mut order: Vec<usize> = (0..self.pending.len()).collect();
        if luck.reorders {
            rng.shuffle(&mut order);
        }
        for change in order.into_iter().map(|i| &self.pending[i].change) {
            let survives = rng.percent(luck.survival_percent);
            match change {
                Change::Write { offset, bytes } => write_after_loss(&mut found, *offset, bytes, survives, &luck, rng),
                other if survives => apply(&mut found, other),
                _ => {}
            }
        }
        Self::clean(&found, self.class)
    }

    /// Turns over bits of one byte in both the seen and the durable content.
    pub(super) fn damage(&mut self, offset: u64, mask: u8) {
        for content in [&mut self.current, &mut self.durable] {
            let mut byte = [0];
            if content.read(&mut byte, offset) == 1 {
                content.write(&[byte[0] ^ mask], offset);
            }
        }
    }

    fn clean(content: &Sparse, class: SyncClass) -> Self {
        Self { durable: content.clone(), current: content.clone(), pending: Vec::new(), n_changes: 0, class, handles: 0 }
    }
}

/// How one file fares in one crash. Drawn per file, because the worst cases are the uneven ones:
/// everything lost here and everything kept there, or all kept but one sector.
struct Luck {
    survival_percent: u64,
    tears: bool,
    reorders: bool,
}

impl Luck {
    fn draw(rng: &mut Rng) -> Self {
        let survival_percent = [0, 10, 50, 50, 90, 97, 100][rng.index(7)];
        Self { survival_percent, tears: rng.percent(60), reorders: rng.percent(50) }
    }
}

fn write_after_loss(found: &mut Sparse, offset: u64, bytes: &[u8], survives: bool, luck: &Luck, rng: &mut Rng) {
    if survives && !luck.tears {
        found.write(bytes, offset);
        return;
    }
    if survives {
        for (at, piece) in sectors(offset, bytes) {
            if rng.percent(luck.survival_percent.clamp(20, 90)) {
                found.write(&piece, at);
            }
        }
    }
    // The new length is metadata: it may reach the disk although the data did not.
    let end = offset + bytes.len() as u64;
    if end > found.len() && rng.percent(25) {
        found.set_len(end);
    }
}

fn apply(content: &mut Sparse, change: &Change) {
    match change {
        Change::Write { offset, bytes } => content.write(bytes, *offset),
        Change::SetLen(len) => content.set_len(*len),
        Change::Extend(len) => content.set_len(content.len().max(*len)),
    }
}

/// Cuts a write at sector borders.
fn sectors(offset: u64, bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut pieces = Vec::new();
    let mut done = 0;
    while done < bytes.len() {
        let at = offset + done as u64;
        let n = ((SECTOR - at % SECTOR) as usize).min(bytes.len() - done);
        pieces.push((at, bytes[done..done + n].to_vec()));
        done += n;
    }
    pieces
}
