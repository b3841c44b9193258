//! The engine as the crash run's system under test, and as the other tests use it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use base::{Clock, DatabaseId, Limits, Rng, SystemClock, Timestamp};
use log::{Config, Database, Disk, Log};
use sqlite::{Batch, Role, Value, execute};
use testkit::{
    crash::{N_DATABASES, Op, System},
    disk::LossyDisk,
};
use tokio::runtime::Runtime;

pub(crate) const ROOT: &str = "/data";

/// Chance from a seed, so that a run can be repeated.
struct Seeded(Mutex<u64>);

impl Rng for Seeded {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self.0.lock().unwrap();
        for chunk in bytes.chunks_mut(8) {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let word = (*state ^ (*state >> 29)).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

struct Still(i64, SystemClock);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(self.0)
    }

    fn monotonic(&self) -> std::time::Duration {
        self.1.monotonic()
    }
}

pub(crate) struct Engine {
    pub(crate) runtime: Runtime,
    pub(crate) log: Arc<Log>,
    pub(crate) recovered: log::Recovered,
    databases: Vec<Database>,
    pub(crate) poisoned: Arc<Mutex<Option<String>>>,
}

pub(crate) fn id(n: usize) -> DatabaseId {
    DatabaseId::from_bytes([n as u8 + 1; 16])
}

impl Engine {
    pub(crate) fn start(disk: Arc<dyn Disk>, root: &str, seed: u64) -> base::Result<Self> {
        Self::start_with(disk, root, seed, Arc::new(SystemClock::default()))
    }

    /// On the machine's disk, at a wall time that stands still.
    pub(crate) fn start_at(root: &str, ms: i64) -> base::Result<Self> {
        Self::start_with(Arc::new(log::LocalDisk), root, 1, Arc::new(Still(ms, SystemClock::default())))
    }

    /// The time of each database's last commit, as the log's records have it.
    pub(crate) fn log_times(&self) -> std::collections::HashMap<DatabaseId, i64> {
        let found = Log::check(&log::LocalDisk, self.log.root()).unwrap();
        found.databases.into_iter().map(|(id, time)| (id, time.0)).collect()
    }

    fn start_with(disk: Arc<dyn Disk>, root: &str, seed: u64, clock: Arc<dyn Clock>) -> base::Result<Self> {
        let poisoned = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&poisoned);
        let (log, recovered) = Log::open(Config {
            root: PathBuf::from(root),
            disk: Arc::clone(&disk),
            clock,
            rng: Arc::new(Seeded(Mutex::new(seed))),
            open_databases_max: 2,
            on_poison: Arc::new(move |reason| *slot.lock().unwrap() = Some(reason)),
        })?;
        let mut limits = Limits::d1_paid();
        limits.queued_ms_max = 600_000;
        let limits = Arc::new(limits);
        let mut databases = Vec::new();
        for n in 0..N_DATABASES {
            if !disk.exists(&log::layout::database_path(log.root(), id(n))) {
                log.create_database_file(id(n))?;
            }
            databases.push(log.database(id(n), Role::User, &limits));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        Ok(Self { runtime, log, recovered, databases, poisoned })
    }

    pub(crate) fn run(&self, db: usize, batch: Batch) -> base::Result<Vec<Vec<Value>>> {
        let results = self.runtime.block_on(
            self.databases[db].run(move |conn, reserve| execute::batch_reserving(conn, &batch, &execute::Options::default(), reserve)),
        )?;
        Ok(results.into_iter().flatten().next_back().map(|result| result.rows).unwrap_or_default())
    }

    pub(crate) fn sql(&self, db: usize, sql: &str) -> base::Result<Vec<Vec<Value>>> {
        self.run(db, Batch::sql(sql))
    }

    pub(crate) fn stop(self) {
        self.runtime.block_on(self.log.shutdown());
    }
}

impl System for Engine {
    fn open(disk: &Arc<LossyDisk>, seed: u64) -> Result<Self, String> {
        Self::start(Arc::clone(disk) as Arc<dyn Disk>, ROOT, seed).map_err(|error| format!("{error:?}"))
    }

    fn apply(&self, db: usize, op: &Op) -> Result<(), String> {
        self.run(db, op.batch()).map(drop).map_err(|error| format!("{error:?}"))
    }

    fn query(&self, db: usize, sql: &str) -> Result<Vec<Vec<Value>>, String> {
        self.sql(db, sql).map_err(|error| format!("{error:?}"))
    }

    fn check_integrity(&self, db: usize) -> Result<String, String> {
        // quick_check is what user SQL may run; the whole check needs a connection of our own.
        let outcome = self.runtime.block_on(self.databases[db].run(|conn, _| conn.check_integrity()));
        outcome.map_err(|error| format!("{error:?}"))
    }

    fn close(self) {
        self.stop();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The threads end even if the disk has died under them.
        self.log.halt();
    }
}
