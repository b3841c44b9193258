//! `hearth demo`: its figures, its next commands, and what it leaves behind.

use std::{net::TcpListener, path::PathBuf, process::Command};

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Server, hearth, run};

#[track_caller]
fn check_steps(json: &Value) {
    let step = |i: usize, name: &str| json["steps"][i][name].as_u64().unwrap_or_else(|| panic!("{name} of step {i}: {json}"));
    assert_eq!(json["steps"].as_array().unwrap().len(), 3);
    let n = step(0, "n");
    assert!(n >= 1, "{json}");
    assert_eq!((step(0, "rows_read"), step(0, "rows_written")), (2_186, 0));
    assert_eq!(step(1, "rows_written"), 2_187);
    assert_eq!((step(2, "n"), step(2, "rows_read")), (n, n + 1));
}

#[test]
fn two_runs_over_one_folder_measure_the_same() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        check_steps(&run(hearth(dir.path(), &["demo", "--once", "--json", "--data", "data", "--listen", "127.0.0.1:0"])).json());
    }
    assert!(dir.path().join("data/owner.key").exists());
}

#[test]
fn the_text_names_the_figures_and_the_next_commands_and_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let text = run(hearth(dir.path(), &["demo", "--once", "--data", "data", "--listen", "127.0.0.1:0"])).ok();
    let key = std::fs::read_to_string(dir.path().join("data/owner.key")).unwrap();
    for part in
        ["scanned 2186 rows", "npx wrangler d1 execute demo --remote --json --command", "export CLOUDFLARE_API_BASE_URL=http://127.0.0.1:"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(key.trim_end()), "{text}");
}

#[test]
fn a_taken_port_is_said_and_another_used() {
    let dir = tempfile::tempdir().unwrap();
    // If another program has the port, that serves as well.
    let _taken = TcpListener::bind("127.0.0.1:8787");
    let output = run(hearth(dir.path(), &["demo", "--once", "--json"]));
    assert!(output.stderr.contains("127.0.0.1:8787 is taken"), "{output:?}");
    check_steps(&output.json());
}

#[test]
fn its_next_commands_work_and_its_folder_goes_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut demo = Server::start(hearth(dir.path(), &["demo", "--json", "--listen", "127.0.0.1:0"]));
    let json = demo.stdout_json();
    check_steps(&json);
    let data = PathBuf::from(json["data"].as_str().unwrap());
    let key = std::fs::read_to_string(data.join("owner.key")).unwrap();
    let lines: Vec<_> = json["next"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let sh = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(dir.path()).env_remove("HEARTH_KEY").env_remove("HEARTH_URL");
        run(command)
    };
    let exports = lines.iter().filter(|line| line.starts_with("export ")).copied().collect::<Vec<_>>().join("\n");
    let shown = sh(&format!("{exports}\necho \"$CLOUDFLARE_API_BASE_URL $CLOUDFLARE_API_TOKEN\"")).ok();
    assert_eq!(shown, format!("{}/client/v4 {}", demo.url, key));
    let ours: Vec<_> = lines.iter().filter(|line| line.starts_with('/') || line.starts_with('\'')).collect();
    assert_eq!(ours.len(), 2, "{lines:?}");
    assert!(sh(ours[0]).ok().starts_with("n\n"), "{}", ours[0]);
    assert!(sh(ours[1]).ok().contains("name\tdemo\n"), "{}", ours[1]);

    demo.signal(Signal::INT);
    let rest = demo.stdout();
    assert_eq!(rest.trim(), "", "{rest}");
    let (status, stderr) = demo.wait();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("serving until ctrl-c"), "{stderr}");
    assert!(!data.exists(), "{}", data.display());
}
