//! Splitting, refusals, values, and clauses that SQLite's shipped grammar lacks.

use expect_test::expect;
use sqlite::{Batch, Statement, Value, execute};

use crate::Db;

#[test]
fn triggers_comments_and_strings_do_not_end_a_statement() {
    let mut db = Db::new();
    let sql = "CREATE TABLE t(a TEXT);\r\n-- a;b\r\nCREATE TRIGGER g AFTER INSERT ON t begin\r\n  UPDATE t SET a = CASE WHEN a = ';' THEN 'x;' ELSE a END;\r\nend;\r\n/* ; */ INSERT INTO t VALUES(';'); SELECT a FROM t;;";
    let results = db.run(sql).unwrap();
    assert_eq!(results.len(), 4);
    assert_eq!(results[3].rows, [[Value::Text("x;".into())]]);
}

#[test]
fn d3_03_texts_of_requests_without_statements() {
    let mut db = Db::new();
    for sql in ["", " ", "\n", "-- c"] {
        assert_eq!(db.error(sql), "No SQL statements detected.", "{sql:?}");
    }
    for sql in [";", "/* c */", " ; -- x"] {
        assert_eq!(db.error(sql), "SQL code did not contain a statement.", "{sql:?}");
    }
    assert_eq!(db.error("SELECT 1\0; SELECT 2"), "unrecognized token: \"\\0\" at offset 8: SQLITE_ERROR");
}

#[test]
fn a_workers_statement_takes_no_text_after_its_end() {
    let mut db = Db::new();
    let mut run = |sql: &str| {
        let batch = Batch { items: vec![Statement { sql: sql.into(), params: Vec::new() }], is_prepared: true };
        execute::batch(&mut db.conn, &batch, &execute::Options::default()).map(|results| results[0].len()).map_err(|error| error.message)
    };
    assert_eq!(run("SELECT 1; \n"), Ok(1));
    assert_eq!(run("SELECT 1; SELECT 2"), Ok(2));
    assert_eq!(run("SELECT 1; -- tail"), Err("SQL code did not contain a statement.".into()));
    assert_eq!(run("SELECT 1;;"), Err("SQL code did not contain a statement.".into()));
}

#[test]
fn parameters_belong_to_the_last_statement_and_must_be_as_many_as_it_has() {
    let mut db = Db::new();
    let one = [Value::Integer(5)];
    assert_eq!(db.bind("SELECT 1; SELECT ?1", &one).unwrap()[1].rows, [[Value::Integer(5)]]);
    let other = "When executing multiple SQL statements in a single call, only the last statement can have parameters.";
    assert_eq!(db.bind("SELECT ?1; SELECT 2", &one).unwrap_err(), other);
    for (sql, params) in [("SELECT ?1, ?2", &one[..]), ("SELECT 1", &one[..]), ("SELECT ?1", &[])] {
        assert_eq!(db.bind(sql, params).unwrap_err(), "Wrong number of parameter bindings for SQL query.", "{sql}");
    }
}

#[test]
fn d4_01_and_d4_02_a_failing_statement_undoes_the_batch_and_the_poison_pill_works() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES(1)");
    let error = db.error("INSERT INTO t VALUES(2); INSERT INTO t VALUES(1)");
    assert_eq!(error, "UNIQUE constraint failed: t.a: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)");
    let pill =
        |condition: &str| format!("SELECT IIF({condition},1,json_extract(\"inconsistent\",\"$\")) AS consistent; INSERT INTO t VALUES(3)");
    assert_eq!(db.error(&pill("(SELECT count(*) FROM t) = 7")), "malformed JSON: SQLITE_ERROR");
    assert_eq!(db.value("SELECT count(*) FROM t"), Value::Integer(1));
    db.last(&pill("(SELECT count(*) FROM t) = 1"));
    assert_eq!(db.value("SELECT count(*) FROM t"), Value::Integer(2));
    assert_eq!(db.last("UPDATE t SET a = 9 WHERE a = 77").meta.changes, 0);
    assert!(db.error("INSERT OR ROLLBACK INTO t VALUES(1)").starts_with("UNIQUE constraint failed"));
    db.last("INSERT INTO t VALUES(8)");
}

