//! The two lock tables of a SQLite database, for connections of one process.
//! Source: <https://sqlite.org/lockingv3.html>, <https://sqlite.org/walformat.html#wal_locks>.

use std::collections::{BTreeMap, BTreeSet};

/// An open file of a connection.
pub(super) type Holder = u64;

/// The states of the lock on a database file, weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    #[default]
    None,
    Shared,
    Reserved,
    Pending,
    Exclusive,
}

/// Who holds what of one database file.
#[derive(Default)]
pub(super) struct FileLocks(BTreeMap<Holder, Level>);

impl FileLocks {
    pub(super) fn level(&self, who: Holder) -> Level {
        self.0.get(&who).copied().unwrap_or_default()
    }

    /// Raises the lock of `who`; false if another's forbids it. An exclusive lock that has to wait
    /// for readers stays pending, which keeps new readers out.
    pub(super) fn raise(&mut self, who: Holder, to: Level) -> bool {
        if self.level(who) >= to {
            return true;
        }
        let strongest_other = self.0.iter().filter(|(other, _)| **other != who).map(|(_, level)| *level).max().unwrap_or_default();
        let reached = match to {
            Level::None | Level::Shared if strongest_other < Level::Pending => to,
            Level::Reserved if strongest_other < Level::Reserved => to,
            Level::Pending | Level::Exclusive if strongest_other == Level::None => to,
            Level::Pending | Level::Exclusive if strongest_other < Level::Reserved => Level::Pending,
            _ => return false,
        };
        self.0.insert(who, reached);
        reached == to
    }

    pub(super) fn lower(&mut self, who: Holder, to: Level) {
        if to == Level::None {
            self.0.remove(&who);
        } else if self.level(who) > to {
            self.0.insert(who, to);
        }
    }

    /// Whether anyone intends to write.
    pub(super) fn is_reserved(&self) -> bool {
        self.0.values().any(|level| *level >= Level::Reserved)
    }
}

/// How many lock slots a WAL index has.
pub(super) const SHM_SLOTS: usize = 8;

/// One slot of a WAL index: many readers or one writer.
#[derive(Default)]
struct Slot {
    shared: BTreeSet<Holder>,
    exclusive: Option<Holder>,
}

/// The locks of one WAL index.
#[derive(Default)]
pub(super) struct ShmLocks([Slot; SHM_SLOTS]);

impl ShmLocks {
    pub(super) fn share(&mut self, who: Holder, slot: usize) -> bool {
        let free = self.0[slot].exclusive.is_none();
        if free {
            self.0[slot].shared.insert(who);
        }
        free
    }

    /// Takes all slots of the range or none.
    pub(super) fn exclude(&mut self, who: Holder, slots: std::ops::Range<usize>) -> bool {
        let slots = &mut self.0[slots];
        let free = slots.iter().all(|slot| slot.shared.is_empty() && slot.exclusive.is_none());
        if free {
            slots.iter_mut().for_each(|slot| slot.exclusive = Some(who));
        }
        free
    }

    pub(super) fn release(&mut self, who: Holder, slots: std::ops::Range<usize>) {
        for slot in &mut self.0[slots] {
            slot.shared.remove(&who);
            slot.exclusive.take_if(|holder| *holder == who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_stand_beside_one_reserved_and_keep_an_exclusive_one_waiting() {
        let mut locks = FileLocks::default();
        assert!(locks.raise(1, Level::Shared) && locks.raise(2, Level::Shared));
        assert!(locks.raise(1, Level::Reserved));
        assert!(!locks.raise(2, Level::Reserved));
        assert!(locks.raise(3, Level::Shared));
        assert!(!locks.raise(1, Level::Exclusive));
        assert_eq!(locks.level(1), Level::Pending);
        assert!(!locks.raise(4, Level::Shared), "a pending lock keeps new readers out");
        locks.lower(2, Level::None);
        assert!(!locks.raise(1, Level::Exclusive));
        locks.lower(3, Level::None);
        assert!(locks.raise(1, Level::Exclusive));
        assert!(!locks.raise(2, Level::Shared));
        locks.lower(1, Level::Shared);
        assert!(!locks.is_reserved() && locks.raise(2, Level::Shared));
    }

    #[test]
    fn a_slot_has_many_sharers_or_one_holder_and_ranges_are_taken_whole() {
        let mut locks = ShmLocks::default();
        assert!(locks.share(1, 3) && locks.share(2, 3));
        assert!(!locks.exclude(3, 2..5));
        assert!(locks.exclude(3, 4..6), "a refused range leaves no slot behind");
        assert!(!locks.share(1, 5));
        locks.release(1, 3..4);
        locks.release(2, 3..4);
        locks.release(3, 4..6);
        assert!(locks.exclude(1, 0..SHM_SLOTS));
    }
}
