//! The service from outside: catalogue, queries, queues, tokens, transfers, crashes.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod catalogue;
mod queues;
mod symptoms;
mod tokens;
mod transfers;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use base::{Clock, Code, Ctx, Error, Grant, Limits, SystemClock, SystemRng, Timestamp};
use d1::{Batch, Config, D1, NewDatabase, StatementResult};
use log::{Disk, LocalDisk};

/// A clock whose wall time a test can move.
#[derive(Default)]
pub(crate) struct Moved {
    system: SystemClock,
    ahead_ms: AtomicI64,
}

impl Moved {
    pub(crate) fn forward(&self, ms: i64) {
        self.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        Timestamp(self.system.now().0 + self.ahead_ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }
}

/// The service in a folder of its own.
pub(crate) struct Home {
    pub(crate) d1: Arc<D1>,
    pub(crate) clock: Arc<Moved>,
    pub(crate) ctx: Ctx,
    pub(crate) dir: tempfile::TempDir,
}

pub(crate) async fn open(root: &Path, disk: Arc<dyn Disk>, limits: Limits, clock: Arc<Moved>) -> Result<Arc<D1>, Error> {
    let config = Config {
        root: root.to_owned(),
        disk,
        limits,
        clock,
        rng: Arc::new(SystemRng),
        region: "WEUR".to_owned(),
        open_databases_max: 4,
        on_poison: Arc::new(|_| {}),
    };
    tokio::task::spawn_blocking(move || D1::open(config)).await.unwrap()
}

impl Home {
    pub(crate) async fn new(limits: Limits) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), limits).await
    }

    async fn in_folder(dir: tempfile::TempDir, limits: Limits) -> Self {
        let clock = Arc::new(Moved::default());
        let d1 = open(dir.path(), Arc::new(LocalDisk), limits, Arc::clone(&clock)).await.unwrap();
        let ctx = Ctx::owner(Arc::clone(&clock) as Arc<dyn Clock>, Arc::new(SystemRng));
        Self { d1, clock, ctx, dir }
    }

    /// The same folder after a clean stop.
    pub(crate) async fn again(self, limits: Limits) -> Self {
        self.d1.shutdown().await;
        Self::in_folder(self.dir, limits).await
    }

    pub(crate) fn with_grant(&self, grant: Grant) -> Ctx {
        Ctx { grant: Arc::new(grant), ..self.ctx.clone() }
    }

    pub(crate) async fn create(&self, name: &str) -> d1::DatabaseInfo {
        self.d1.create(&self.ctx, NewDatabase { name: name.to_owned(), ..NewDatabase::default() }).await.unwrap()
    }

    pub(crate) async fn run(&self, name: &str, sql: &str) -> Result<Vec<StatementResult>, Error> {
        Ok(self.d1.query(&self.ctx, name, Batch::sql(sql)).await?.0.into_iter().flatten().collect())
    }

    pub(crate) async fn count(&self, name: &str, sql: &str) -> i64 {
        match self.run(name, sql).await.unwrap().pop().unwrap().rows[0][0] {
            d1::Value::Integer(n) => n,
            ref other => panic!("{sql}: {other:?}"),
        }
    }
}

pub(crate) fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Code {
    outcome.expect_err("a refusal").code
}

/// All files below a folder.
pub(crate) fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}
