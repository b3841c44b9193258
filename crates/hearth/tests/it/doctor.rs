//! `hearth doctor` on folders that a server has used and left.

use std::{
    fs,
    os::unix::fs::{FileExt, PermissionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::process::Signal;

use crate::harness::{Output, Site, hearth, run};

/// A folder that a server left, with the databases `a` and `b`.
struct Left {
    dir: tempfile::TempDir,
    ids: [String; 2],
}

impl Left {
    fn after(signal: Signal) -> Self {
        let site = Site::start();
        let ids = ["a", "b"].map(|name| {
            let id = site.run(&["d1", "create", name, "--json"]).json()["uuid"].as_str().unwrap().to_owned();
            let sql = "CREATE TABLE t(x); INSERT INTO t VALUES (randomblob(100000)); UPDATE t SET x = randomblob(100000)";
            site.run(&["d1", "execute", name, "--command", sql]).ok();
            id
        });
        let Site { dir, server } = site;
        server.signal(signal);
        server.wait();
        Self { dir, ids }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn database(&self, id: &str) -> PathBuf {
        self.data().join("databases").join(&id[..2]).join(format!("{id}.db"))
    }

    /// Runs `doctor` and sees to it that nothing in the folder is another than before.
    #[track_caller]
    fn doctor(&self) -> Output {
        let before = tree(&self.data());
        let output = run(hearth(self.dir.path(), &["doctor", "--data", "data"]));
        assert_eq!(tree(&self.data()), before, "doctor has changed the folder");
        output
    }

    /// `doctor` must end with 1 and have just these lines of warnings and errors.
    #[track_caller]
    fn finds(&self, expected: &[&str]) {
        let output = self.doctor();
        let bad: Vec<_> = output.stdout.lines().filter(|line| line.starts_with("warning") || line.starts_with("error")).collect();
        assert_eq!((output.code, bad.len()), (Some(1), expected.len()), "{output:?}");
        for (line, expected) in bad.iter().zip(expected) {
            assert!(line.starts_with(expected), "{line}");
            assert!(line.rsplit('\t').next().is_some_and(|remedy| !remedy.is_empty()), "no remedy: {line}");
        }
    }
}

/// Every file with its bytes and the time of its last change.
fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(tree(&path));
        } else {
            files.push((path.clone(), fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn a_folder_is_whole_after_a_stop_and_after_a_kill() {
    for signal in [Signal::TERM, Signal::KILL] {
        let left = Left::after(signal);
        let output = left.doctor().ok();
        assert!(output.contains("ok\tcatalogue\t2 databases"), "{signal:?}: {output}");
        assert!(output.contains("ok\tlog\t"), "{signal:?}: {output}");
    }
}

#[test]
fn files_are_compared_with_a_catalogue_of_which_the_log_alone_knows() {
    let left = Left::after(Signal::KILL);
    let system = fs::metadata(left.data().join("system/system.db")).unwrap().len();
    assert_eq!(system, 4_096, "the catalogue's file is empty: what it says is in the log");
    let [a, b] = &left.ids;
    let orphan = "00000000-0000-4000-8000-000000000001";
    fs::create_dir_all(left.data().join("databases/00")).unwrap();
    fs::copy(left.database(a), left.database(orphan)).unwrap();
    fs::write(left.database("00000000-0000-4000-8000-000000000002"), vec![0; 8_192]).unwrap();
    let output = left.doctor();
    assert!(output.stdout.contains(&format!("note\tcatalogue\tno database has the file of {orphan}, which is empty")), "{output:?}");
    left.finds(&[
        "error\tdatabase\tdatabases/00/00000000-0000-4000-8000-000000000002.db: its header is not that of a SQLite database",
        "warning\tcatalogue\tno database has the file of 00000000-0000-4000-8000-000000000002, which has 8192 bytes",
    ]);
    fs::remove_dir_all(left.data().join("databases/00")).unwrap();
    // All of b's pages are in the log, so the next start makes its file again.
    fs::remove_file(left.database(b)).unwrap();
    left.doctor().ok();
}

#[test]
fn a_database_whose_file_is_missing_or_cut_is_named() {
    let left = Left::after(Signal::TERM);
    // A start and a stop leave no commit of the databases in the log.
    let site = Site::on(left.dir);
    let Site { dir, server } = site;
    server.signal(Signal::TERM);
    server.wait();
    let left = Left { dir, ids: left.ids };
    left.doctor().ok();
    let [a, b] = &left.ids;
    fs::remove_file(left.database(b)).unwrap();
    let file = fs::OpenOptions::new().write(true).open(left.database(a)).unwrap();
    file.set_len(file.metadata().unwrap().len() - 4_096).unwrap();
    left.finds(&[
        &format!("error\tdatabase\tdatabases/{}/{a}.db: it is cut off after ", &a[..2]),
        &format!("error\tcatalogue\tthe file of the database `b` ({b}) is missing"),
    ]);
    fs::remove_file(left.data().join("system/system.db")).unwrap();
    let output = left.doctor();
    assert!(output.stdout.contains("the catalogue that names them is missing"), "{output:?}");
}

#[test]
fn a_damaged_byte_of_the_log_is_found_and_a_start_is_refused() {
    let left = Left::after(Signal::KILL);
    let log = fs::read_dir(left.data().join("log")).unwrap().next().unwrap().unwrap().path();
    let name = log.file_name().unwrap().to_str().unwrap();
    // In the first record, which stands behind the segment's header of 64 bytes.
    let at = 64 + 500;
    let file = fs::OpenOptions::new().read(true).write(true).open(&log).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    left.finds(&[&format!("error\tlog\tlog/{name} is damaged at byte 64: a record that was durable is damaged")]);
    let start = run(hearth(left.dir.path(), &["serve", "--data", "data", "--listen", "127.0.0.1:0"]));
    start.fails(1, &["is damaged at byte 64", "hint: `hearth doctor --data data` says what is wrong"]);
    file.write_all_at(&byte, at).unwrap();
    left.doctor().ok();
}

#[test]
fn a_damaged_catalogue_is_an_error() {
    let left = Left::after(Signal::TERM);
    let Site { dir, server } = Site::on(left.dir);
    server.signal(Signal::TERM);
    server.wait();
    let left = Left { dir, ids: left.ids };
    fs::remove_dir_all(left.data().join("log")).unwrap();
    let file = fs::OpenOptions::new().write(true).open(left.data().join("system/system.db")).unwrap();
    file.write_all_at(&[0xff; 8_000], 100).unwrap();
    left.finds(&["error\tcatalogue\ta database cannot be read: "]);
}

#[test]
fn permissions_that_are_too_wide_are_named_with_the_command_that_mends_them() {
    let left = Left::after(Signal::TERM);
    fs::set_permissions(left.data(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(left.data().join("owner.key"), fs::Permissions::from_mode(0o644)).unwrap();
    left.finds(&["warning\tfolder\tothers may read data (mode 0755, expected 0700)\tchmod 700 data", "error\tkey\t"]);
}
