//! One record of the log: a commit of one database, or a part of a large one.
//!
//! All integers are little-endian. A record is a multiple of 8 bytes long.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | magic `HLR1` |
//! | 4 | 4 | flags: 1 first part, 2 last part (the commit marker) |
//! | 8 | 4 | length of the record in bytes |
//! | 12 | 4 | pages |
//! | 16 | 8 | log id: the incarnation that wrote it |
//! | 24 | 8 | LSN of the record's first byte |
//! | 32 | 8 | LSN up to which the log was durable when it was written |
//! | 40 | 16 | database |
//! | 56 | 8 | transaction, unique in the incarnation |
//! | 64 | 4 | pages of the database after the commit |
//! | 68 | 8 | first and last frame of the commit in the WAL |
//! | 76 | 8 | salts of the WAL |
//! | 84 | 8 | commit time, milliseconds since 1970 |
//! | 92 | 4 | zero |
//! | 96 | 8 | XXH3 of the record with these 8 bytes zero |
//! | 104 | | for each page: its number (4 bytes) and its 4,096 bytes; then zeros |

use base::{DatabaseId, Timestamp};
use sqlite::PAGE_BYTES;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const HEADER_BYTES: usize = 104;
/// Bytes of one page in a record.
pub(crate) const ENTRY_BYTES: usize = 4 + PAGE_BYTES;
/// Pages of the largest record: about 1 MiB, so that a large commit lets others between its parts.
pub(crate) const PAGES_MAX: usize = 255;
/// Bytes of the largest record.
pub(crate) const RECORD_BYTES_MAX: usize = (HEADER_BYTES + PAGES_MAX * ENTRY_BYTES).next_multiple_of(8);

const MAGIC: u32 = u32::from_le_bytes(*b"HLR1");
const FLAG_FIRST: u32 = 1;
const FLAG_LAST: u32 = 2;
const CHECKSUM_AT: usize = 96;

/// What a record says besides its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) first: bool,
    pub(crate) last: bool,
    pub(crate) pages: u32,
    pub(crate) log_id: u64,
    pub(crate) lsn: u64,
    pub(crate) durable_lsn: u64,
    pub(crate) database: DatabaseId,
    pub(crate) transaction: u64,
    pub(crate) database_pages: u32,
    pub(crate) frames: (u32, u32),
    pub(crate) salts: [u32; 2],
    pub(crate) time: Timestamp,
}

/// A record in the making: all but its position is known.
pub(crate) struct Draft {
    bytes: Vec<u8>,
    pages: u32,
}

