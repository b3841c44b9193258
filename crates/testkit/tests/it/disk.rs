//! The lossy disk keeps what it promised, and loses what it may.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use log::{Disk, DiskFile};
use proptest::prelude::*;
use testkit::disk::{Fault, LossyDisk, OpKind, SyncClass, Target};

const SEEDS: u64 = 400;

fn path(name: &str) -> PathBuf {
    Path::new("/").join(name)
}

fn read_all(file: &dyn DiskFile) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// A disk with one file whose first content and name are durable.
fn disk_with(name: &str, content: &[u8]) -> (Arc<LossyDisk>, Arc<dyn DiskFile>) {
    seeded_disk_with(1, name, content)
}

fn seeded_disk_with(seed: u64, name: &str, content: &[u8]) -> (Arc<LossyDisk>, Arc<dyn DiskFile>) {
    let disk = LossyDisk::new(seed);
    let file = disk.open(&path(name), true).unwrap();
    file.write_all_at(content, 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    (disk, file)
}

/// What `prepare` leaves of a file, over many crashes.
fn outcomes(name: &str, prepare: impl Fn() -> Arc<LossyDisk>) -> BTreeSet<Option<Vec<u8>>> {
    (0..SEEDS).map(|seed| prepare().crash(seed).content(&path(name))).collect()
}

#[test]
fn synced_bytes_and_synced_names_survive_every_crash() {
    let found = outcomes("a", || disk_with("a", &[7; 3000]).0);
    assert_eq!(found, BTreeSet::from([Some(vec![7; 3000])]));
}

#[test]
fn an_unsynced_write_is_kept_lost_or_torn_between_sectors_only() {
    let found = outcomes("a", || {
        let (disk, file) = disk_with("a", &[0; 2048]);
        file.write_all_at(&[1; 2048], 0).unwrap();
        disk
    });
    let found: Vec<_> = found.into_iter().flatten().collect();
    assert!(found.contains(&vec![0; 2048]), "the write was never lost");
    assert!(found.contains(&vec![1; 2048]), "the write was never kept");
    assert!(found.len() > 2, "the write was never torn");
    for content in found {
        for sector in content.chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector was torn");
        }
    }
}

#[test]
fn unsynced_writes_survive_in_any_order() {
    let found = outcomes("a", || {
        let (disk, file) = disk_with("a", &[0; 512]);
        file.write_all_at(&[1; 512], 0).unwrap();
        file.write_all_at(&[2; 512], 0).unwrap();
        disk
    });
    let first: BTreeSet<u8> = found.into_iter().flatten().map(|content| content[0]).collect();
    assert_eq!(first, BTreeSet::from([0, 1, 2]));
}

#[test]
fn a_file_may_grow_by_zeros_where_its_data_was_lost() {
    let found = outcomes("a", || {
        let (disk, file) = disk_with("a", &[9; 512]);
        file.write_all_at(&[1; 512], 512).unwrap();
        disk
    });
    let mut zeros = vec![9; 512];
    zeros.extend([0; 512]);
    assert!(found.contains(&Some(vec![9; 512])), "the growth was never lost");
    assert!(found.contains(&Some(zeros)), "the length never survived alone");
}

#[test]
fn a_cut_and_a_reservation_are_durable_only_after_a_sync() {
    for (change, len) in [(DiskFile::set_len as fn(&_, u64) -> _, 100), (DiskFile::allocate, 9000)] {
        let lens = |sync: bool| -> BTreeSet<usize> {
            let found = outcomes("a", || {
                let (disk, file) = disk_with("a", &[9; 512]);
                change(&*file, len).unwrap();
                if sync {
                    file.sync().unwrap();
                }
                disk
            });
            found.into_iter().flatten().map(|content| content.len()).collect()
        };
        assert_eq!(lens(false), BTreeSet::from([512, len as usize]));
        assert_eq!(lens(true), BTreeSet::from([len as usize]));
    }
}

