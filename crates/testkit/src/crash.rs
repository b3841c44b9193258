//! The crash run: mixed work on three databases, a crash at some operation of the disk, recovery
//! that is crashed as well, and then the question whether every promise was kept.
//!
//! It is generic over the [`System`] under test. Checked after each crash, and partly by readers
//! while the work goes on:
//! - a transaction that was acknowledged is there, and so is one that any read has ever shown;
//! - every transaction is there wholly or not at all, and in the order in which they were run;
//! - a transaction that was missing after a crash does not turn up later;
//! - `PRAGMA integrity_check` says `ok`, every byte of the texts is right, and new work is accepted.

mod history;
mod model;
mod round;

use std::{fmt, sync::Arc};

use sqlite::Value;

pub use history::{Before, History, Settled, check_texts};
pub use model::{Observed, Op, READ};

use crate::{
    disk::{LossyDisk, SyncClass},
    rng::Rng,
};
use round::Lineage;

/// How many databases the work is spread over.
pub const N_DATABASES: usize = 3;

/// Crashes on one disk before a new one is taken, so that databases stay small.
const CRASHES_PER_DISK: u64 = 25;

/// A system under test that lives on a [`LossyDisk`]. It is used from several threads.
pub trait System: Sized + Sync {
    /// Opens what is on the disk, recovering it if need be. An empty disk is no error: the databases
    /// are made then, or when they are first used.
    ///
    /// # Errors
    /// Why it does not open; legitimate only while the disk fails.
    fn open(disk: &Arc<LossyDisk>, seed: u64) -> Result<Self, String>;

    /// Runs `op` on database `db` (`0..N_DATABASES`) as one transaction; returns once it is acknowledged.
    ///
    /// # Errors
    /// It was refused, or nothing is known of it. Legitimate only while the disk fails.
    fn apply(&self, db: usize, op: &Op) -> Result<(), String>;

    /// Runs one SELECT on database `db` and answers as it would answer a user.
    ///
    /// # Errors
    /// Why not. A missing table must keep SQLite's text, `no such table`.
    fn query(&self, db: usize, sql: &str) -> Result<Vec<Vec<Value>>, String>;

    /// The first line of `PRAGMA integrity_check` on database `db`.
    ///
    /// # Errors
    /// Why it could not be run.
    fn check_integrity(&self, db: usize) -> Result<String, String>;

    /// Closes in good order.
    fn close(self);
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Everything but the scheduling of threads follows from it.
    pub seed: u64,
    /// How many crashes outside of recovery.
    pub crash_points: u64,
    /// Syncs that do nothing, to show that the run notices.
    pub dropped: Vec<SyncClass>,
    /// Whether, before 40 of 100 crashes, a single operation or sync fails, or the disk fills up.
    pub faults: bool,
    /// The run ends when this many promises are broken.
    pub violations_max: usize,
}

impl Config {
    /// A run of `crash_points` on a disk that works until it dies.
    #[must_use]
    pub fn new(seed: u64, crash_points: u64) -> Self {
        Self { seed, crash_points, dropped: Vec::new(), faults: false, violations_max: 20 }
    }
}

/// What a run has found. `Display` gives the counts in one line, then the violations.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The seed to repeat it with.
    pub seed: u64,
    /// Crashes outside of recovery: of the machine and of the process.
    pub crash_points: u64,
    /// Of these: only the process ended, the machine went on.
    pub kills: u64,
    /// Crashes inside recovery, not counted above.
    pub in_recovery: u64,
    /// Crash points before which an operation failed or the disk filled up.
    pub faults: u64,
    /// Transactions acknowledged.
    pub acked: u64,
    /// Reads judged.
    pub reads: u64,
    /// Transactions that were not acknowledged and are there.
    pub unacked_survived: u64,
    /// Transactions that were not acknowledged and are not there.
    pub unacked_lost: u64,
    /// Broken promises, with seed, place and the disk's last operations. At most one per disk.
    pub violations: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, crash_points, kills, in_recovery, faults, acked, reads, unacked_survived, unacked_lost, violations } = self;
        write!(
            f,
            "{crash_points} crash points ({kills} of them kills, {faults} after a fault) and {in_recovery} more in recovery, seed {seed}: \
             {acked} transactions acknowledged, {unacked_survived} unacknowledged ones survived, {unacked_lost} were lost, \
             {reads} reads judged, {} violations",
            violations.len()
        )?;
        violations.iter().try_for_each(|violation| write!(f, "\n{violation}"))
    }
}

/// Runs until `config.crash_points` crashes are done, or too many promises are broken.
///
/// The first crash on each disk comes at operation 1, 2, 3, … of a single thread's work, so every
/// early operation gets its turn; the later ones are spread at random over several threads' work.
#[must_use]
pub fn run<S: System>(config: &Config) -> Report {
    let mut report = Report { seed: config.seed, ..Report::default() };
    let mut n_disk = 0;
    while report.crash_points < config.crash_points && report.violations.len() < config.violations_max {
        let seed = Rng::new(config.seed.wrapping_add(n_disk)).next_u64();
        let mut lineage = Lineage::<S>::new(seed, config);
        let crashes = CRASHES_PER_DISK.min(config.crash_points - report.crash_points);
        for crash in 0..crashes {
            let first_at = (crash == 0).then_some(n_disk + 1);
            if let Err(error) = lineage.round(first_at, &mut report) {
                report.violations.push(format!("seed {}, disk {n_disk}, crash {crash}: {error}", config.seed));
                break;
            }
        }
        report.acked += lineage.n_acked();
        n_disk += 1;
    }
    report
}
