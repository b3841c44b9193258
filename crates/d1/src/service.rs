//! The service: databases by name and id, queries, usage.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, RwLock, RwLockReadGuard},
    time::Duration,
};

use base::{Access, Code, Ctx, DatabaseId, Error, Limits, Result, Service, Timestamp};
use log::{Database, Log};
use sqlite::{Batch, ItemResults, Role, Value, execute};

use crate::{
    Bookmark, Config, DatabaseInfo, DatabaseStats, HourUse, NewDatabase, Page,
    catalogue::{self, Catalogue, optional_text, statement, text},
    export::Exports,
    import::Imports,
    usage::Usage,
};

const ACCOUNT_FULL: &str = "Your account has exceeded D1's maximum account storage limit, please contact Cloudflare to raise your limit.";
const LOCATIONS: [&str; 6] = ["wnam", "enam", "weur", "eeur", "apac", "oc"];
const JURISDICTIONS: [&str; 3] = ["eu", "fedramp", "us"];
const NAME_BYTES_MAX: usize = 64;
/// Items of a page at most; more are cut to it.
const PAGE_MAX: u64 = 10_000;
/// How long a stop waits for what runs before it is ended.
const SHUTDOWN_MS_MAX: u64 = 30_000;
const USAGE_FLUSH: Duration = Duration::from_secs(5);

/// The D1 service.
pub struct D1 {
    pub(crate) config: Config,
    pub(crate) log: Arc<Log>,
    pub(crate) system: Database,
    pub(crate) catalogue: RwLock<Catalogue>,
    /// Held over a change of the catalogue, so that memory and SQL change in the same order.
    pub(crate) changing: tokio::sync::Mutex<()>,
    limits: Arc<Limits>,
    usage: Mutex<Usage>,
    /// Bytes of each database, as far as known, for the account's limit.
    sizes: Mutex<Sizes>,
    pub(crate) imports: Imports,
    pub(crate) exports: Exports,
}

