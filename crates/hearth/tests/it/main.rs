//! The real binary, run as a user runs it: its exit codes, both outputs, files and signals.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod d1;
mod demo;
mod doctor;
mod harness;
mod keys;
mod kill;
mod migrations;
mod offline;
mod serve;
mod tokens;
mod transfer;
