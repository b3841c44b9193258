//! Databases (skeleton: the signatures that the faces call).

use std::{path::PathBuf, sync::Arc};

use base::{Clock, Ctx, DatabaseId, Error, Grant, Limits, Result, Rng, Scope, Timestamp, TokenId};
pub use sqlite::{Batch, ItemResults, Meta, Statement, StatementResult, Value};

/// What [`D1::open`] needs.
pub struct Config {
    /// The data folder; must exist.
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

/// The D1 service.
pub struct D1 {
    _private: (),
}

fn skeleton<T>() -> Result<T> {
    Err(Error::internal("skeleton"))
}

#[expect(clippy::unused_async, unused_variables, reason = "skeleton")]
impl D1 {
    /// Opens the data folder: takes its lock, recovers, and opens the catalogue. Blocks.
    pub fn open(config: Config) -> Result<Arc<Self>> {
        skeleton()
    }
    /// The bearer's grant: `None` if no such token lives.
    pub async fn token_grant(&self, ctx: &Ctx, secret: &str) -> Result<Option<(TokenId, Grant)>> {
        skeleton()
    }
    /// Makes a token; returns it with its secret (`hth_` + 40 base-62 characters), shown only now.
    pub async fn token_create(
        &self,
        ctx: &Ctx,
        name: &str,
        scopes: Vec<Scope>,
        expires_at: Option<Timestamp>,
    ) -> Result<(TokenInfo, String)> {
        skeleton()
    }
    /// All tokens, newest first, revoked ones too.
    pub async fn token_list(&self, ctx: &Ctx, page: u64, per_page: u64) -> Result<Page<TokenInfo>> {
        skeleton()
    }
    /// Revokes a token at once.
    pub async fn token_revoke(&self, ctx: &Ctx, id: &TokenId) -> Result<TokenInfo> {
        skeleton()
    }

    /// Creates a database. Durable when it returns.
    pub async fn create(&self, ctx: &Ctx, new: NewDatabase) -> Result<DatabaseInfo> {
        skeleton()
    }
    /// Databases that the grant reaches, oldest first. `name`: only names that contain it.
    pub async fn list(&self, ctx: &Ctx, name: Option<&str>, page: u64, per_page: u64) -> Result<Page<DatabaseInfo>> {
        skeleton()
    }
    /// One database by id or name. Checks the grant for `read`.
    pub async fn get(&self, ctx: &Ctx, name_or_id: &str) -> Result<DatabaseInfo> {
        skeleton()
    }
    /// Size and number of tables. Checks the grant for `read`.
    pub async fn stats(&self, ctx: &Ctx, id: DatabaseId) -> Result<DatabaseStats> {
        skeleton()
    }
    /// Sets `auto` or `disabled`. Checks the grant for `write`.
    pub async fn set_read_replication(&self, ctx: &Ctx, name_or_id: &str, mode: &str) -> Result<DatabaseInfo> {
        skeleton()
    }
    /// Deletes a database and its file. Checks the grant for `write`.
    pub async fn delete(&self, ctx: &Ctx, name_or_id: &str) -> Result<DatabaseInfo> {
        skeleton()
    }
    /// Runs a batch as one transaction. A grant with only `read` gets SQLite's own refusal for writes.
    pub async fn query(&self, ctx: &Ctx, name_or_id: &str, batch: Batch) -> Result<Vec<ItemResults>> {
        skeleton()
    }
    /// Use by hour over the last 24 hours, oldest first; hours without use are left out.
    pub async fn hour_use(&self, ctx: &Ctx, id: DatabaseId) -> Result<Vec<HourUse>> {
        skeleton()
    }

    /// Import, step 1. `etag` is the lower-case hex MD5 of the file.
    pub async fn import_init(&self, ctx: &Ctx, name_or_id: &str, etag: &str) -> Result<ImportInit> {
        skeleton()
    }
    /// Opens an upload by its link's secret. The link is used up by a finished upload.
    pub async fn upload_open(&self, ctx: &Ctx, link: &str) -> Result<Upload> {
        skeleton()
    }
    /// Import, step 3: starts in the background and waits up to a second for its end.
    pub async fn import_ingest(&self, ctx: &Ctx, name_or_id: &str, filename: &str, etag: &str) -> Result<ImportState> {
        skeleton()
    }
    /// Import, step 4: waits up to a second for news.
    pub async fn import_poll(&self, ctx: &Ctx, name_or_id: &str, bookmark: &str) -> Result<ImportState> {
        skeleton()
    }
    /// Starts an export (`bookmark` `None`) or asks how far it is; waits up to a second for news.
    pub async fn export_poll(&self, ctx: &Ctx, name_or_id: &str, options: ExportOptions, bookmark: Option<&str>) -> Result<ExportState> {
        skeleton()
    }
    /// The file behind an export's link: an open file, its length in bytes and its name. Links live an hour.
    pub async fn export_open(&self, ctx: &Ctx, link: &str) -> Result<(std::fs::File, u64, String)> {
        skeleton()
    }

    /// Refuses new work, ends what waits with `D1 DB reset because its code was updated.`, lets what
    /// runs finish, checkpoints and closes. Afterwards every call fails.
    pub async fn shutdown(&self) {}
}

/// An upload in progress; dropping it discards what came.
pub struct Upload {
    _private: (),
}

#[expect(clippy::unused_async, unused_variables, reason = "skeleton")]
impl Upload {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`base::Code::BodyTooLarge`] past the profile's import limit.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        skeleton()
    }
    /// Ends the upload; returns the lower-case hex MD5 of what came, which the answer carries as `etag`.
    pub async fn finish(self) -> Result<String> {
        skeleton()
    }
}
