//! Each limit at n and n + 1, with the whole text of the refusal.

use base::Limits;
use sqlite::{Value, script};

use crate::Db;

fn list(item: impl Fn(usize) -> String, n: usize) -> String {
    (0..n).map(item).collect::<Vec<_>>().join(",")
}

#[test]
fn d1_06_a_table_has_at_most_100_columns() {
    let mut db = Db::new();
    db.last(&format!("CREATE TABLE w100({})", list(|i| format!("c{i}"), 100)));
    assert_eq!(db.error(&format!("CREATE TABLE w101({})", list(|i| format!("c{i}"), 101))), "too many columns on w101: SQLITE_ERROR");
    assert_eq!(db.error("ALTER TABLE w100 ADD COLUMN x"), "too many columns on sqlite_altertab_w100: SQLITE_ERROR");
    assert_eq!(db.error(&format!("SELECT {}", list(|_| "1".into(), 101))), "too many columns in result set: SQLITE_ERROR");
}

const TOO_BIG: &str = "string or blob too big: SQLITE_TOOBIG";

#[test]
fn d1_07_a_value_has_at_most_2_000_000_bytes() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)");
    for value in [Value::Text("x".repeat(2_000_000)), Value::Blob(vec![0; 2_000_000])] {
        db.bind("INSERT INTO t(a) VALUES(?1)", &[value]).unwrap();
    }
    for value in [Value::Text("x".repeat(2_000_001)), Value::Blob(vec![0; 2_000_001])] {
        assert_eq!(db.bind("INSERT INTO t(a) VALUES(?1)", std::slice::from_ref(&value)).unwrap_err(), TOO_BIG);
        assert_eq!(db.bind("SELECT ?1", &[value]).unwrap_err(), TOO_BIG);
    }
    db.last("INSERT INTO t(a) VALUES(zeroblob(2000000))");
    assert_eq!(db.error("INSERT INTO t(a) VALUES(zeroblob(2000001))"), TOO_BIG);
    assert_eq!(db.error("INSERT INTO t(a) VALUES(hex(randomblob(1000001)))"), TOO_BIG);
    assert_eq!(db.value("SELECT count(*) FROM t"), Value::Integer(3));
}

#[test]
fn d1_07_a_row_has_at_most_2_001_023_bytes_and_a_longer_one_stays_readable() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(a, b)");
    // Two blobs take a record of their bytes and a header of 1 + 3 + 3.
    let row = |total: usize| format!("INSERT INTO t VALUES(zeroblob(1000000), zeroblob({}))", total - 1_000_000 - 7);
    db.last(&row(2_001_023));
    assert_eq!(db.error(&row(2_001_024)), TOO_BIG);
    let mut wide = Limits::d1_paid();
    wide.value_bytes_max = 4_000_000;
    let mut db = Db::with(wide);
    db.last("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); INSERT INTO t VALUES(1, zeroblob(2068258), 'x')");
    let path = db.path.clone();
    let options = sqlite::OpenOptions::default();
    let mut paid = sqlite::Conn::open(&path, &options).unwrap();
    let mut run = |sql: &str| sqlite::execute::batch(&mut paid, &sqlite::Batch::sql(sql), &Default::default()).map_err(|e| e.to_string());
    assert_eq!(run("SELECT length(a) FROM t").unwrap()[0][0].rows[0][0], Value::Integer(2_068_258));
    assert_eq!(run("UPDATE t SET b = 'y'").unwrap_err(), TOO_BIG);
    run("UPDATE t SET a = 'healed'").unwrap();
}

#[test]
fn d1_08_a_statement_has_at_most_100_000_bytes_and_a_text_of_several_may_be_longer() {
    let mut db = Db::new();
    let statement = |bytes: usize| format!("SELECT '{}'", "x".repeat(bytes - 9));
    assert_eq!(statement(100_000).len(), 100_000);
    db.last(&statement(100_000));
    assert_eq!(db.error(&statement(100_001)), "statement too long: SQLITE_TOOBIG");
    let many = [statement(99_999), statement(99_999), statement(99_999)].join(";");
    assert_eq!(db.run(&many).unwrap().len(), 3);
    let late = [statement(99_999), statement(100_001)].join(";");
    assert_eq!(db.error(&late), "statement too long: SQLITE_TOOBIG");
}

