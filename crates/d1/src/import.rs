//! Import: init, a signed upload, ingest in the background, polls. The whole file is one transaction.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufReader, Read, Write},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use base::{Access, Code, Ctx, DatabaseId, Error, Result, Timestamp};
use md5::{Digest, Md5};
use sqlite::script;
use tokio::sync::{Notify, Semaphore};

use crate::{
    Bookmark, Config, D1, ImportInit, ImportResult, ImportState, TransferStatus,
    link::{self, LINK_MS, TRANSFERS_MAX},
};

/// How long a poll waits for news, so that clients that poll without a pause do not spin.
pub(crate) const POLL: Duration = Duration::from_secs(1);
/// Bytes that an upload collects before they go to the disk.
const CHUNK_BYTES: usize = 1 << 20;
/// Statements between two lines of progress.
const PROGRESS_STATEMENTS: u64 = 50_000;
/// Page cache of an import. With SQLite's own 2 MB a gigabyte with a table that was indexed first took
/// three times as long. A `CREATE INDEX` sorts in as much again.
const CACHE_BYTES: u64 = 40_000_000;
/// Page cache of imports that run while another one has the large one, so that their number does not
/// multiply it.
const CACHE_BYTES_BESIDE: u64 = 4_000_000;

/// Uploads and imports that are known.
pub(crate) struct Imports {
    /// Where uploads wait.
    pub(crate) dir: PathBuf,
    uploads: Mutex<HashMap<String, Pending>>,
    jobs: Mutex<HashMap<String, Arc<Job>>>,
    /// The right to [`CACHE_BYTES`]; there is one.
    large_cache: Arc<Semaphore>,
}

/// A file that is to come or has come.
#[derive(Clone)]
struct Pending {
    database: DatabaseId,
    filename: String,
    etag: String,
    path: PathBuf,
    made_at: Timestamp,
    state: PendingState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PendingState {
    Expected,
    Arriving,
    Here,
}

/// An import that runs or has ended.
struct Job {
    database: DatabaseId,
    made_at: Timestamp,
    progress: Mutex<Progress>,
    news: Notify,
}

#[derive(Default)]
struct Progress {
    messages: Vec<String>,
    outcome: Option<Result<ImportResult, String>>,
}

impl Imports {
    /// Uploads of an earlier run are removed: their links have gone with it.
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let dir = config.root.join("transfers");
        let failed = |error: std::io::Error| Error::io("the folder of transfers", error);
        // Transfers are not kept over a crash, so they stand beside the port for durable files.
        if dir.exists() {
            std::fs::remove_dir_all(&dir).map_err(failed)?;
        }
        Ok(Self { dir, uploads: Mutex::default(), jobs: Mutex::default(), large_cache: Arc::new(Semaphore::new(1)) })
    }

    fn lock_uploads(&self) -> MutexGuard<'_, HashMap<String, Pending>> {
        self.uploads.lock().expect("no thread panics while it holds the uploads")
    }

    fn lock_jobs(&self) -> MutexGuard<'_, HashMap<String, Arc<Job>>> {
        self.jobs.lock().expect("no thread panics while it holds the imports")
    }

    pub(crate) fn sweep(&self, now: Timestamp) {
        let old = |made_at: Timestamp| now.0 - made_at.0 > LINK_MS;
        self.lock_uploads().retain(|_, pending| {
            let keep = !old(pending.made_at);
            if !keep {
                let _ = std::fs::remove_file(&pending.path);
            }
            keep
        });
        self.lock_jobs().retain(|_, job| !old(job.made_at) || job.progress.lock().is_ok_and(|p| p.outcome.is_none()));
    }
}

