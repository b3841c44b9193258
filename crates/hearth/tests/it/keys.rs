//! The owner's key and `hearth env`.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use crate::harness::{Server, Site, hearth, run};

#[test]
fn the_first_start_makes_a_key_for_the_owner_only() {
    let site = Site::start();
    let path = site.data().join("owner.key");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.len(), 65);
    assert!(text.ends_with('\n') && text.trim_end().bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
    assert_eq!(fs::metadata(site.data()).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!site.server.stderr().contains(text.trim_end()));
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("owner.key"), "0".repeat(64)).unwrap();
    fs::set_permissions(data.join("owner.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let serve = ["serve", "--data", "data", "--listen", "127.0.0.1:0"];
    run(hearth(dir.path(), &serve)).fails(1, &["error: others may read the owner's key", "hint: chmod 600 data/owner.key"]);
}

#[test]
fn a_key_from_the_environment_takes_the_place_of_the_file_and_is_never_printed() {
    let key = "a-key-from-the-environment";
    let dir = tempfile::tempdir().unwrap();
    let serve = ["serve", "--data", "data", "--listen", "127.0.0.1:0", "--log-level", "trace"];
    let mut command = hearth(dir.path(), &serve);
    command.env("HEARTH_KEY", key);
    let server = Server::start(command);
    assert!(!dir.path().join("data/owner.key").exists());
    let list = |key: &str| {
        let mut command = hearth(dir.path(), &["d1", "list", "--json", "--url", &server.url]);
        command.env("HEARTH_KEY", key);
        run(command)
    };
    assert_eq!(list(key).json(), serde_json::json!([]));
    list("another-key-of-that-length").fails(1, &["[code: 10000]", "hint: the key is not this server's"]);
    assert!(!server.stderr().contains(key), "{}", server.stderr());
    assert!(!server.stderr().contains("another-key-of-that-length"), "{}", server.stderr());
}

#[test]
fn a_short_key_is_refused_without_showing_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = hearth(dir.path(), &["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    command.env("HEARTH_KEY", "fifteen-letters");
    let output = run(command);
    assert!(!output.stderr.contains("fifteen-letters"));
    output.fails(2, &["error: HEARTH_KEY is too short: 15 characters"]);
}

#[test]
fn what_env_prints_is_enough_for_a_client() {
    let site = Site::start();
    let script = r#"eval "$("$0" env --data data)"; cd /; "$0" d1 list --json; echo "$CLOUDFLARE_API_BASE_URL"; echo "$CLOUDFLARE_BASE_URL"; echo "$CLOUDFLARE_ACCOUNT_ID"; echo "$CLOUDFLARE_API_TOKEN""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_hearth")]).current_dir(site.dir.path());
    for name in ["HEARTH_URL", "HEARTH_KEY", "HEARTH_DATA", "HEARTH_LISTEN", "HEARTH_ACCOUNT_ID"] {
        command.env_remove(name);
    }
    let api = format!("{}/client/v4", site.server.url);
    let expected = format!("[]\n{api}\n{api}\n00000000000000000000000000000001\n{}\n", site.owner_key());
    assert_eq!(run(command).ok(), expected);
}

#[test]
fn env_speaks_the_asked_shell_and_json() {
    let site = Site::start();
    let fish = site.run(&["env", "--shell", "fish"]).ok();
    assert!(fish.contains(&format!("set -gx HEARTH_URL {}\n", site.server.url)), "{fish}");
    let powershell = site.run(&["env", "--shell", "powershell"]).ok();
    assert!(powershell.contains(&format!("$env:HEARTH_KEY = '{}'\n", site.owner_key())), "{powershell}");
    let json = site.run(&["env", "--json"]).json();
    assert_eq!(json["HEARTH_KEY"], site.owner_key());
    assert_eq!(json.as_object().unwrap().len(), 6);
}
