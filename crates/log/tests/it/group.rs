//! One fdatasync for all that waits, over all databases; large commits let others through.

use std::sync::Arc;

use log::LocalDisk;

use crate::engine::Engine;

#[test]
fn many_commits_of_many_databases_share_a_sync() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Arc::new(Engine::start(Arc::new(LocalDisk), dir.path().to_str().unwrap(), 1).unwrap());
    for db in 0..3 {
        engine.sql(db, "CREATE TABLE t(a)").unwrap();
    }
    let before = engine.log.stats();
    let threads: Vec<_> = (0..32)
        .map(|i| {
            let engine = Arc::clone(&engine);
            std::thread::spawn(move || {
                for _ in 0..20 {
                    engine.sql(i % 3, "INSERT INTO t VALUES(1)").unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let after = engine.log.stats();
    let (commits, syncs) = (after.commits - before.commits, after.syncs - before.syncs);
    assert_eq!(commits, 640);
    assert!(syncs * 4 <= commits, "{syncs} syncs for {commits} commits");
}

#[test]
fn a_commit_of_many_parts_is_whole_and_lets_others_commit_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().to_str().unwrap().to_owned();
    let engine = Arc::new(Engine::start(Arc::new(LocalDisk), &root, 1).unwrap());
    engine.sql(0, "CREATE TABLE t(a)").unwrap();
    engine.sql(1, "CREATE TABLE t(a)").unwrap();
    let big = Arc::clone(&engine);
    let writer = std::thread::spawn(move || {
        let sql =
            "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 40) SELECT randomblob(1000000) FROM c";
        big.sql(0, sql).unwrap();
    });
    let mut small = 0;
    while !writer.is_finished() {
        engine.sql(1, "INSERT INTO t VALUES(1)").unwrap();
        small += 1;
    }
    writer.join().unwrap();
    assert!(small > 1, "{small}");
    // What a kill would leave: the files as they are.
    drop(Arc::into_inner(engine));
    let engine = Engine::start(Arc::new(LocalDisk), &root, 2).unwrap();
    assert_eq!(engine.sql(0, "SELECT sum(length(a)) FROM t").unwrap()[0][0], sqlite::Value::Integer(40_000_000));
    assert_eq!(engine.sql(1, "SELECT count(*) FROM t").unwrap()[0][0], sqlite::Value::Integer(small));
    engine.stop();
    let log = std::fs::read_dir(dir.path().join("log")).unwrap().count();
    assert!(log <= 2, "{log} segments are left after a clean stop");
}
