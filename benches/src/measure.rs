//! Runs work for a time and keeps what it took.

use std::time::Duration;

use base::{Clock, SystemClock};
use rustix::time::{ClockId, clock_gettime};

/// Latencies kept by one caller; later ones are counted and not kept.
const LATENCIES_MAX: usize = 1_000_000;

/// What a caller, or all of them, did.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Operations.
    pub ops: u64,
    /// Time that they took, all callers at once.
    pub elapsed: Duration,
    /// Time of each operation.
    pub latencies: Vec<Duration>,
    /// CPU time of the callers' own threads.
    pub caller_cpu: Duration,
}

impl Sample {
    /// Calls `op` until `time` has passed.
    pub fn take(time: Duration, mut op: impl FnMut()) -> Self {
        let clock = SystemClock::default();
        let cpu = cpu_time(ClockId::ThreadCPUTime);
        let mut sample = Self::default();
        let mut now = clock.monotonic();
        while now < time {
            op();
            let then = clock.monotonic();
            sample.push(then - now);
            now = then;
        }
        sample.elapsed = now;
        sample.caller_cpu = cpu_time(ClockId::ThreadCPUTime) - cpu;
        sample
    }

    /// Counts one operation.
    pub fn push(&mut self, latency: Duration) {
        self.ops += 1;
        if self.latencies.len() < LATENCIES_MAX {
            self.latencies.push(latency);
        }
    }

    /// Adds what the same caller did in a later turn.
    pub fn append(&mut self, mut later: Self) {
        self.ops += later.ops;
        self.elapsed += later.elapsed;
        self.caller_cpu += later.caller_cpu;
        self.latencies.append(&mut later.latencies);
    }

    /// Adds what another caller did in the same time.
    pub fn join(&mut self, other: Self) {
        let elapsed = self.elapsed.max(other.elapsed);
        self.append(other);
        self.elapsed = elapsed;
    }

    /// Operations in a second.
    pub fn rate(&self) -> f64 {
        self.ops as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that `percent` of the operations kept under.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
    }
}

/// CPU time of the whole process.
pub fn process_cpu() -> Duration {
    cpu_time(ClockId::ProcessCPUTime)
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Numbers from 0 up to `below` in an order that looks like chance and is the same in each run.
pub struct Noise(u64);

impl Noise {
    /// Begins at `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}
