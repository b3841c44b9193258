//! The metered engine (skeleton).
pub mod value;
pub use value::{Batch, ItemResults, Meta, Statement, StatementResult, Value};
pub use rusqlite::ffi;
