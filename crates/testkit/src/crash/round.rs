//! One disk's life: work, crash, recovery, judgement, and again.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{Config, History, N_DATABASES, Observed, Op, READ, Report, System, check_texts};
use crate::{
    disk::{Fault, LossyDisk, OpKind, SyncClass, Target},
    rng::Rng,
};

/// Transactions of one thread before the power is cut, if no planned crash came first.
const TRANSACTIONS_MAX: u64 = 24;

pub(super) struct Lineage<'c, S> {
    config: &'c Config,
    rng: Rng,
    disk: Arc<LossyDisk>,
    /// Open since the last judgement, unless it was closed.
    system: Option<S>,
    histories: [History; N_DATABASES],
}

/// The circumstances of one round.
struct Weather {
    n_writers: u64,
    faulty: bool,
    seed: u64,
}

impl<'c, S: System> Lineage<'c, S> {
    pub(super) fn new(seed: u64, config: &'c Config) -> Self {
        let disk = LossyDisk::new(seed);
        disk.drop_syncs(&config.dropped);
        Self { config, rng: Rng::new(seed), disk, system: None, histories: std::array::from_fn(|db| History::new(seed, db)) }
    }

    pub(super) fn n_acked(&self) -> u64 {
        self.histories.iter().map(History::n_acked).sum()
    }

    /// One crash: at operation `first_at` of a single thread's work if given, else somewhere.
    pub(super) fn round(&mut self, first_at: Option<u64>, report: &mut Report) -> Result<(), String> {
        let weather = self.plan(first_at, report);
        let worked = self.work(&weather, report);
        let trace = self.last_operations();
        let judged = worked.and_then(|()| {
            self.end_process(&weather, report);
            self.crash_recovery(&weather, report)?;
            self.judge(report)
        });
        judged.map_err(|error| format!("{error}\n  last operations before the crash:{trace}\n  and since:{}", self.last_operations()))
    }

    fn plan(&mut self, first_at: Option<u64>, report: &mut Report) -> Weather {
        let rng = &mut self.rng;
        let spread = 8 << rng.below(8);
        let now = self.disk.ops();
        let faulty = self.config.faults && first_at.is_none() && rng.percent(40);
        let n_writers = if first_at.is_some() { 1 } else { 1 + rng.below(4) };
        if n_writers > 1 && rng.percent(40) {
            // Commits wait together, and others go on while what they did is not durable.
            self.disk.slow_syncs(SyncClass::Log, Duration::from_micros(rng.below(1_500)));
        }
        match first_at {
            Some(at) => self.disk.crash_at(now + at),
            // Most faults are to be survived for a while.
            None if faulty && rng.percent(60) => self.disk.crash_at(now + 100 + rng.below(900)),
            None => match rng.below(10) {
                0..3 => self.disk.crash_at_sync(1 + rng.below(spread / 4)),
                3..5 => self.disk.crash_at_next(Target { kind: OpKind::Write, class: SyncClass::Database, nth: 1 + rng.below(spread) }),
                _ => self.disk.crash_at(now + 1 + rng.below(spread)),
            },
        }
        let seed = rng.next_u64();
        if faulty {
            report.faults += 1;
            self.plan_fault();
        }
        report.crash_points += 1;
        Weather { n_writers, faulty, seed }
    }

    /// One operation will fail, or the disk fill up. Most faults are aimed: few operations of many are
    /// those whose failure is hard to survive.
    fn plan_fault(&mut self) {
        const KINDS: [OpKind; 4] = [OpKind::Write, OpKind::Sync, OpKind::SetLen, OpKind::Create];
        let rng = &mut self.rng;
        let fault = if rng.percent(40) { Fault::Full } else { Fault::Io };
        let classes: Vec<_> = self.disk.classes().into_iter().collect();
        // Where a commit becomes durable. A disk that is still empty has no files to aim at; then
        // nothing fails.
        let commits = if classes.contains(&SyncClass::Log) { SyncClass::Log } else { SyncClass::Wal };
        let (kind, class) = match rng.below(10) {
            0 => return self.disk.capacity(Some(self.disk.used_bytes() + rng.below(400_000))),
            1 => return self.disk.fail_at(self.disk.ops() + 1 + rng.below(300), fault),
            2..4 => return self.disk.fail_at_sync(1 + rng.below(12), fault),
            4 => (OpKind::SyncDir, SyncClass::Directory),
            5..8 => (OpKind::Write, commits),
            _ => (KINDS[rng.index(KINDS.len())], classes.get(rng.index(classes.len())).copied().unwrap_or(commits)),
        };
        self.disk.fail_at_next(Target { kind, class, nth: 1 + rng.below(8) }, fault);
    }

