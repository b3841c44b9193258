//! `hearth demo`: a server with a small database, one metered query, and what to do next.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use base::{Rng, SystemRng};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task};

use crate::{
    client::Client,
    commands::d1,
    config::{Flags, Settings},
    failure::Failure,
    node::{self, IfTaken, Node},
    owner_key::KEY_FILE,
    printer::Printer,
    shell::Shell,
    signals,
    table::Table,
    target::Target,
    variables,
};

/// The sample database.
const DATABASE: &str = "demo";
/// Its rows: as many articles as the database had whose measurements D1's documentation is checked against.
const ROWS: u64 = 2_186;
/// Makes the table; harmless if it is there.
const CREATE: &str = "CREATE TABLE IF NOT EXISTS articles (slug TEXT PRIMARY KEY, title TEXT NOT NULL)";
/// Fills it; harmless if the rows are there.
const FILL: &str = "INSERT OR IGNORE INTO articles (slug, title) \
    WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2186) \
    SELECT 'article-' || x, 'Notes on ' || CASE x % 4 WHEN 0 THEN 'queues' WHEN 1 THEN 'indexes' WHEN 2 THEN 'backups' ELSE 'limits' END || ' ' || (x / 4) FROM n";
/// So that a second run over the same folder starts without the index too.
const UNINDEX: &str = "DROP INDEX IF EXISTS articles_title";
/// The query that is metered.
const LOOKUP: &str = "SELECT COUNT(*) AS n FROM articles WHERE title = 'Notes on indexes 42'";
/// What makes it cheap.
const INDEX: &str = "CREATE INDEX articles_title ON articles (title)";

/// Start a server with a sample database, show a metered query, and keep serving
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Data folder; without it a temporary one, which is removed at the end
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// Address to listen on; without it 127.0.0.1:8787, or a free port if that is taken
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// End after the output
    #[arg(long)]
    once: bool,
}

