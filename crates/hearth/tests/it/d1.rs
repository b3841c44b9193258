//! `hearth d1` against a server: success and failure of each command.

use std::fs;

use serde_json::json;

use crate::harness::{Site, run};

#[test]
fn databases_are_made_listed_shown_and_deleted() {
    let site = Site::start();
    let made = site.run(&["d1", "create", "shop", "--location", "weur", "--json"]).json();
    assert_eq!((made["name"].as_str(), made["uuid"].as_str().map(str::len)), (Some("shop"), Some(36)));
    site.run(&["d1", "create", "shop"]).fails(1, &["a database with the name `shop` exists already [code: 7502]"]);
    site.run(&["d1", "create", "-shop"]).fails(2, &[]);
    site.run(&["d1", "create", "no spaces"]).fails(1, &["error: "]);

    let listed = site.run(&["d1", "list"]).ok();
    let mut lines = listed.lines();
    assert_eq!(lines.next(), Some("name\tuuid\tcreated_at\tjurisdiction"));
    assert!(lines.next().unwrap().starts_with(&format!("shop\t{}\t", made["uuid"].as_str().unwrap())), "{listed}");
    assert_eq!(site.run(&["d1", "list", "--json"]).json()[0]["uuid"], made["uuid"]);

    for name in ["shop", made["uuid"].as_str().unwrap()] {
        let info = site.run(&["d1", "info", name, "--json"]).json();
        assert_eq!((&info["name"], &info["num_tables"]), (&json!("shop"), &json!(0)));
        assert!(info["rows_read_24h"].is_u64(), "{info}");
    }
    site.run(&["d1", "info", "nope"]).fails(1, &["[code: 7404]", "hint: `hearth d1 list`"]);

    site.run(&["d1", "delete", "shop"])
        .fails(2, &["nobody can be asked", "there is no undelete", "hearth d1 export shop --output shop.sql"]);
    assert_eq!(site.run(&["d1", "delete", "shop", "-y", "--json"]).json(), json!({ "deleted": "shop", "uuid": made["uuid"] }));
    site.run(&["d1", "delete", "shop", "-y"]).fails(1, &["[code: 7404]"]);
    assert_eq!(site.run(&["d1", "list", "--json"]).json(), json!([]));
}