    /// Opens if need be, and works until the disk is dead or the work is done.
    fn work(&mut self, weather: &Weather, report: &mut Report) -> Result<(), String> {
        if self.system.is_none() {
            match S::open(&self.disk, weather.seed) {
                Ok(system) => self.system = Some(system),
                Err(_) if self.disk.is_dead() || weather.faulty => return Ok(()),
                Err(error) => return Err(format!("does not open on a disk that works: {error}")),
            }
        }
        let system = self.system.as_ref().expect("opened above");
        let shift = Shift {
            system,
            disk: &self.disk,
            histories: &self.histories,
            faulty: weather.faulty,
            wrong: Mutex::new(None),
            done: AtomicBool::new(false),
            n_reads: AtomicU64::new(0),
        };
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..weather.n_writers)
                .map(|i| {
                    scope.spawn({
                        let shift = &shift;
                        move || shift.write(weather.seed ^ i)
                    })
                })
                .collect();
            if weather.n_writers > 1 {
                scope.spawn(|| shift.read(weather.seed));
            }
            for writer in writers {
                if writer.join().is_err() {
                    shift.report("a writing thread panicked in the system under test".to_owned());
                }
            }
            shift.done.store(true, Ordering::Release);
        });
        report.reads += shift.n_reads.into_inner();
        shift.wrong.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// The power goes, or only the process: sometimes after an orderly close.
    fn end_process(&mut self, weather: &Weather, report: &mut Report) {
        let system = self.system.take();
        if self.rng.percent(15) {
            if let Some(system) = system {
                system.close();
            }
            self.next_disk(weather, report);
        } else {
            self.next_disk(weather, report);
            // What is left of the process may go on a while, on a disk that refuses everything.
            drop(system);
        }
    }

    fn next_disk(&mut self, weather: &Weather, report: &mut Report) {
        // A process that meets a fault ends more often than its machine does.
        self.disk = if self.rng.percent(if weather.faulty { 40 } else { 25 }) {
            report.kills += 1;
            self.disk.kill()
        } else {
            self.disk.crash(self.rng.next_u64())
        };
        self.disk.capacity(None);
    }

    /// Starts and is interrupted, up to three times. What it answers meanwhile counts.
    fn crash_recovery(&mut self, weather: &Weather, report: &mut Report) -> Result<(), String> {
        for _ in 0..3 {
            if !self.rng.percent(if weather.faulty { 75 } else { 45 }) {
                break;
            }
            self.disk.crash_at(1 + self.rng.below(40));
            let opened = S::open(&self.disk, self.rng.next_u64());
            if let Ok(system) = &opened {
                for (db, history) in self.histories.iter().enumerate() {
                    // On a disk that dies an error is right, and a wrong answer is not.
                    if let Ok(shown) = Observed::from_answer(system.query(db, READ)) {
                        settle(history, &shown, report).map_err(|error| format!("database {db}, during recovery: {error}"))?;
                    }
                }
            }
            if self.disk.is_dead() {
                report.in_recovery += 1;
            }
            self.disk = if self.rng.percent(25) { self.disk.kill() } else { self.disk.crash(self.rng.next_u64()) };
            drop(opened);
        }
        Ok(())
    }

    /// Opens on a disk that works, checks every promise, and lets each database do some more work.
    fn judge(&mut self, report: &mut Report) -> Result<(), String> {
        let seed = self.rng.next_u64();
        let system = S::open(&self.disk, seed).map_err(|error| format!("does not recover: {error}"))?;
        for (db, history) in self.histories.iter().enumerate() {
            let named = |error: String| format!("database {db}: {error}");
            let shown = Observed::from_answer(system.query(db, READ)).map_err(named)?;
            settle(history, &shown, report).map_err(named)?;
            if shown.has_tables {
                check_texts(history, &shown, |sql| system.query(db, sql)).map_err(named)?;
                let integrity = system.check_integrity(db).map_err(named)?;
                if integrity != "ok" {
                    return Err(named(format!("integrity_check: {integrity}")));
                }
            }
            for op in [history.tables(), history.issue()] {
                system.apply(db, &op).map_err(|error| named(format!("takes no new work after recovery: {error}")))?;
                history.acknowledge(&op);
            }
        }
        match self.rng.below(4) {
            0 => system.close(),
            1 => {
                self.disk = self.disk.kill();
                drop(system);
            }
            _ => self.system = Some(system),
        }
        Ok(())
    }

    /// The last operations, and of the earlier ones those that failed.
    fn last_operations(&self) -> String {
        let trace = self.disk.trace();
        let (earlier, last) = trace.split_at(trace.len().saturating_sub(12));
        let failed = earlier.iter().filter(|traced| traced.note == "failed");
        failed.chain(last).map(|traced| format!("\n    {traced}")).collect()
    }
}

