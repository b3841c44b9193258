//! Runs a script of any length from a stream, statement by statement, in constant memory.

use std::{
    io::{ErrorKind, Read},
    time::Duration,
};

use base::{Code, Error, Result};

use crate::{Conn, Meta, execute, lexer, raw::SqlText};

/// What a script did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Statements run.
    pub statements: u64,
    /// Bytes of the script consumed.
    pub bytes: u64,
    /// Sums over all statements; `last_row_id` and `size_after` of the last.
    pub meta: Meta,
}

/// A script that failed: where, and why.
#[derive(Debug)]
pub struct Failure {
    /// What was done before, all of which the transaction undoes.
    pub totals: Totals,
    /// Why.
    pub error: Error,
}

/// Bytes read at a time, and the least that a window holds before a statement is tried.
const WINDOW_BYTES: usize = 256 * 1024;

/// Runs every statement of `reader`, within the transaction that the caller has begun.
///
/// `on_progress` is called after each statement. Each statement has the profile's own time limit;
/// the script as a whole has none. Rows are dropped. Memory: one window of 256 KiB, more only if
/// the profile allows longer statements and the script has them.
///
/// # Errors
/// [`Failure`] with the first error; the caller must undo the transaction.
pub fn run(conn: &mut Conn, reader: &mut dyn Read, on_progress: &mut dyn FnMut(&Totals)) -> std::result::Result<Totals, Box<Failure>> {
    let mut totals = Totals::default();
    let mut window = Window::new(reader);
    let outcome = loop {
        match step(conn, &mut window, &mut totals) {
            Ok(true) => on_progress(&totals),
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    conn.set_time_limit(None);
    match outcome {
        Ok(()) if totals.statements == 0 => {
            Err(Box::new(Failure { totals, error: Error::new(Code::Statement, "No SQL statements detected.") }))
        }
        Ok(()) => Ok(totals),
        Err(error) => Err(Box::new(Failure { totals, error })),
    }
}

/// Runs the next statement; `false` at the end.
fn step(conn: &Conn, window: &mut Window, totals: &mut Totals) -> Result<bool> {
    let limit = conn.limits().statement_bytes_max as usize;
    window.skip_blank()?;
    totals.bytes = window.offset();
    if window.is_at_end() {
        return Ok(false);
    }
    let mut want = WINDOW_BYTES;
    loop {
        window.fill(want)?;
        let whole = window.ended || window.available() > limit;
        let prepared = execute::prepare(conn, &window.text, window.start);
        let cut = match &prepared {
            Ok((_, next)) => *next == window.text.bytes().len() && window.text.bytes().last() != Some(&b';'),
            Err(_) => true,
        };
        if cut && !whole {
            want *= 4;
            continue;
        }
        let (stmt, next) = prepared?;
        if let Some(stmt) = stmt {
            if stmt.parameter_count() > 0 {
                return Err(Error::new(Code::Statement, "Wrong number of parameter bindings for SQL query."));
            }
            conn.set_time_limit(Some(Duration::from_millis(conn.limits().query_ms_max)));
            let meta = execute::metered(conn, &stmt, &[], |_| Ok(()))?;
            totals.add(&meta);
        }
        window.start = next;
        totals.bytes = window.offset();
        return Ok(true);
    }
}

impl Totals {
    fn add(&mut self, meta: &Meta) {
        self.statements += 1;
        self.meta.rows_read += meta.rows_read;
        self.meta.rows_written += meta.rows_written;
        self.meta.changes += meta.changes;
        self.meta.duration_ms += meta.duration_ms;
        self.meta.changed_db |= meta.changed_db;
        self.meta.last_row_id = meta.last_row_id;
        self.meta.size_after = meta.size_after;
    }
}

/// The part of the script that is in memory.
struct Window<'a> {
    reader: &'a mut dyn Read,
    text: SqlText,
    /// Where the next statement begins in `text`.
    start: usize,
    /// Bytes of the script before `text`.
    dropped: u64,
    ended: bool,
}

impl<'a> Window<'a> {
    fn new(reader: &'a mut dyn Read) -> Self {
        Self { reader, text: SqlText::from_checked(Vec::new()), start: 0, dropped: 0, ended: false }
    }

    fn available(&self) -> usize {
        self.text.bytes().len() - self.start
    }

    fn is_at_end(&self) -> bool {
        self.ended && self.available() == 0
    }

    fn offset(&self) -> u64 {
        self.dropped + self.start as u64
    }

    /// Reads until `want` bytes lie before the end of the window, or the script ends.
    fn fill(&mut self, want: usize) -> Result<()> {
        if self.ended || self.available() >= want {
            return Ok(());
        }
        let mut bytes = std::mem::replace(&mut self.text, SqlText::from_checked(Vec::new())).into_bytes();
        bytes.drain(..self.start);
        self.dropped += self.start as u64;
        self.start = 0;
        let have = bytes.len();
        let outcome = read_more(self.reader, &mut bytes, want + WINDOW_BYTES);
        let nul = bytes[have..].iter().position(|b| *b == 0);
        if let Some(at) = nul {
            let at = self.dropped + (have + at) as u64;
            return Err(Error::new(Code::Sql, format!("unrecognized token: \"\\0\" at offset {at}: SQLITE_ERROR")));
        }
        self.text = SqlText::from_checked(bytes);
        self.ended = outcome?;
        Ok(())
    }

    /// Moves to the next byte that is no white space and no comment, however long those are.
    fn skip_blank(&mut self) -> Result<()> {
        loop {
            self.fill(WINDOW_BYTES)?;
            let bytes = self.text.bytes();
            let at = lexer::skip_blank(bytes, self.start);
            if at < bytes.len() || self.ended {
                self.start = at;
                return Ok(());
            }
            // All of the window is blank. An open comment goes on in the next one: its opening is kept.
            let last = lexer::tokens(bytes, self.start).last();
            let open = last.map(|token| &bytes[token.start..]).filter(|text| {
                (text.starts_with(b"--") && !text.ends_with(b"\n"))
                    || (text.starts_with(b"/*") && (text.len() < 4 || !text.ends_with(b"*/")))
            });
            let kept: Vec<u8> = match open {
                Some(text) if text.starts_with(b"/*") && text.len() > 3 && text.ends_with(b"*") => b"/**".to_vec(),
                Some(text) => text[..2].to_vec(),
                None if bytes.ends_with(b"-") || bytes.ends_with(b"/") => bytes[bytes.len() - 1..].to_vec(),
                None => Vec::new(),
            };
            self.dropped += (bytes.len() - kept.len()) as u64;
            self.start = 0;
            self.text = SqlText::from_checked(kept);
        }
    }
}

/// Appends up to `target` bytes in all; `true` if the stream has ended.
fn read_more(reader: &mut dyn Read, bytes: &mut Vec<u8>, target: usize) -> Result<bool> {
    while bytes.len() < target {
        let have = bytes.len();
        bytes.resize(target, 0);
        let read = reader.read(&mut bytes[have..]);
        let n = *read.as_ref().unwrap_or(&0);
        bytes.truncate(have + n);
        match read {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("the script", error)),
        }
    }
    Ok(false)
}