impl D1 {
    /// Opens the data folder: recovers, opens the catalogue, sweeps what a crash left. Blocks, and
    /// must be called within a tokio runtime, outside its asynchronous code.
    ///
    /// # Errors
    /// [`Code::Corrupt`] by file name, [`Code::Io`], [`Code::DiskFull`].
    pub fn open(config: Config) -> Result<Arc<Self>> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| Error::internal("D1::open needs a tokio runtime"))?;
        let (log, recovered) = Log::open(log::Config {
            root: config.root.clone(),
            disk: Arc::clone(&config.disk),
            clock: Arc::clone(&config.clock),
            rng: Arc::clone(&config.rng),
            open_databases_max: config.open_databases_max,
            on_poison: Arc::clone(&config.on_poison),
        })?;
        if recovered.commits > 0 {
            tracing::info!(
                databases = recovered.databases.len(),
                commits = recovered.commits,
                pages = recovered.pages,
                torn_bytes = recovered.torn_bytes,
                "recovered from the commit log"
            );
        }
        let system_path = log::layout::database_path(&config.root, DatabaseId::SYSTEM);
        if !config.disk.exists(&system_path) {
            refuse_lost_catalogue(&config)?;
            log.create_database_file(DatabaseId::SYSTEM)?;
        }
        let system = log.database(DatabaseId::SYSTEM, Role::Internal, &Arc::new(catalogue::system_limits()));
        let (mut catalogue, usage) = runtime.block_on(async {
            let catalogue = catalogue::load(&system).await?;
            let usage = Usage::load(&system).await?;
            Ok::<_, Error>((catalogue, usage))
        })?;
        let sizes = sweep(&config, &catalogue)?;
        if !catalogue.removed.is_empty() {
            // Their files are gone now, names and all.
            runtime.block_on(catalogue::run(&system, vec![statement("DELETE FROM removed", Vec::new())]))?;
            catalogue.removed.clear();
        }
        let limits = Arc::new(config.limits.clone());
        let d1 = Arc::new(Self {
            imports: Imports::new(&config)?,
            exports: Exports::new(&config),
            config,
            log,
            system,
            catalogue: RwLock::new(catalogue),
            changing: tokio::sync::Mutex::new(()),
            limits,
            usage: Mutex::new(usage),
            sizes: Mutex::new(sizes),
        });
        let weak = Arc::downgrade(&d1);
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(USAGE_FLUSH).await;
                let Some(d1) = weak.upgrade() else { return };
                if let Err(error) = d1.flush_usage().await {
                    tracing::warn!(%error, "the usage figures could not be stored");
                }
                d1.sweep_transfers();
            }
        });
        Ok(d1)
    }

    pub(crate) fn read_catalogue(&self) -> RwLockReadGuard<'_, Catalogue> {
        self.catalogue.read().expect("no thread panics while it holds the catalogue")
    }

    /// Creates a database. Durable when it returns.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for a name or option that is not allowed, [`Code::DatabaseExists`],
    /// [`Code::DatabasesMax`], [`Code::ScopeMissing`].
    pub async fn create(&self, ctx: &Ctx, new: NewDatabase) -> Result<DatabaseInfo> {
        ctx.grant.require(Service::D1, &[&new.name], Access::Create)?;
        check_new(&new)?;
        let _changing = self.changing.lock().await;
        {
            let catalogue = self.read_catalogue();
            if catalogue.has_name(&new.name) {
                return Err(Error::new(Code::DatabaseExists, format!("a database with the name `{}` exists already", new.name)));
            }
            if catalogue.len() as u64 >= self.limits.databases_max {
                let text = format!("the account has {} databases, as many as its profile allows; delete one first", catalogue.len());
                return Err(Error::new(Code::DatabasesMax, text));
            }
        }
        let info = DatabaseInfo {
            id: DatabaseId::random(self.config.rng.as_ref()),
            name: new.name,
            created_at: self.config.clock.now(),
            location_hint: new.location_hint,
            jurisdiction: new.jurisdiction,
            read_replication: new.read_replication.unwrap_or_else(|| "disabled".to_owned()),
        };
        // The file first: a crash between the two leaves an orphan, which start-up sweeps.
        let (log, id) = (Arc::clone(&self.log), info.id);
        tokio::task::spawn_blocking(move || log.create_database_file(id))
            .await
            .map_err(|_| Error::internal("a file job ended early"))??;
        let row = statement(
            "INSERT INTO databases(id, name, created_at, location_hint, jurisdiction, read_replication) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
            vec![
                text(info.id.to_string()),
                text(info.name.clone()),
                Value::Integer(info.created_at.0),
                optional_text(info.location_hint.as_ref()),
                optional_text(info.jurisdiction.as_ref()),
                text(info.read_replication.clone()),
            ],
        );
        catalogue::run(&self.system, vec![row]).await?;
        self.catalogue.write().expect("no thread panics while it holds the catalogue").insert(info.clone());
        Ok(info)
    }

    /// Databases that the grant may read, oldest first. `name`: only names that contain it.
    ///
    /// # Errors
    /// [`Code::ScopeMissing`] if the grant reads no database at all.
    #[expect(clippy::unused_async, reason = "the service's calls are all asynchronous")]
    pub async fn list(&self, ctx: &Ctx, name: Option<&str>, page: u64, per_page: u64) -> Result<Page<DatabaseInfo>> {
        if !ctx.grant.allows_some(Service::D1, Access::Read) {
            ctx.grant.require(Service::D1, &[], Access::Read)?;
        }
        let per_page = per_page.clamp(1, PAGE_MAX);
        let catalogue = self.read_catalogue();
        let all = ctx.grant.allows(Service::D1, &[], Access::Read);
        let seen = |info: &&DatabaseInfo| {
            name.is_none_or(|name| info.name.contains(name))
                && (all || ctx.grant.allows(Service::D1, &[&info.name, &info.id.to_string()], Access::Read))
        };
        let total = catalogue.databases().filter(seen).count() as u64;
        let skip = page.max(1).saturating_sub(1).saturating_mul(per_page);
        let items =
            catalogue.databases().filter(seen).skip(usize::try_from(skip).unwrap_or(usize::MAX)).take(per_page as usize).cloned().collect();
        Ok(Page { items, page: page.max(1), per_page, total })
    }

    /// One database by id or name.
    ///
    /// # Errors
    /// [`Code::DatabaseNotFound`], [`Code::ScopeMissing`].
    #[expect(clippy::unused_async, reason = "the service's calls are all asynchronous")]
    pub async fn get(&self, ctx: &Ctx, name_or_id: &str) -> Result<DatabaseInfo> {
        self.find(ctx, name_or_id, Access::Read)
    }

    pub(crate) fn find(&self, ctx: &Ctx, name_or_id: &str, access: Access) -> Result<DatabaseInfo> {
        let found = self.read_catalogue().find(name_or_id).cloned();
        // Who may not look is not told whether there is something to see.
        let id = found.as_ref().map(|info| info.id.to_string()).unwrap_or_default();
        let name = found.as_ref().map_or(name_or_id, |info| &info.name);
        // The caller's own word comes first, as a refusal repeats it.
        ctx.grant.require(Service::D1, &[name_or_id, name, &id], access)?;
        found.ok_or_else(|| not_found(name_or_id))
    }

    pub(crate) fn database(&self, id: DatabaseId) -> Database {
        self.log.database(id, Role::User, &self.limits)
    }

    /// Size and number of tables.
    ///
    /// # Errors
    /// [`Code::DatabaseNotFound`], [`Code::ScopeMissing`], or the database's own.
    pub async fn stats(&self, ctx: &Ctx, id: DatabaseId) -> Result<DatabaseStats> {
        self.find(ctx, &id.to_string(), Access::Read)?;
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite^_%' ESCAPE '^'";
        let database = self.database(id);
        let run = database.run(move |conn, _| {
            let results = execute::batch(conn, &Batch::sql(sql), &execute::Options { unmetered: true, ..Default::default() })?;
            Ok(results.into_iter().flatten().next_back())
        });
        let result = run.await?.ok_or_else(|| Error::internal("a count without a result"))?;
        let num_tables = if let Some(Value::Integer(n)) = result.rows.first().and_then(|row| row.first()) { n.unsigned_abs() } else { 0 };
        Ok(DatabaseStats { num_tables, file_size: result.meta.size_after })
    }

    /// Sets read replication to `auto` or `disabled`.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for another mode, [`Code::DatabaseNotFound`], [`Code::ScopeMissing`].
    pub async fn set_read_replication(&self, ctx: &Ctx, name_or_id: &str, mode: &str) -> Result<DatabaseInfo> {
        check_mode(mode)?;
        let _changing = self.changing.lock().await;
        let mut info = self.find(ctx, name_or_id, Access::Write)?;
        mode.clone_into(&mut info.read_replication);
        let sql = "UPDATE databases SET read_replication = ?1 WHERE id = ?2";
        catalogue::run(&self.system, vec![statement(sql, vec![text(mode), text(info.id.to_string())])]).await?;
        self.catalogue.write().expect("no thread panics while it holds the catalogue").insert(info.clone());
        Ok(info)
    }

    /// Deletes a database and its file. There is no way back but an export made before.
    ///
    /// # Errors
    /// [`Code::DatabaseNotFound`], [`Code::ScopeMissing`].
    pub async fn delete(&self, ctx: &Ctx, name_or_id: &str) -> Result<DatabaseInfo> {
        let _changing = self.changing.lock().await;
        let info = self.find(ctx, name_or_id, Access::Write)?;
        let id = text(info.id.to_string());
        let statements = vec![
            statement("DELETE FROM databases WHERE id = ?1", vec![id.clone()]),
            statement("DELETE FROM usage WHERE database = ?1", vec![id.clone()]),
            statement("INSERT INTO removed(id) VALUES(?1)", vec![id]),
        ];
        catalogue::run(&self.system, statements).await?;
        self.catalogue.write().expect("no thread panics while it holds the catalogue").remove(info.id);
        self.lock_usage().remove(info.id);
        self.lock_sizes().set(info.id, 0);
        let gone = not_found(&info.id.to_string());
        if let Err(error) = self.log.remove_database(info.id, &gone).await {
            tracing::warn!(database = %info.id, ?error, "a deleted database's file is left; the next start sweeps it");
        }
        Ok(info)
    }

    /// Runs a batch as one transaction and answers when what it saw and wrote is durable: with the
    /// results and the bookmark of the state that they belong to.
    ///
    /// A grant that may only read gets a refusal for statements that write.
    ///
    /// # Errors
    /// SQLite's in production's words ([`Code::Sql`]), and those of the queue, the profile and the grant.
    pub async fn query(&self, ctx: &Ctx, name_or_id: &str, batch: Batch) -> Result<(Vec<ItemResults>, Bookmark)> {
        let info = self.find(ctx, name_or_id, Access::Read)?;
        let may_write = ctx.grant.allows(Service::D1, &[&info.name, &info.id.to_string()], Access::Write);
        let refuse_writes: Option<fn() -> Error> = if !may_write {
            Some(|| Error::new(Code::ScopeMissing, "the token may only read this database (got a statement that writes)"))
        } else if self.is_account_full() {
            Some(|| Error::new(Code::Sql, ACCOUNT_FULL))
        } else {
            None
        };
        let options = execute::Options { refuse_writes, unmetered: false };
        let database = self.database(info.id);
        let ran = database.run_at(move |conn, reserve| execute::batch_reserving(conn, &batch, &options, reserve)).await;
        let (results, ticket) = match ran {
            Ok(answer) => answer,
            Err(error) => return Err(self.unless_deleted(info.id, error).await),
        };
        self.account(info.id, results.iter().flatten());
        Ok((results, Bookmark::new(info.id, ticket)))
    }

    /// An error of a database that was deleted under its request says so.
    async fn unless_deleted(&self, id: DatabaseId, error: Error) -> Error {
        if self.read_catalogue().by_id(id).is_some() {
            return error;
        }
        let gone = not_found(&id.to_string());
        // The request may have made a handle anew after the deletion had taken the last one.
        let _ = self.log.remove_database(id, &gone).await;
        gone
    }

    fn is_account_full(&self) -> bool {
        self.lock_sizes().total > self.limits.account_bytes_max
    }

    /// # Errors
    /// [`Code::Sql`] in production's words, while the account holds more than its profile allows.
    pub(crate) fn check_account(&self) -> Result<()> {
        if self.is_account_full() { Err(Error::new(Code::Sql, ACCOUNT_FULL)) } else { Ok(()) }
    }

    /// Books what statements cost and how large they left the database.
    pub(crate) fn account<'a>(&self, id: DatabaseId, results: impl Iterator<Item = &'a sqlite::StatementResult> + Clone) {
        if let Some(last) = results.clone().last() {
            self.lock_sizes().set(id, last.meta.size_after);
        }
        self.lock_usage().add(id, self.config.clock.now(), results);
    }

    fn lock_usage(&self) -> std::sync::MutexGuard<'_, Usage> {
        self.usage.lock().expect("no thread panics while it holds the usage figures")
    }

    fn lock_sizes(&self) -> std::sync::MutexGuard<'_, Sizes> {
        self.sizes.lock().expect("no thread panics while it holds the sizes")
    }

    /// Use by hour over the last 24 hours, oldest first; hours without use are left out.
    ///
    /// # Errors
    /// [`Code::DatabaseNotFound`], [`Code::ScopeMissing`].
    #[expect(clippy::unused_async, reason = "the service's calls are all asynchronous")]
    pub async fn hour_use(&self, ctx: &Ctx, id: DatabaseId) -> Result<Vec<HourUse>> {
        self.find(ctx, &id.to_string(), Access::Read)?;
        let now: Timestamp = self.config.clock.now();
        Ok(self.lock_usage().last_day(id, now))
    }

    async fn flush_usage(&self) -> Result<()> {
        let changes = self.lock_usage().take_changes(self.config.clock.now());
        if changes.is_empty() {
            return Ok(());
        }
        catalogue::run(&self.system, changes).await.map(drop)
    }

    /// The commit log's figures.
    pub fn log_stats(&self) -> log::Stats {
        self.log.stats()
    }

    /// Refuses new work, ends what waits with `D1 DB reset because its code was updated.`, lets what
    /// runs finish, checkpoints and closes. Afterwards every call fails.
    pub async fn shutdown(&self) {
        if let Err(error) = self.flush_usage().await {
            tracing::warn!(%error, "the last usage figures could not be stored");
        }
        // An import may run for long: it is given as long as a query, then undone.
        let patience = Duration::from_millis(self.limits.query_ms_max.min(SHUTDOWN_MS_MAX));
        if tokio::time::timeout(patience, self.log.shutdown()).await.is_err() {
            self.log.interrupt_all();
            self.log.shutdown().await;
        }
    }
}

