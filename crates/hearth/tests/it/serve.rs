//! Starting and stopping.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use base::{Clock, SystemClock};
use rustix::process::Signal;

use crate::harness::{PATIENCE, Server, Site, hearth, run};

/// A query whose body is half sent, and which the server has begun to read.
struct HalfSent(TcpStream);

impl HalfSent {
    const BODY: &str = r#"{"sql":"SELECT 40 + 2 AS n"}"#;

    fn to(site: &Site, database: &str) -> Self {
        let mut stream = TcpStream::connect(site.server.url.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "POST /client/v4/accounts/00000000000000000000000000000001/d1/database/{database}/query HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
            site.owner_key(),
            Self::BODY.len()
        )
        .unwrap();
        let mut answer = [0; 25];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(&Self::BODY.as_bytes()[..10]).unwrap();
        Self(stream)
    }

    fn finish(mut self) -> String {
        self.0.write_all(&Self::BODY.as_bytes()[10..]).unwrap();
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).unwrap();
        answer
    }
}

#[test]
fn port_0_takes_a_free_port_and_the_server_answers_when_it_says_so() {
    let site = Site::start();
    assert!(!site.server.url.ends_with(":0"), "{}", site.server.url);
    let health = ureq::get(format!("{}/health", site.server.url)).call().unwrap();
    assert_eq!(health.status(), 200);
    assert!(!site.server.stderr().contains("warning:"), "{}", site.server.stderr());
}

