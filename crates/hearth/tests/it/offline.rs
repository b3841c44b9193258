//! What works without a server.

use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    process::Stdio,
};

use crate::harness::{hearth, run};

#[test]
fn the_version_and_the_help_name_the_commands() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run(hearth(dir.path(), &["--version"])).ok(), format!("hearth {}\n", env!("CARGO_PKG_VERSION")));
    let help = run(hearth(dir.path(), &["--help"])).ok();
    for command in ["serve", "demo", "env", "doctor", "token", "d1", "completions"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
    }
}

#[test]
fn a_wrong_call_ends_with_2() {
    let dir = tempfile::tempdir().unwrap();
    for args in [&["nope"][..], &["serve", "--port", "1"], &["d1"], &["d1", "execute", "db"], &["token", "create", "--name", "x"]] {
        assert_eq!(run(hearth(dir.path(), args)).code, Some(2), "{args:?}");
    }
}

#[test]
fn a_variable_that_is_not_utf_8_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = hearth(dir.path(), &["d1", "list"]);
    command.env("HEARTH_DATA", std::ffi::OsStr::from_bytes(b"d\xff"));
    run(command).fails(2, &["error: the environment variable HEARTH_DATA is not UTF-8"]);
}

#[test]
fn completions_are_printed_and_a_closed_pipe_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    for (shell, part) in [("bash", "_hearth()"), ("zsh", "#compdef hearth"), ("fish", "complete -c hearth")] {
        assert!(run(hearth(dir.path(), &["completions", shell])).ok().contains(part), "{shell}");
    }
    let mut child = hearth(dir.path(), &["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn print_config_shows_values_with_their_sources_and_no_key() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("h.toml"), "data = 'd'\nprofile = 'mine'\n[profiles.mine]\nbase = 'd1-free'\ncolumns_max = 9\n").unwrap();
    let mut command = hearth(dir.path(), &["serve", "--config", "h.toml", "--region", "APAC", "--print-config"]);
    command.env("HEARTH_LISTEN", "127.0.0.1:9").env("HEARTH_KEY", "a-key-that-must-not-be-shown");
    let text = run(command).ok();
    for line in [
        "config\th.toml\tflag",
        "data\td\tconfig file",
        "listen\t127.0.0.1:9\tHEARTH_LISTEN",
        "region\tAPAC\tflag",
        "log.level\tinfo\tdefault",
        "profile\tmine\tconfig file",
        "profile.columns_max\t9\tconfig file",
        "profile.databases_max\t10\tconfig file",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
    assert!(!text.contains("a-key-that-must-not-be-shown"));
    let json = run(hearth(dir.path(), &["serve", "--print-config", "--json"])).json();
    assert_eq!(json["listen"], serde_json::json!({ "value": "127.0.0.1:8787", "source": "default" }));
    assert!(!dir.path().join("hearth-data").exists(), "nothing is made");
}

#[test]
fn a_server_that_is_not_there_is_named_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = hearth(dir.path(), &["d1", "list", "--url", "http://127.0.0.1:1"]);
    command.env("HEARTH_KEY", "any-key-of-this-length");
    run(command).fails(1, &["error: no server answers at http://127.0.0.1:1", "hint: start one with `hearth serve`"]);
}

#[test]
fn without_a_key_nothing_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    run(hearth(dir.path(), &["d1", "list"])).fails(1, &["error: no key", "hint: set HEARTH_KEY"]);
    run(hearth(dir.path(), &["env"])).fails(1, &["error: no key"]);
}

#[test]
fn doctor_says_what_is_wrong_and_how_to_mend_it() {
    let dir = tempfile::tempdir().unwrap();
    let missing = run(hearth(dir.path(), &["doctor", "--data", "nope"]));
    assert_eq!(missing.code, Some(1));
    assert!(missing.stdout.contains("error\tfolder\tnope cannot be looked at"), "{missing:?}");

    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(data.join("owner.key.tmp"), "").unwrap();
    fs::write(data.join("a.sqlite"), "no database").unwrap();
    let output = run(hearth(dir.path(), &["doctor", "--data", "data", "--json"]));
    assert_eq!(output.code, Some(1));
    let findings: Vec<serde_json::Value> = serde_json::from_str(&output.stdout).unwrap();
    for (severity, check, remedy) in
        [("error", "folder", "chmod 700 data"), ("warning", "leftover", "remove it"), ("error", "database", "backup")]
    {
        let found = findings.iter().any(|finding| {
            finding["severity"] == severity && finding["check"] == check && finding["remedy"].as_str().unwrap().contains(remedy)
        });
        assert!(found, "{severity} {check}: {findings:?}");
    }
}
