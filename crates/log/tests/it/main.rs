//! The log from outside, mostly on a disk that loses, tears and reorders what was not synced.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod crash;
mod engine;
mod faults;
mod group;
mod recovery;
mod room;
