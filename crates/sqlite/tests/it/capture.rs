//! Every commit's pages, put onto a copy of the file, give the file that SQLite has.

use std::os::unix::fs::FileExt;

use sqlite::{Batch, Conn, PAGE_BYTES, execute};

use crate::Db;

/// A copy that only ever sees captured pages.
struct Shadow(std::fs::File);

impl Shadow {
    fn apply(&self, conn: &mut Conn) -> bool {
        let Some(commit) = conn.take_commit().unwrap() else { return false };
        let mut page = [0; PAGE_BYTES];
        for (number, frame) in &commit.pages {
            conn.read_page(&commit, *frame, &mut page).unwrap();
            self.0.write_all_at(&page, u64::from(number - 1) * PAGE_BYTES as u64).unwrap();
        }
        self.0.set_len(u64::from(commit.database_pages) * PAGE_BYTES as u64).unwrap();
        true
    }
}

#[test]
fn captured_pages_rebuild_the_file_over_rollbacks_spills_and_checkpoints() {
    let mut db = Db::new();
    let shadow_path = db.path.with_extension("shadow");
    std::fs::write(&shadow_path, sqlite::empty_database()).unwrap();
    let shadow = Shadow(std::fs::OpenOptions::new().read(true).write(true).open(&shadow_path).unwrap());
    let big = "INSERT INTO t(a) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 9000) SELECT randomblob(900) FROM c";
    let script = [
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a)",
        "INSERT INTO t(a) VALUES(1)",
        "SELECT * FROM t",
        "INSERT INTO t(a) VALUES(2); SELECT bad",
        "CREATE INDEX i ON t(a)",
        big,
        "DELETE FROM t WHERE id % 2",
        "!checkpoint",
        "INSERT INTO t(a) VALUES(3)",
        "CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES('hello')",
        "!checkpoint",
        "INSERT INTO t(a) SELECT a FROM t; SELECT bad",
        "DROP TABLE f",
        "UPDATE t SET a = 7 WHERE id < 100",
    ];
    let mut commits = 0;
    for sql in script {
        if sql == "!checkpoint" {
            assert!(db.conn.checkpoint().unwrap());
            continue;
        }
        let _ = execute::batch(&mut db.conn, &Batch::sql(sql), &Default::default());
        commits += u32::from(shadow.apply(&mut db.conn));
    }
    assert_eq!(commits, 9);
    assert!(db.conn.checkpoint().unwrap());
    assert!(std::fs::read(&db.path).unwrap() == std::fs::read(&shadow_path).unwrap(), "the rebuilt file differs");
}

#[test]
fn a_reservation_that_is_refused_undoes_the_transaction() {
    let mut db = Db::new();
    db.last("CREATE TABLE t(a)");
    let mut asked = 0;
    let mut refuse = |bytes: u64| {
        asked = bytes;
        Err(base::Error::new(base::Code::DiskFull, "no room"))
    };
    let batch = Batch::sql("INSERT INTO t VALUES(zeroblob(100000))");
    let error = execute::batch_reserving(&mut db.conn, &batch, &Default::default(), &mut refuse).unwrap_err();
    assert_eq!(error.message, "no room");
    assert!(asked >= 100_000, "{asked}");
    assert_eq!(db.value("SELECT count(*) FROM t"), sqlite::Value::Integer(0));
}
