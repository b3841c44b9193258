//! (b) Durable single-row inserts: the commit log beside rusqlite with `synchronous=FULL`.

use std::{fs::File, io::Write, path::Path, sync::Arc, time::Duration};

use base::{Clock, DatabaseId, Limits, SystemClock, SystemRng};
use log::{Config, Database, LocalDisk, Log};
use rusqlite::Connection;
use sqlite::{Batch, Role, execute};
use tokio::runtime::Runtime;

use crate::{
    engine::batch,
    measure::{Sample, process_cpu},
    table::Line,
};

/// Makes the table.
pub const CREATE: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER NOT NULL, name TEXT NOT NULL)";
/// Adds a row.
pub const INSERT: &str = "INSERT INTO t(k, name) VALUES (?1, 'the name of a row, of some length')";

/// Measures every case for `time`; returns the lines and the baseline, which (c) is held against too.
pub fn run(folder: &Path, time: Duration, runtime: &Runtime) -> (Vec<Line>, Sample) {
    let bare = bare(folder);
    let mut baseline = inserts(&bare, time / 2);
    let mut measured = Vec::new();
    let engine = Engine::open(folder);
    for (callers, databases) in [(1, 1), (8, 1), (64, 1), (64, 8)] {
        measured.push((callers, databases, engine.measure(callers, databases, time, runtime)));
    }
    runtime.block_on(engine.log.shutdown());
    // The baseline's other half comes last, so that a drift of the disk meets both sides.
    baseline.append(inserts(&bare, time / 2));
    let mut lines = vec![
        Line::new("write and fdatasync of 4 KiB, nothing else", raw_syncs(folder, time / 2), &baseline),
        Line::new("rusqlite, synchronous=FULL, one by one", baseline.clone(), &baseline),
    ];
    for (callers, databases, (sample, cpu, per_sync)) in measured {
        let name = format!("log::Database, {callers} callers, {databases} databases");
        lines.push(Line::new(name, sample, &baseline).with_cpu(cpu).with_note(format!("{per_sync:.1} commits a sync")));
    }
    (lines, baseline)
}

/// What the disk itself gives: appends of a page, each made durable, in a file that has its length.
fn raw_syncs(folder: &Path, time: Duration) -> Sample {
    let mut file = File::create(folder.join("raw")).unwrap();
    file.write_all(&vec![1; 64 << 20]).unwrap();
    file.sync_all().unwrap();
    let mut at = 0;
    Sample::take(time, || {
        std::os::unix::fs::FileExt::write_all_at(&file, &[2; 4096], at).unwrap();
        file.sync_data().unwrap();
        at = (at + 4096) % (64 << 20);
    })
}

fn bare(folder: &Path) -> Connection {
    let db = Connection::open(folder.join("bare.db")).unwrap();
    db.execute_batch(&format!("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; {CREATE}")).unwrap();
    db
}

fn inserts(db: &Connection, time: Duration) -> Sample {
    let mut statement = db.prepare(INSERT).unwrap();
    Sample::take(time, || {
        statement.execute([7]).unwrap();
    })
}

struct Engine {
    log: Arc<Log>,
    databases: Vec<Database>,
}

impl Engine {
    fn open(folder: &Path) -> Self {
        let root = folder.join("commits");
        std::fs::create_dir(&root).unwrap();
        let config = Config {
            root,
            disk: Arc::new(LocalDisk),
            clock: Arc::new(SystemClock::default()),
            rng: Arc::new(SystemRng),
            open_databases_max: 16,
            on_poison: Arc::new(|why| panic!("the log is poisoned: {why}")),
        };
        let (log, _) = Log::open(config).unwrap();
        let limits = Arc::new(Limits::d1_paid());
        let databases = (1..=8).map(|n| {
            let id = DatabaseId::from_bytes([n; 16]);
            log.create_database_file(id).unwrap();
            log.database(id, Role::User, &limits)
        });
        Self { databases: databases.collect(), log: Arc::clone(&log) }
    }

    /// Returns the sample, the CPU time of the process, and the commits of a sync.
    fn measure(&self, callers: usize, n_databases: usize, time: Duration, runtime: &Runtime) -> (Sample, Duration, f64) {
        runtime.block_on(async {
            for database in &self.databases {
                insert(database, Batch::sql(CREATE.replace("TABLE t", "TABLE IF NOT EXISTS t"))).await;
            }
        });
        let (before, cpu) = (self.log.stats(), process_cpu());
        let tasks: Vec<_> = (0..callers).map(|n| runtime.spawn(caller(self.databases[n % n_databases].clone(), time))).collect();
        let mut all = Sample::default();
        for task in tasks {
            all.join(runtime.block_on(task).unwrap());
        }
        let (after, cpu) = (self.log.stats(), process_cpu() - cpu);
        assert_eq!(after.commits - before.commits, all.ops, "each insert is one commit");
        (all, cpu, (after.commits - before.commits) as f64 / (after.syncs - before.syncs).max(1) as f64)
    }
}

async fn caller(database: Database, time: Duration) -> Sample {
    let clock = SystemClock::default();
    let mut sample = Sample::default();
    let mut now = clock.monotonic();
    while now < time {
        insert(&database, batch(INSERT, 7)).await;
        let then = clock.monotonic();
        sample.push(then - now);
        now = then;
    }
    sample.elapsed = now;
    sample
}

async fn insert(database: &Database, batch: Batch) {
    database.run(move |conn, reserve| execute::batch_reserving(conn, &batch, &execute::Options::default(), reserve)).await.unwrap();
}