#[test]
fn syncing_a_file_does_not_make_its_name_durable() {
    let made = |sync_dir: bool| {
        let disk = LossyDisk::new(1);
        let file = disk.open(&path("a"), true).unwrap();
        file.write_all_at(b"x", 0).unwrap();
        file.sync().unwrap();
        if sync_dir {
            disk.sync_dir(Path::new("/")).unwrap();
        }
        disk
    };
    assert_eq!(outcomes("a", || made(false)), BTreeSet::from([None, Some(b"x".to_vec())]));
    assert_eq!(outcomes("a", || made(true)), BTreeSet::from([Some(b"x".to_vec())]));
}

#[test]
fn an_unsynced_rename_is_whole_or_not_at_all() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let (disk, new) = disk_with("new", b"new");
        drop(new);
        let old = disk.open(&path("a"), true).unwrap();
        old.write_all_at(b"old", 0).unwrap();
        old.sync().unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk.rename(&path("new"), &path("a")).unwrap();
        assert!(!disk.exists(&path("new")));
        let disk = disk.crash(seed);
        seen.insert((disk.content(&path("a")), disk.content(&path("new"))));
    }
    let (old, new) = (Some(b"old".to_vec()), Some(b"new".to_vec()));
    assert_eq!(seen, BTreeSet::from([(old, new.clone()), (new, None)]));
}

#[test]
fn two_unsynced_renames_of_one_file_never_leave_it_two_names() {
    for seed in 0..SEEDS {
        let (disk, _file) = disk_with("a", b"x");
        disk.rename(&path("a"), &path("b")).unwrap();
        disk.rename(&path("b"), &path("c")).unwrap();
        assert_eq!(disk.crash(seed).list(Path::new("/")).unwrap().len(), 1);
    }
}

#[test]
fn a_removed_file_may_come_back_until_its_folder_is_synced() {
    let removed = |sync_dir: bool| {
        let (disk, _file) = disk_with("a", b"x");
        disk.remove(&path("a")).unwrap();
        if sync_dir {
            disk.sync_dir(Path::new("/")).unwrap();
        }
        disk
    };
    assert_eq!(outcomes("a", || removed(false)), BTreeSet::from([None, Some(b"x".to_vec())]));
    assert_eq!(outcomes("a", || removed(true)), BTreeSet::from([None]));
}

#[test]
fn a_killed_process_loses_nothing_and_a_later_power_cut_still_may() {
    let (disk, file) = disk_with("a", b"old");
    file.write_all_at(b"new", 0).unwrap();
    let later = disk.open(&path("b"), true).unwrap();
    later.write_all_at(b"b", 0).unwrap();
    let killed = disk.kill();
    assert_eq!(killed.content(&path("a")), Some(b"new".to_vec()));
    assert_eq!(killed.content(&path("b")), Some(b"b".to_vec()));
    let found = outcomes("a", || {
        let (disk, file) = disk_with("a", b"old");
        file.write_all_at(b"new", 0).unwrap();
        disk.kill()
    });
    assert!(found.contains(&Some(b"old".to_vec())));
}

#[test]
fn handles_of_a_dead_process_cannot_touch_the_next_one() {
    let (disk, file) = disk_with("a", b"x");
    let next = disk.kill();
    assert_eq!(file.write_all_at(b"y", 0).unwrap_err().raw_os_error(), Some(libc::EIO));
    assert_eq!(disk.remove(&path("a")).unwrap_err().raw_os_error(), Some(libc::EIO));
    assert_eq!(next.content(&path("a")), Some(b"x".to_vec()));
}