#[test]
fn transactions_attachments_and_vacuum_are_refused_in_productions_words() {
    let mut db = Db::new();
    let begin = "To execute a transaction, please use the state.storage.transaction() or state.storage.transactionSync() APIs instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. The JavaScript API is safer because it will automatically roll back on exceptions, and because it interacts correctly with Durable Objects' automatic atomic write coalescing.";
    for sql in ["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT a", "RELEASE a"] {
        assert_eq!(db.error(sql), begin, "{sql}");
    }
    for sql in [
        "ATTACH 'x' AS y",
        "DETACH y",
        "PRAGMA journal_mode",
        "CREATE TEMP TABLE a(b)",
        "CREATE VIRTUAL TABLE a USING dbstat",
        "CREATE TABLE _CF_KV(a)",
    ] {
        assert_eq!(db.error(sql), "not authorized: SQLITE_AUTH", "{sql}");
    }
    db.last("CREATE TABLE t(a)");
    assert_eq!(db.error("ALTER TABLE t RENAME TO _cf_t"), "not authorized: SQLITE_AUTH");
    assert_eq!(db.error("VACUUM"), "cannot VACUUM from within a transaction: SQLITE_ERROR");
    assert_eq!(db.error("SELECT sqlite_version()"), "not authorized to use function: sqlite_version at offset 7: SQLITE_ERROR");
    assert_eq!(db.error("INSERT INTO sqlite_master VALUES(1,2,3,4,5)"), "table sqlite_master may not be modified: SQLITE_ERROR");
}

#[test]
fn delete_and_update_take_order_by_and_limit() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); INSERT INTO t(a,b) VALUES(1,'x'),(2,'x'),(3,'y'),(4,'y'),(5,'z')");
    let two = [Value::Text("x".into()), Value::Integer(1)];
    assert_eq!(db.bind("DELETE FROM t WHERE b = ? ORDER BY a DESC LIMIT ?; ", &two).unwrap()[0].meta.changes, 1);
    assert_eq!(db.value("SELECT group_concat(a) FROM t"), Value::Text("1,3,4,5".into()));
    let three = [Value::Integer(9), Value::Integer(2), Value::Integer(1)];
    assert_eq!(db.bind("UPDATE t AS q SET b = ? WHERE a > ? ORDER BY a LIMIT ?", &three).unwrap()[0].meta.changes, 1);
    assert_eq!(db.value("SELECT a FROM t WHERE b = 9"), Value::Integer(3));
    let rows = db.last("SELECT 1; DELETE FROM t WHERE a > 0 RETURNING a ORDER BY a LIMIT 1 OFFSET 1; SELECT group_concat(a) FROM t").rows;
    assert_eq!(rows, [[Value::Text("1,4,5".into())]]);
    db.last("CREATE TABLE w(k, l, v, PRIMARY KEY(k, l)) WITHOUT ROWID; INSERT INTO w VALUES(1,1,1),(1,2,1),(2,1,1)");
    assert_eq!(db.last("UPDATE w SET v = 2 ORDER BY k DESC LIMIT 2").meta.changes, 2);
    assert_eq!(db.value("SELECT count(*) FROM w WHERE v = 2"), Value::Integer(2));
    db.last("CREATE TABLE \"odd limit\"(rowid, \"a'b\"); INSERT INTO \"odd limit\" VALUES(1,2),(1,2)");
    assert_eq!(db.last("DELETE FROM \"odd limit\" LIMIT 1").meta.changes, 1);
    assert_eq!(db.error("DELETE FROM nope LIMIT 1"), "no such table: nope: SQLITE_ERROR");
    db.last("CREATE VIEW v AS SELECT 1 AS a");
    assert_eq!(db.error("UPDATE v SET a = 1 LIMIT 1"), "cannot modify v because it is a view: SQLITE_ERROR");
    assert_eq!(db.error("DELETE FROM t ORDER BY a"), "ORDER BY without LIMIT on DELETE: SQLITE_ERROR");
    assert_eq!(db.error("UPDATE t SET a = 1 ORDER BY a"), "ORDER BY without LIMIT on UPDATE: SQLITE_ERROR");
    assert_eq!(db.error("DELETE FROM t WHERE nope = 1 LIMIT 1"), "no such column: nope at offset 20: SQLITE_ERROR");
    let late = "DELETE FROM t ORDER BY a LIMIT 1 RETURNING id, a";
    assert_eq!(db.error(late), "near \"RETURNING\": syntax error at offset 33: SQLITE_ERROR");
    assert_eq!(db.error("SELECT 1 LIMIT LIMIT"), "near \"LIMIT\": syntax error at offset 15: SQLITE_ERROR");
}

