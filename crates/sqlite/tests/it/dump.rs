//! A dump imports into an empty database and gives the same rows and schema.

use sqlite::{dump, script};

use crate::Db;

const SCHEMA: &str = "CREATE TABLE early(p INTEGER REFERENCES p(id)); CREATE TABLE _hearth_long_values(a);
CREATE TABLE p(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL CHECK(length(name) > 0), b BLOB, r REAL);
CREATE TABLE c(p INTEGER REFERENCES p(id), k TEXT, g AS (upper(k)) STORED, PRIMARY KEY(p, k)) WITHOUT ROWID;
CREATE TABLE \"odd \"\" name\"(\"a b\", 'c');
CREATE INDEX pi ON p(name);
CREATE VIEW v AS SELECT id, name FROM p;
CREATE TRIGGER g AFTER INSERT ON p BEGIN INSERT INTO \"odd \"\" name\" VALUES(new.id, 'from trigger'); END;
CREATE VIRTUAL TABLE f USING fts5(title, body);
CREATE VIRTUAL TABLE e USING fts5(name, content='p', content_rowid='id');
CREATE VIRTUAL TABLE ev USING fts5(name, content='v', content_rowid='id');
CREATE VIRTUAL TABLE rt USING rtree(id, x0, x1);
CREATE VIRTUAL TABLE fv USING fts5vocab(f, row)";

const ROWS: &str = "INSERT INTO p(name, b, r) VALUES('it''s', X'00ff', 0.1+0.2),('nul'||char(0)||'x', NULL, 9e999),('\u{e9}', zeroblob(0), -1e300);
INSERT INTO p(name, b) VALUES(hex(zeroblob(900000)), NULL),('long blob', randomblob(2000000)),(CAST('x'||zeroblob(1999999) AS TEXT), X'01'),(replace(hex(zeroblob(40000)),'0',''''),randomblob(70000));
DELETE FROM p WHERE id = 3;
INSERT INTO c(p, k) VALUES(1,'a'),(1,'b');
INSERT INTO early VALUES(2);
INSERT INTO _hearth_long_values VALUES('mine');
INSERT INTO f(rowid, title, body) VALUES(7,'hello','big world'),(9,'bye','world');
INSERT INTO e(e) VALUES('rebuild');
INSERT INTO ev(ev) VALUES('rebuild');
INSERT INTO rt VALUES(1, 0.5, 2.5)";

const CHECKS: [&str; 11] = [
    "SELECT * FROM early",
    "SELECT * FROM _hearth_long_values",
    "SELECT rowid FROM ev WHERE ev MATCH 'it'",
    "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name",
    "SELECT id, name, typeof(name), b, typeof(b), r FROM p ORDER BY id",
    "SELECT * FROM c",
    "SELECT * FROM \"odd \"\" name\"",
    "SELECT rowid, * FROM f WHERE f MATCH 'world' ORDER BY rowid",
    "SELECT rowid FROM e WHERE e MATCH 'it'",
    "SELECT * FROM rt",
    "SELECT name, seq FROM sqlite_sequence",
];

fn export(db: &mut Db, options: &dump::Options) -> Result<String, String> {
    let mut out = Vec::new();
    db.conn.transaction(&mut |_| Ok(()), |conn| dump::write(conn, options, &mut out, &mut |_| {})).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

fn import(db: &mut Db, text: &str) {
    db.conn
        .transaction(&mut |_| Ok(()), |conn| script::run(conn, &mut text.as_bytes(), &mut |_| {}).map_err(|failure| failure.error))
        .unwrap();
}

#[test]
fn a_dump_with_virtual_tables_and_long_values_imports_again() {
    let mut db = Db::new();
    db.last(SCHEMA);
    db.last(ROWS);
    let text = export(&mut db, &dump::Options::default()).unwrap();
    assert!(text.lines().all(|line| line.len() < 100_000), "a statement is too long to import");
    let mut copy = Db::new();
    import(&mut copy, &text);
    for sql in CHECKS {
        let (want, got) = (db.last(sql), copy.last(sql));
        assert!(want.rows == got.rows, "{sql}: {} and {} rows, or other values", want.rows.len(), got.rows.len());
    }
    assert_eq!(export(&mut copy, &dump::Options::default()).unwrap(), text);
}

#[test]
fn a_dump_of_chosen_parts_holds_just_them() {
    let mut db = Db::new();
    db.last("CREATE TABLE a(x); CREATE INDEX ai ON a(x); CREATE TABLE b(y); INSERT INTO a VALUES(1); INSERT INTO b VALUES(2)");
    let only = |no_schema, no_data, tables: &[&str]| dump::Options {
        no_schema,
        no_data,
        tables: tables.iter().map(|t| (*t).to_owned()).collect(),
    };
    let head = "PRAGMA defer_foreign_keys=TRUE;\n";
    assert_eq!(export(&mut db, &only(false, true, &["a"])).unwrap(), format!("{head}CREATE TABLE a(x);\nCREATE INDEX ai ON a(x);\n"));
    assert_eq!(
        export(&mut db, &only(true, false, &[])).unwrap(),
        format!("{head}INSERT INTO \"a\" (\"x\") VALUES(1);\nINSERT INTO \"b\" (\"y\") VALUES(2);\n")
    );
    assert_eq!(export(&mut db, &only(false, false, &["nope"])).unwrap_err(), "no such table: nope");
    db.last("CREATE VIRTUAL TABLE f USING fts5(x, content='')");
    assert!(export(&mut db, &dump::Options::default()).unwrap_err().contains("contentless FTS5 table `f`"));
    assert!(export(&mut db, &only(false, false, &["b"])).is_ok());
}
