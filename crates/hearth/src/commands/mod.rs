//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod d1;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod serve;
pub(crate) mod token;
