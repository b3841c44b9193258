//! The thread that writes and syncs: one `fdatasync` for all that waits.

use std::{collections::HashSet, io, sync::Arc};

use base::DatabaseId;

use crate::{
    append::{Log, State, lost},
    position::Fate,
    segment::{self, CreateError, GROWTH_BYTES, Head, SEGMENT_BYTES, Segment},
};

/// One batch on its way to the disk.
struct Batch {
    bytes: Vec<u8>,
    start: u64,
    databases: HashSet<DatabaseId>,
}

pub(crate) fn run(log: &Arc<Log>) {
    let mut spare = Vec::new();
    while let Some(batch) = next(log, std::mem::take(&mut spare)) {
        let (file, offset) = {
            let state = log.lock();
            (Arc::clone(&state.segment.file), state.segment.offset(batch.start))
        };
        if let Err(error) = file.write_all_at(&batch.bytes, offset) {
            undo(log, &batch, &error);
            continue;
        }
        if let Err(error) = file.sync() {
            // Nothing is known of what reached the disk, and a second call could answer "fine" for
            // pages that were dropped: so it is never made.
            poison(log, &format!("fdatasync of the commit log failed: {error}"));
            return;
        }
        let mut state = log.lock();
        state.durable = batch.start + batch.bytes.len() as u64;
        state.stats.syncs += 1;
        wake(log, &mut state);
        drop(state);
        spare = batch.bytes;
        spare.clear();
    }
}

/// Waits for work; `None` at the end.
fn next(log: &Log, spare: Vec<u8>) -> Option<Batch> {
    let mut state = log.lock();
    while state.buffer.is_empty() {
        if state.stopping || state.poisoned.is_some() {
            return None;
        }
        state = log.work.wait(state).expect("no thread panics while it holds the log's lock");
    }
    if state.poisoned.is_some() {
        return None;
    }
    if state.segment.offset(state.buffer_lsn) >= SEGMENT_BYTES
        && let Err(failure) = roll(log, &mut state)
    {
        if failure.may_remain {
            drop(state);
            poison(log, &format!("a half-made segment of the commit log could not be taken away: {}", failure.error));
            return None;
        }
        // The old segment has room for all that was reserved, so the work goes on there.
        tracing::warn!(error = %failure.error, "the next segment of the commit log could not be made; the old one grows");
    }
    let start = state.buffer_lsn;
    let bytes = std::mem::replace(&mut state.buffer, spare);
    state.buffer_lsn = start + bytes.len() as u64;
    let databases = std::mem::take(&mut state.waiting_databases);
    Some(Batch { bytes, start, databases })
}

/// Begins a new segment at the buffer's position.
pub(crate) fn roll(log: &Log, state: &mut State) -> Result<(), CreateError> {
    let config = &log.config;
    let room = (segment::HEADER_BYTES + state.buffer.len() as u64 + Log::reserved(state)).next_multiple_of(GROWTH_BYTES);
    let head = Head { sequence: state.next_sequence, base_lsn: state.buffer_lsn, log_id: state.log_id, time: state.time };
    state.next_sequence += 1;
    let segment = Segment::create(config.disk.as_ref(), &log.dir, head, room)?;
    let old = std::mem::replace(&mut state.segment, segment);
    // The room that was reserved there and not used is had again in the new one.
    if let Err(error) = old.file.set_len(old.offset(state.buffer_lsn)) {
        tracing::warn!(%error, "a segment of the commit log keeps room that it does not need");
    }
    state.old.push_back((old.path, old.base_lsn));
    Ok(())
}

/// A write failed: every database of the batch, and of what came after it, is fenced, and the log
/// goes on in a new incarnation, so that half-written bytes can never be taken for records.
fn undo(log: &Log, batch: &Batch, error: &io::Error) {
    tracing::error!(%error, databases = batch.databases.len(), "a write to the commit log failed; its commits are undone");
    let mut state = log.lock();
    let after = std::mem::take(&mut state.waiting_databases);
    state.fenced.extend(batch.databases.iter().copied().chain(after));
    state.buffer.clear();
    state.buffer_lsn = batch.start;
    state.epochs.begin(batch.start);
    let mut id = [0; 8];
    log.config.rng.fill(&mut id);
    state.log_id = u64::from_le_bytes(id);
    match roll(log, &mut state) {
        Ok(()) => wake(log, &mut state),
        Err(failure) => {
            drop(state);
            poison(log, &format!("no new segment of the commit log could be made after a failed write: {}", failure.error));
        }
    }
}

/// Tells every waiter whose fate is known.
fn wake(log: &Log, state: &mut State) {
    let waiters = std::mem::take(&mut state.waiters);
    for (ticket, sender) in waiters {
        match state.epochs.fate(ticket, state.durable) {
            Fate::Durable => drop(sender.send(Ok(()))),
            Fate::Lost => drop(sender.send(Err(lost()))),
            Fate::Pending => state.waiters.push((ticket, sender)),
        }
    }
    log.moved.notify_all();
}

/// Ends the log: nothing is acknowledged any more, and the process is told to stop.
fn poison(log: &Log, reason: &str) {
    log.lock().poisoned = Some(reason.to_owned());
    // First the process is told, then those who wait: no answer may go out in between.
    (log.config.on_poison)(reason.to_owned());
    let mut state = log.lock();
    for (_, sender) in std::mem::take(&mut state.waiters) {
        let _ = sender.send(Err(lost()));
    }
    drop(state);
    log.moved.notify_all();
    log.work.notify_all();
}
