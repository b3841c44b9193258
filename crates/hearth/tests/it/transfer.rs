//! Large imports and exports: in bounded memory, and all of a file or nothing of it.
//!
//! `HEARTH_SOAK_IMPORT_BYTES` says how large the largest one is.

mod script;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use base::{Clock, SystemClock};
use rustix::process::Signal;
use script::{Made, Script};
use serde_json::{Value, json};
use testkit::soak;

use crate::harness::{PATIENCE, Server, Site};

/// What the server may take, however large the file is.
const MEMORY_BYTES_MAX: u64 = 200_000_000;
const IMPORT_BYTES: u64 = 64 << 20;
/// Runs until the server ends it after 30 seconds, so that an import stands still in its middle.
const ENDLESS: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1000000000000) SELECT count(*) FROM c;\n";
/// Counts and sums in which every row of a `Script`, and the place of every row, has its part.
const SUMS: &str = "SELECT count(*), sum(id), sum(k), sum(length(t)), sum((id % 1000) * unicode(substr(t, 1 + id % length(t), 1))) FROM small; \
     SELECT count(*), sum(id), sum(length(body)), sum((id % 1000) * unicode(substr(body, 1 + id % length(body), 1))) FROM large; \
     SELECT n, chars FROM sums; SELECT count(*) FROM small INDEXED BY small_k WHERE k > 0; \
     SELECT type, name, sql FROM sqlite_schema ORDER BY name";

/// A server with a database `shop` that holds something.
fn shop() -> Site {
    let site = Site::start();
    site.run(&["d1", "create", "shop"]).ok();
    site.run(&["d1", "execute", "shop", "--command", "CREATE TABLE kept(a); INSERT INTO kept VALUES ('before'), (2)"]).ok();
    site
}

fn import(site: &Site, database: &str, file: &str) -> Value {
    site.run(&["d1", "import", database, file, "--json"]).json()
}

fn results(site: &Site, database: &str, sql: &str) -> Vec<Value> {
    let all = site.run(&["d1", "execute", database, "--json", "--command", sql]).json();
    all.as_array().unwrap().iter().map(|one| one["results"].clone()).collect()
}

/// All that an import may change.
fn state(site: &Site) -> (Vec<Value>, Value, Value) {
    let info = site.run(&["d1", "info", "shop", "--json"]).json();
    let rows = results(site, "shop", "SELECT * FROM kept; SELECT * FROM sqlite_schema; PRAGMA quick_check");
    (rows, info["num_tables"].clone(), info["file_size"].clone())
}

/// The database holds what the file says, by its own sums and by those that its trigger kept.
#[track_caller]
fn assert_holds(sums: &[Value], made: &Made) {
    assert_eq!(sums[0][0]["count(*)"], json!(made.small));
    assert_eq!(sums[0][0]["sum(length(t))"], json!(made.chars));
    assert_eq!(sums[1][0]["count(*)"], json!(made.large));
    assert_eq!(sums[2][0], json!({ "n": made.small, "chars": made.chars }));
    assert_eq!(sums[3][0]["count(*)"], json!(made.small));
}

/// Prints the most memory that the server ever had, and holds it against the limit.
#[track_caller]
fn check_memory(server: &Server, what: &str) {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    let bytes = kib * 1024;
    soak::print(format_args!("{what}: the server took {} MB of memory at most", bytes / 1_000_000));
    assert!(bytes < MEMORY_BYTES_MAX, "{what}: {line}");
}

/// Runs `work` and prints how long it took for `bytes` bytes.
fn timed<T>(what: &str, bytes: u64, work: impl FnOnce() -> T) -> T {
    let clock = SystemClock::default();
    let value = work();
    let seconds = clock.monotonic().as_secs_f64();
    soak::print(format_args!("{what}: {:.1} MB in {seconds:.1} s", bytes as f64 / 1e6));
    value
}

