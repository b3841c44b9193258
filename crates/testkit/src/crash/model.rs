//! What the transactions of a crash run do, and how their traces in a database are judged.
//!
//! Each transaction leaves its number in two tables, moves a counter, and now and then writes a
//! text of up to 200 KB, deletes an older transaction's rows (leaving a tombstone) or replaces an
//! index. All of it follows from the run's seed and the number, so a part that is missing, or
//! belongs to something else, shows.

use std::collections::{BTreeMap, BTreeSet};

use sqlite::{Batch, Statement, Value};

use crate::rng::{Rng, mix};

/// How long a text may be; three quarters of them are under 6 KB.
const NOTE_BYTES_MAX: u64 = 200_000;

/// One statement that reads all but the texts: one snapshot.
pub const READ: &str = "SELECT 'a' AS what, n, hash AS x, at AS y FROM a \
     UNION ALL SELECT 'b', n, hash, 0 FROM b \
     UNION ALL SELECT 'gone', n, at, by FROM gone \
     UNION ALL SELECT 'note', n, octet_length(body), 0 FROM notes \
     UNION ALL SELECT 'total', total, 0, 0 FROM counter";

/// One transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    seed: u64,
    db: usize,
    /// Its number in its database, from 1; 0 makes the tables.
    pub n: u64,
}

impl Op {
    /// Transaction `n` of database `db` in the run of `seed`.
    #[must_use]
    pub fn new(seed: u64, db: usize, n: u64) -> Self {
        Self { seed, db, n }
    }

    /// Its statements: one per item, to be run as one transaction.
    #[must_use]
    pub fn batch(&self) -> Batch {
        let items = if self.n == 0 { Self::tables() } else { self.statements() };
        let items = items.into_iter().map(|(sql, params)| Statement { sql, params }).collect();
        Batch { items, is_prepared: true }
    }

    fn tables() -> Vec<(String, Vec<Value>)> {
        [
            "CREATE TABLE IF NOT EXISTS a (n INTEGER PRIMARY KEY, hash INTEGER NOT NULL, at INTEGER NOT NULL)",
            "CREATE TABLE IF NOT EXISTS b (n INTEGER PRIMARY KEY, hash INTEGER NOT NULL)",
            "CREATE TABLE IF NOT EXISTS gone (n INTEGER PRIMARY KEY, at INTEGER NOT NULL, by INTEGER NOT NULL)",
            "CREATE TABLE IF NOT EXISTS notes (n INTEGER PRIMARY KEY, body TEXT NOT NULL)",
            "CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY, total INTEGER NOT NULL)",
            "INSERT OR IGNORE INTO counter VALUES (1, 0)",
        ]
        .map(|sql| (sql.to_owned(), Vec::new()))
        .to_vec()
    }

    fn statements(&self) -> Vec<(String, Vec<Value>)> {
        let (n, hash) = (Value::Integer(self.n as i64), Value::Integer(self.hash()));
        let mut list = vec![
            ("INSERT INTO a (n, hash, at) SELECT ?1, ?2, total + 1 FROM counter".to_owned(), vec![n.clone(), hash.clone()]),
            ("INSERT INTO b (n, hash) VALUES (?1, ?2)".to_owned(), vec![n.clone(), hash]),
            ("UPDATE counter SET total = total + 1".to_owned(), Vec::new()),
        ];
        if let Some(body) = self.note() {
            list.push(("INSERT INTO notes (n, body) VALUES (?1, ?2)".to_owned(), vec![n.clone(), Value::Text(body)]));
        }
        let mut rng = self.rng(1);
        if rng.percent(20) {
            let victim = Value::Integer(rng.below(self.n) as i64);
            list.push(("INSERT INTO gone (n, at, by) SELECT n, at, ?2 FROM a WHERE n = ?1".to_owned(), vec![victim.clone(), n]));
            for table in ["a", "b", "notes"] {
                list.push((format!("DELETE FROM {table} WHERE n = ?1"), vec![victim.clone()]));
            }
        }
        if rng.percent(8) {
            let slot = rng.below(4);
            list.push((format!("DROP INDEX IF EXISTS i{slot}"), Vec::new()));
            list.push((format!("CREATE INDEX i{slot} ON b (hash, n)"), Vec::new()));
        }
        list
    }

    fn rng(&self, purpose: u64) -> Rng {
        Rng::new(mix(self.seed) ^ mix(self.n << 8 | (self.db as u64) << 4 | purpose))
    }

    /// What the row carries beside the number.
    fn hash(&self) -> i64 {
        // 53 bits, so that JSON clients return it whole.
        (self.rng(2).next_u64() >> 11) as i64
    }