impl Draft {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; HEADER_BYTES], pages: 0 }
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.pages as usize == PAGES_MAX
    }

    /// Adds a page; `fill` writes its bytes.
    pub(crate) fn page<E>(&mut self, number: u32, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<(), E> {
        let at = self.bytes.len();
        self.bytes.resize(at + ENTRY_BYTES, 0);
        self.bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        self.pages += 1;
        fill(&mut self.bytes[at + 4..])
    }

    /// Bytes of the finished record.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len().next_multiple_of(8)
    }

    /// Seals the record with its header and appends it to `out`.
    pub(crate) fn finish(mut self, header: &Header, out: &mut Vec<u8>) {
        self.bytes.resize(self.len(), 0);
        let length = self.bytes.len() as u32;
        let flags = if header.first { FLAG_FIRST } else { 0 } | if header.last { FLAG_LAST } else { 0 };
        let bytes = &mut self.bytes;
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC.to_le_bytes());
        put(4, &flags.to_le_bytes());
        put(8, &length.to_le_bytes());
        put(12, &self.pages.to_le_bytes());
        put(16, &header.log_id.to_le_bytes());
        put(24, &header.lsn.to_le_bytes());
        put(32, &header.durable_lsn.to_le_bytes());
        put(40, &header.database.to_bytes());
        put(56, &header.transaction.to_le_bytes());
        put(64, &header.database_pages.to_le_bytes());
        put(68, &header.frames.0.to_le_bytes());
        put(72, &header.frames.1.to_le_bytes());
        put(76, &header.salts[0].to_le_bytes());
        put(80, &header.salts[1].to_le_bytes());
        put(84, &header.time.0.to_le_bytes());
        let sum = xxh3_64(&self.bytes);
        self.bytes[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(&self.bytes);
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The length that the start of a record claims, if it can be the start of one at all.
pub(crate) fn claimed_len(start: &[u8]) -> Option<usize> {
    if start.len() < HEADER_BYTES || u32_at(start, 0) != MAGIC {
        return None;
    }
    let (length, pages) = (u32_at(start, 8) as usize, u32_at(start, 12) as usize);
    (pages <= PAGES_MAX && length == (HEADER_BYTES + pages * ENTRY_BYTES).next_multiple_of(8)).then_some(length)
}

/// Reads a whole record; `None` if its checksum or shape is wrong.
pub(crate) fn decode(record: &[u8]) -> Option<Header> {
    if claimed_len(record)? != record.len() {
        return None;
    }
    let mut copy = record.to_vec();
    copy[CHECKSUM_AT..CHECKSUM_AT + 8].fill(0);
    if xxh3_64(&copy) != u64_at(record, CHECKSUM_AT) {
        return None;
    }
    let flags = u32_at(record, 4);
    Some(Header {
        first: flags & FLAG_FIRST != 0,
        last: flags & FLAG_LAST != 0,
        pages: u32_at(record, 12),
        log_id: u64_at(record, 16),
        lsn: u64_at(record, 24),
        durable_lsn: u64_at(record, 32),
        database: DatabaseId::from_bytes(record[40..56].try_into().expect("16 bytes")),
        transaction: u64_at(record, 56),
        database_pages: u32_at(record, 64),
        frames: (u32_at(record, 68), u32_at(record, 72)),
        salts: [u32_at(record, 76), u32_at(record, 80)],
        time: Timestamp(u64_at(record, 84).cast_signed()),
    })
}

/// Number and position within the record of each page.
pub(crate) fn pages(record: &[u8], count: u32) -> impl Iterator<Item = (u32, usize)> + '_ {
    (0..count as usize).map(|i| {
        let at = HEADER_BYTES + i * ENTRY_BYTES;
        (u32_at(record, at), at + 4)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(pages: u32) -> Header {
        Header {
            first: true,
            last: false,
            pages,
            log_id: 7,
            lsn: 64,
            durable_lsn: 8,
            database: DatabaseId::from_bytes([9; 16]),
            transaction: 3,
            database_pages: 12,
            frames: (5, 6),
            salts: [1, 2],
            time: Timestamp(-4),
        }
    }

    fn record(pages: &[u32]) -> Vec<u8> {
        let mut draft = Draft::new();
        for page in pages {
            draft
                .page::<()>(*page, |bytes| {
                    bytes.fill(*page as u8);
                    Ok(())
                })
                .unwrap();
        }
        let mut out = Vec::new();
        draft.finish(&header(pages.len() as u32), &mut out);
        out
    }

    #[test]
    fn a_record_comes_back_and_has_room_for_255_pages() {
        let bytes = record(&[1, 9, 4]);
        assert_eq!(decode(&bytes), Some(header(3)));
        assert_eq!(pages(&bytes, 3).map(|(page, _)| page).collect::<Vec<_>>(), [1, 9, 4]);
        assert_eq!(record(&[0; PAGES_MAX]).len(), RECORD_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn one_flipped_bit_is_noticed(bit in 0..(HEADER_BYTES + 2 * ENTRY_BYTES) * 8) {
            let mut bytes = record(&[1, 2]);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(decode(&bytes), None);
        }

        #[test]
        fn a_cut_record_is_noticed(len in 0..HEADER_BYTES + ENTRY_BYTES) {
            prop_assert_eq!(decode(&record(&[1])[..len]), None);
        }
    }
}
