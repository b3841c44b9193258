//! No acknowledged transaction is lost, none is half there, no answer is ever taken back: after
//! power loss and kills at every operation of the disk, inside recovery too.

use testkit::{
    crash::{self, Config},
    disk::SyncClass,
    soak,
};

use crate::engine::Engine;

#[test]
fn acknowledged_transactions_survive_crashes_at_every_operation() {
    let config = Config::new(soak::seed(1), soak::crash_points(2_000));
    let report = crash::run::<Engine>(&config);
    soak::print(format!("lossy disk: {report}"));
    assert!(report.violations.is_empty(), "{report}");
    assert_eq!(report.crash_points, config.crash_points);
    assert!(report.acked > config.crash_points && report.in_recovery > 0 && report.unacked_lost > 0, "{report}");
}

#[test]
fn failing_operations_and_a_full_disk_lose_nothing_that_was_acknowledged() {
    let config = Config { faults: true, ..Config::new(soak::seed(2), soak::crash_points(2_000) / 4) };
    let report = crash::run::<Engine>(&config);
    soak::print(format!("lossy disk with faults: {report}"));
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.faults > 0, "{report}");
}

/// The run must notice when a sync is taken out; otherwise it proves nothing.
fn goes_red(class: SyncClass) {
    let config = Config { dropped: vec![class], violations_max: 1, ..Config::new(3, 1_500) };
    let report = crash::run::<Engine>(&config);
    assert!(!report.violations.is_empty(), "{class:?}: {report}");
}

#[test]
fn the_run_goes_red_without_the_logs_fdatasync() {
    goes_red(SyncClass::Log);
}

#[test]
fn the_run_goes_red_without_the_database_files_sync() {
    goes_red(SyncClass::Database);
}

#[test]
fn the_run_goes_red_without_the_folders_sync() {
    goes_red(SyncClass::Directory);
}

#[test]
fn the_wals_own_syncs_do_not_matter() {
    // The log is the durability point: a WAL is a cache that recovery drops.
    let config = Config { dropped: vec![SyncClass::Wal], ..Config::new(4, 200) };
    let report = crash::run::<Engine>(&config);
    assert!(report.violations.is_empty(), "{report}");
}
