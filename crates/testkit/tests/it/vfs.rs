//! SQLite on the lossy disk: it loses nothing that it promised, and loses when a sync is taken out.

use std::{path::Path, sync::Arc, time::Duration};

use log::Disk;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use sqlite::ffi;
use testkit::{
    disk::{Fault, LossyDisk, SyncClass},
    rng::Rng,
};

const DB: &str = "/db/a.db";

fn open_on(disk: &LossyDisk) -> rusqlite::Result<Connection> {
    Connection::open_with_flags_and_vfs(DB, OpenFlags::default(), disk.vfs().unwrap())
}

fn disk(seed: u64) -> Arc<LossyDisk> {
    let disk = LossyDisk::new(seed);
    disk.create_dir(Path::new("/db")).unwrap();
    disk
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Delete,
    Truncate,
    Persist,
    Wal,
}

impl Mode {
    /// What makes a commit durable. FULL does not sync the folder after it has removed the journal,
    /// which may come back then and undo the commit: <https://sqlite.org/pragma.html#pragma_synchronous>.
    fn synchronous(self) -> &'static str {
        if self == Self::Delete { "EXTRA" } else { "FULL" }
    }

    fn open(self, disk: &LossyDisk) -> rusqlite::Result<Connection> {
        let db = open_on(disk)?;
        db.busy_timeout(Duration::ZERO)?;
        db.execute_batch(&format!(
            "PRAGMA journal_mode={self:?}; PRAGMA synchronous={};  PRAGMA wal_autocheckpoint=12; PRAGMA cache_size=10;
             CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, body BLOB); CREATE TABLE IF NOT EXISTS u (n INTEGER PRIMARY KEY, old INTEGER)",
            self.synchronous(),
        ))?;
        Ok(db)
    }
}

/// Transaction `n`: one row in each of two tables, one older row rewritten, one deleted now and then.
fn transact(db: &mut Connection, n: i64, rng: &mut Rng) -> rusqlite::Result<()> {
    let tx = db.transaction()?;
    let mut body = vec![0; rng.index(9000)];
    rng.fill(&mut body);
    tx.execute("INSERT INTO t VALUES (?1, ?2)", (n, body))?;
    let old = 1 + rng.below(n as u64) as i64;
    tx.execute("UPDATE t SET body = zeroblob(length(body)) WHERE n = ?1", [old])?;
    tx.execute("INSERT INTO u VALUES (?1, ?2)", (n, old))?;
    tx.commit()
}

/// What is wrong with the database, given the last acknowledged transaction.
fn check(disk: &LossyDisk, acked: i64) -> Result<(), String> {
    let db = open_on(disk).map_err(|error| format!("open: {error}"))?;
    if acked < 0 && disk.content(Path::new(DB)).is_none_or(|bytes| bytes.is_empty()) {
        return Ok(());
    }
    let text = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).map_err(|error| format!("{sql}: {error}"));
    let integrity = text("PRAGMA integrity_check")?;
    if integrity != "ok" {
        return Err(format!("integrity: {}", integrity.lines().next().unwrap_or_default()));
    }
    if acked < 0 {
        return Ok(());
    }
    for table in ["t", "u"] {
        let found = text(&format!("SELECT count(*) || ' ' || coalesce(max(n), 0) FROM {table}"))?;
        if found != format!("{acked} {acked}") && found != format!("{0} {0}", acked + 1) {
            return Err(format!("{acked} transactions acknowledged, count and last of {table}: {found}"));
        }
    }
    match text("SELECT CAST((SELECT count(*) FROM t) = (SELECT count(*) FROM u) AS TEXT)")?.as_str() {
        "1" => Ok(()),
        _ => Err("half a transaction".to_owned()),
    }
}

/// Runs transactions until the disk dies at `point`. Returns the last one acknowledged, -1 if not
/// even the tables are.
fn work(disk: &LossyDisk, mode: Mode, seed: u64) -> i64 {
    let mut rng = Rng::new(seed);
    let Ok(mut db) = mode.open(disk) else { return -1 };
    let mut acked = 0;
    while transact(&mut db, acked + 1, &mut rng).is_ok() {
        acked += 1;
    }
    assert!(disk.is_dead(), "SQLite failed on a disk that works");
    acked
}

/// One run for each crash point; returns what was wrong.
fn crash_everywhere(mode: Mode, dropped: &[SyncClass], points: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    for point in 1..=points {
        let seed = point ^ 0x5eed;
        let before = disk(seed);
        before.drop_syncs(dropped);
        before.crash_at(before.ops() + point);
        let acked = work(&before, mode, seed);
        let mut after = before.crash(seed);
        // Recovery is interrupted as well, and recovered from.
        for depth in 0..Rng::new(seed).below(3) {
            after.crash_at(1 + Rng::new(seed + depth).below(20));
            check(&after, acked).ok();
            after = after.crash(seed + depth);
        }
        if let Err(error) = check(&after, acked) {
            wrong.push(format!("{mode:?}, crash point {point}, seed {seed}: {error}"));
        }
    }
    wrong
}