fn not_found(name_or_id: &str) -> Error {
    let shown: String = name_or_id.chars().take(100).collect();
    Error::new(Code::DatabaseNotFound, format!("The database {shown} could not be found"))
}

/// Bytes of each database and of all.
#[derive(Default)]
struct Sizes {
    of: HashMap<DatabaseId, u64>,
    total: u64,
}

impl Sizes {
    fn set(&mut self, id: DatabaseId, bytes: u64) {
        let before = if bytes == 0 { self.of.remove(&id) } else { self.of.insert(id, bytes) };
        self.total = self.total - before.unwrap_or_default() + bytes;
    }
}

/// Every file below the folder of databases, by the id in its name.
fn database_files(config: &Config) -> Result<Vec<(DatabaseId, PathBuf)>> {
    let root = log::layout::databases_dir(&config.root);
    let mut files = Vec::new();
    for prefix in 0..=u8::MAX {
        let dir = root.join(format!("{prefix:02x}"));
        for path in config.disk.list(&dir).map_err(|error| Error::io("the databases' folder", error))? {
            let id = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.get(..36)).and_then(|id| id.parse().ok());
            files.extend(id.map(|id| (id, path)));
        }
    }
    Ok(files)
}

/// Without its catalogue a folder of databases looks like a folder of orphans.
fn refuse_lost_catalogue(config: &Config) -> Result<()> {
    let files = database_files(config)?.into_iter().filter(|(_, path)| path.extension().is_some_and(|extension| extension == "db"));
    match files.count() {
        0 => Ok(()),
        n => Err(Error::new(
            Code::Corrupt,
            format!(
                "the catalogue system/system.db is missing and {n} database files are there. Nothing was changed; put the folder `system` back from a backup, or move `databases` away to start anew"
            ),
        )),
    }
}