#[test]
fn a_list_of_more_than_a_page_is_whole() {
    let site = Site::start();
    let key = site.owner_key();
    let url = format!("{}/client/v4/accounts/00000000000000000000000000000001/d1/database", site.server.url);
    for n in 0..205 {
        let body = json!({ "name": format!("db{n}") }).to_string();
        ureq::post(&url).header("authorization", format!("Bearer {key}")).send(body).unwrap();
    }
    let listed = site.run(&["d1", "list", "--json"]).json();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|database| database["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, (0..205).map(|n| format!("db{n}")).collect::<Vec<_>>());
}

#[test]
fn execute_prints_rows_and_what_they_cost() {
    let site = Site::start();
    site.run(&["d1", "create", "shop"]).ok();
    let sql = "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'x'), (NULL, X'00ff'); SELECT * FROM t; SELECT 1 AS a, 2 AS a";
    let output = site.run(&["d1", "execute", "shop", "--command", sql]);
    assert_eq!(output.stdout, "a\tb\n1\tx\nNULL\t[0,255]\n\na\ta\n1\t2\n");
    let costs: Vec<_> = output.stderr.lines().map(|line| line.rsplit_once(", ").unwrap().0).collect();
    assert_eq!(
        costs,
        [
            "0 rows, rows_read 1, rows_written 2",
            "0 rows, rows_read 0, rows_written 2",
            "2 rows, rows_read 2, rows_written 0",
            "1 row, rows_read 0, rows_written 0"
        ]
    );
    let results = site.run(&["d1", "execute", "shop", "--json", "--command", "SELECT count(*) AS n FROM t; SELECT 2"]).json();
    assert_eq!(results.as_array().unwrap().len(), 2);
    assert_eq!((&results[0]["results"], &results[0]["success"]), (&json!([{ "n": 2 }]), &json!(true)));
    assert_eq!(results[0]["meta"]["rows_read"], 2);
}

#[test]
fn a_statement_that_fails_undoes_those_before_it() {
    let site = Site::start();
    site.run(&["d1", "create", "shop"]).ok();
    let sql = "CREATE TABLE t(a); INSERT INTO nope VALUES (1)";
    let failure = "error: no such table: nope: SQLITE_ERROR [code: 7500]";
    site.run(&["d1", "execute", "shop", "--command", sql]).fails(1, &[failure]);
    site.run(&["d1", "execute", "shop", "--json", "--command", sql]).fails(1, &[failure]);
    assert_eq!(site.rows("shop", "SELECT count(*) AS n FROM sqlite_master"), json!([{ "n": 0 }]));
    site.run(&["d1", "execute", "nope", "--command", "SELECT 1"]).fails(1, &["[code: 7404]"]);
}

#[test]
fn execute_takes_a_file_and_standard_input() {
    let site = Site::start();
    site.run(&["d1", "create", "shop"]).ok();
    site.write("a.sql", "CREATE TABLE t(a);\r\nCREATE TRIGGER g AFTER INSERT ON t BEGIN\r\n  UPDATE t SET a = a + 1;\r\nend;\r\nINSERT INTO t VALUES (1);\r\n");
    site.run(&["d1", "execute", "shop", "--file", "a.sql"]).ok();
    let mut command = site.command(&["d1", "execute", "shop", "--json", "--file", "-"]);
    command.stdin(
        fs::File::open({
            site.write("b.sql", "SELECT a FROM t");
            site.dir.path().join("b.sql")
        })
        .unwrap(),
    );
    assert_eq!(run(command).json()[0]["results"], json!([{ "a": 2 }]));
    site.run(&["d1", "execute", "shop", "--file", "nope.sql"]).fails(1, &["error: nope.sql could not be read"]);
    fs::write(site.dir.path().join("latin1.sql"), b"SELECT '\xe9'").unwrap();
    site.run(&["d1", "execute", "shop", "--file", "latin1.sql"]).fails(1, &["is not UTF-8 (byte 8", "iconv"]);
}

#[test]
fn an_import_is_whole_or_not_at_all_and_an_export_imports_again() {
    let site = Site::start();
    site.run(&["d1", "create", "shop"]).ok();
    let rows: String = (0..5_000).map(|n| format!("INSERT INTO t VALUES ({n}, 'it''s {n}');\n")).collect();
    site.write("a.sql", &format!("CREATE TABLE t(a, b);\nCREATE VIRTUAL TABLE f USING fts5(x);\nINSERT INTO f VALUES ('words');\n{rows}"));
    let imported = site.run(&["d1", "import", "shop", "a.sql", "--json"]).json();
    assert_eq!(imported["num_queries"], 5_003);
    let progress = site.run(&["d1", "import", "shop", "b.sql"]);
    progress.fails(1, &["error: b.sql could not be read"]);

    site.write("bad.sql", "INSERT INTO t VALUES (-1, 'x');\nINSERT INTO nope VALUES (1);\n");
    let failed = site.run(&["d1", "import", "shop", "bad.sql"]);
    failed.fails(1, &["no such table: nope", "hint: nothing of the file took effect", "uploading ("]);
    assert_eq!(site.rows("shop", "SELECT count(*) AS n FROM t"), json!([{ "n": 5_000 }]));

    let exported = site.run(&["d1", "export", "shop", "--output", "out.sql", "--json"]).json();
    let text = fs::read_to_string(site.dir.path().join("out.sql")).unwrap();
    assert_eq!(exported, json!({ "file": "out.sql", "bytes": text.len() }));
    assert_eq!(site.run(&["d1", "export", "shop"]).ok(), text);
    assert!(!site.dir.path().join("out.sql.part").exists());
    site.run(&["d1", "create", "copy"]).ok();
    site.run(&["d1", "import", "copy", "out.sql"]).ok();
    assert_eq!(site.rows("copy", "SELECT b FROM t WHERE a = 4999"), json!([{ "b": "it's 4999" }]));
    assert_eq!(site.rows("copy", "SELECT x FROM f WHERE f MATCH 'words'"), json!([{ "x": "words" }]));

    let schema = site.run(&["d1", "export", "shop", "--no-data"]).ok();
    assert!(schema.contains("CREATE TABLE") && !schema.contains("4999"), "{schema}");
    let data = site.run(&["d1", "export", "shop", "--no-schema", "--table", "t"]).ok();
    assert!(data.contains("4999") && !data.contains("CREATE TABLE"));
}

#[test]
fn a_failed_export_leaves_the_old_file_as_it_was() {
    let site = Site::start();
    site.write("out.sql", "old");
    site.run(&["d1", "export", "nope", "--output", "out.sql"]).fails(1, &["[code: 7404]"]);
    assert_eq!(fs::read_to_string(site.dir.path().join("out.sql")).unwrap(), "old");
    site.run(&["d1", "create", "shop"]).ok();
    site.run(&["d1", "export", "shop", "--output", "no/such/folder.sql"])
        .fails(1, &["error: no/such/folder.sql.part could not be written"]);
}
