//! The crash run on plain SQLite: green when SQLite syncs, red when a sync is taken out.

use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use log::Disk;
use rusqlite::{Connection, OpenFlags, config::DbConfig, params_from_iter, types};
use sqlite::Value;
use testkit::{
    crash::{Config, N_DATABASES, Op, Report, System, run},
    disk::{LossyDisk, SyncClass},
};

/// What a [`Plain`] does wrong.
mod flaw {
    pub(super) const NONE: u8 = 0;
    /// Acknowledges what is not synced.
    pub(super) const SYNCS_LATE: u8 = 1;
    /// Runs the statements of a transaction one by one.
    pub(super) const NO_TRANSACTION: u8 = 2;
    /// Answers from what a killed process has left unsynced.
    pub(super) const ANSWERS_EARLY: u8 = 3;
    /// Gives a reader what it had for the last one.
    pub(super) const ANSWERS_STALE: u8 = 4;
    /// Goes on after a failed sync.
    pub(super) const GOES_ON: u8 = 5;
}

type Rows = Vec<Vec<Value>>;

/// SQLite in WAL mode with `synchronous=FULL`: one connection per database that writes, one that reads.
struct Plain<const FLAW: u8> {
    databases: Vec<(Mutex<Connection>, Mutex<Connection>)>,
    /// Set by the first failure, after which nothing is done before the next start: what a failed sync
    /// covered is not saved by the next one.
    poisoned: AtomicBool,
    /// For [`flaw::ANSWERS_STALE`]: how many answers were given, and the last.
    given: [Mutex<(u64, Rows)>; N_DATABASES],
}

fn open_one(disk: &LossyDisk, db: usize, synchronous: &str) -> rusqlite::Result<Connection> {
    let path = format!("/data/{db}.db");
    let db = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), disk.vfs().unwrap())?;
    db.busy_timeout(Duration::from_secs(30))?;
    // After a failed sync the WAL must not be checked in, by a close neither.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Few pages in memory and few in the WAL: large transactions spill, checkpoints are frequent.
    db.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}; PRAGMA wal_autocheckpoint=40; PRAGMA cache_size=20"
    ))?;
    Ok(db)
}

impl<const FLAW: u8> Plain<FLAW> {
    fn guard<T>(&self, run: impl FnOnce() -> rusqlite::Result<T>) -> Result<T, String> {
        let ended = || self.poisoned.load(Ordering::SeqCst) && FLAW != flaw::GOES_ON;
        let refusal = || "an earlier failure has ended the work".to_owned();
        if ended() {
            return Err(refusal());
        }
        let answer = run().map_err(|error| error.to_string());
        if answer.as_ref().is_err_and(|error| !error.contains("no such table")) {
            self.poisoned.store(true, Ordering::SeqCst);
        }
        // Once more: the answer may rest on what another thread has just failed to sync.
        if ended() { answer.and(Err(refusal())) } else { answer }
    }
}

impl<const FLAW: u8> System for Plain<FLAW> {
    fn open(disk: &Arc<LossyDisk>, _seed: u64) -> Result<Self, String> {
        let dir = Path::new("/data");
        disk.create_dir(dir).map_err(|error| error.to_string())?;
        if FLAW != flaw::ANSWERS_EARLY {
            write_wals_again(disk, dir).map_err(|error| error.to_string())?;
        }
        let synchronous = if FLAW == flaw::SYNCS_LATE { "NORMAL" } else { "FULL" };
        let open = |db| {
            let (writer, reader) = (open_one(disk, db, synchronous)?, open_one(disk, db, synchronous)?);
            Ok((Mutex::new(writer), Mutex::new(reader)))
        };
        let databases = (0..N_DATABASES).map(open).collect::<rusqlite::Result<_>>();
        let databases = databases.map_err(|error| error.to_string())?;
        // SQLite syncs the folder of a new WAL, and takes no notice if that fails.
        disk.sync_dir(dir).map_err(|error| error.to_string())?;
        Ok(Self { databases, poisoned: AtomicBool::new(false), given: Default::default() })
    }

    fn apply(&self, db: usize, op: &Op) -> Result<(), String> {
        let mut writer = self.databases[db].0.lock().unwrap();
        let run = |writer: &mut Connection| {
            let statements = |db: &Connection| -> rusqlite::Result<()> {
                for item in op.batch().items {
                    db.execute(&item.sql, params_from_iter(item.params.into_iter().map(to_sql)))?;
                }
                Ok(())
            };
            if FLAW == flaw::NO_TRANSACTION {
                return statements(writer);
            }
            let tx = writer.transaction()?;
            statements(&tx)?;
            tx.commit()
        };
        self.guard(|| run(&mut writer))
    }

