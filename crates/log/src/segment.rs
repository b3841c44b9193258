//! A file of the log: a header, then records without gaps.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use base::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::{Disk, DiskFile, layout};

pub(crate) const HEADER_BYTES: u64 = 64;
/// A segment is followed by a new one once it is longer than this. One commit may make it longer.
pub(crate) const SEGMENT_BYTES: u64 = 64 << 20;

/// Room that a new segment begins with, and by which it grows: recovery looks through what is not
/// written, so it is not made in one piece.
pub(crate) const GROWTH_BYTES: u64 = 4 << 20;

const MAGIC: &[u8; 8] = b"HEARTHLG";
const VERSION: u32 = 1;

/// The open segment.
pub(crate) struct Segment {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) path: PathBuf,
    pub(crate) base_lsn: u64,
    /// Bytes of the file that are sure to have room on the disk.
    pub(crate) allocated: u64,
}

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Order of creation; of two segments the later one's base ends the earlier one.
    pub(crate) sequence: u64,
    /// Position of the first record.
    pub(crate) base_lsn: u64,
    /// The incarnation whose records stand here.
    pub(crate) log_id: u64,
    /// No commit before this segment has a later time.
    pub(crate) time: Timestamp,
}

/// Why a segment could not be made.
#[derive(Debug)]
pub(crate) struct CreateError {
    pub(crate) error: io::Error,
    /// Whether its header may still be found after a crash, so that records past its base in an
    /// earlier segment would be ignored.
    pub(crate) may_remain: bool,
}

impl Segment {
    /// Makes a segment. It is durable, name and all, when this returns.
    pub(crate) fn create(disk: &dyn Disk, dir: &Path, head: Head, bytes: u64) -> Result<Self, CreateError> {
        let path = layout::segment_path(dir, head.sequence);
        let clean = |error| CreateError { error, may_remain: false };
        let file = disk.open(&path, true).map_err(clean)?;
        if let Err(error) = file.allocate(bytes) {
            // Without a header the file counts for nothing; taking it away only keeps the folder tidy.
            let _ = disk.remove(&path);
            return Err(clean(error));
        }
        let sealed = file.write_all_at(&header(head), 0).and_then(|()| file.sync()).and_then(|()| disk.sync_dir(dir));
        if let Err(error) = sealed {
            let gone = disk.remove(&path).and_then(|()| disk.sync_dir(dir));
            return Err(CreateError { error, may_remain: gone.is_err() });
        }
        Ok(Self { file, path, base_lsn: head.base_lsn, allocated: bytes })
    }

    /// Where in the file `lsn` stands.
    pub(crate) const fn offset(&self, lsn: u64) -> u64 {
        HEADER_BYTES + (lsn - self.base_lsn)
    }
}

fn header(head: Head) -> [u8; HEADER_BYTES as usize] {
    let mut bytes = [0; HEADER_BYTES as usize];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&head.log_id.to_le_bytes());
    bytes[24..32].copy_from_slice(&head.base_lsn.to_le_bytes());
    bytes[32..40].copy_from_slice(&head.time.0.to_le_bytes());
    bytes[40..48].copy_from_slice(&head.sequence.to_le_bytes());
    let sum = xxh3_64(&bytes[..56]);
    bytes[56..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// What stands at the beginning of a segment's file.
pub(crate) enum Found {
    Head(Head),
    /// Too short or all zeros: its creation did not come to its end, so it holds nothing.
    Unused,
    /// Half-made or damaged: a record behind it would tell.
    Broken,
}

/// Reads a segment's header.
pub(crate) fn read_header(file: &dyn DiskFile) -> io::Result<Found> {
    let mut bytes = [0; HEADER_BYTES as usize];
    match file.read_exact_at(&mut bytes, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Found::Unused),
        other => other?,
    }
    if bytes.iter().all(|b| *b == 0) {
        return Ok(Found::Unused);
    }
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let whole = &bytes[..8] == MAGIC && bytes[8..12] == VERSION.to_le_bytes() && xxh3_64(&bytes[..56]) == word(56);
    if !whole {
        return Ok(Found::Broken);
    }
    Ok(Found::Head(Head { sequence: word(40), base_lsn: word(24), log_id: word(16), time: Timestamp(word(32).cast_signed()) }))
}
