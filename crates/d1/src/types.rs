//! What goes into and comes out of the service.

use std::{path::PathBuf, sync::Arc};

use base::{Clock, DatabaseId, Limits, Rng, Scope, Timestamp, TokenId};
use sqlite::Meta;

/// What [`D1::open`] needs.
pub struct Config {
    /// The data folder; must exist, and no other process may use it.
    pub root: PathBuf,
    /// The disk; [`log::LocalDisk`] outside tests.
    pub disk: Arc<dyn log::Disk>,
    /// The profile of every user database.
    pub limits: Limits,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub rng: Arc<dyn Rng>,
    /// Named in `running_in_region` and `served_by_region`, for example `WEUR`.
    pub region: String,
    /// Databases kept open at once.
    pub open_databases_max: usize,
    /// Called once with a plain message when the log can no longer promise durability; the process must stop.
    pub on_poison: Arc<dyn Fn(String) + Send + Sync>,
}

/// A database as the catalogue knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseInfo {
    /// Its id.
    pub id: DatabaseId,
    /// Its name, unique in the account.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// The hint given at creation, as given.
    pub location_hint: Option<String>,
    /// `eu`, `fedramp` or `us`.
    pub jurisdiction: Option<String>,
    /// `auto` or `disabled`.
    pub read_replication: String,
}

/// Figures that need the database itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DatabaseStats {
    /// Tables of the user.
    pub num_tables: u64,
    /// Bytes.
    pub file_size: u64,
}

/// What a new database is made from.
#[derive(Clone, Debug, Default)]
pub struct NewDatabase {
    /// 1 to 64 of `A-Za-z0-9_-`, not starting with `-`. Checked here.
    pub name: String,
    /// Any of Cloudflare's location hints. Checked here.
    pub location_hint: Option<String>,
    /// `eu`, `fedramp` or `us`. Checked here.
    pub jurisdiction: Option<String>,
    /// `auto` or `disabled`. Checked here.
    pub read_replication: Option<String>,
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The items of this page; empty past the last.
    pub items: Vec<T>,
    /// From 1.
    pub page: u64,
    /// Items asked for.
    pub per_page: u64,
    /// Items of all pages.
    pub total: u64,
}

/// One hour of a database's use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HourUse {
    /// Start of the hour.
    pub hour: Timestamp,
    /// Statements that only read.
    pub read_queries: u64,
    /// Statements that wrote.
    pub write_queries: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Rows written.
    pub rows_written: u64,
}

/// Answer to an import's `init`.
#[derive(Clone, Debug)]
pub enum ImportInit {
    /// The client must `PUT` the file to `/uploads/{link}`.
    Upload {
        /// One-time secret of the link: 64 hex digits.
        link: String,
        /// Names the upload in `ingest`.
        filename: String,
    },
    /// A file with this digest was imported into this database and nothing needs to be sent again.
    Known(ImportState),
}

/// Where an import stands.
#[derive(Clone, Debug)]
pub struct ImportState {
    /// To be sent back in `poll`.
    pub at_bookmark: String,
    /// `active`, `complete` or `error`.
    pub status: TransferStatus,
    /// Lines for the user since the last poll.
    pub messages: Vec<String>,
    /// Set if `status` is `error`.
    pub error: Option<String>,
    /// Set if `status` is `complete`.
    pub result: Option<ImportResult>,
}

/// State of an import or export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferStatus {
    /// Runs.
    Active,
    /// Done.
    Complete,
    /// Failed; the database is as it was.
    Error,
}

/// What an import did.
#[derive(Clone, Debug)]
pub struct ImportResult {
    /// Bookmark after the import.
    pub final_bookmark: String,
    /// Statements run.
    pub num_queries: u64,
    /// Sums over all statements; `size_after` of the end.
    pub meta: Meta,
}

/// What an export shall hold.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// Leave out `CREATE` statements.
    pub no_schema: bool,
    /// Leave out rows.
    pub no_data: bool,
    /// Only these tables; empty is all.
    pub tables: Vec<String>,
}

/// Where an export stands.
#[derive(Clone, Debug)]
pub struct ExportState {
    /// To be sent back in the next poll.
    pub at_bookmark: String,
    /// State.
    pub status: TransferStatus,
    /// Lines for the user since the last poll.
    pub messages: Vec<String>,
    /// Set if `status` is `Error`.
    pub error: Option<String>,
    /// Set if complete: name for the user, and the secret for `GET /exports/{link}`.
    pub result: Option<(String, String)>,
}

/// An API token as lists show it. The secret itself is shown once, at creation, and stored as a hash.
#[derive(Clone, Debug)]
pub struct TokenInfo {
    /// Its id.
    pub id: TokenId,
    /// What the owner calls it.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}