impl D1 {
    /// Import, step 1. `etag` is the lower-case hex MD5 of the file.
    ///
    /// A file with this digest that was uploaded for this database and not yet imported starts at once.
    ///
    /// # Errors
    /// [`Code::BadRequest`] if `etag` is no MD5, [`Code::Overloaded`] while too many transfers are open,
    /// and those of the look-up.
    pub async fn import_init(self: &Arc<Self>, ctx: &Ctx, name_or_id: &str, etag: &str) -> Result<ImportInit> {
        let info = self.find(ctx, name_or_id, Access::Write)?;
        if etag.len() != 32 || !etag.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            let text =
                format!("not an etag (got {} characters, expected the file's MD5 as 32 lower-case hex digits)", etag.chars().count());
            return Err(Error::new(Code::BadRequest, text));
        }
        let here = {
            let uploads = self.imports.lock_uploads();
            let found = uploads.values().find(|p| p.database == info.id && p.etag == etag && p.state == PendingState::Here);
            found.map(|pending| pending.filename.clone())
        };
        if let Some(filename) = here {
            return Ok(ImportInit::Known(self.import_ingest(ctx, name_or_id, &filename, etag).await?));
        }
        let mut uploads = self.imports.lock_uploads();
        if uploads.len() >= TRANSFERS_MAX {
            return Err(Error::new(Code::Overloaded, format!("there are {TRANSFERS_MAX} open uploads; try again later")));
        }
        let secret = link::secret(ctx.rng.as_ref());
        let filename = format!("{}.{}.sql", info.id, &link::secret(ctx.rng.as_ref())[..16]);
        let pending = Pending {
            database: info.id,
            path: self.imports.dir.join(&filename),
            filename: filename.clone(),
            etag: etag.to_owned(),
            made_at: ctx.clock.now(),
            state: PendingState::Expected,
        };
        uploads.insert(secret.clone(), pending);
        Ok(ImportInit::Upload { link: secret, filename })
    }

    /// Opens an upload by its link's secret. The link is used up by a finished upload.
    ///
    /// # Errors
    /// [`Code::LinkUnknown`]; [`Code::Io`] and [`Code::DiskFull`] from the disk.
    #[expect(clippy::unused_async, reason = "the service's calls are all asynchronous")]
    pub async fn upload_open(self: &Arc<Self>, ctx: &Ctx, link: &str) -> Result<Upload> {
        let mut uploads = self.imports.lock_uploads();
        let pending =
            uploads.get_mut(link).filter(|p| p.state == PendingState::Expected && ctx.clock.now().0 - p.made_at.0 <= LINK_MS).ok_or_else(
                || Error::new(Code::LinkUnknown, "the upload link is unknown, used or older than an hour; start the import again"),
            )?;
        let failed = |error: std::io::Error| Error::io("an upload", error);
        std::fs::create_dir_all(&self.imports.dir).map_err(failed)?;
        let file = File::create(&pending.path).map_err(failed)?;
        pending.state = PendingState::Arriving;
        Ok(Upload {
            d1: Arc::clone(self),
            link: link.to_owned(),
            sink: Some(Sink { file, md5: Md5::new() }),
            buffer: Vec::with_capacity(CHUNK_BYTES),
            bytes: 0,
            finished: false,
        })
    }

    /// Import, step 3: starts in the background and waits up to a second for its end.
    ///
    /// # Errors
    /// [`Code::Transfer`] if no such file was uploaded for this database.
    pub async fn import_ingest(self: &Arc<Self>, ctx: &Ctx, name_or_id: &str, filename: &str, etag: &str) -> Result<ImportState> {
        let info = self.find(ctx, name_or_id, Access::Write)?;
        let pending = {
            let mut uploads = self.imports.lock_uploads();
            let found =
                uploads.iter().find(|(_, p)| p.database == info.id && p.filename == filename).map(|(link, p)| (link.clone(), p.clone()));
            let Some((link, pending)) = found else {
                return Err(Error::new(Code::Transfer, "no file of this name was uploaded for this database; start the import again"));
            };
            if pending.state != PendingState::Here || pending.etag != etag {
                let got = if pending.state == PendingState::Here { "another etag" } else { "no whole file" };
                return Err(Error::new(
                    Code::Transfer,
                    format!("the upload does not match (got {got}, expected the file that init announced)"),
                ));
            }
            uploads.remove(&link);
            pending
        };
        if self.imports.lock_jobs().len() >= TRANSFERS_MAX {
            return Err(Error::new(Code::Overloaded, format!("there were {TRANSFERS_MAX} imports within the hour; try again later")));
        }
        let bookmark = link::transfer_bookmark(ctx.clock.now(), ctx.rng.as_ref());
        let job = Arc::new(Job { database: info.id, made_at: ctx.clock.now(), progress: Mutex::default(), news: Notify::new() });
        self.imports.lock_jobs().insert(bookmark.clone(), Arc::clone(&job));
        let d1 = Arc::clone(self);
        let running = Arc::clone(&job);
        tokio::spawn(async move {
            let outcome = d1.import_file(&running, pending.path.clone()).await;
            let _ = std::fs::remove_file(&pending.path);
            let mut progress = running.progress.lock().expect("no thread panics while it holds the progress");
            if let Err(error) = &outcome {
                tracing::info!(database = %running.database, code = ?error.code, internal = ?error.internal, "an import failed and was undone");
            }
            progress.outcome = Some(outcome.map_err(|error| error.message));
            drop(progress);
            running.news.notify_waiters();
        });
        Ok(job.wait(bookmark).await)
    }

    async fn import_file(&self, job: &Arc<Job>, path: PathBuf) -> Result<ImportResult> {
        let database = self.database(job.database);
        let watched = Arc::clone(job);
        self.check_account()?;
        let large_cache = Arc::clone(&self.imports.large_cache).try_acquire_owned().ok();
        let (totals, ticket) = database
            .run_at(move |conn, reserve| {
                let file = File::open(&path).map_err(|error| Error::io("an upload", error))?;
                let mut reader = BufReader::with_capacity(1 << 16, file);
                let cache_bytes = if large_cache.is_some() { CACHE_BYTES } else { CACHE_BYTES_BESIDE };
                conn.with_page_cache(cache_bytes, |conn| {
                    conn.transaction(reserve, |conn| run_script(conn, &mut reader, &watched).map_err(|failure| failure.error))
                })?
            })
            .await?;
        job.say(format!("Processed {} queries.", totals.statements));
        let summary = sqlite::StatementResult { meta: totals.meta, ..Default::default() };
        self.account(job.database, std::iter::once(&summary));
        let final_bookmark = Bookmark::new(job.database, ticket).to_string();
        Ok(ImportResult { final_bookmark, num_queries: totals.statements, meta: totals.meta })
    }

    /// Import, step 4: waits up to a second for news.
    ///
    /// # Errors
    /// [`Code::Transfer`] if no such import is known.
    pub async fn import_poll(&self, ctx: &Ctx, name_or_id: &str, bookmark: &str) -> Result<ImportState> {
        let info = self.find(ctx, name_or_id, Access::Write)?;
        let job = self.imports.lock_jobs().get(bookmark).filter(|job| job.database == info.id).cloned();
        let job = job.ok_or_else(|| Error::new(Code::Transfer, "Not currently importing anything."))?;
        Ok(job.wait(bookmark.to_owned()).await)
    }

    pub(crate) fn sweep_transfers(&self) {
        let now = self.config.clock.now();
        self.imports.sweep(now);
        self.exports.sweep(now);
    }
}

