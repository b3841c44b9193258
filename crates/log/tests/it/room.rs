//! How much of the disk a large transaction takes, while it runs and afterwards.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use log::{Disk, DiskFile, LocalDisk, layout};

use crate::engine::{Engine, id};

/// The machine's disk, and the lengths of the log's files on it.
#[derive(Default)]
struct Watched {
    lengths: Arc<Mutex<Lengths>>,
}

#[derive(Default)]
struct Lengths {
    of: HashMap<PathBuf, u64>,
    peak: u64,
}

impl Lengths {
    fn set(&mut self, path: &Path, len: u64) {
        if path.extension().is_some_and(|extension| extension == "log") {
            self.of.insert(path.to_owned(), len);
            self.peak = self.peak.max(self.of.values().sum());
        }
    }
}

struct WatchedFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    lengths: Arc<Mutex<Lengths>>,
}

impl DiskFile for WatchedFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.lengths.lock().unwrap().set(&self.path, len);
        Ok(())
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)?;
        self.lengths.lock().unwrap().set(&self.path, self.file.len()?);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Disk for Watched {
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file = LocalDisk.open(path, create)?;
        Ok(Arc::new(WatchedFile { file, path: path.to_owned(), lengths: Arc::clone(&self.lengths) }))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        LocalDisk.remove(path)?;
        self.lengths.lock().unwrap().of.remove(path);
        Ok(())
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        LocalDisk.rename(from, to)
    }
    fn exists(&self, path: &Path) -> bool {
        LocalDisk.exists(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        LocalDisk.list(dir)
    }
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        LocalDisk.create_dir(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        LocalDisk.sync_dir(dir)
    }
}

const COMMIT_BYTES: u64 = 150_000_000;

fn fill(rows: u64) -> String {
    format!(
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {rows}) INSERT INTO t SELECT x, zeroblob(1000000) FROM c"
    )
}

#[test]
fn a_commit_of_many_segments_reserves_its_bytes_once_and_not_for_each_page_that_it_wrote_again() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Watched::default();
    let lengths = Arc::clone(&disk.lengths);
    let engine = Engine::start(Arc::new(disk), dir.path().to_str().unwrap(), 1).unwrap();
    engine.sql(0, "CREATE TABLE t(a INTEGER PRIMARY KEY, b)").unwrap();
    // Each row is written, falls out of the cache, and is written again.
    engine.sql(0, &format!("{}; UPDATE t SET b = randomblob(1000000)", fill(COMMIT_BYTES / 1_000_000))).unwrap();
    let bytes = engine.log.stats().bytes;
    let peak = lengths.lock().unwrap().peak;
    assert!(bytes > COMMIT_BYTES, "{bytes}");
    // A new segment is made with room for the rest before the old one gives up its own.
    assert!(peak < 2 * COMMIT_BYTES, "{bytes} bytes were logged, and the log took up to {peak}");
    engine.stop();
}

#[test]
fn a_large_transaction_that_is_undone_leaves_no_long_wal() {
    let dir = tempfile::tempdir().unwrap();
    let start = || Engine::start(Arc::new(LocalDisk), dir.path().to_str().unwrap(), 1).unwrap();
    let engine = start();
    engine.sql(0, "CREATE TABLE t(a INTEGER PRIMARY KEY, b)").unwrap();
    // Without a commit of its own since the start, nothing but the failure itself leads to a checkpoint.
    engine.stop();
    let engine = start();
    let [wal, _] = layout::side_files(&layout::database_path(dir.path(), id(0)));
    let len = || std::fs::metadata(&wal).map_or(0, |metadata| metadata.len());
    engine.sql(0, &format!("{}; INSERT INTO nope VALUES(1)", fill(50))).unwrap_err();
    // The answer comes before the database is tidied.
    for _ in 0..200 {
        if len() < 1_000_000 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(len() < 1_000_000, "the WAL still has {} bytes", len());
    assert_eq!(engine.sql(0, "SELECT count(*) FROM t").unwrap()[0][0], sqlite::Value::Integer(0));
    engine.stop();
}
