//! `hearth d1 migrations` against a server.

use std::fs;

use serde_json::json;

use crate::harness::Site;

fn site() -> Site {
    let site = Site::start();
    site.run(&["d1", "create", "shop"]).ok();
    site
}

#[test]
fn create_counts_on_and_prints_the_path() {
    let site = site();
    assert_eq!(site.run(&["d1", "migrations", "create", "shop", "first one"]).ok(), "migrations/0001_first_one.sql\n");
    let text = fs::read_to_string(site.dir.path().join("migrations/0001_first_one.sql")).unwrap();
    assert!(text.starts_with("-- Migration number: 0001 \t 20") && text.ends_with("Z\n"), "{text}");
    site.write("migrations/0330_later.sql", "SELECT 1;");
    let json = site.run(&["d1", "migrations", "create", "shop", "x", "--json"]).json();
    assert_eq!(json, json!({ "path": "migrations/0331_x.sql", "number": 331 }));
    for name in ["a/b", "../b", "a\\b", " "] {
        site.run(&["d1", "migrations", "create", "shop", name]).fails(2, &["error: wrong name of a migration"]);
    }
    assert_eq!(site.run(&["d1", "migrations", "create", "shop", "y", "--migrations-dir", "other"]).ok(), "other/0001_y.sql\n");
}

#[test]
fn pending_migrations_are_listed_applied_once_and_in_order() {
    let site = site();
    site.write("migrations/0001_a.sql", "CREATE TABLE a(x) -- no semicolon");
    site.write("migrations/0002_only_words.sql", "-- nothing yet\n");
    site.write("migrations/0010_c.sql", "ALTER TABLE b ADD COLUMN y;");
    site.write(
        "migrations/0003_b.sql",
        "CREATE TABLE b(x);\r\ncreate trigger t after insert on a begin\r\n  insert into b(x) values (new.x);\r\nend",
    );
    let pending = ["0001_a.sql", "0002_only_words.sql", "0003_b.sql", "0010_c.sql"];
    assert_eq!(site.run(&["d1", "migrations", "list", "shop"]).ok(), format!("migration\n{}\n", pending.join("\n")));
    assert_eq!(site.rows("shop", "SELECT count(*) AS n FROM sqlite_master"), json!([{ "n": 0 }]), "list changes nothing");
    let applied = site.run(&["d1", "migrations", "apply", "shop", "--json"]).json();
    assert_eq!(applied, json!(pending.map(|name| json!({ "name": name, "status": "applied" }))));
    assert_eq!(site.rows("shop", "SELECT id, name FROM d1_migrations ORDER BY id")[3], json!({ "id": 4, "name": "0010_c.sql" }));
    site.run(&["d1", "execute", "shop", "--command", "INSERT INTO a VALUES (5)"]).ok();
    assert_eq!(site.rows("shop", "SELECT x, y FROM b"), json!([{ "x": 5, "y": null }]));
    assert_eq!(site.run(&["d1", "migrations", "apply", "shop", "--json"]).json(), json!([]));
    assert_eq!(site.run(&["d1", "migrations", "list", "shop", "--json"]).json(), json!([]));
    site.run(&["d1", "migrations", "doctor", "shop"]).ok();
}

#[test]
fn apply_stops_at_the_first_failure_and_leaves_nothing_of_it() {
    let site = site();
    site.write("migrations/0001_a.sql", "CREATE TABLE a(x);");
    site.write("migrations/0002_bad.sql", "CREATE TABLE half(x); INSERT INTO nope VALUES (1);");
    site.write("migrations/0003_c.sql", "CREATE TABLE c(x);");
    let output = site.run(&["d1", "migrations", "apply", "shop"]);
    assert_eq!(output.code, Some(1));
    assert_eq!(output.stdout, "migration\tstatus\n0001_a.sql\tapplied\n0002_bad.sql\tfailed\n0003_c.sql\tnot run\n");
    assert!(output.stderr.contains("error: 0002_bad.sql failed, 1 before it applied: no such table: nope"), "{output:?}");
    let tables = "SELECT name FROM sqlite_master WHERE name IN ('a', 'half', 'c')";
    assert_eq!(site.rows("shop", tables), json!([{ "name": "a" }]));
    assert_eq!(site.rows("shop", "SELECT name FROM d1_migrations"), json!([{ "name": "0001_a.sql" }]));

    site.write("migrations/0002_bad.sql", "CREATE TABLE mended(x); /* never closed");
    let output = site.run(&["d1", "migrations", "apply", "shop"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("it ends inside what /* opened"), "{output:?}");
    site.write("migrations/0002_bad.sql", "CREATE TABLE mended(x);");
    site.run(&["d1", "migrations", "apply", "shop"]).ok();
    assert_eq!(site.rows("shop", "SELECT count(*) AS n FROM d1_migrations"), json!([{ "n": 3 }]));
}

#[test]
fn drift_is_found_in_both_directions_and_mended() {
    let site = site();
    for n in 1..=120 {
        site.write(&format!("migrations/{n:04}_m.sql"), &format!("CREATE TABLE t{n}(x);"));
    }
    site.run(&["d1", "execute", "shop", "--command", "CREATE TABLE t1(x)"]).ok();
    site.run(&["d1", "migrations", "mark-applied", "shop", "0001_m", "migrations/0110_m.sql"]).ok();
    site.run(&["d1", "execute", "shop", "--command", "INSERT INTO d1_migrations (name) VALUES ('0000_gone.sql')"]).ok();
    let output = site.run(&["d1", "migrations", "doctor", "shop", "--json"]);
    assert_eq!(output.code, Some(1));
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&report["files"], &report["ledger_rows"], &report["latest_applied"]), (&json!(120), &json!(3), &json!("0110_m.sql")));
    assert_eq!(report["ledger_rows_without_file"], json!(["0000_gone.sql"]));
    assert_eq!(report["files_without_ledger_row"].as_array().unwrap().len(), 118);
    assert_eq!(report["out_of_order"].as_array().unwrap().len(), 108);

    site.run(&["d1", "migrations", "mark-applied", "shop", "0002_m", "nope"]).fails(1, &["no migration `nope`", "nothing was marked"]);
    assert_eq!(site.rows("shop", "SELECT count(*) AS n FROM d1_migrations"), json!([{ "n": 3 }]));
    site.run(&["d1", "migrations", "mark-applied", "shop"]).fails(2, &[]);
    let marked = site.run(&["d1", "migrations", "mark-applied", "shop", "--all", "--json"]).json();
    assert_eq!(marked["marked"].as_array().unwrap().len(), 118);
    assert_eq!(site.run(&["d1", "migrations", "list", "shop", "--json"]).json(), json!([]));
    assert_eq!(site.rows("shop", "SELECT count(*) AS n FROM sqlite_master WHERE name LIKE 't%'"), json!([{ "n": 1 }]), "nothing was run");
}

#[test]
fn folder_and_table_can_be_named_and_quoted() {
    let site = site();
    site.write("my migrations/0001_it's.sql", "CREATE TABLE a(x);");
    let places = ["--migrations-dir", "my migrations", "--migrations-table", "led\"ger's"];
    let command = |name: &'static str| [&["d1", "migrations", name, "shop"][..], &places].concat();
    site.run(&command("apply")).ok();
    assert_eq!(site.rows("shop", "SELECT name FROM \"led\"\"ger's\""), json!([{ "name": "0001_it's.sql" }]));
    site.run(&command("doctor")).ok();
    site.run(&["d1", "migrations", "list", "shop"]).fails(1, &["the migrations folder migrations could not be read", "--migrations-dir"]);
}