/// Bytes of the files in a folder and its folders.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // A file may go while it is looked at.
    entries.map(|entry| entry.metadata().map_or(0, |m| if m.is_dir() { bytes_in(&entry.path()) } else { m.len() })).sum()
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let clock = SystemClock::default();
    while !is_so() {
        assert!(clock.monotonic() < PATIENCE, "{what} was waited for in vain");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Reads a client's messages up to the one that begins so; the pipe must stay open while it runs.
fn read_until(client: &mut Child, wanted: &str) -> impl BufRead + use<> {
    let mut messages = BufReader::new(client.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with(wanted) {
        line.clear();
        assert_ne!(messages.read_line(&mut line).unwrap(), 0, "the client ended before it said `{wanted}`");
    }
    messages
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_hundred_thousand_rows_are_imported_in_bounded_memory() {
    let site = shop();
    let mut script = Script::create(&site.dir.path().join("rows.sql"));
    script.small_rows(100_000);
    let made = script.finish();
    let result = timed("import of 100,000 rows", made.bytes, || import(&site, "shop", "rows.sql"));
    assert_eq!(result["num_queries"], json!(made.statements));
    assert_holds(&results(&site, "shop", SUMS), &made);
    check_memory(&site.server, "import of 100,000 rows");
}

#[test]
fn a_large_import_and_its_export_take_bounded_memory_and_come_out_the_same() {
    let site = shop();
    let path = |name: &str| site.dir.path().join(name);
    let made = Script::create(&path("shop.sql")).fill(soak::import_bytes(IMPORT_BYTES)).finish();
    let result = timed("large import", made.bytes, || import(&site, "shop", "shop.sql"));
    assert_eq!(result["num_queries"], json!(made.statements));
    check_memory(&site.server, "large import");
    let sums = results(&site, "shop", SUMS);
    assert_holds(&sums, &made);
    fs::remove_file(path("shop.sql")).unwrap();

    let export = |database: &str, file: &str| site.run(&["d1", "export", database, "--output", file, "--json"]).json()["bytes"].clone();
    let bytes = timed("large export", made.bytes, || export("shop", "first.sql"));
    assert_eq!(bytes, json!(fs::metadata(path("first.sql")).unwrap().len()));
    site.run(&["d1", "create", "copy"]).ok();
    timed("import of the export", bytes.as_u64().unwrap(), || import(&site, "copy", "first.sql"));
    assert_eq!(results(&site, "copy", SUMS), sums);
    assert_eq!(export("copy", "second.sql"), bytes);
    assert!(are_same(&path("first.sql"), &path("second.sql")), "the copy's export differs from the export that it was made from");
    check_memory(&site.server, "large import, export, and import of the export");
}

fn are_same(a: &Path, b: &Path) -> bool {
    let [mut a, mut b] = [a, b].map(|path| BufReader::with_capacity(1 << 20, File::open(path).unwrap()));
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let n = a.read(&mut left).unwrap();
        if n == 0 {
            return b.read(&mut right).unwrap() == 0;
        }
        if b.read_exact(&mut right[..n]).is_err() || left[..n] != right[..n] {
            return false;
        }
    }
}

#[test]
fn an_import_that_fails_in_its_middle_leaves_nothing() {
    let site = shop();
    let before = state(&site);
    let large = soak::import_bytes(IMPORT_BYTES) / 2;
    let too_long = format!("INSERT INTO large VALUES (0, '{}');", "x".repeat(100_000));
    for (bytes, failing, why) in [
        (large, "INSERT INTO small VALUES (1, 1, 'again');", "UNIQUE constraint failed: small.id"),
        (1_000_000, "SELEC 1;", "near \"SELEC\": syntax error"),
        (1_000_000, &too_long, "statement too long: SQLITE_TOOBIG"),
        (1_000_000, "COMMIT;", "To execute a transaction, please use"),
        (1_000_000, "INSERT INTO kept VALUES (1);", "no such table: kept"),
    ] {
        let mut script = Script::create(&site.dir.path().join("bad.sql")).fill(bytes);
        script.statement("DROP TABLE kept;\n");
        let number = script.statements() + 1;
        script.statement(failing);
        let made = script.fill(bytes + 1_000_000).finish();
        let used = bytes_in(&site.data());
        let output = timed("import that fails", made.bytes, || site.run(&["d1", "import", "shop", "bad.sql"]));
        output.fails(1, &[why, &format!("Statement {number} failed"), "nothing of the file took effect"]);
        assert_eq!(state(&site), before, "{why}");
        // The folder gives back what the import took, up to the least that a segment of the log has.
        wait_until("the folder's former size", || bytes_in(&site.data()) <= used + (8 << 20));
        assert_eq!(bytes_in(&site.data().join("transfers")), 0);
    }
    check_memory(&site.server, "imports that fail");
    let made = Script::create(&site.dir.path().join("good.sql")).fill(1_000_000).finish();
    import(&site, "shop", "good.sql");
    assert_holds(&results(&site, "shop", SUMS), &made);
}

#[test]
fn a_client_that_goes_away_in_the_middle_of_its_upload_leaves_nothing() {
    let site = shop();
    let before = state(&site);
    let path = site.dir.path().join("shop.sql");
    let made = Script::create(&path).fill(soak::import_bytes(IMPORT_BYTES) / 4).finish();
    let call = |body: Value| -> (u16, Value) {
        let url = format!("{}/client/v4/accounts/00000000000000000000000000000001/d1/database/shop/import", site.server.url);
        let request = ureq::post(&url).config().http_status_as_error(false).build();
        let mut answer = request.header("authorization", format!("Bearer {}", site.owner_key())).send(body.to_string()).unwrap();
        (answer.status().as_u16(), serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap())
    };
    let etag = "0123456789abcdef0123456789abcdef";
    let upload = call(json!({ "action": "init", "etag": etag })).1["result"].clone();
    let host = site.server.url.strip_prefix("http://").unwrap();
    let link = upload["upload_url"].as_str().unwrap().strip_prefix(&site.server.url).unwrap();

    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "PUT {link} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\n\r\n", made.bytes).unwrap();
    let half = made.bytes / 2;
    std::io::copy(&mut File::open(&path).unwrap().take(half), &mut stream).unwrap();
    let transfers = site.data().join("transfers");
    wait_until("the first half of the upload", || bytes_in(&transfers) >= half - (2 << 20));
    drop(stream);
    wait_until("the end of the half upload", || bytes_in(&transfers) == 0);

    let (status, refused) = call(json!({ "action": "ingest", "filename": upload["filename"], "etag": etag }));
    assert_eq!((status, &refused["success"]), (400, &json!(false)), "{refused}");
    assert_eq!(state(&site), before);
    import(&site, "shop", "shop.sql");
    assert_holds(&results(&site, "shop", SUMS), &made);
    check_memory(&site.server, "an upload that breaks off");
}

#[test]
fn a_server_that_is_killed_in_the_middle_of_an_import_has_nothing_of_it() {
    let site = shop();
    let before = state(&site);
    let mut script = Script::create(&site.dir.path().join("shop.sql")).fill(soak::import_bytes(IMPORT_BYTES));
    // The server counts aloud by 50,000.
    let counted = script.statements() / 50_000 * 50_000;
    script.statement(ENDLESS);
    script.finish();
    let mut client = spawn(site.command(&["d1", "import", "shop", "shop.sql"]));
    let messages = read_until(&mut client, &format!("Processed {counted} queries."));
    let site = site.kill_and_restart("the middle of a large import");
    assert_eq!(client.wait().unwrap().code(), Some(1));
    drop(messages);
    assert_eq!(state(&site), before);
    assert_eq!(bytes_in(&site.data().join("transfers")), 0);
    check_memory(&site.server, "start after a kill in the middle of an import");
}

#[test]
fn a_server_that_is_killed_while_it_commits_an_import_has_all_of_it_or_nothing() {
    let (mut nothing, mut whole) = (0, 0);
    let rounds = soak::kill_rounds(4).min(12);
    for round in 0..rounds {
        let site = shop();
        let before = state(&site);
        let made = Script::create(&site.dir.path().join("shop.sql")).fill(soak::import_bytes(IMPORT_BYTES) / 4).finish();
        let log = bytes_in(&site.data().join("log"));
        let mut client = spawn(site.command(&["d1", "import", "shop", "shop.sql"]));
        // The log makes room for all of the import just before it is committed.
        wait_until("the commit", || bytes_in(&site.data().join("log")) > log + made.bytes / 2);
        thread::sleep(Duration::from_millis([0, 60, 250, 1_000][round as usize % 4]));
        let site = site.kill_and_restart("the commit of an import");
        let is_done = client.wait().unwrap().code() == Some(0);
        if state(&site) == before {
            assert!(!is_done, "the import was acknowledged and is lost");
            nothing += 1;
        } else {
            assert_holds(&results(&site, "shop", SUMS), &made);
            assert_eq!(results(&site, "shop", "PRAGMA quick_check; SELECT * FROM kept")[0][0]["quick_check"], json!("ok"));
            whole += 1;
        }
        check_memory(&site.server, "start after a kill while an import was committed");
    }
    soak::print(format_args!("kills while an import was committed: {rounds}; nothing of it {nothing} times, all of it {whole} times"));
}

impl Site {
    /// Kills the server at once and starts another on what it left.
    fn kill_and_restart(self, when: &str) -> Self {
        let Self { dir, server } = self;
        server.signal(Signal::KILL);
        assert_eq!(server.wait().0.code(), None);
        let clock = SystemClock::default();
        let site = Self::on(dir);
        soak::print(format_args!("start after a kill in {when}: {:.1} s", clock.monotonic().as_secs_f64()));
        site
    }
}
