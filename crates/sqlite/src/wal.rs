//! Capture: reads what a commit wrote back from the WAL, checked, so that it can be logged.
//!
//! SQLite has committed to its WAL, unsynced, when this runs. The frames are read through SQLite's
//! own VFS file, so a simulated disk works too. Every frame's salts and running checksum are
//! checked; a frame that is not the exact continuation of the last capture is an error, never a guess.
#![expect(unsafe_code, reason = "reads through SQLite's VFS methods")]

use std::{collections::HashMap, ffi::c_int};

use base::{Code, Error, Result};
use rusqlite::ffi;

use crate::{Conn, PAGE_BYTES};

/// Bytes of the WAL's header.
pub const HEADER_BYTES: usize = 32;
/// Bytes of one frame: its header and a page.
pub const FRAME_BYTES: usize = 24 + PAGE_BYTES;
/// Frames read at a time.
const CHUNK_FRAMES: u32 = 64;

/// Up to where a WAL has been captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    salts: [u32; 2],
    frames: u32,
    checksum: [u32; 2],
}

/// One commit, as its pages stand in the WAL.
#[derive(Debug)]
pub struct Commit {
    /// Pages of the database after the commit.
    pub database_pages: u32,
    /// Names this generation of the WAL.
    pub salts: [u32; 2],
    /// First frame of the commit, counted from 1.
    pub first_frame: u32,
    /// Last frame of the commit; the WAL's valid length.
    pub last_frame: u32,
    /// Page numbers and the frames of their last versions, in order of frames.
    pub pages: Vec<(u32, u32)>,
    /// The frames themselves, if they were few enough to be kept from the check.
    kept: Vec<u8>,
}

/// Bytes that the WAL file of a database has after `frames` frames.
pub const fn file_bytes(frames: u32) -> u64 {
    HEADER_BYTES as u64 + frames as u64 * FRAME_BYTES as u64
}

impl Conn {
    /// What the last commit wrote; `None` if nothing was written since the last call.
    ///
    /// To be called after each transaction, before the next one begins.
    /// Cost: reads and checks each frame once; memory is 4 bytes a frame and at most 64 frames.
    ///
    /// # Errors
    /// [`Code::Corrupt`] if the WAL is not the continuation of what was captured before;
    /// [`Code::Io`] if it cannot be read.
    pub fn take_commit(&mut self) -> Result<Option<Commit>> {
        let Some(last_frame) = self.take_committed_frames() else { return Ok(None) };
        let header = self.read_wal_header()?;
        let fresh = Position { salts: header.salts, frames: 0, checksum: header.checksum };
        let position = if self.wal.salts == header.salts { self.wal } else { fresh };
        if position.frames >= last_frame {
            return Err(corrupt("the WAL is shorter than what was captured from it"));
        }
        let mut chain = Chain { position, big_endian: header.big_endian };
        let first_frame = position.frames + 1;
        let count = last_frame + 1 - first_frame;
        let mut latest: HashMap<u32, u32> = HashMap::with_capacity(count.min(1 << 16) as usize);
        let mut kept = Vec::new();
        let mut buffer = vec![0; CHUNK_FRAMES.min(count) as usize * FRAME_BYTES];
        let mut database_pages = 0;
        let mut frame = first_frame;
        while frame <= last_frame {
            let n = CHUNK_FRAMES.min(last_frame + 1 - frame);
            let bytes = &mut buffer[..n as usize * FRAME_BYTES];
            self.read_wal(file_bytes(frame - 1), bytes)?;
            for (i, bytes) in bytes.chunks_exact(FRAME_BYTES).enumerate() {
                let (page, commit_pages) = chain.check(bytes, header.salts)?;
                latest.insert(page, frame + i as u32);
                database_pages = commit_pages;
            }
            frame += n;
        }
        if database_pages == 0 {
            return Err(corrupt("the last frame is no commit"));
        }
        if count <= CHUNK_FRAMES {
            kept = buffer;
        }
        // Pages past the new end were cut off by the same transaction.
        let mut pages: Vec<(u32, u32)> = latest.into_iter().filter(|(page, _)| *page <= database_pages).collect();
        pages.sort_unstable_by_key(|(_, frame)| *frame);
        self.wal = chain.position;
        Ok(Some(Commit { database_pages, salts: header.salts, first_frame, last_frame, pages, kept }))
    }

    /// Forgets the capture position: the WAL was emptied or cut.
    pub fn reset_capture(&mut self) {
        self.wal = Position::default();
        self.take_committed_frames();
    }

