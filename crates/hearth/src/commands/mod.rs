//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod d1;
pub(crate) mod serve;
