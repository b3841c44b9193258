//! For tests only: disks that fail, crashes, real server processes, and scrubbed output.
//!
//! - [`disk`]: a disk in memory that loses, tears and reorders what was not synced.
//! - [`crash`]: a run of mixed work, crashes and recoveries over it, for any system under test.
//! - [`rng`]: seeded choices.
//! - [`soak`]: how long to run, for `cargo xtask soak`.

pub mod crash;
pub mod disk;
pub mod rng;
pub mod soak;
