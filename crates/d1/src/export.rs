//! Export: a dump in the background, polls, and a link to the file.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufWriter, Write},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use base::{Access, Code, Ctx, DatabaseId, Error, Result, Timestamp};
use sqlite::dump;
use tokio::sync::Notify;

use crate::{
    Config, D1, ExportOptions, ExportState, TransferStatus,
    import::POLL,
    link::{self, LINK_MS, TRANSFERS_MAX},
};

/// Files of one database that are kept for download; a further export takes the place of the oldest.
const EXPORTS_PER_DATABASE_MAX: usize = 3;
/// Rows between two lines of progress.
const PROGRESS_ROWS: u64 = 100_000;

/// Exports that are known.
pub(crate) struct Exports {
    dir: PathBuf,
    jobs: Mutex<HashMap<String, Arc<Job>>>,
}

struct Job {
    database: DatabaseId,
    made_at: Timestamp,
    path: PathBuf,
    filename: String,
    /// The secret of the download link.
    secret: String,
    progress: Mutex<Progress>,
    news: Notify,
}

#[derive(Default)]
struct Progress {
    messages: Vec<String>,
    outcome: Option<Result<(), String>>,
}

impl Exports {
    pub(crate) fn new(config: &Config) -> Self {
        Self { dir: config.root.join("transfers"), jobs: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Job>>> {
        self.jobs.lock().expect("no thread panics while it holds the exports")
    }

    pub(crate) fn sweep(&self, now: Timestamp) {
        self.lock().retain(|_, job| {
            let keep = now.0 - job.made_at.0 <= LINK_MS || job.progress.lock().is_ok_and(|progress| progress.outcome.is_none());
            if !keep {
                let _ = std::fs::remove_file(&job.path);
            }
            keep
        });
    }
}

impl D1 {
    /// Starts an export (`bookmark` is `None`) or asks how far it is; waits up to a second for news.
    ///
    /// The dump is taken between two requests to the database, which wait for it, as on Cloudflare.
    ///
    /// # Errors
    /// [`Code::Transfer`] if no such export is known, [`Code::Overloaded`] while too many are.
    pub async fn export_poll(
        self: &Arc<Self>,
        ctx: &Ctx,
        name_or_id: &str,
        options: ExportOptions,
        bookmark: Option<&str>,
    ) -> Result<ExportState> {
        let info = self.find(ctx, name_or_id, Access::Read)?;
        if let Some(bookmark) = bookmark {
            let job = self.exports.lock().get(bookmark).filter(|job| job.database == info.id).cloned();
            let job = job.ok_or_else(|| Error::new(Code::Transfer, "Not currently exporting anything."))?;
            return Ok(job.wait(bookmark.to_owned()).await);
        }
        let bookmark = link::transfer_bookmark(ctx.clock.now(), ctx.rng.as_ref());
        let secret = link::secret(ctx.rng.as_ref());
        let filename = format!("{}-{}.sql", info.name, &bookmark[9..26]);
        let job = Arc::new(Job {
            database: info.id,
            made_at: ctx.clock.now(),
            path: self.exports.dir.join(format!("export-{}.sql", link::secret(ctx.rng.as_ref()))),
            filename,
            secret,
            progress: Mutex::default(),
            news: Notify::new(),
        });
        {
            let mut jobs = self.exports.lock();
            make_room(&mut jobs, info.id);
            if jobs.len() >= TRANSFERS_MAX {
                return Err(Error::new(Code::Overloaded, format!("there are {TRANSFERS_MAX} exports already; try again later")));
            }
            jobs.insert(bookmark.clone(), Arc::clone(&job));
        }
        let d1 = Arc::clone(self);
        let running = Arc::clone(&job);
        tokio::spawn(async move {
            let outcome = d1.export_file(&running, options).await;
            if let Err(error) = &outcome {
                let _ = std::fs::remove_file(&running.path);
                tracing::info!(database = %running.database, code = ?error.code, internal = ?error.internal, "an export failed");
            }
            let mut progress = running.progress.lock().expect("no thread panics while it holds the progress");
            progress.outcome = Some(outcome.map_err(|error| error.message));
            drop(progress);
            running.news.notify_waiters();
        });
        Ok(job.wait(bookmark).await)
    }

    async fn export_file(&self, job: &Arc<Job>, options: ExportOptions) -> Result<()> {
        let watched = Arc::clone(job);
        let options = dump::Options { no_schema: options.no_schema, no_data: options.no_data, tables: options.tables };
        let dump = move |conn: &mut sqlite::Conn| {
            let failed = |error: std::io::Error| Error::io("an export", error);
            let dir = watched.path.parent().expect("an export stands in a folder");
            std::fs::create_dir_all(dir).map_err(failed)?;
            let mut out = BufWriter::with_capacity(1 << 20, File::create(&watched.path).map_err(failed)?);
            let mut reported = 0;
            let totals = conn.transaction(&mut |_| Ok(()), |conn| {
                dump::write(conn, &options, &mut out, &mut |totals| {
                    if totals.rows >= reported + PROGRESS_ROWS {
                        reported = totals.rows;
                        watched.say(format!("Exported {} rows.", totals.rows));
                    }
                })
            })?;
            out.flush().map_err(failed)?;
            watched.say(format!("Exported {} rows of {} tables.", totals.rows, totals.tables));
            Ok(())
        };
        self.database(job.database).run(move |conn, _| dump(conn)).await
    }

    /// The file behind an export's link: open, with its length in bytes and its name.
    ///
    /// # Errors
    /// [`Code::LinkUnknown`].
    #[expect(clippy::unused_async, reason = "the service's calls are all asynchronous")]
    pub async fn export_open(&self, ctx: &Ctx, link: &str) -> Result<(File, u64, String)> {
        let unknown = || Error::new(Code::LinkUnknown, "the download link is unknown or older than an hour; export again");
        let now = ctx.clock.now();
        let found = self.exports.lock().values().find(|job| job.secret == link && now.0 - job.made_at.0 <= LINK_MS).cloned();
        let job = found.ok_or_else(unknown)?;
        let done = matches!(job.progress.lock().expect("no thread panics while it holds the progress").outcome, Some(Ok(())));
        if !done {
            return Err(unknown());
        }
        let file = File::open(&job.path).map_err(|_| unknown())?;
        let bytes = file.metadata().map_err(|error| Error::io("an export", error))?.len();
        Ok((file, bytes, job.filename.clone()))
    }
}

/// Takes the oldest export of a database away that has ended, if it has as many as it may have.
fn make_room(jobs: &mut HashMap<String, Arc<Job>>, database: DatabaseId) {
    let ended = |job: &Job| job.progress.lock().is_ok_and(|progress| progress.outcome.is_some());
    let mine: Vec<_> = jobs.iter().filter(|(_, job)| job.database == database).collect();
    if mine.len() < EXPORTS_PER_DATABASE_MAX {
        return;
    }
    let oldest = mine.into_iter().filter(|(_, job)| ended(job)).min_by_key(|(_, job)| job.made_at).map(|(bookmark, _)| bookmark.clone());
    if let Some(job) = oldest.and_then(|bookmark| jobs.remove(&bookmark)) {
        let _ = std::fs::remove_file(&job.path);
    }
}

impl Job {
    fn say(&self, line: String) {
        self.progress.lock().expect("no thread panics while it holds the progress").messages.push(line);
    }

    async fn wait(&self, at_bookmark: String) -> ExportState {
        let news = self.news.notified();
        let ended = self.progress.lock().expect("no thread panics while it holds the progress").outcome.is_some();
        if !ended {
            let _ = tokio::time::timeout(POLL, news).await;
        }
        let mut progress = self.progress.lock().expect("no thread panics while it holds the progress");
        let messages = std::mem::take(&mut progress.messages);
        let (status, error, result) = match &progress.outcome {
            None => (TransferStatus::Active, None, None),
            Some(Ok(())) => (TransferStatus::Complete, None, Some((self.filename.clone(), self.secret.clone()))),
            Some(Err(error)) => (TransferStatus::Error, Some(format!("D1 Export error: {error}")), None),
        };
        ExportState { at_bookmark, status, messages, error, result }
    }
}
