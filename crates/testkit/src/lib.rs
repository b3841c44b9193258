//! For tests only: disks that fail, crashes, real server processes, and scrubbed output.
//!
//! - [`disk`]: a disk in memory that loses, tears and reorders what was not synced.
//! - [`rng`]: seeded choices.

pub mod disk;
pub mod rng;