/// Judges a read that no process before this one can have a part in.
fn settle(history: &History, shown: &Observed, report: &mut Report) -> Result<(), String> {
    let settled = history.settle(shown)?;
    report.reads += 1;
    report.unacked_survived += settled.n_survived;
    report.unacked_lost += settled.n_lost;
    Ok(())
}

/// The threads at work and what they share.
struct Shift<'a, S> {
    system: &'a S,
    disk: &'a LossyDisk,
    histories: &'a [History; N_DATABASES],
    faulty: bool,
    /// The first thing that went wrong.
    wrong: Mutex<Option<String>>,
    done: AtomicBool,
    n_reads: AtomicU64,
}

impl<S: System> Shift<'_, S> {
    fn report(&self, error: String) {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Reports an error that was not to be expected.
    fn failed(&self, what: &str, db: usize, error: &str) {
        if !self.faulty && !self.disk.is_dead() {
            self.report(format!("database {db}: {what} failed on a disk that works: {error}"));
        }
    }

    fn write(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        for db in 0..N_DATABASES {
            if self.apply(db, &self.histories[db].tables()).is_err() {
                return;
            }
        }
        let mut failures = 0;
        for _ in 0..TRANSACTIONS_MAX {
            let db = rng.index(N_DATABASES);
            match self.apply(db, &self.histories[db].issue()) {
                Ok(()) => {
                    failures = 0;
                    if rng.percent(25) {
                        self.read_once(db);
                    }
                }
                // After a single fault it may go on or refuse everything: both are right.
                Err(()) => failures += 1,
            }
            if self.disk.is_dead() || failures > 3 {
                return;
            }
        }
    }

    fn apply(&self, db: usize, op: &Op) -> Result<(), ()> {
        match self.system.apply(db, op) {
            Ok(()) => {
                self.histories[db].acknowledge(op);
                Ok(())
            }
            Err(error) => {
                self.failed("a transaction", db, &error);
                Err(())
            }
        }
    }

    fn read(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        while !self.done.load(Ordering::Acquire) && !self.disk.is_dead() {
            self.read_once(rng.index(N_DATABASES));
            std::thread::yield_now();
        }
    }

    /// Reads beside the writers: no answer may lack what was acknowledged before it was asked for.
    fn read_once(&self, db: usize) {
        let before = self.histories[db].before_read();
        match Observed::from_answer(self.system.query(db, READ)) {
            Ok(shown) => {
                self.n_reads.fetch_add(1, Ordering::Relaxed);
                if let Err(error) = self.histories[db].judge(&before, &shown) {
                    self.report(format!("database {db}, a read beside the writers: {error}"));
                }
            }
            Err(error) => self.failed("a read", db, &error),
        }
    }
}
