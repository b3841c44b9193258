//! What is known from outside of one database: what was promised, what was shown.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sqlite::Value;

use super::model::{Observed, Op};

/// Texts compared in one query.
const TEXTS_PER_QUERY: usize = 40;

/// The promises about one database. Threads share it.
pub struct History {
    seed: u64,
    db: usize,
    known: Mutex<Known>,
}

/// A set of promises at one moment.
#[derive(Clone, Default)]
struct Known {
    issued: u64,
    /// Acknowledged, or shown by a read: may never be missing again.
    promised: BTreeSet<u64>,
    tables_promised: bool,
    n_acked: u64,
    /// Missing in a read after the process that issued them had ended: may never turn up again.
    lost: BTreeSet<u64>,
}

/// What [`History::settle`] found out about the transactions whose fate was open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settled {
    /// Never acknowledged, and there.
    pub n_survived: u64,
    /// Never acknowledged, and not there.
    pub n_lost: u64,
}

/// What was promised when a read began.
pub struct Before(Known);

impl History {
    /// Of database `db` in the run of `seed`.
    #[must_use]
    pub fn new(seed: u64, db: usize) -> Self {
        Self { seed, db, known: Mutex::new(Known::default()) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transaction that makes the tables. Safe to repeat.
    #[must_use]
    pub fn tables(&self) -> Op {
        Op::new(self.seed, self.db, 0)
    }

    /// A new transaction, to be run now.
    #[must_use]
    pub fn issue(&self) -> Op {
        let mut known = self.known();
        known.issued += 1;
        Op::new(self.seed, self.db, known.issued)
    }

    /// Transaction `n`, issued already.
    #[must_use]
    pub fn op(&self, n: u64) -> Op {
        Op::new(self.seed, self.db, n)
    }

    /// The system under test has acknowledged `op`.
    pub fn acknowledge(&self, op: &Op) {
        let mut known = self.known();
        if op.n == 0 {
            known.tables_promised = true;
        } else {
            known.promised.insert(op.n);
            known.n_acked += 1;
        }
    }

    /// How many were acknowledged.
    #[must_use]
    pub fn n_acked(&self) -> u64 {
        self.known().n_acked
    }

    /// To be called before a read is sent.
    #[must_use]
    pub fn before_read(&self) -> Before {
        Before(self.known().clone())
    }

    /// Judges what a read has shown, and from now on holds the system to it.
    ///
    /// # Errors
    /// What is wrong with the answer, in words.
    pub fn judge(&self, before: &Before, shown: &Observed) -> Result<(), String> {
        let Before(before) = before;
        shown.check_whole(self.seed, self.db)?;
        if before.tables_promised && !shown.has_tables {
            return Err("the tables are gone".to_owned());
        }
        let visible = shown.visible();
        let missing: Vec<_> = before.promised.difference(&visible).take(5).collect();
        if !missing.is_empty() {
            return Err(format!("acknowledged or shown earlier, and gone: {missing:?} (of {} promised)", before.promised.len()));
        }
        let back: Vec<_> = before.lost.intersection(&visible).take(5).collect();
        if !back.is_empty() {
            return Err(format!("shown as missing after a crash, and back: {back:?}"));
        }
        let mut known = self.known();
        if let Some(unknown) = visible.iter().find(|n| **n > known.issued) {
            return Err(format!("transaction {unknown} was never issued"));
        }
        known.tables_promised |= shown.has_tables;
        known.promised.extend(visible);
        Ok(())
    }

    /// Judges the first read after the process that issued the transactions has ended: whatever it
    /// does not show must stay away.
    ///
    /// # Errors
    /// What is wrong with the answer, in words.
    pub fn settle(&self, shown: &Observed) -> Result<Settled, String> {
        let before = self.before_read();
        self.judge(&before, shown)?;
        let mut known = self.known();
        let n_survived = (known.promised.len() - before.0.promised.len()) as u64;
        let missing: BTreeSet<u64> = (1..=known.issued).filter(|n| !known.promised.contains(n)).collect();
        let n_lost = (missing.len() - known.lost.len()) as u64;
        known.lost = missing;
        Ok(Settled { n_survived, n_lost })
    }
}

/// Compares every text that `shown` has with the one written, byte by byte; `query` runs one SELECT.
///
/// # Errors
/// The query's own, and what is wrong with a text.
pub fn check_texts(history: &History, shown: &Observed, query: impl Fn(&str) -> Result<Vec<Vec<Value>>, String>) -> Result<(), String> {
    for numbers in shown.with_note().chunks(TEXTS_PER_QUERY) {
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        let rows = query(&format!("SELECT n, body FROM notes WHERE n BETWEEN {first} AND {last}"))?;
        let mut found = BTreeSet::new();
        for row in rows {
            let [Value::Integer(n), Value::Text(body)] = row.as_slice() else {
                return Err("a read answered a text of another shape".to_owned());
            };
            if history.op(*n as u64).note().as_ref() != Some(body) {
                return Err(format!("transaction {n}: its text of {} bytes is not the one written", body.len()));
            }
            found.insert(*n as u64);
        }
        if !numbers.iter().copied().eq(found) {
            return Err(format!("the texts {first} to {last} are not those of the read before"));
        }
    }
    Ok(())
}
