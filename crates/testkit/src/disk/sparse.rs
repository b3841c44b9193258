//! The bytes of one file: pages shared between copies, holes that cost nothing.
//!
//! A crash copies every file, and a log may reserve many megabytes of zeros ahead of itself, so a
//! plain `Vec<u8>` would make thousands of crash points slow.

use std::{collections::BTreeMap, sync::Arc};

const PAGE: u64 = 4096;

/// A file's content. Copies share their pages until one of them writes.
#[derive(Clone, Default)]
pub(super) struct Sparse {
    len: u64,
    /// Only pages below `len`; a page that is absent is zeros, and bytes at or past `len` are zero.
    pages: BTreeMap<u64, Arc<[u8; PAGE as usize]>>,
}

impl Sparse {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `out` from `offset` and returns how many bytes lay inside the file; the rest is zeros.
    pub(super) fn read(&self, out: &mut [u8], offset: u64) -> usize {
        out.fill(0);
        let inside = self.len.saturating_sub(offset).min(out.len() as u64) as usize;
        each_page(offset, inside, |page, within, range| {
            if let Some(bytes) = self.pages.get(&page) {
                out[range.clone()].copy_from_slice(&bytes[within..within + range.len()]);
            }
        });
        inside
    }

    /// Writes, extending the file if need be.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        if bytes.is_empty() {
            return;
        }
        self.len = self.len.max(offset + bytes.len() as u64);
        each_page(offset, bytes.len(), |page, within, range| {
            let held = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE as usize]));
            Arc::make_mut(held)[within..within + range.len()].copy_from_slice(&bytes[range]);
        });
    }

    /// Cuts, or extends with zeros.
    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            drop(self.pages.split_off(&len.div_ceil(PAGE)));
            let tail = (len % PAGE) as usize;
            if tail > 0
                && let Some(last) = self.pages.get_mut(&(len / PAGE))
            {
                Arc::make_mut(last)[tail..].fill(0);
            }
        }
        self.len = len;
    }

    /// All of it; for tests and messages.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; self.len as usize];
        self.read(&mut out, 0);
        out
    }
}

/// Calls `visit(page, offset within it, range of the buffer)` for each page that the span touches.
fn each_page(offset: u64, len: usize, mut visit: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let within = (at % PAGE) as usize;
        let n = (len - done).min(PAGE as usize - within);
        visit(at / PAGE, within, done..done + n);
        done += n;
    }
}