#[test]
fn no_later_sync_saves_what_a_failed_sync_covered() {
    let found = outcomes("a", || {
        let (disk, file) = disk_with("a", &[0; 1024]);
        file.write_all_at(&[1; 512], 0).unwrap();
        disk.fail_at(disk.ops() + 1, Fault::Io);
        file.sync().unwrap_err();
        file.write_all_at(&[2; 512], 512).unwrap();
        file.sync().unwrap();
        disk
    });
    let sectors: BTreeSet<(u8, u8)> = found.into_iter().flatten().map(|content| (content[0], content[512])).collect();
    assert_eq!(sectors, BTreeSet::from([(0, 2), (1, 2)]));
}

#[test]
fn a_sector_written_again_after_a_failed_sync_is_flushed_whole() {
    let found = outcomes("a", || {
        let (disk, file) = disk_with("a", &[0; 512]);
        file.write_all_at(&[1; 100], 0).unwrap();
        disk.fail_at(disk.ops() + 1, Fault::Io);
        file.sync().unwrap_err();
        file.write_all_at(&[2; 100], 100).unwrap();
        file.sync().unwrap();
        disk
    });
    let content = found.into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(content.len(), 1);
    assert_eq!((content[0][0], content[0][100]), (1, 2));
}

#[test]
fn the_planned_operation_fails_and_later_ones_work() {
    let (disk, file) = disk_with("a", b"x");
    let next = disk.ops() + 1;
    disk.fail_at(next, Fault::Full);
    assert_eq!(file.write_all_at(b"y", 0).unwrap_err().kind(), ErrorKind::StorageFull);
    file.write_all_at(b"z", 0).unwrap();
    assert_eq!(read_all(&*file), b"z");
    let traced = disk.trace().into_iter().find(|traced| traced.op == next).unwrap();
    assert_eq!((traced.kind, traced.path, traced.note), (OpKind::Write, path("a"), "failed"));
}

#[test]
fn the_disk_dies_at_the_planned_operation_and_stays_dead() {
    let mut partly = BTreeSet::new();
    for seed in 0..SEEDS {
        let (disk, file) = seeded_disk_with(seed, "a", &[0; 64]);
        disk.crash_at(disk.ops() + 2);
        file.write_all_at(&[1; 8], 0).unwrap();
        assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(libc::EIO));
        assert!(disk.is_dead());
        assert_eq!(file.len().unwrap_err().raw_os_error(), Some(libc::EIO));
        assert!(disk.open(&path("a"), false).is_err());
        partly.insert(disk.crash(seed).content(&path("a")).unwrap()[0]);
    }
    assert_eq!(partly, BTreeSet::from([0, 1]));
}

#[test]
fn a_fault_can_be_aimed_at_one_kind_of_operation_on_one_class_of_files() {
    let (disk, log) = disk_with("a", b"x");
    let wal = disk.open(&path("a-wal"), true).unwrap();
    disk.fail_at_next(Target { kind: OpKind::Write, class: SyncClass::Wal, nth: 2 }, Fault::Full);
    wal.write_all_at(b"1", 0).unwrap();
    log.write_all_at(b"1", 0).unwrap();
    wal.sync().unwrap();
    assert_eq!(wal.write_all_at(b"2", 0).unwrap_err().kind(), ErrorKind::StorageFull);
    wal.write_all_at(b"2", 0).unwrap();
    disk.fail_at_next(Target { kind: OpKind::SyncDir, class: SyncClass::Directory, nth: 1 }, Fault::Io);
    assert!(disk.sync_dir(Path::new("/")).is_err());
}

#[test]
fn a_slow_sync_covers_what_was_written_before_it_only() {
    let mut found = BTreeSet::new();
    for seed in 0..60 {
        let (disk, file) = disk_with("a", &[0; 1024]);
        disk.slow_syncs(SyncClass::Log, Duration::from_millis(20));
        file.write_all_at(&[1; 512], 0).unwrap();
        std::thread::scope(|scope| {
            let sync = scope.spawn(|| file.sync());
            std::thread::sleep(Duration::from_millis(5));
            file.write_all_at(&[2; 512], 512).unwrap();
            sync.join().unwrap().unwrap();
        });
        let content = disk.crash(seed).content(&path("a")).unwrap();
        found.insert((content[0], content[512]));
    }
    assert_eq!(found, BTreeSet::from([(1, 0), (1, 2)]));
}