#[test]
fn sqlite_loses_no_commit_at_any_crash_point() {
    for mode in [Mode::Delete, Mode::Truncate, Mode::Persist, Mode::Wal] {
        let wrong = crash_everywhere(mode, &[], 400);
        assert!(wrong.is_empty(), "{mode:?}: {} of 400 crash points, first {}", wrong.len(), wrong[0]);
    }
}

#[test]
fn a_missing_sync_of_any_class_is_noticed() {
    for (mode, class) in [
        (Mode::Delete, SyncClass::Journal),
        (Mode::Delete, SyncClass::Database),
        (Mode::Delete, SyncClass::Directory),
        (Mode::Wal, SyncClass::Wal),
        (Mode::Wal, SyncClass::Database),
        (Mode::Wal, SyncClass::Directory),
    ] {
        let wrong = crash_everywhere(mode, &[class], 150);
        eprintln!("{mode:?} without syncs of {class:?}: {} of 150 crash points go wrong", wrong.len());
        assert!(!wrong.is_empty(), "{mode:?} without syncs of {class:?} went unnoticed");
    }
}

/// As SQLite documents: with FULL the last commit before the crash may be undone, and no other.
#[test]
fn a_removed_journal_that_comes_back_undoes_the_last_commit_only() {
    let mut undone = 0;
    for point in 1..300 {
        let before = disk(point);
        before.crash_at(before.ops() + point);
        let mut acked = -1;
        if let Ok(mut db) = Mode::Delete.open(&before) {
            db.execute_batch("PRAGMA synchronous=FULL").unwrap();
            acked = 0;
            while transact(&mut db, acked + 1, &mut Rng::new(point)).is_ok() {
                acked += 1;
            }
        }
        let after = before.crash(point);
        if let Err(error) = check(&after, acked) {
            undone += 1;
            assert_eq!(check(&after, acked - 1), Ok(()), "point {point}: {error}");
        }
    }
    assert!(undone > 0, "no removed journal ever came back");
}

#[test]
fn a_killed_process_loses_no_commit() {
    for mode in [Mode::Delete, Mode::Wal] {
        for point in 1..150 {
            let before = disk(point);
            before.drop_syncs(&[SyncClass::Journal, SyncClass::Wal, SyncClass::Database, SyncClass::Directory]);
            before.crash_at(before.ops() + point);
            let acked = work(&before, mode, point);
            assert_eq!(check(&before.kill(), acked), Ok(()), "{mode:?} point {point}");
        }
    }
}

#[test]
fn readers_keep_their_snapshot_beside_a_writer() {
    let disk = disk(1);
    let mut writer = Mode::Wal.open(&disk).unwrap();
    let mut rng = Rng::new(1);
    transact(&mut writer, 1, &mut rng).unwrap();
    let count = |db: &Connection| db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap();
    let (old, new) = (open_on(&disk).unwrap(), open_on(&disk).unwrap());
    old.execute_batch("BEGIN").unwrap();
    assert_eq!(count(&old), 1);
    for n in 2..40 {
        transact(&mut writer, n, &mut rng).unwrap();
        assert_eq!((count(&old), count(&new)), (1, n));
    }
    assert!(disk.exists(Path::new("/db/a.db-wal")));
    old.execute_batch("COMMIT").unwrap();
    drop((old, new, writer));
    assert!(!disk.exists(Path::new("/db/a.db-wal")), "the last connection checkpoints and removes the WAL");
    assert_eq!(check(&disk.kill(), 39), Ok(()));
}

#[test]
fn two_writers_exclude_each_other() {
    for mode in [Mode::Delete, Mode::Wal] {
        let disk = disk(1);
        let (one, two) = (mode.open(&disk).unwrap(), open_on(&disk).unwrap());
        two.busy_timeout(Duration::ZERO).unwrap();
        one.execute_batch("BEGIN IMMEDIATE; INSERT INTO u VALUES (1, 1)").unwrap();
        assert_eq!(two.execute("INSERT INTO u VALUES (2, 2)", []).unwrap_err().sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
        one.execute_batch("COMMIT").unwrap();
        two.execute("INSERT INTO u VALUES (2, 2)", []).unwrap();
    }
}

#[test]
fn threads_share_one_database() {
    for mode in [Mode::Delete, Mode::Wal] {
        let disk = disk(1);
        drop(mode.open(&disk).unwrap());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let disk = &disk;
                scope.spawn(move || {
                    let db = open_on(disk).unwrap();
                    db.busy_timeout(Duration::from_secs(60)).unwrap();
                    for i in 0..25 {
                        db.execute("INSERT INTO u VALUES (?1, 0)", [thread * 1000 + i]).unwrap();
                        db.query_row("SELECT count(*) FROM u", [], |row| row.get::<_, i64>(0)).unwrap();
                    }
                });
            }
        });
        let db = open_on(&disk).unwrap();
        assert_eq!(db.query_row("SELECT count(*) FROM u", [], |row| row.get::<_, i64>(0)).unwrap(), 100, "{mode:?}");
    }
}