#[test]
fn values_come_out_as_they_are_stored() {
    let mut db = Db::new();
    let row = db.last("SELECT 9223372036854775807, 9e999, 9e999-9e999, 'a'||char(0)||'b', CAST(X'ff41' AS TEXT), X'00ff', X'', NULL, '' AS \"\", 1 AS a, 2 AS a");
    expect![[r#"
        [
            "9223372036854775807",
            "9e999",
            "9e999-9e999",
            "'a'||char(0)||'b'",
            "CAST(X'ff41' AS TEXT)",
            "X'00ff'",
            "X''",
            "NULL",
            "",
            "a",
            "a",
        ]
    "#]]
    .assert_debug_eq(&row.columns);
    assert_eq!(row.rows[0][0], Value::Integer(i64::MAX));
    assert_eq!(row.rows[0][1], Value::Real(f64::INFINITY));
    assert_eq!(row.rows[0][2], Value::Null);
    assert_eq!(row.rows[0][3], Value::Text("a\0b".into()));
    assert_eq!(row.rows[0][4], Value::Text("\u{fffd}A".into()));
    assert_eq!(row.rows[0][5], Value::Blob(vec![0, 255]));
    assert_eq!(row.rows[0][6], Value::Blob(vec![]));
}

#[test]
fn offsets_in_a_later_statement_count_from_its_first_word_or_comment() {
    let mut db = Db::new();
    for (sql, offset) in [("SELECT 1; bad", 0), ("SELECT 1;  /* x */ bad", 8), ("  bad", 2)] {
        assert_eq!(db.error(sql), format!("near \"bad\": syntax error at offset {offset}: SQLITE_ERROR"), "{sql}");
    }
}

#[test]
fn items_that_hold_nothing_are_left_out() {
    let mut db = Db::new();
    let mut run = |items: &[&str]| {
        let items = items.iter().map(|sql| Statement { sql: (*sql).into(), params: Vec::new() }).collect();
        execute::batch(&mut db.conn, &Batch { items, is_prepared: true }, &execute::Options::default())
            .map(|results| results.len())
            .map_err(|error| error.message)
    };
    assert_eq!(run(&["SELECT 1", "", "-- c", "SELECT 2"]), Ok(2));
    assert_eq!(run(&["", " "]), Err("No SQL statements detected.".into()));
    assert_eq!(run(&["SELECT 1", ";"]), Err("SQL code did not contain a statement.".into()));
}

#[test]
fn what_a_pragma_sets_holds_for_its_own_request_only() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(a CHECK(a > 0))");
    let violate = "INSERT INTO t VALUES(-1)";
    assert_eq!(db.last(&format!("PRAGMA ignore_check_constraints=1; {violate}")).meta.changes, 1);
    assert!(db.error(violate).starts_with("CHECK constraint failed"));
    db.last("PRAGMA case_sensitive_like=1");
    assert_eq!(db.value("SELECT 'A' LIKE 'a'"), Value::Integer(1));
    assert!(db.error("PRAGMA ignore_check_constraints=1; SELECT bad").starts_with("no such column"));
    assert!(db.error(violate).starts_with("CHECK constraint failed"));
}

#[test]
fn a_reader_may_not_write() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(a)");
    let options = execute::Options { refuse_writes: Some(|| base::Error::new(base::Code::ScopeMissing, "no")), ..Default::default() };
    let error = execute::batch(&mut db.conn, &Batch::sql("SELECT 1; INSERT INTO t VALUES(1)"), &options).unwrap_err();
    assert_eq!(error.code, base::Code::ScopeMissing);
    assert_eq!(db.value("SELECT count(*) FROM t"), Value::Integer(0));
}