/// Clears away what a crash or a deletion left; returns the sizes of the databases.
///
/// A file that the catalogue does not know is removed only if it was to be: its database was deleted,
/// or never made whole and so is empty. Any other one is moved to the folder `lost`.
fn sweep(config: &Config, catalogue: &Catalogue) -> Result<Sizes> {
    let failed = |error: std::io::Error| Error::io("the databases' folder", error);
    let mut sizes = Sizes::default();
    for (id, path) in database_files(config)? {
        let is_database = path.extension().is_some_and(|extension| extension == "db");
        let bytes = config.disk.open(&path, false).and_then(|file| file.len()).map_err(failed)?;
        if catalogue.by_id(id).is_some() {
            if is_database {
                sizes.set(id, bytes);
            }
        } else if catalogue.removed.contains(&id) || !is_database || bytes <= sqlite::PAGE_BYTES as u64 {
            tracing::info!(database = %id, "removed a file of a database that was deleted or never made whole");
            config.disk.remove(&path).map_err(failed)?;
        } else {
            let lost = config.root.join("lost");
            config.disk.create_dir(&lost).map_err(failed)?;
            config.disk.rename(&path, &lost.join(format!("{id}.db"))).map_err(failed)?;
            tracing::warn!(database = %id, "a database file that the catalogue does not know was moved to the folder `lost`");
        }
    }
    Ok(sizes)
}