    fn query(&self, db: usize, sql: &str) -> Result<Rows, String> {
        let reader = self.databases[db].1.lock().unwrap();
        let run = || -> rusqlite::Result<Rows> {
            let mut statement = reader.prepare(sql)?;
            let n_columns = statement.column_count();
            let rows = statement.query_map([], |row| (0..n_columns).map(|i| row.get(i).map(from_sql)).collect())?;
            rows.collect()
        };
        let rows = self.guard(run)?;
        let mut given = self.given[db].lock().unwrap();
        given.0 += 1;
        let last = std::mem::replace(&mut given.1, rows.clone());
        Ok(if FLAW == flaw::ANSWERS_STALE && given.0.is_multiple_of(5) { last } else { rows })
    }

    fn check_integrity(&self, db: usize) -> Result<String, String> {
        let reader = self.databases[db].1.lock().unwrap();
        reader.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(|error| error.to_string())
    }

    fn close(self) {}
}

/// SQLite shows what it finds in the WAL of a killed process without making it durable, and a sync
/// alone would not do so: if one has failed before, what it covered may be in the system's cache only.
fn write_wals_again(disk: &LossyDisk, dir: &Path) -> io::Result<()> {
    for path in disk.list(dir)?.into_iter().filter(|path| path.to_string_lossy().ends_with("-wal")) {
        let wal = disk.open(&path, false)?;
        let mut bytes = vec![0; wal.len()? as usize];
        wal.read_exact_at(&mut bytes, 0)?;
        wal.write_all_at(&bytes, 0)?;
        wal.sync()?;
    }
    disk.sync_dir(dir)
}

fn to_sql(value: Value) -> types::Value {
    match value {
        Value::Null => types::Value::Null,
        Value::Integer(n) => types::Value::Integer(n),
        Value::Real(x) => types::Value::Real(x),
        Value::Text(text) => types::Value::Text(text),
        Value::Blob(bytes) => types::Value::Blob(bytes),
    }
}

fn from_sql(value: types::Value) -> Value {
    match value {
        types::Value::Null => Value::Null,
        types::Value::Integer(n) => Value::Integer(n),
        types::Value::Real(x) => Value::Real(x),
        types::Value::Text(text) => Value::Text(text),
        types::Value::Blob(bytes) => Value::Blob(bytes),
    }
}

fn run_and_print<const FLAW: u8>(name: &str, config: &Config) -> Report {
    let report = run::<Plain<FLAW>>(config);
    eprintln!("{name}: {}", report.to_string().lines().take(2).collect::<Vec<_>>().join("; "));
    report
}

#[test]
fn plain_sqlite_keeps_every_promise() {
    let report = run_and_print::<{ flaw::NONE }>("plain SQLite", &Config::new(1, 300));
    assert!(report.violations.is_empty(), "{report}");
    assert_eq!(report.crash_points, 300);
    // A run in which nothing was at stake proves nothing.
    assert!(report.in_recovery > 20 && report.kills > 20, "{report}");
    assert!(report.acked > 1000 && report.reads > 500, "{report}");
    assert!(report.unacked_survived > 5 && report.unacked_lost > 5, "{report}");
}

#[test]
fn plain_sqlite_keeps_every_promise_through_faults() {
    let report = run_and_print::<{ flaw::NONE }>("plain SQLite with faults", &Config { faults: true, ..Config::new(2, 300) });
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.faults > 20, "{report}");
}

#[test]
fn plain_sqlite_without_a_sync_breaks_promises() {
    for class in [SyncClass::Wal, SyncClass::Database, SyncClass::Directory] {
        let config = Config { dropped: vec![class], violations_max: 3, ..Config::new(1, 200) };
        let report = run_and_print::<{ flaw::NONE }>(&format!("without syncs of {class:?}"), &config);
        assert!(!report.violations.is_empty(), "no one noticed that {class:?} is not synced: {report}");
    }
}

#[test]
fn a_flaw_of_any_kind_is_noticed() {
    fn check<const FLAW: u8>(name: &str) {
        let report = run_and_print::<FLAW>(name, &Config { faults: FLAW == flaw::GOES_ON, violations_max: 1, ..Config::new(3, 4000) });
        assert!(!report.violations.is_empty(), "{name} went unnoticed: {report}");
    }
    check::<{ flaw::SYNCS_LATE }>("acknowledges before the sync");
    check::<{ flaw::NO_TRANSACTION }>("runs statements one by one");
    check::<{ flaw::ANSWERS_EARLY }>("answers from an unsynced WAL");
    check::<{ flaw::ANSWERS_STALE }>("answers from its last answer");
    check::<{ flaw::GOES_ON }>("goes on after a failed sync");
}