#[test]
fn d1_09_a_statement_has_at_most_100_parameters() {
    let mut db = Db::new();
    db.bind(&format!("SELECT {}", list(|_| "?".into(), 100)), &vec![Value::Integer(1); 100]).unwrap();
    assert_eq!(db.error(&format!("SELECT {}", list(|_| "?".into(), 101))), "too many SQL variables at offset 207: SQLITE_ERROR");
    assert_eq!(db.error("SELECT ?101"), "variable number must be between ?1 and ?100 at offset 7: SQLITE_ERROR");
}

#[test]
fn d1_10_a_function_has_at_most_32_arguments() {
    let mut db = Db::new();
    db.last(&format!("SELECT max({})", list(|i| i.to_string(), 32)));
    for function in ["max", "json_array", "coalesce"] {
        let sql = format!("SELECT {function}({})", list(|i| i.to_string(), 33));
        assert_eq!(db.error(&sql), format!("too many arguments on function {function} at offset 7: SQLITE_ERROR"));
    }
}

#[test]
fn d1_11_a_pattern_has_at_most_50_bytes() {
    let mut db = Db::new();
    for operator in ["LIKE", "GLOB"] {
        db.bind(&format!("SELECT 'x' {operator} ?1"), &[Value::Text("a".repeat(50))]).unwrap();
        let error = db.bind(&format!("SELECT 'x' {operator} ?1"), &[Value::Text("a".repeat(51))]).unwrap_err();
        assert_eq!(error, "LIKE or GLOB pattern too complex: SQLITE_ERROR");
    }
}

const LOOP: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 1000000000) SELECT count(*) FROM c";

#[test]
fn d1_12_a_request_ends_at_its_time_and_says_whether_it_read_or_wrote() {
    let mut limits = Limits::d1_paid();
    limits.query_ms_max = 100;
    let mut db = Db::with(limits);
    db.last("CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    assert_eq!(db.error(LOOP), "D1 DB exceeded its CPU time limit and was reset.");
    let insert = format!("INSERT INTO t {LOOP}");
    assert_eq!(db.error(&insert), "D1 DB storage operation exceeded timeout which caused object to be reset.");
    assert_eq!(db.error(&format!("INSERT INTO t VALUES(2); {LOOP}")), "D1 DB exceeded its CPU time limit and was reset.");
    assert_eq!(db.value("SELECT count(*) FROM t"), Value::Integer(1));
}

#[test]
fn d1_17_and_d1_23_a_compound_select_has_at_most_five_terms() {
    let mut db = Db::new();
    for n in [2, 5] {
        assert_eq!(db.last(&vec!["SELECT 1"; n].join(" UNION ALL ")).rows.len(), n);
    }
    for n in [6, 8, 10, 15, 20] {
        assert_eq!(db.error(&vec!["SELECT 1"; n].join(" UNION ALL ")), "too many terms in compound SELECT: SQLITE_ERROR");
    }
    assert_eq!(db.last("VALUES (1),(2),(3),(4),(5),(6),(7)").rows.len(), 7);
}

#[test]
fn d1_20_dbstat_and_page_tables_are_not_there() {
    let mut db = Db::new();
    assert_eq!(db.error("SELECT * FROM dbstat"), "no such table: dbstat: SQLITE_ERROR");
    assert_eq!(db.error("SELECT * FROM sqlite_dbpage"), "no such table: sqlite_dbpage: SQLITE_ERROR");
}

#[test]
fn d1_21_limits_of_a_batch_apply_to_each_statement() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(a)");
    let item = sqlite::Statement { sql: format!("INSERT INTO t VALUES('{}')", "x".repeat(99_900)), params: Vec::new() };
    let batch = sqlite::Batch { items: vec![item; 40], is_prepared: true };
    assert_eq!(sqlite::execute::batch(&mut db.conn, &batch, &Default::default()).unwrap().len(), 40);
}

