//! The commit log (skeleton).
pub mod disk;
pub use disk::{Disk, DiskFile, LocalDisk};
