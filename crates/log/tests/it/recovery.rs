//! Start-up: redo, torn tails, damage.

use std::{path::Path, sync::Arc};

use base::Code;
use log::LocalDisk;
use sqlite::Value;

use crate::engine::Engine;

fn start(root: &Path) -> base::Result<Engine> {
    Engine::start(Arc::new(LocalDisk), root.to_str().unwrap(), 1)
}

/// A folder as a kill leaves it, with `n` rows in database 0.
fn killed(n: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let engine = start(dir.path()).unwrap();
    engine.sql(0, "CREATE TABLE t(a)").unwrap();
    for _ in 0..n {
        engine.sql(0, "INSERT INTO t VALUES(1)").unwrap();
    }
    drop(engine);
    dir
}

fn segments(root: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(root.join("log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn rows(engine: &Engine) -> Value {
    engine.sql(0, "SELECT count(*) FROM t").unwrap()[0][0].clone()
}

/// The bytes of the log that hold records.
fn written(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).unwrap() + 1
}

#[test]
fn redo_needs_neither_the_wal_nor_the_database_file_and_may_run_twice() {
    let dir = killed(5);
    let file = log::layout::database_path(dir.path(), crate::engine::id(0));
    for side in log::layout::side_files(&file) {
        let _ = std::fs::remove_file(side);
    }
    std::fs::remove_file(&file).unwrap();
    let log = segments(dir.path()).remove(0);
    let copy = std::fs::read(&log).unwrap();
    let engine = start(dir.path()).unwrap();
    assert_eq!(engine.recovered.commits, 6);
    assert_eq!(rows(&engine), Value::Integer(5));
    drop(engine);
    // As if the first recovery had crashed at its very end: the old segment is still there.
    std::fs::write(&log, copy).unwrap();
    let engine = start(dir.path()).unwrap();
    assert_eq!(rows(&engine), Value::Integer(5));
    engine.sql(0, "UPDATE t SET a = 2").unwrap();
    engine.stop();
    let engine = start(dir.path()).unwrap();
    assert_eq!(engine.recovered.commits, 0, "a clean stop leaves nothing to redo");
    assert_eq!(rows(&engine), Value::Integer(5));
}

#[test]
fn a_torn_tail_is_cut_and_damage_before_it_is_refused_by_file_name() {
    let dir = killed(5);
    let log = segments(dir.path()).remove(0);
    let bytes = std::fs::read(&log).unwrap();
    let end = written(&bytes);

    // The last record loses its end: nothing after it says that it was durable.
    let mut torn = bytes.clone();
    torn[end - 100..end].fill(0);
    std::fs::write(&log, &torn).unwrap();
    let engine = start(dir.path()).unwrap();
    assert_eq!(rows(&engine), Value::Integer(4));
    assert!(engine.recovered.torn_bytes > 0);
    engine.stop();

    // A record in the middle is damaged: later ones were written when it was durable.
    let dir = killed(5);
    let log = segments(dir.path()).remove(0);
    let mut damaged = std::fs::read(&log).unwrap();
    damaged[64 + 300] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    let error = start(dir.path()).err().unwrap();
    assert_eq!(error.code, Code::Corrupt);
    assert!(error.message.contains("log/0000000000000000.log is damaged at byte 64"), "{error:?}");
    assert_eq!(std::fs::read(&log).unwrap(), damaged, "a refused start changes nothing");

    // A header that is damaged names the file too.
    let mut damaged = bytes;
    damaged[3] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    assert_eq!(start(dir.path()).err().unwrap().code, Code::Corrupt);
}

#[test]
fn a_wal_that_recovery_did_not_write_is_not_believed() {
    let dir = killed(3);
    let file = log::layout::database_path(dir.path(), crate::engine::id(0));
    let wal = log::layout::side_files(&file)[0].clone();
    let before = std::fs::read(&wal).unwrap();
    assert!(!before.is_empty());
    let engine = start(dir.path()).unwrap();
    engine.stop();
    // The old WAL turns up again, as it may after power loss: its frames are of the past.
    std::fs::write(&wal, &before[..before.len() - 4120]).unwrap();
    let engine = start(dir.path()).unwrap();
    assert_eq!(rows(&engine), Value::Integer(3));
}

#[test]
fn segments_that_nobody_needs_go() {
    let dir = tempfile::tempdir().unwrap();
    let engine = start(dir.path()).unwrap();
    engine.sql(0, "CREATE TABLE t(a)").unwrap();
    for _ in 0..12 {
        let sql =
            "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 20) SELECT randomblob(1000000) FROM c";
        engine.sql(0, sql).unwrap();
        engine.sql(0, "DELETE FROM t").unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(900));
    let bytes: u64 = segments(dir.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(engine.log.stats().bytes > 240_000_000);
    assert!(bytes <= 200 << 20, "{bytes} bytes of log are kept");
    engine.stop();
}

#[test]
fn commit_times_never_go_back_with_the_clock_over_a_restart_too() {
    let dir = tempfile::tempdir().unwrap();
    let at = |ms: i64, clean: bool| {
        let engine = Engine::start_at(dir.path().to_str().unwrap(), ms).unwrap();
        engine.sql(0, "CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES(1)").unwrap();
        let time = engine.log_times()[&crate::engine::id(0)];
        if clean {
            engine.stop();
        }
        time
    };
    let mut last = 0;
    for (ms, clean) in [(5_000, false), (9_000, true), (1_000, true), (2_000, false), (3_000, false), (20_000, true)] {
        let time = at(ms, clean);
        assert!(time > last && time >= ms, "{last}, then {time} at {ms}");
        last = time;
    }
    assert!((20_000..21_000).contains(&last), "{last}");
}

#[test]
fn redo_makes_no_file_with_holes() {
    let dir = tempfile::tempdir().unwrap();
    let engine = start(dir.path()).unwrap();
    engine.sql(0, "CREATE TABLE t(a); INSERT INTO t VALUES(zeroblob(100000))").unwrap();
    engine.sql(1, "CREATE TABLE t(a)").unwrap();
    engine.stop();
    let engine = start(dir.path()).unwrap();
    engine.sql(0, "INSERT INTO t VALUES(1)").unwrap();
    drop(engine);
    let file = log::layout::database_path(dir.path(), crate::engine::id(0));
    let whole = std::fs::read(&file).unwrap();

    // Cut: the log does not hold what is missing, so the start is refused and nothing is changed.
    std::fs::write(&file, &whole[..8192]).unwrap();
    let before = std::fs::read(&segments(dir.path())[0]).unwrap();
    let error = start(dir.path()).err().unwrap();
    assert_eq!(error.code, Code::Corrupt);
    assert!(error.message.contains("has 2 pages") && error.message.contains("Nothing was changed"), "{error}");
    assert_eq!(std::fs::read(&segments(dir.path())[0]).unwrap(), before);
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(start(dir.path()).unwrap().sql(0, "SELECT count(*) FROM t").unwrap()[0][0], Value::Integer(2));

    // Gone: a deleted database looks like this. It is not made anew from a part, and others go on.
    let engine = start(dir.path()).unwrap();
    engine.sql(0, "INSERT INTO t VALUES(2)").unwrap();
    engine.sql(1, "INSERT INTO t VALUES(2)").unwrap();
    drop(engine);
    std::fs::remove_file(&file).unwrap();
    let engine = start(dir.path()).unwrap();
    // The test's engine makes a new empty file where there is none.
    assert!(engine.sql(0, "SELECT * FROM t").is_err());
    assert_eq!(engine.sql(1, "SELECT count(*) FROM t").unwrap()[0][0], Value::Integer(1));
}