#[test]
fn a_second_server_on_the_same_folder_is_refused_and_the_first_goes_on() {
    let site = Site::start();
    let second = site.run(&["serve", "--listen", "127.0.0.1:0"]);
    let process = format!("in use by process {}", site.server.child.id());
    second.fails(1, &[&process, &site.server.url, "hint: stop it with `kill"]);
    assert_eq!(site.run(&["d1", "list", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn a_taken_port_is_named_with_the_remedy() {
    let site = Site::start();
    let taken = site.server.url.strip_prefix("http://").unwrap();
    let output = run(hearth(site.dir.path(), &["serve", "--data", "other", "--listen", taken]));
    output.fails(1, &[&format!("error: cannot listen on {taken}"), "--listen"]);
}

#[test]
fn sigterm_and_sigint_let_a_request_finish() {
    for signal in [Signal::TERM, Signal::INT] {
        let site = Site::start();
        site.run(&["d1", "create", "shop"]).ok();
        let request = HalfSent::to(&site, "shop");
        site.server.signal(signal);
        while !site.server.stderr().contains("stopping:") {
            std::thread::yield_now();
        }
        let answer = request.finish();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains(r#"{"n":42}"#), "{answer}");
        let (status, stderr) = site.server.wait();
        assert_eq!(status.code(), Some(0), "{stderr}");
        assert!(stderr.ends_with("stopped\n"), "{stderr}");
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let site = Site::start();
    site.run(&["d1", "create", "shop"]).ok();
    let _request = HalfSent::to(&site, "shop");
    site.server.signal(Signal::TERM);
    while !site.server.stderr().contains("stopping:") {
        std::thread::yield_now();
    }
    let since = SystemClock::default();
    site.server.signal(Signal::TERM);
    let (status, stderr) = site.server.wait();
    assert_eq!(status.code(), Some(128 + 15), "{stderr}");
    assert!(since.monotonic().as_secs() < 10, "{:?}", since.monotonic());
}

#[test]
fn what_was_acknowledged_survives_kill_and_the_lock_does_not() {
    let Site { dir, server } = Site::start();
    let site = Site { dir, server };
    site.run(&["d1", "create", "shop"]).ok();
    site.run(&["d1", "execute", "shop", "--command", "CREATE TABLE t(a); INSERT INTO t VALUES (7)"]).ok();
    let key = site.owner_key();
    let Site { dir, server } = site;
    server.signal(Signal::KILL);
    assert_eq!(server.wait().0.code(), None);
    let server = Server::start(hearth(dir.path(), &["serve", "--data", "data", "--listen", "127.0.0.1:0"]));
    let site = Site { dir, server };
    assert_eq!(site.owner_key(), key);
    assert_eq!(site.rows("shop", "SELECT a FROM t"), serde_json::json!([{ "a": 7 }]));
}

#[test]
fn another_account_is_not_found_and_the_configured_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let account = "0123456789abcdef0123456789abcdef";
    let serve = ["serve", "--data", "data", "--listen", "127.0.0.1:0", "--account-id", account];
    let _server = Server::start(hearth(dir.path(), &serve));
    let list = ["d1", "list", "--json", "--data", "data"];
    run(hearth(dir.path(), &list)).fails(1, &["[code: 7003]", "HEARTH_ACCOUNT_ID"]);
    let mut command = hearth(dir.path(), &list);
    command.env("HEARTH_ACCOUNT_ID", account);
    assert_eq!(run(command).json(), serde_json::json!([]));
}

#[test]
fn listening_beyond_loopback_is_warned_about() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(hearth(dir.path(), &["serve", "--data", "data", "--listen", "0.0.0.0:0"]));
    assert!(server.stderr().contains("warning: 0.0.0.0:"), "{}", server.stderr());
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
}

#[test]
fn doctor_names_the_running_server_and_finds_a_stopped_folder_whole() {
    let site = Site::start();
    site.run(&["d1", "create", "shop"]).ok();
    site.run(&["d1", "execute", "shop", "--command", "CREATE TABLE t(a)"]).ok();
    let running = site.run(&["doctor"]).ok();
    assert!(running.contains(&format!("process {} runs on this folder at {}", site.server.child.id(), site.server.url)), "{running}");
    assert!(running.contains("ok\tcatalogue\t1 databases"), "{running}");
    let Site { dir, server } = site;
    server.signal(Signal::TERM);
    assert_eq!(server.wait().0.code(), Some(0));
    let stopped = run(hearth(dir.path(), &["doctor", "--data", "data"])).ok();
    assert!(stopped.contains("ok\tserver\tnone runs on this folder"), "{stopped}");
}

#[test]
fn doctor_compares_the_catalogue_with_the_files() {
    let site = Site::start();
    let uuid = site.run(&["d1", "create", "shop", "--json"]).json()["uuid"].as_str().unwrap().to_owned();
    site.run(&["d1", "create", "kept"]).ok();
    let databases = site.data().join("databases");
    let orphan = "00000000-0000-4000-8000-000000000001";
    std::fs::create_dir_all(databases.join("00")).unwrap();
    std::fs::write(databases.join("00").join(format!("{orphan}.db")), "").unwrap();
    let output = site.run(&["doctor"]).ok();
    assert!(output.contains(&format!("note\tcatalogue\tno database has the file of {orphan}")), "{output}");
    std::fs::remove_file(databases.join(&uuid[..2]).join(format!("{uuid}.db"))).unwrap();
    let output = site.run(&["doctor"]);
    assert_eq!(output.code, Some(1));
    let missing: Vec<_> = output.stdout.lines().filter(|line| line.contains("is missing")).collect();
    assert!(missing.len() == 1 && missing[0].contains(&uuid), "{output:?}");
}

#[test]
fn a_profile_of_the_config_file_limits_the_databases() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("h.toml"),
        "data = 'data'\nlisten = '127.0.0.1:0'\nprofile = 'one'\n[profiles.one]\nbase = 'd1-paid'\ndatabases_max = 1\n",
    )
    .unwrap();
    let _server = Server::start(hearth(dir.path(), &["serve", "--config", "h.toml"]));
    run(hearth(dir.path(), &["d1", "create", "a", "--data", "data"])).ok();
    run(hearth(dir.path(), &["d1", "create", "b", "--data", "data"])).fails(1, &["[code: 7406]"]);
}

#[test]
fn log_lines_can_be_json() {
    let dir = tempfile::tempdir().unwrap();
    let serve = ["serve", "--data", "data", "--listen", "127.0.0.1:0", "--log-format", "json"];
    let server = Server::start(hearth(dir.path(), &serve));
    run(hearth(dir.path(), &["d1", "list", "--data", "data"])).ok();
    server.signal(Signal::TERM);
    let (_, stderr) = server.wait();
    let line = stderr.lines().find(|line| line.starts_with('{')).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["level"], &line["fields"]["status"]), (&"INFO".into(), &200.into()), "{line}");
}