#[test]
fn the_disk_dies_at_the_operation_aimed_at() {
    let (disk, file) = disk_with("a", b"x");
    disk.crash_at_next(Target { kind: OpKind::Write, class: SyncClass::Log, nth: 2 });
    file.write_all_at(b"1", 0).unwrap();
    file.sync().unwrap();
    file.write_all_at(b"2", 0).unwrap_err();
    assert!(disk.is_dead());
}

#[test]
fn the_disk_dies_at_the_nth_sync() {
    let (disk, file) = disk_with("a", b"x");
    disk.crash_at_sync(2);
    file.write_all_at(b"y", 0).unwrap();
    file.sync().unwrap();
    file.write_all_at(b"z", 0).unwrap();
    assert!(disk.sync_dir(Path::new("/")).is_err());
    assert!(disk.is_dead());
}

#[test]
fn a_full_disk_refuses_growth_and_a_reservation_prevents_it() {
    let (disk, file) = disk_with("a", &[0; 100]);
    disk.capacity(Some(1000));
    file.allocate(600).unwrap();
    let other = disk.open(&path("b"), true).unwrap();
    assert_eq!(other.write_all_at(&[1; 401], 0).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(other.len().unwrap(), 400, "a full disk takes what fits");
    file.write_all_at(&[1; 600], 0).unwrap();
    assert_eq!(file.allocate(601).unwrap_err().kind(), ErrorKind::StorageFull);
    disk.remove(&path("b")).unwrap();
    file.allocate(601).unwrap();
}

#[test]
fn a_read_only_disk_reads_and_refuses_the_rest() {
    let (disk, file) = disk_with("a", b"x");
    disk.read_only(true);
    for refused in [
        file.write_all_at(b"y", 0),
        file.set_len(0),
        file.allocate(10),
        disk.open(&path("b"), true).map(drop),
        disk.remove(&path("a")),
        disk.rename(&path("a"), &path("b")),
        disk.create_dir(&path("d")),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    }
    assert_eq!(read_all(&*file), b"x");
    file.sync().unwrap();
}

#[test]
fn dropped_syncs_report_success_and_do_nothing() {
    let prepare = |class| {
        let disk = LossyDisk::new(1);
        let file = disk.open(&path("log"), true).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk.drop_syncs(&[class]);
        file.write_all_at(b"x", 0).unwrap();
        file.sync().unwrap();
        disk
    };
    assert!(outcomes("log", || prepare(SyncClass::Log)).contains(&Some(Vec::new())));
    assert!(!outcomes("log", || prepare(SyncClass::Database)).contains(&Some(Vec::new())));
}

#[test]
fn files_without_a_name_live_until_they_are_closed() {
    let (disk, file) = disk_with("a", b"x");
    disk.remove(&path("a")).unwrap();
    let other = disk.open(&path("a"), true).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    other.write_all_at(b"other", 0).unwrap();
    assert_eq!(read_all(&*file), b"x");
}

#[test]
fn paths_are_one_whatever_their_spelling_and_lists_keep_the_callers() {
    let disk = LossyDisk::new(1);
    assert_eq!(disk.open(&path("d/a"), true).err().map(|error| error.kind()), Some(ErrorKind::NotFound));
    disk.create_dir(Path::new("d/e")).unwrap();
    disk.open(Path::new("./d/./a"), true).unwrap();
    assert!(disk.exists(Path::new("/d/e/../a")));
    assert_eq!(disk.list(Path::new("d")).unwrap(), [Path::new("d/a")]);
    assert_eq!(disk.list(Path::new("/nowhere")).unwrap(), [] as [&Path; 0]);
}

#[test]
fn equal_seeds_give_equal_crashes() {
    let run = |seed| {
        let (disk, file) = disk_with("a", &[0; 8192]);
        for i in 0..16 {
            file.write_all_at(&[i; 700], u64::from(i) * 500).unwrap();
        }
        disk.crash(seed).content(&path("a"))
    };
    assert_eq!(run(5), run(5));
    assert!((0..20).map(run).collect::<BTreeSet<_>>().len() > 10);
}

#[derive(Clone, Debug)]
enum Act {
    Write(u8, u64, Vec<u8>),
    SetLen(u8, u64),
    Allocate(u8, u64),
    Sync(u8),
    SyncDir,
    Remove(u8),
    Rename(u8, u8),
    Kill,
}

fn act() -> impl Strategy<Value = Act> {
    let file = 0u8..3;
    prop_oneof![
        4 => (file.clone(), 0u64..9000, prop::collection::vec(any::<u8>(), 0..5000)).prop_map(|(f, o, b)| Act::Write(f, o, b)),
        1 => (file.clone(), 0u64..9000).prop_map(|(f, n)| Act::SetLen(f, n)),
        1 => (file.clone(), 0u64..9000).prop_map(|(f, n)| Act::Allocate(f, n)),
        1 => file.clone().prop_map(Act::Sync),
        1 => Just(Act::SyncDir),
        1 => file.clone().prop_map(Act::Remove),
        1 => (file.clone(), file).prop_map(|(a, b)| Act::Rename(a, b)),
        1 => Just(Act::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Without a crash it is a plain disk, whatever is synced; and after all is synced no crash changes it.
    #[test]
    fn reads_see_the_last_writes(acts in prop::collection::vec(act(), 1..40), seed: u64) {
        let mut disk = LossyDisk::new(seed);
        let mut model: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        let name = |file: u8| path(&file.to_string());
        let resize = |content: &mut Vec<u8>, len: u64| content.resize(len as usize, 0);
        for act in acts {
            match act {
                Act::Write(f, offset, bytes) => {
                    disk.open(&name(f), true).unwrap().write_all_at(&bytes, offset).unwrap();
                    let content = model.entry(f).or_default();
                    let end = offset as usize + bytes.len();
                    if content.len() < end && !bytes.is_empty() {
                        content.resize(end, 0);
                    }
                    if !bytes.is_empty() {
                        content[offset as usize..end].copy_from_slice(&bytes);
                    }
                }
                Act::SetLen(f, len) => {
                    disk.open(&name(f), true).unwrap().set_len(len).unwrap();
                    resize(model.entry(f).or_default(), len);
                }
                Act::Allocate(f, len) => {
                    disk.open(&name(f), true).unwrap().allocate(len).unwrap();
                    let content = model.entry(f).or_default();
                    let len = len.max(content.len() as u64);
                    resize(content, len);
                }
                Act::Sync(f) => {
                    disk.open(&name(f), true).unwrap().sync().unwrap();
                    model.entry(f).or_default();
                }
                Act::SyncDir => disk.sync_dir(Path::new("/")).unwrap(),
                Act::Remove(f) => {
                    disk.remove(&name(f)).unwrap();
                    model.remove(&f);
                }
                Act::Rename(a, b) if a != b && model.contains_key(&a) => {
                    disk.rename(&name(a), &name(b)).unwrap();
                    let moved = model.remove(&a).unwrap();
                    model.insert(b, moved);
                }
                Act::Rename(..) => {}
                Act::Kill => disk = disk.kill(),
            }
        }
        let state = |disk: &LossyDisk| (0..3).filter_map(|f| Some((f, disk.content(&name(f))?))).collect::<BTreeMap<_, _>>();
        prop_assert_eq!(&state(&disk), &model);
        for f in model.keys() {
            disk.open(&name(*f), false).unwrap().sync().unwrap();
        }
        disk.sync_dir(Path::new("/")).unwrap();
        prop_assert_eq!(&state(&disk.crash(seed)), &model);
    }
}