fn check_new(new: &NewDatabase) -> Result<()> {
    let name_ok = (1..=NAME_BYTES_MAX).contains(&new.name.len())
        && !new.name.starts_with('-')
        && new.name.parse::<DatabaseId>().is_err()
        && new.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if !name_ok {
        let shown: String = new.name.chars().take(80).collect();
        return Err(Error::new(
            Code::BadRequest,
            format!("not a database name (got `{shown}`, expected 1 to {NAME_BYTES_MAX} letters, digits, `-` and `_`, the first not `-`)"),
        ));
    }
    if let Some(hint) = &new.location_hint
        && !LOCATIONS.contains(&hint.as_str())
    {
        return Err(Error::new(Code::BadRequest, format!("not a location hint (got `{hint}`, expected one of {})", LOCATIONS.join(", "))));
    }
    if let Some(jurisdiction) = &new.jurisdiction
        && !JURISDICTIONS.contains(&jurisdiction.as_str())
    {
        let text = format!("not a jurisdiction (got `{jurisdiction}`, expected one of {})", JURISDICTIONS.join(", "));
        return Err(Error::new(Code::BadRequest, text));
    }
    new.read_replication.as_deref().map_or(Ok(()), check_mode)
}

fn check_mode(mode: &str) -> Result<()> {
    if matches!(mode, "auto" | "disabled") {
        return Ok(());
    }
    Err(Error::new(Code::BadRequest, format!("not a mode of read replication (got `{mode}`, expected `auto` or `disabled`)")))
}
