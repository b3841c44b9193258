//! The crate's one test binary: the corpus in this process and over HTTP, and the format itself.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and prints what it counted")]

mod files;
mod format;
mod in_process;
mod over_http;
