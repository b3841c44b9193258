//! `kill -9` under writing clients: the promises of [`crate::crash`], asked of the real server.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use sqlite::Value;

use super::{Client, Server};
use crate::{
    crash::{History, N_DATABASES, Observed, READ, check_texts},
    rng::Rng,
};

/// Rounds on one data folder before a new one is taken, so that reads of all rows stay small.
const ROUNDS_PER_FOLDER: u64 = 10;

/// How long the clients work at most before the kill.
const WORK_MS_MAX: u64 = 400;

/// What to run.
#[derive(Clone, Debug)]
pub struct KillConfig {
    /// The `hearth` binary.
    pub binary: PathBuf,
    /// Kills while clients write.
    pub rounds: u64,
    /// Everything but the scheduling of threads and processes follows from it.
    pub seed: u64,
    /// Clients that write at once.
    pub n_clients: u64,
    /// What is done to the data folder after a kill, to show that the run notices.
    pub tamper: Option<fn(&Path)>,
}

impl KillConfig {
    /// Eight clients, and a data folder that nobody touches.
    #[must_use]
    pub fn new(binary: &Path, seed: u64, rounds: u64) -> Self {
        Self { binary: binary.to_path_buf(), rounds, seed, n_clients: 8, tamper: None }
    }
}

/// What a run has found. `Display` gives the counts in one line, then the violations.
#[derive(Clone, Debug, Default)]
pub struct KillReport {
    /// The seed to repeat it with.
    pub seed: u64,
    /// Clients that wrote at once.
    pub n_clients: u64,
    /// Kills while clients wrote.
    pub kills: u64,
    /// Kills while the server started, not counted above.
    pub in_start: u64,
    /// Transactions acknowledged.
    pub acked: u64,
    /// Reads judged.
    pub reads: u64,
    /// Transactions that were not acknowledged and are there.
    pub unacked_survived: u64,
    /// Transactions that were not acknowledged and are not there.
    pub unacked_lost: u64,
    /// Broken promises; at most one per data folder.
    pub violations: Vec<String>,
}

impl fmt::Display for KillReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, n_clients, kills, in_start, acked, reads, unacked_survived, unacked_lost, violations } = self;
        write!(
            f,
            "{kills} times kill -9 under {n_clients} writing clients and {in_start} times during a start, seed {seed}: \
             {acked} transactions acknowledged, {unacked_survived} unacknowledged ones survived, {unacked_lost} were lost, \
             {reads} reads judged, {} violations",
            violations.len()
        )?;
        violations.iter().try_for_each(|violation| write!(f, "\n{violation}"))
    }
}

/// Starts the server, lets the clients write, kills it, starts it again (killing some of the starts
/// too), and checks every promise. Each data folder is in the system's folder for temporary files.
///
/// # Errors
/// The run itself could not be made: no binary, no folder. What the server does wrong is in the report.
pub fn kill_run(config: &KillConfig) -> Result<KillReport, String> {
    let mut report = KillReport { seed: config.seed, n_clients: config.n_clients, ..KillReport::default() };
    let mut n_folder = 0;
    while report.kills < config.rounds {
        let folder = tempfile::tempdir().map_err(|error| format!("cannot make a folder: {error}"))?;
        let seed = Rng::new(config.seed.wrapping_add(n_folder)).next_u64();
        let mut site = Site {
            binary: &config.binary,
            data: folder.path().join("data"),
            n_clients: config.n_clients,
            rng: Rng::new(seed),
            ids: None,
            histories: std::array::from_fn(|db| History::new(seed, db)),
        };
        for _ in 0..ROUNDS_PER_FOLDER.min(config.rounds - report.kills) {
            report.kills += 1;
            let judged = site.work(&mut report).and_then(|()| {
                if let Some(tamper) = config.tamper {
                    tamper(&site.data);
                }
                site.kill_starts(&mut report)?;
                site.judge(&mut report)
            });
            if let Err(error) = judged {
                report.violations.push(format!("seed {}, folder {n_folder}, kill {}: {error}", config.seed, report.kills));
                break;
            }
        }
        report.acked += site.histories.iter().map(History::n_acked).sum::<u64>();
        n_folder += 1;
    }
    Ok(report)
}

/// One data folder and what was promised about it.
struct Site<'c> {
    binary: &'c Path,
    data: PathBuf,
    n_clients: u64,
    rng: Rng,
    /// Of the databases, once their creation was acknowledged.
    ids: Option<[String; N_DATABASES]>,
    histories: [History; N_DATABASES],
}

