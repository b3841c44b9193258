//! The context of one request, and the ports through which time and chance come in.

use std::{fmt, sync::Arc, time::Duration};

use crate::Grant;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub i64);

/// The only way to read the time.
pub trait Clock: Send + Sync {
    /// Wall-clock time. May jump.
    fn now(&self) -> Timestamp;
    /// Time since an arbitrary start. Never goes back.
    fn monotonic(&self) -> Duration;
}

/// The only source of chance. Implementations must be fit for keys.
pub trait Rng: Send + Sync {
    /// Fills `bytes` with random bytes.
    fn fill(&self, bytes: &mut [u8]);
}

/// The machine's clock.
pub struct SystemClock {
    start: std::time::Instant,
}

impl Default for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the port's one implementation over the machine's clock")]
    fn default() -> Self {
        Self { start: std::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the port's one implementation over the machine's clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The operating system's random source.
pub struct SystemRng;

impl Rng for SystemRng {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}

/// Who asks, on whose grant, and until when. The first argument of every service call.
#[derive(Clone)]
pub struct Ctx {
    /// What the caller may do.
    pub grant: Arc<Grant>,
    /// Names the request in logs and answers.
    pub request_id: String,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub rng: Arc<dyn Rng>,
}

impl Ctx {
    /// A context with the owner's grant, for work that Hearth starts itself.
    pub fn owner(clock: Arc<dyn Clock>, rng: Arc<dyn Rng>) -> Self {
        Self { grant: Arc::new(Grant::owner()), request_id: "internal".to_owned(), clock, rng }
    }
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("request_id", &self.request_id).field("grant", &self.grant).finish_non_exhaustive()
    }
}
