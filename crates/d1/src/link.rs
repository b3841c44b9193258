//! Secrets of links and numbers of transfers.

use base::{Rng, Timestamp};

/// How long an upload or download link lives.
pub(crate) const LINK_MS: i64 = 3_600_000;
/// Uploads, imports and exports that may be known at once, over all databases.
pub(crate) const TRANSFERS_MAX: usize = 200;

/// 32 random bytes in hex.
pub(crate) fn secret(rng: &dyn Rng) -> String {
    let mut bytes = [0; 32];
    rng.fill(&mut bytes);
    hex(&bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A name for a running transfer in the form of a bookmark. It orders by start and is good for
/// polling only: it names no point in the database's history.
pub(crate) fn transfer_bookmark(now: Timestamp, rng: &dyn Rng) -> String {
    let mut bytes = [0; 16];
    rng.fill(&mut bytes);
    let ms = now.0.unsigned_abs();
    format!("00000000-{:08x}-{:08x}-{}", ms >> 32, ms & 0xffff_ffff, hex(&bytes))
}