    /// Copies the page that `frame` of the WAL holds; `commit` must be the last one taken.
    ///
    /// # Errors
    /// [`Code::Io`].
    pub fn read_page(&self, commit: &Commit, frame: u32, page: &mut [u8]) -> Result<()> {
        debug_assert_eq!(page.len(), PAGE_BYTES);
        if commit.kept.is_empty() {
            return self.read_wal(file_bytes(frame - 1) + 24, page);
        }
        let at = (frame - commit.first_frame) as usize * FRAME_BYTES + 24;
        page.copy_from_slice(&commit.kept[at..at + PAGE_BYTES]);
        Ok(())
    }

    /// Bytes of the WAL's file. More than its commits take after a large transaction was undone; 0 while
    /// there is no WAL or its length cannot be had.
    pub fn wal_bytes(&self) -> u64 {
        let file = self.wal_file();
        let mut bytes = 0;
        // SAFETY: as in `read_wal`; the pointer is valid for writes.
        let rc = unsafe {
            if file.is_null() || (*file).pMethods.is_null() {
                ffi::SQLITE_IOERR
            } else {
                let size = (*(*file).pMethods).xFileSize.expect("every VFS knows a file's length");
                size(file, &raw mut bytes)
            }
        };
        if rc == ffi::SQLITE_OK { u64::try_from(bytes).unwrap_or(0) } else { 0 }
    }

    fn read_wal_header(&self) -> Result<Header> {
        let mut header = [0; HEADER_BYTES];
        self.read_wal(0, &mut header)?;
        let magic = be(&header, 0);
        if magic & !1 != 0x377f_0682 || be(&header, 8) as usize != PAGE_BYTES {
            return Err(corrupt("the header is not one of a WAL with pages of 4,096 bytes"));
        }
        let big_endian = magic & 1 == 1;
        let checksum = checksum([0, 0], &header[..24], big_endian);
        if checksum != [be(&header, 24), be(&header, 28)] {
            return Err(corrupt("the header's checksum is wrong"));
        }
        Ok(Header { salts: [be(&header, 16), be(&header, 20)], checksum, big_endian })
    }

    fn read_wal(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let file = self.wal_file();
        // SAFETY: SQLite gave the pointer for its open WAL; the connection stays open and no
        // statement runs, so the file and its methods live through the call.
        let rc = unsafe {
            if file.is_null() || (*file).pMethods.is_null() {
                ffi::SQLITE_IOERR
            } else {
                let read = (*(*file).pMethods).xRead.expect("every VFS reads");
                read(file, buffer.as_mut_ptr().cast(), buffer.len() as c_int, offset as i64)
            }
        };
        if rc == ffi::SQLITE_OK {
            return Ok(());
        }
        let detail = format!("WAL at {offset}, {} bytes: {}", buffer.len(), crate::error::code_text(rc));
        Err(Error::new(Code::Io, "the database's WAL could not be read back").with_internal(detail))
    }
}

/// What the WAL's header says.
struct Header {
    salts: [u32; 2],
    checksum: [u32; 2],
    big_endian: bool,
}

/// The running check of a WAL.
struct Chain {
    position: Position,
    big_endian: bool,
}

impl Chain {
    /// Checks one frame; returns its page and, for a commit, the database's pages.
    fn check(&mut self, frame: &[u8], salts: [u32; 2]) -> Result<(u32, u32)> {
        if [be(frame, 8), be(frame, 12)] != salts {
            return Err(corrupt("a frame carries other salts than the header"));
        }
        let sum = checksum(self.position.checksum, &frame[..8], self.big_endian);
        let sum = checksum(sum, &frame[24..], self.big_endian);
        if sum != [be(frame, 16), be(frame, 20)] {
            return Err(corrupt("a frame's checksum is wrong"));
        }
        self.position = Position { salts, frames: self.position.frames + 1, checksum: sum };
        Ok((be(frame, 0), be(frame, 4)))
    }
}

fn be(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// SQLite's WAL checksum: two sums over pairs of 32-bit words.
fn checksum(mut sum: [u32; 2], bytes: &[u8], big_endian: bool) -> [u32; 2] {
    for pair in bytes.chunks_exact(8) {
        let word = |at: usize| {
            let bytes: [u8; 4] = pair[at..at + 4].try_into().expect("four bytes");
            if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        sum[0] = sum[0].wrapping_add(word(0)).wrapping_add(sum[1]);
        sum[1] = sum[1].wrapping_add(word(4)).wrapping_add(sum[0]);
    }
    sum
}

fn corrupt(what: &str) -> Error {
    Error::new(Code::Corrupt, "the database's WAL is damaged").with_internal(what.to_owned())
}
