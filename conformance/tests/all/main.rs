//! The crate's one test binary: the corpus in this process, the parser, and the comparison.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and prints what it counted")]

mod format;
mod in_process;
