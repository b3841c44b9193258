//! The tests of the test kit: a model that is too kind would let every other test pass.
// The lint knows only the functions marked `#[test]`, not what they share.
#![allow(clippy::unwrap_used)]

mod crash;
mod disk;
mod vfs;
