use sqlite::Value;

use crate::Db;

const FILL: &str = "INSERT INTO d1_bench (tenant, payload) SELECT 'tenant-' || (abs(random()) % 500), hex(randomblob(32)) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 50000) SELECT x FROM c)";
const COUNT: &str = "SELECT COUNT(*) AS n FROM d1_bench WHERE tenant = 'tenant-42'";

#[test]
fn d2_03_to_d2_06_the_seeds_bench_costs_what_production_billed() {
    let mut db = Db::new();
    db.last("CREATE TABLE d1_bench (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, payload TEXT)");
    assert_eq!(db.last(FILL).meta.changes, 50_000);
    assert_eq!(db.cost(COUNT), (50_000, 0));
    let (read, written) = db.cost("CREATE INDEX d1_bench_tenant_idx ON d1_bench (tenant)");
    assert_eq!(written, 50_001);
    assert!((100_430..=100_450).contains(&read), "{read}");
    let matches = db.last(COUNT);
    let Value::Integer(n) = matches.rows[0][0] else { panic!("{matches:?}") };
    assert_eq!(matches.meta.rows_read, n as u64 + 1);
    assert_eq!(db.cost("INSERT INTO d1_bench (tenant, payload) VALUES ('tenant-42','x')"), (0, 2));
}

fn articles() -> Db {
    let mut db = Db::new();
    db.last("CREATE TABLE articles(slug TEXT PRIMARY KEY, title TEXT, body TEXT, meta TEXT)");
    db.last("INSERT INTO articles WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 2186) SELECT 'slug-'||x,'title '||x,hex(randomblob(20)),'m' FROM c");
    db
}

#[test]
fn d2_07_and_d2_08_reads_of_2186_rows_cost_what_production_billed() {
    let mut db = articles();
    assert_eq!(db.cost("SELECT COUNT(*) FROM articles"), (2186, 0));
    assert_eq!(db.cost("SELECT * FROM articles WHERE slug = 'slug-7'"), (1, 0));
    assert_eq!(db.cost("SELECT COUNT(*) FROM articles WHERE title = 'title 9'"), (2186, 0));
    assert_eq!(db.cost("SELECT slug FROM articles ORDER BY LENGTH(body)+LENGTH(meta) DESC LIMIT 5"), (4372, 0));
    assert_eq!(db.cost("SELECT slug FROM articles ORDER BY LENGTH(body)+LENGTH(meta) DESC"), (4372, 0));
    assert_eq!(db.cost("SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1"), (0, 0));
}

#[test]
fn d2_09_an_index_costs_a_second_row_only_when_its_column_is_written() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); CREATE INDEX i ON t(a); INSERT INTO t(a,b) VALUES(1,1)");
    assert_eq!(db.cost("UPDATE t SET b = 2 WHERE id = 1"), (1, 1));
    assert_eq!(db.cost("UPDATE t SET a = 2 WHERE id = 1"), (1, 2));
    assert_eq!(db.cost("DELETE FROM t WHERE id = 1"), (1, 1));
}

#[test]
fn the_meter_starts_at_zero_for_each_statement_of_a_batch() {
    let mut db = articles();
    let results = db.run("SELECT COUNT(*) FROM articles; SELECT COUNT(*) FROM articles").unwrap();
    assert_eq!(results.iter().map(|result| result.meta.rows_read).collect::<Vec<_>>(), [2186, 2186]);
}

#[test]
fn last_row_id_is_sticky_and_changes_are_counted_with_triggers() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE TABLE l(a); CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO l VALUES(1); END");
    let meta = db.last("INSERT INTO t(id, a) VALUES(7, 1)").meta;
    assert_eq!((meta.changes, meta.last_row_id, meta.changed_db, meta.rows_written), (2, 7, true, 2));
    let meta = db.last("SELECT 1").meta;
    assert_eq!((meta.changes, meta.last_row_id, meta.changed_db), (0, 7, false));
    let meta = db.last("ALTER TABLE t ADD COLUMN b TEXT").meta;
    assert_eq!((meta.changes, meta.changed_db), (0, false));
    assert!(db.last("CREATE TABLE u(a)").meta.changed_db);
    let size = db.last("SELECT 1").meta.size_after;
    let meta = db.last("DROP TABLE u").meta;
    assert_eq!((meta.changed_db, meta.size_after), (true, size - 4096), "freed pages do not count");
}
