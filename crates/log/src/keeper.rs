//! The thread that keeps things small: idle and cold files are checkpointed, the least used ones
//! closed, segments that nobody needs removed.

use std::{sync::Arc, time::Duration};

use crate::{Log, database::Inner, segment::SEGMENT_BYTES};

const TICK: Duration = Duration::from_millis(200);
/// A file that nobody used for so long is checkpointed.
const IDLE: Duration = Duration::from_secs(5);
/// A file whose oldest commit is so far back is checkpointed however busy it is.
const COLD_BYTES: u64 = 2 * SEGMENT_BYTES;

pub(crate) fn run(log: &Arc<Log>) {
    loop {
        let state = log.lock();
        if state.stopping || state.poisoned.is_some() {
            return;
        }
        let (state, _) = log.moved.wait_timeout(state, TICK).expect("no thread panics while it holds the log's lock");
        if state.stopping || state.poisoned.is_some() {
            return;
        }
        drop(state);
        tick(log);
    }
}

fn tick(log: &Arc<Log>) {
    let now = log.config.clock.monotonic();
    let mut open: Vec<Arc<Inner>> = {
        let databases = log.databases.lock().expect("no thread panics with this lock");
        databases.values().filter(|database| database.is_open()).cloned().collect()
    };
    let (next, pins) = {
        let state = log.lock();
        (state.next_lsn(), state.pins.clone())
    };
    for database in &open {
        let Some(pin) = pins.get(&database.id()) else { continue };
        let idle = now.saturating_sub(Duration::from_millis(database.last_used_ms()));
        if idle >= IDLE || next - pin >= COLD_BYTES {
            database.tidy_if_free();
        }
    }
    if open.len() > log.config.open_databases_max {
        open.sort_by_key(|database| database.last_used_ms());
        let excess = open.len() - log.config.open_databases_max;
        for database in &open[..excess] {
            database.evict();
        }
    }
    remove_segments(log);
}

/// Removes segments that lie wholly before every position that is still needed.
fn remove_segments(log: &Log) {
    let mut removable = Vec::new();
    {
        let mut state = log.lock();
        let needed = state.pins.values().copied().min().unwrap_or(state.segment.base_lsn).min(state.segment.base_lsn);
        while !state.old.is_empty() {
            let end = state.old.get(1).map_or(state.segment.base_lsn, |next| next.1);
            if end > needed {
                break;
            }
            removable.extend(state.old.pop_front());
        }
    }
    for (path, _) in removable {
        if let Err(error) = log.disk().remove(&path) {
            tracing::warn!(%error, "a segment of the log that is not needed could not be removed");
        }
    }
}
