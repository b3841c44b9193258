//! One commit log for the process: group commit, recovery, and the actor of each database file.
//!
//! A commit is durable when its pages are in this log and the log is synced, and not before. SQLite
//! itself runs without syncs on commit; its file and WAL are caches of the log that a crash may lose.
//! One `fdatasync` covers every commit that waits at that moment, over all databases.
//!
//! The one design decision: recovery is physical redo and nothing else. Start-up writes the logged
//! pages over the database files, drops every WAL, and so needs no guess about what SQLite had
//! managed to write. Redo is idempotent, so a crash inside recovery is a crash before it.
//!
//! The rules that make it true stand in ARCHITECTURE.md under "Durability"; each has its test in
//! `tests/it`, most of them on a disk that loses, tears and reorders what was not synced.

mod append;
mod database;
pub mod disk;
mod flush;
mod keeper;
pub mod layout;
mod look;
mod position;
mod record;
mod recover;
mod segment;

pub use append::{Config, Log, Stats};
pub use database::{Database, Reserve};
pub use disk::{Disk, DiskFile, LocalDisk, ReadOnlyDisk};
pub use look::Checked;
pub use position::Ticket;
pub use recover::Recovered;
