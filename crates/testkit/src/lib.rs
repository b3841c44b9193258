//! For tests only: disks that fail, crashes, real server processes, and scrubbed output.
//!
//! - [`disk`]: a disk in memory that loses, tears and reorders what was not synced.
//! - [`crash`]: a run of mixed work, crashes and recoveries over it, for any system under test.
//! - [`process`]: the real server as a child, and a run that kills it.
//! - [`rng`]: seeded choices.
//! - [`scrub`]: texts without what differs from run to run.
//! - [`soak`]: how long to run, for `cargo xtask soak`.

pub mod crash;
pub mod disk;
pub mod process;
pub mod rng;
pub mod scrub;
pub mod soak;