#[test]
fn d1_02_a_full_database_says_so_and_keeps_what_it_has() {
    let mut limits = Limits::d1_paid();
    limits.database_bytes_max = 40 * 4096;
    let mut db = Db::with(limits);
    db.last("CREATE TABLE t(a)");
    db.last("INSERT INTO t VALUES(zeroblob(100000))");
    assert_eq!(db.error("INSERT INTO t VALUES(zeroblob(100000))"), "Exceeded maximum DB size.");
    assert_eq!(db.value("SELECT count(*) FROM t"), Value::Integer(1));
    db.last("DELETE FROM t");
    db.last("INSERT INTO t VALUES(zeroblob(100000))");
}

#[test]
fn d1_05_statements_and_result_bytes_of_one_request_are_bounded() {
    let mut limits = Limits::d1_paid();
    limits.statements_per_request_max = 3;
    limits.result_bytes_max = 1_000;
    let mut db = Db::with(limits);
    assert_eq!(db.run("SELECT 1; SELECT 2; SELECT 3").unwrap().len(), 3);
    assert!(db.error("SELECT 1; SELECT 2; SELECT 3; SELECT 4").starts_with("too many statements in one request (expected at most 3)"));
    // As JSON: the name `a` and its marks 5, the text's marks 3; a blob's zero takes two bytes, a quote in a text two.
    let too_large = "the result is too large (expected at most 1000 bytes)";
    db.bind("SELECT ?1 AS a", &[Value::Text("x".repeat(992))]).unwrap();
    assert!(db.bind("SELECT ?1 AS a", &[Value::Text("x".repeat(993))]).unwrap_err().starts_with(too_large));
    assert!(db.bind("SELECT ?1 AS a", &[Value::Text("\"".repeat(497))]).unwrap_err().starts_with(too_large));
    db.last("SELECT zeroblob(496) AS a");
    assert!(db.error("SELECT zeroblob(497) AS a").starts_with(too_large));
    // Names count in each row, or a long one would make a small result a large answer.
    let name = "n".repeat(400);
    assert_eq!(db.last(&format!("SELECT 1 AS {name} UNION ALL SELECT 2")).rows.len(), 2);
    assert!(db.error(&format!("SELECT 1 AS {name} UNION ALL SELECT 2 UNION ALL SELECT 3")).starts_with(too_large));
}

#[test]
fn a_script_obeys_the_statement_limit_and_crosses_windows() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(a)");
    let mut text = String::from("-- a long comment ");
    text.push_str(&"c".repeat(600_000));
    text.push_str("\n/*");
    text.push_str(&"*".repeat(700_001));
    text.push_str("*/\r\n");
    for i in 0..20_000 {
        text.push_str(&format!("INSERT INTO t VALUES('{i};--');\r\n"));
    }
    text.push_str("CREATE TRIGGER g AFTER INSERT ON t BEGIN\r\n SELECT CASE WHEN new.a = 1 THEN 2 end;\r\nend");
    let run = |db: &mut Db, text: &str| {
        db.conn.transaction(&mut |_| Ok(()), |conn| script::run(conn, &mut text.as_bytes(), &mut |_| {}).map_err(|failure| failure.error))
    };
    let totals = run(&mut db, &text).unwrap();
    assert_eq!((totals.statements, totals.meta.changes, totals.bytes), (20_001, 20_000, text.len() as u64));
    let long = format!("INSERT INTO t VALUES(1); INSERT INTO t VALUES('{}');", "x".repeat(300_000));
    assert_eq!(run(&mut db, &long).unwrap_err().message, "statement too long: SQLITE_TOOBIG");
    assert_eq!(run(&mut db, "-- nothing").unwrap_err().message, "No SQL statements detected.");
    assert_eq!(db.value("SELECT count(*) FROM t"), Value::Integer(20_000));
}