impl Site<'_> {
    /// Starts, lets the clients write, and kills.
    fn work(&mut self, report: &mut KillReport) -> Result<(), String> {
        let server = Server::start(self.binary, &self.data)?;
        let ids = self.databases(&Client::new(server.url(), &self.data)?)?;
        let shift = Shift {
            url: server.url().to_owned(),
            data: &self.data,
            ids: &ids,
            histories: &self.histories,
            killed: AtomicBool::new(false),
            n_acked: AtomicU64::new(0),
            n_reads: AtomicU64::new(0),
            wrong: Mutex::new(None),
        };
        let pause = Duration::from_millis(self.rng.below(WORK_MS_MAX));
        let seed = self.rng.next_u64();
        let wrote = std::thread::scope(|scope| {
            for client in 0..self.n_clients {
                scope.spawn({
                    let shift = &shift;
                    move || shift.write(seed ^ client)
                });
            }
            // The first acknowledgement shows that there is something to lose.
            while shift.n_acked.load(Ordering::Acquire) == 0 && shift.wrong().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(pause);
            // Set before the kill: from now on a broken connection is no fault.
            shift.killed.store(true, Ordering::SeqCst);
            let wrote = server.stderr();
            server.kill();
            wrote
        });
        report.reads += shift.n_reads.load(Ordering::Relaxed);
        shift.wrong().map_or(Ok(()), |error| Err(format!("{error}\n  the server wrote:\n{wrote}")))
    }

    /// The databases, made at the first start and found again at every later one.
    fn databases(&mut self, client: &Client) -> Result<[String; N_DATABASES], String> {
        let mut found: [String; N_DATABASES] = Default::default();
        for (db, id) in found.iter_mut().enumerate() {
            *id = client.database(&format!("kill-{db}"))?;
        }
        match &self.ids {
            Some(known) if *known != found => return Err(format!("databases {known:?} are gone; a new start has {found:?}")),
            _ => self.ids = Some(found.clone()),
        }
        Ok(found)
    }

    /// Kills up to two starts, most of them in the middle of recovery.
    fn kill_starts(&mut self, report: &mut KillReport) -> Result<(), String> {
        for _ in 0..self.rng.below(3) {
            let starting = Server::spawn(self.binary, &self.data)?;
            std::thread::sleep(Duration::from_millis(self.rng.below(60)));
            starting.kill();
            report.in_start += 1;
        }
        Ok(())
    }

    /// Starts once more, checks every promise, and lets each database do some more work.
    fn judge(&mut self, report: &mut KillReport) -> Result<(), String> {
        let server = Server::start(self.binary, &self.data)?;
        let client = Client::new(server.url(), &self.data)?;
        let ids = self.databases(&client)?;
        for (db, (id, history)) in ids.iter().zip(&self.histories).enumerate() {
            let named = |error: String| format!("database {db}: {error}");
            let shown = Observed::from_answer(client.query(id, READ)).map_err(named)?;
            let settled = history.settle(&shown).map_err(named)?;
            report.reads += 1;
            report.unacked_survived += settled.n_survived;
            report.unacked_lost += settled.n_lost;
            check_texts(history, &shown, |sql| client.query(id, sql)).map_err(named)?;
            let check = client.query(id, "PRAGMA quick_check").map_err(named)?;
            if check != [[Value::Text("ok".to_owned())]] {
                return Err(named(format!("quick_check: {check:?}")));
            }
            let op = history.issue();
            client.apply(id, op.batch()).map_err(|error| named(format!("takes no new work after recovery: {error}")))?;
            history.acknowledge(&op);
        }
        // Killed while it idles.
        server.kill();
        Ok(())
    }
}

/// The clients at work and what they share.
struct Shift<'a> {
    url: String,
    data: &'a Path,
    ids: &'a [String; N_DATABASES],
    histories: &'a [History; N_DATABASES],
    killed: AtomicBool,
    n_acked: AtomicU64,
    n_reads: AtomicU64,
    /// The first thing that went wrong.
    wrong: Mutex<Option<String>>,
}

impl Shift<'_> {
    fn wrong(&self) -> Option<String> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn report(&self, error: String) {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn write(&self, seed: u64) {
        if let Err(error) = self.write_until_killed(&mut Rng::new(seed))
            && !self.killed.load(Ordering::SeqCst)
        {
            self.report(format!("before the kill: {error}"));
        }
    }

    fn write_until_killed(&self, rng: &mut Rng) -> Result<(), String> {
        let client = Client::new(&self.url, self.data)?;
        for (id, history) in self.ids.iter().zip(self.histories) {
            client.apply(id, history.tables().batch())?;
            history.acknowledge(&history.tables());
        }
        while !self.killed.load(Ordering::SeqCst) {
            let db = rng.index(N_DATABASES);
            let (id, history) = (&self.ids[db], &self.histories[db]);
            let op = history.issue();
            client.apply(id, op.batch())?;
            history.acknowledge(&op);
            self.n_acked.fetch_add(1, Ordering::Release);
            if rng.percent(10) {
                let before = history.before_read();
                let shown = Observed::from_answer(client.query(id, READ))?;
                self.n_reads.fetch_add(1, Ordering::Relaxed);
                if let Err(error) = history.judge(&before, &shown) {
                    self.report(format!("database {db}, a read beside the writers: {error}"));
                }
            }
        }
        Ok(())
    }
}
