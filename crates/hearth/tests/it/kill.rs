//! `kill -9` of the real server under writing clients: what was acknowledged over HTTP is there.

use std::{fs, path::Path};

use testkit::{
    process::{KillConfig, kill_run},
    soak,
};

fn config(rounds: u64) -> KillConfig {
    KillConfig::new(Path::new(env!("CARGO_BIN_EXE_hearth")), soak::seed(1), rounds)
}

#[test]
fn kill_9_under_writing_clients_loses_nothing_that_was_acknowledged() {
    let config = config(soak::kill_rounds(10));
    let report = kill_run(&config).unwrap();
    soak::print(format!("kill -9: {report}"));
    assert!(report.violations.is_empty(), "{report}");
    assert_eq!(report.kills, config.rounds);
    assert!(report.acked > config.rounds * config.n_clients && report.in_start > 0, "{report}");
}

/// Without its log a server has lost commits, or refuses to start. The run must notice either.
#[test]
fn the_kill_run_goes_red_when_the_log_is_lost() {
    fn lose_the_log(data: &Path) {
        fs::remove_dir_all(data.join("log")).unwrap();
    }
    let report = kill_run(&KillConfig { tamper: Some(lose_the_log), ..config(2) }).unwrap();
    assert!(!report.violations.is_empty(), "{report}");
}
