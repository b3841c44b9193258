//! Measures what stands between a caller and SQLite, and prints it beside SQLite itself.
//!
//! Everything is measured in one run on one machine: the baseline is `rusqlite` over the same build of
//! SQLite and a file in the same folder, so a figure needs no other machine's to be read. The sides take
//! turns, so that what else the machine does meets both. No figure decides a test.

#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "a benchmark that cannot go on has no figure to give")]

pub mod commits;
pub mod engine;
pub mod http;
pub mod measure;
pub mod table;
