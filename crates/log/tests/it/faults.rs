//! Failing writes, failing syncs, full and read-only disks: an error, and nothing acknowledged is lost.

use std::sync::Arc;

use base::Code;
use log::Disk;
use sqlite::Value;
use testkit::disk::{Fault, LossyDisk};

use crate::engine::{Engine, ROOT};

fn engine(disk: &Arc<LossyDisk>) -> Engine {
    Engine::start(Arc::clone(disk) as Arc<dyn Disk>, ROOT, 1).unwrap()
}

fn count(engine: &Engine) -> Value {
    engine.sql(0, "SELECT count(*) FROM t").unwrap()[0][0].clone()
}

#[test]
fn any_single_failing_operation_loses_nothing_and_the_database_goes_on_or_the_log_stops() {
    let (mut refused, mut poisoned, mut unharmed) = (0, 0, 0);
    for n in 1..=40 {
        let disk = LossyDisk::new(n);
        let engine = engine(&disk);
        engine.sql(0, "CREATE TABLE t(a); INSERT INTO t VALUES(0)").unwrap();
        disk.fail_at(disk.ops() + n, Fault::Io);
        let mut acknowledged = 1;
        for _ in 0..6 {
            match engine.sql(0, "INSERT INTO t VALUES(1)") {
                Ok(_) => acknowledged += 1,
                Err(error) => {
                    assert!(matches!(error.code, Code::Io | Code::DiskFull), "{error:?}");
                    refused += 1;
                }
            }
        }
        if engine.poisoned.lock().unwrap().is_some() {
            poisoned += 1;
            assert!(engine.sql(0, "SELECT 1").is_err() || engine.sql(0, "INSERT INTO t VALUES(1)").is_err());
        } else {
            assert_eq!(count(&engine), Value::Integer(acknowledged), "operation {n}");
            unharmed += 1;
        }
        drop(engine);
        let after = Engine::start(disk.crash(n) as Arc<dyn Disk>, ROOT, 2).unwrap();
        let Value::Integer(found) = count(&after) else { panic!("no count") };
        assert!(found >= acknowledged, "operation {n}: {acknowledged} acknowledged, {found} found");
    }
    assert!(refused > 0 && poisoned > 0 && unharmed > 0, "{refused} refused, {poisoned} poisoned, {unharmed} unharmed");
}

#[test]
fn a_failed_fdatasync_is_never_tried_again() {
    let disk = LossyDisk::new(5);
    let engine = engine(&disk);
    engine.sql(0, "CREATE TABLE t(a)").unwrap();
    disk.fail_at_sync(1, Fault::Io);
    let error = engine.sql(0, "INSERT INTO t VALUES(1)").unwrap_err();
    assert_eq!(error.code, Code::Io);
    let reason = engine.poisoned.lock().unwrap().clone().unwrap();
    assert!(reason.starts_with("fdatasync of the commit log failed"), "{reason}");
    let syncs = engine.log.stats().syncs;
    assert!(engine.sql(0, "INSERT INTO t VALUES(2)").is_err());
    assert_eq!(engine.log.stats().syncs, syncs);
}

#[test]
fn a_full_disk_refuses_writes_keeps_reads_and_recovers_when_there_is_room() {
    let disk = LossyDisk::new(9);
    let engine = engine(&disk);
    engine.sql(0, "CREATE TABLE t(a)").unwrap();
    disk.capacity(Some(disk.used_bytes() + 3_000_000));
    let mut stored = 0;
    let error = loop {
        match engine.sql(0, "INSERT INTO t VALUES(randomblob(500000))") {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 200, "the disk never filled");
    };
    assert_eq!(error.code, Code::DiskFull, "{error:?}");
    assert_eq!(count(&engine), Value::Integer(stored));
    assert!(engine.poisoned.lock().unwrap().is_none());
    disk.capacity(None);
    engine.sql(0, "INSERT INTO t VALUES(1)").unwrap();
    assert_eq!(count(&engine), Value::Integer(stored + 1));
}

#[test]
fn a_read_only_disk_refuses_writes_with_an_error() {
    let disk = LossyDisk::new(10);
    let engine = engine(&disk);
    engine.sql(0, "CREATE TABLE t(a)").unwrap();
    disk.read_only(true);
    assert!(engine.sql(0, "INSERT INTO t VALUES(1)").is_err());
    drop(engine);
    assert!(Engine::start(Arc::clone(&disk) as Arc<dyn Disk>, ROOT, 1).is_err());
}