#[test]
fn full_failing_and_read_only_disks_give_their_codes_and_lose_nothing() {
    for mode in [Mode::Delete, Mode::Wal] {
        let disk = disk(3);
        let mut db = mode.open(&disk).unwrap();
        let mut rng = Rng::new(1);
        for n in 1..5 {
            transact(&mut db, n, &mut rng).unwrap();
        }
        disk.capacity(Some(disk.used_bytes() + 8192));
        let full = (0..50).find_map(|_| db.execute("INSERT INTO t VALUES (NULL, zeroblob(5000))", []).err()).unwrap();
        assert_eq!(full.sqlite_error_code(), Some(ErrorCode::DiskFull), "{mode:?}: {full}");
        disk.capacity(None);
        db.execute("DELETE FROM t WHERE n > 4", []).unwrap();
        disk.fail_at(disk.ops() + 1, Fault::Io);
        let failed = transact(&mut db, 5, &mut rng).unwrap_err();
        assert!(matches!(failed.sqlite_error_code(), Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen)), "{mode:?}: {failed}");
        drop(db);
        assert_eq!(check(&disk, 4), Ok(()));
        let open_before = open_on(&disk).unwrap();
        open_before.query_row("SELECT count(*) FROM u", [], |row| row.get::<_, i64>(0)).unwrap();
        disk.read_only(true);
        let insert = |db: &Connection| db.execute("INSERT INTO u VALUES (9, 9)", []).unwrap_err().sqlite_error_code();
        let refused = insert(&open_on(&disk).unwrap());
        assert_eq!(refused, Some(ErrorCode::ReadOnly), "{mode:?}");
        let refused = insert(&open_before);
        assert!(matches!(refused, Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen)), "{mode:?}: {refused:?}");
        drop(open_before);
        assert_eq!(check(&disk.kill(), 4), Ok(()));
    }
}

#[test]
fn a_disk_dropped_before_its_connections_leaves_them_usable() {
    let disk = disk(1);
    let db = Mode::Wal.open(&disk).unwrap();
    let name = disk.vfs().unwrap().to_owned();
    drop(disk);
    db.execute("INSERT INTO u VALUES (1, 1)", []).unwrap();
    assert!(Connection::open_with_flags_and_vfs(DB, OpenFlags::default(), name.as_str()).is_err());
    drop(db);
}

#[test]
fn connections_of_a_dead_process_close_without_touching_the_next_one() {
    let disk = disk(1);
    let mut db = Mode::Wal.open(&disk).unwrap();
    transact(&mut db, 1, &mut Rng::new(1)).unwrap();
    let next = disk.kill();
    let wal = next.content(Path::new("/db/a.db-wal"));
    assert!(transact(&mut db, 2, &mut Rng::new(1)).is_err());
    drop(db);
    assert_eq!(next.content(Path::new("/db/a.db-wal")), wal);
    assert_eq!(check(&next, 1), Ok(()));
}

/// The engine reads the frames of a commit through the writer's own handle on the WAL.
#[test]
#[allow(unsafe_code)]
fn the_wal_can_be_read_through_the_journal_pointer() {
    let disk = disk(1);
    let mut db = Mode::Wal.open(&disk).unwrap();
    transact(&mut db, 1, &mut Rng::new(1)).unwrap();
    let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    let wal = disk.content(Path::new("/db/a.db-wal")).unwrap();
    let mut head = [0u8; 32];
    // SAFETY: the connection is open and idle; `file` belongs to it and is used while it is open.
    unsafe {
        let code = ffi::sqlite3_file_control(db.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_JOURNAL_POINTER, (&raw mut file).cast());
        assert_eq!(code, ffi::SQLITE_OK);
        let read = (*(*file).pMethods).xRead.unwrap();
        assert_eq!(read(file, head.as_mut_ptr().cast(), 32, 0), ffi::SQLITE_OK);
        assert_eq!(read(file, head.as_mut_ptr().cast(), 32, wal.len() as i64 - 16), ffi::SQLITE_IOERR_SHORT_READ);
        assert_eq!(head[16..], [0; 16], "a short read is filled up with zeros");
        assert_eq!(read(file, head.as_mut_ptr().cast(), 32, 0), ffi::SQLITE_OK);
    }
    assert_eq!(head, wal[..32]);
    assert_eq!(disk.open(Path::new("/db/a.db-wal"), false).unwrap().len().unwrap(), wal.len() as u64);
}

#[test]
fn large_sorts_use_temporary_files_that_are_not_numbered() {
    let disk = disk(1);
    let db = Mode::Wal.open(&disk).unwrap();
    db.execute_batch("PRAGMA temp_store=FILE; PRAGMA cache_size=5").unwrap();
    let before = disk.ops();
    let sql = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 30000)
               SELECT count(*) FROM (SELECT i, hex(randomblob(50)) AS h FROM c ORDER BY h LIMIT -1 OFFSET 0)";
    assert_eq!(db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 30000);
    assert_eq!(disk.ops(), before);
}