/// Runs the script of `reader` and tells `job` how far it is.
fn run_script(conn: &mut sqlite::Conn, reader: &mut dyn Read, job: &Job) -> Result<script::Totals, Box<script::Failure>> {
    let mut reported = 0;
    let outcome = script::run(conn, reader, &mut |totals| {
        if totals.statements >= reported + PROGRESS_STATEMENTS {
            reported = totals.statements;
            job.say(format!("Processed {} queries.", totals.statements));
        }
    });
    outcome.inspect_err(|failure| {
        let (done, at) = (failure.totals.statements, failure.totals.bytes);
        job.say(format!("Statement {} failed, at byte {at} of the file.", done + 1));
    })
}

impl Job {
    fn say(&self, line: String) {
        self.progress.lock().expect("no thread panics while it holds the progress").messages.push(line);
    }

    /// The state now if it has ended, or after the next news or a second.
    async fn wait(&self, at_bookmark: String) -> ImportState {
        let news = self.news.notified();
        let ended = self.progress.lock().expect("no thread panics while it holds the progress").outcome.is_some();
        if !ended {
            let _ = tokio::time::timeout(POLL, news).await;
        }
        let mut progress = self.progress.lock().expect("no thread panics while it holds the progress");
        let messages = std::mem::take(&mut progress.messages);
        let (status, error, result) = match &progress.outcome {
            None => (TransferStatus::Active, None, None),
            Some(Ok(result)) => (TransferStatus::Complete, None, Some(result.clone())),
            Some(Err(error)) => (TransferStatus::Error, Some(error.clone()), None),
        };
        ImportState { at_bookmark, status, messages, error, result }
    }
}

/// An upload in progress; dropping it discards what came and makes the link good again.
pub struct Upload {
    d1: Arc<D1>,
    link: String,
    sink: Option<Sink>,
    buffer: Vec<u8>,
    bytes: u64,
    finished: bool,
}

struct Sink {
    file: File,
    md5: Md5,
}

impl Upload {
    /// Appends bytes. Memory: at most 1 MiB waits for the disk.
    ///
    /// # Errors
    /// [`Code::BodyTooLarge`] past the profile's import limit; [`Code::DiskFull`], [`Code::Io`].
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        let max = self.d1.config.limits.import_bytes_max;
        if self.bytes > max {
            return Err(Error::new(Code::BodyTooLarge, format!("the import file is too large (expected at most {max} bytes); split it")));
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        let mut sink = self.sink.take().ok_or_else(|| Error::new(Code::Io, "the upload has failed already"))?;
        let chunk = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES));
        let written = tokio::task::spawn_blocking(move || {
            sink.md5.update(&chunk);
            sink.file.write_all(&chunk).map(|()| sink)
        });
        let written = written.await.map_err(|_| Error::internal("an upload's write ended early"))?;
        self.sink = Some(written.map_err(|error| Error::io("an upload", error))?);
        Ok(())
    }

    /// Ends the upload; returns the lower-case hex MD5 of what came, which the answer carries as
    /// `etag`. If it is not the announced one, the file is dropped and the link stays good.
    ///
    /// # Errors
    /// [`Code::DiskFull`], [`Code::Io`].
    pub async fn finish(mut self) -> Result<String> {
        self.flush().await?;
        let sink = self.sink.take().ok_or_else(|| Error::new(Code::Io, "the upload has failed already"))?;
        let digest = link::hex(&sink.md5.finalize());
        let mut uploads = self.d1.imports.lock_uploads();
        if let Some(pending) = uploads.get_mut(&self.link)
            && pending.etag == digest
        {
            pending.state = PendingState::Here;
            self.finished = true;
        }
        drop(uploads);
        Ok(digest)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Some(pending) = self.d1.imports.lock_uploads().get_mut(&self.link) {
            pending.state = PendingState::Expected;
            let _ = std::fs::remove_file(&pending.path);
        }
    }
}