/// Runs the command.
///
/// # Errors
/// If the server cannot start or a step of the demo fails.
pub(crate) fn run(args: &Args, printer: &Printer) -> Result<ExitCode, Failure> {
    let temporary = if args.data.is_none() { Some(TemporaryFolder::make()?) } else { None };
    let data = args.data.clone().or_else(|| temporary.as_ref().map(|folder| folder.0.to_string_lossy().into_owned()));
    let flags = Flags { data, listen: args.listen.clone(), log_level: Some("warn".to_owned()), ..Flags::default() };
    // The demo is the same everywhere: only its own flags count, and HEARTH_KEY as in `serve`.
    let settings = Settings::load(&flags, &|_| None)?;
    node::start_log(&settings);
    let if_taken = if args.listen.is_some() { IfTaken::Fail } else { IfTaken::TakeFreePort };
    node::runtime()?.block_on(serve_and_tell(&settings, if_taken, args.once, *printer))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve_and_tell(settings: &Settings, if_taken: IfTaken, once: bool, printer: Printer) -> Result<(), Failure> {
    let signal = signals::stop()?;
    let node = Node::open(settings, if_taken).await?;
    printer.note(&format!("listening on {}", node.url));
    let data = settings.data.value.clone();
    let target = Target { url: node.url.clone(), key: node.key.clone(), account: settings.account_id.value.clone() };
    let (end, ended) = oneshot::channel();
    let server = tokio::spawn(node.run(async {
        tokio::select! {
            () = signal => {}
            // An error means that `end` was dropped, which happens only after the server has ended.
            Ok(()) = ended => {}
        }
    }));
    let told = task::spawn_blocking(move || tell(&data, target, &printer)).await;
    let told = told.unwrap_or_else(|error| Err(Failure::new(format!("the demo was cut short: {error}"))));
    if once || told.is_err() {
        // Nobody listens if a signal has ended the server already.
        let _ = end.send(());
    } else {
        printer.note("serving until ctrl-c");
    }
    let served = server.await.unwrap_or_else(|error| Err(Failure::new(format!("the server was cut short: {error}"))));
    told.and(served)
}

/// The demo itself, over HTTP as any client would do it. Blocks.
fn tell(data: &Path, target: Target, printer: &Printer) -> Result<(), Failure> {
    let url = target.url.clone();
    let client = Client::new(target);
    let path = prepare(&client)?;
    let mut steps = Vec::new();
    for sql in [LOOKUP, INDEX, LOOKUP] {
        steps.push(Step::run(&client, &path, sql)?);
    }
    let next = next_commands(data, &url);
    if printer.is_json() {
        let steps: Vec<_> = steps.iter().map(Step::json).collect();
        return printer.json_value(&json!({ "url": url, "data": data, "database": DATABASE, "rows": ROWS, "steps": steps, "next": next }));
    }
    printer.line(&format!("The database `{DATABASE}` holds {ROWS} articles. A look-up by title, before and after an index:\n"))?;
    let mut table = Table::new(["statement", "rows_read", "rows_written", "ms"]);
    for step in &steps {
        table.push([step.sql.to_owned(), step.rows_read.to_string(), step.rows_written.to_string(), format!("{:.2}", step.duration_ms)]);
    }
    printer.table(&table)?;
    let (before, index, after) = (&steps[0], &steps[1], &steps[2]);
    printer.line(&format!(
        "\nrows_read is what production bills: rows scanned, not rows returned. The look-up scanned {} rows to find {};\n\
         the index cost {} written rows once, and now the look-up reads {}.\n",
        before.rows_read, before.n, index.rows_written, after.rows_read
    ))?;
    printer.line("Next, in another terminal:\n")?;
    for line in next {
        printer.line(&if line.is_empty() { line } else { format!("  {line}") })?;
    }
    Ok(())
}

/// Makes the sample database, or completes one that an earlier run made; returns its path.
fn prepare(client: &Client) -> Result<String, Failure> {
    let databases = client.list(d1::DATABASES)?;
    if !databases.iter().any(|database| database["name"] == DATABASE) {
        client.post(d1::DATABASES, &json!({ "name": DATABASE }))?;
    }
    let path = d1::database_path(DATABASE);
    for sql in [CREATE, FILL, UNINDEX] {
        client.post(&format!("{path}/query"), &json!({ "sql": sql }))?;
    }
    Ok(path)
}

/// A statement and what the server said it cost.
struct Step {
    sql: &'static str,
    /// Articles found; 0 for a statement that finds none.
    n: u64,
    rows_read: u64,
    rows_written: u64,
    duration_ms: f64,
}

impl Step {
    fn run(client: &Client, path: &str, sql: &'static str) -> Result<Self, Failure> {
        let results = client.post(&format!("{path}/query"), &json!({ "sql": sql }))?;
        let result = &results[0];
        let figure = |name: &str| {
            let value = result["meta"][name].as_u64();
            value.ok_or_else(|| Failure::new(format!("the server's answer to `{sql}` has no `{name}` in its meta")))
        };
        Ok(Self {
            sql,
            n: result["results"][0]["n"].as_u64().unwrap_or_default(),
            rows_read: figure("rows_read")?,
            rows_written: figure("rows_written")?,
            duration_ms: result["meta"]["duration"].as_f64().unwrap_or_default(),
        })
    }

    fn json(&self) -> Value {
        let Self { sql, n, rows_read, rows_written, duration_ms } = self;
        json!({ "sql": sql, "n": n, "rows_read": rows_read, "rows_written": rows_written, "duration_ms": duration_ms })
    }
}

/// Commands that work as they stand when pasted into a POSIX shell. They read the key where it lies
/// and do not show it.
fn next_commands(data: &Path, url: &str) -> Vec<String> {
    let data = fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    let quote = |text: &str| Shell::Sh.quote(text);
    let token = match variables::read(variables::HEARTH_KEY) {
        Some(_) => format!("\"${}\"", variables::HEARTH_KEY),
        None => format!("\"$(cat {})\"", quote(&data.join(KEY_FILE).to_string_lossy())),
    };
    let program = std::env::current_exe().map_or_else(|_| "hearth".to_owned(), |path| quote(&path.to_string_lossy()));
    let data = quote(&data.to_string_lossy());
    vec![
        format!("export {}={url}/client/v4", variables::CLOUDFLARE_API_BASE_URL),
        format!("export {}={}", variables::CLOUDFLARE_ACCOUNT_ID, base::AccountId::DEFAULT),
        format!("export {}={token}", variables::CLOUDFLARE_API_TOKEN),
        format!("npx wrangler d1 execute {DATABASE} --remote --json --command \"{LOOKUP}\""),
        String::new(),
        format!("{program} d1 execute {DATABASE} --data {data} --command \"{LOOKUP}\""),
        format!("{program} d1 info {DATABASE} --data {data}"),
    ]
}

/// A folder of the owner's only; removed with all that is in it when dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn make() -> Result<Self, Failure> {
        let mut random = [0; 8];
        SystemRng.fill(&mut random);
        let path = std::env::temp_dir().join(format!("hearth-demo-{:016x}", u64::from_be_bytes(random)));
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| Failure::io(format!("the temporary folder {} could not be made", path.display()), &error))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // It lies in the system's own temporary folder, which is cleared in time if this fails.
        let _ = fs::remove_dir_all(&self.0);
    }
}
