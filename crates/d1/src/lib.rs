//! Databases as Cloudflare's D1 knows them: a catalogue, queries, import and export, API tokens.
//!
//! `d1` stands between the faces, which speak JSON, and the engine, which speaks SQLite. It checks
//! what a grant reaches, finds the database, queues the work on it and counts what it cost.
//!
//! The one design decision: the catalogue is a database like any other, with the same log under it,
//! so creating and deleting databases is as durable as any write. A copy of it in memory answers
//! every look-up.

mod bookmark;
mod catalogue;
mod export;
mod import;
mod link;
mod look;
mod service;
mod token;
mod types;
mod usage;

pub use bookmark::Bookmark;
pub use import::Upload;
pub use look::Look;
pub use service::D1;
pub use sqlite::{Batch, ItemResults, Meta, Statement, StatementResult, Value};
pub use types::{
    Config, DatabaseInfo, DatabaseStats, ExportOptions, ExportState, HourUse, ImportInit, ImportResult, ImportState, NewDatabase, Page,
    TokenInfo, TransferStatus,
};