    /// The length of the text that belongs to it, if one does.
    fn note_bytes(&self) -> Option<u64> {
        let mut rng = self.rng(3);
        match rng.below(100) {
            0..60 => None,
            60..90 => Some(rng.below(6_000)),
            _ => Some(rng.below(NOTE_BYTES_MAX + 1)),
        }
    }

    /// The text that belongs to it, if one does: letters `a` to `p`.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let mut bytes = vec![0; self.note_bytes()? as usize];
        self.rng(4).fill(&mut bytes);
        for byte in &mut bytes {
            *byte = b'a' + (*byte & 15);
        }
        Some(String::from_utf8(bytes).expect("ASCII"))
    }
}

/// What one read has shown of a database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Whether the tables are there.
    pub has_tables: bool,
    /// Number to hash and position.
    a: BTreeMap<u64, (i64, i64)>,
    b: BTreeMap<u64, i64>,
    /// Deleted ones: number to position and the deleting transaction.
    gone: BTreeMap<u64, (i64, u64)>,
    notes: BTreeMap<u64, u64>,
    total: Option<i64>,
}

impl Observed {
    /// From the rows of [`READ`]. An answer `no such table` is a database without tables.
    ///
    /// # Errors
    /// The read's own, and rows of another shape than [`READ`] asks for.
    pub fn from_answer(answer: Result<Vec<Vec<Value>>, String>) -> Result<Self, String> {
        let rows = match answer {
            Err(error) if error.contains("no such table") => return Ok(Self::default()),
            other => other?,
        };
        let mut observed = Self { has_tables: true, ..Self::default() };
        for row in rows {
            let [Value::Text(what), Value::Integer(n), Value::Integer(x), Value::Integer(y)] = row.as_slice() else {
                return Err(format!("a read answered a row of another shape: {row:?}"));
            };
            let key = *n as u64;
            let twice = match what.as_str() {
                "a" => observed.a.insert(key, (*x, *y)).is_some(),
                "b" => observed.b.insert(key, *x).is_some(),
                "gone" => observed.gone.insert(key, (*x, *y as u64)).is_some(),
                "note" => observed.notes.insert(key, *x as u64).is_some(),
                _ => observed.total.replace(*n).is_some(),
            };
            if twice {
                return Err(format!("a read answered {what} {n} twice"));
            }
        }
        Ok(observed)
    }

    /// The transactions that are there, deleted ones included.
    #[must_use]
    pub fn visible(&self) -> BTreeSet<u64> {
        self.a.keys().chain(self.gone.keys()).copied().collect()
    }

    /// The transactions whose text should be there.
    #[must_use]
    pub fn with_note(&self) -> Vec<u64> {
        self.notes.keys().copied().collect()
    }

    /// Whether every transaction is there wholly or not at all: the first contradiction, if not.
    ///
    /// # Errors
    /// The contradiction, in words.
    pub fn check_whole(&self, seed: u64, db: usize) -> Result<(), String> {
        if !self.has_tables {
            return Ok(());
        }
        if self.a.len() != self.b.len() {
            let odd = self.a.keys().find(|n| !self.b.contains_key(n)).or_else(|| self.b.keys().find(|n| !self.a.contains_key(n)));
            return Err(format!(
                "half of a transaction: {} rows in a, {} in b, the first in one only is {odd:?}",
                self.a.len(),
                self.b.len()
            ));
        }
        let mut positions = BTreeSet::new();
        for (n, (hash, at)) in &self.a {
            let op = Op::new(seed, db, *n);
            let note = op.note_bytes();
            if *hash != op.hash() || self.b.get(n) != Some(hash) {
                return Err(format!("transaction {n}: hash {hash} in a, {:?} in b, written was {}", self.b.get(n), op.hash()));
            }
            if self.notes.get(n) != note.as_ref() {
                return Err(format!("transaction {n}: a text of {:?} bytes, written were {note:?}", self.notes.get(n)));
            }
            positions.insert(*at);
        }
        for (n, (at, by)) in &self.gone {
            if self.a.contains_key(n) || self.notes.contains_key(n) {
                return Err(format!("transaction {n} is deleted and there"));
            }
            if !self.a.contains_key(by) && !self.gone.contains_key(by) {
                return Err(format!("transaction {n} was deleted by {by}, which is not there"));
            }
            positions.insert(*at);
        }
        let n_visible = self.a.len() + self.gone.len();
        let in_order = positions.iter().copied().eq(1..=n_visible as i64);
        if !in_order || self.total != Some(n_visible as i64) {
            let (first, last) = (positions.first(), positions.last());
            return Err(format!(
                "{n_visible} transactions are there, the counter says {:?}, {} positions from {first:?} to {last:?}",
                self.total,
                positions.len(),
            ));
        }
        Ok(())
    }
}
