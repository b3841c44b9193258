//! How a text of SQL ends, so that a statement can be put behind it.
//!
//! The server splits statements with SQLite's own tail pointer. Here it only matters whether the
//! last statement has its semicolon, and whether a comment or string is open at the end: an open
//! comment would swallow what is put behind it, and SQLite takes that for well-formed.

use std::{iter::Peekable, str::Chars};

/// How a text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// It holds no statement, only blanks and comments.
    Empty,
    /// The last statement ends with a semicolon.
    Complete,
    /// The last statement has no semicolon.
    Open,
    /// A comment, string or quoted name is not closed; what opened it.
    Unterminated(&'static str),
}

/// Looks at all of `sql`.
pub(super) fn tail(sql: &str) -> Tail {
    let mut tail = Tail::Empty;
    let mut chars = sql.chars().peekable();
    while let Some(c) = chars.next() {
        let closed = match c {
            '-' if chars.next_if_eq(&'-').is_some() => {
                chars.by_ref().find(|c| *c == '\n');
                continue;
            }
            '/' if chars.next_if_eq(&'*').is_some() => {
                if !skip_comment(&mut chars) {
                    return Tail::Unterminated("/*");
                }
                continue;
            }
            c if c.is_whitespace() || c == '\u{feff}' => continue,
            ';' => {
                // A semicolon without a statement before it ends nothing.
                if tail != Tail::Empty {
                    tail = Tail::Complete;
                }
                continue;
            }
            '\'' => skip_quoted(&mut chars, '\'').then_some(()).ok_or("'"),
            '"' => skip_quoted(&mut chars, '"').then_some(()).ok_or("\""),
            '`' => skip_quoted(&mut chars, '`').then_some(()).ok_or("`"),
            '[' => chars.by_ref().find(|c| *c == ']').map(|_| ()).ok_or("["),
            _ => Ok(()),
        };
        if let Err(opened) = closed {
            return Tail::Unterminated(opened);
        }
        tail = Tail::Open;
    }
    tail
}

fn skip_comment(chars: &mut Peekable<Chars<'_>>) -> bool {
    while chars.by_ref().any(|c| c == '*') {
        if chars.next_if_eq(&'/').is_some() {
            return true;
        }
        // `**/`: the second star may be the one that closes.
        while chars.next_if_eq(&'*').is_some() {
            if chars.next_if_eq(&'/').is_some() {
                return true;
            }
        }
    }
    false
}

/// A doubled quote stands for itself.
fn skip_quoted(chars: &mut Peekable<Chars<'_>>, quote: char) -> bool {
    while chars.by_ref().any(|c| c == quote) {
        if chars.next_if_eq(&quote).is_none() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_told_apart() {
        for (sql, expected) in [
            ("", Tail::Empty),
            (" \r\n-- only a remark\n/* and ** another */ ;", Tail::Empty),
            ("-- no line end", Tail::Empty),
            ("\u{feff}SELECT 1;", Tail::Complete),
            ("SELECT 1", Tail::Open),
            ("SELECT 1; -- tail", Tail::Complete),
            ("SELECT 1 -- ;", Tail::Open),
            ("SELECT 1; SELECT ';'", Tail::Open),
            ("SELECT 'it''s;';", Tail::Complete),
            ("SELECT \"a;\"\"b\", `c;`, [d;]", Tail::Open),
            ("SELECT 1 /* ; **/", Tail::Open),
            ("SELECT 1; /* open", Tail::Unterminated("/*")),
            ("SELECT 1; /*/", Tail::Unterminated("/*")),
            ("SELECT 'open;", Tail::Unterminated("'")),
            ("SELECT \"open", Tail::Unterminated("\"")),
            ("SELECT `open", Tail::Unterminated("`")),
            ("SELECT [open", Tail::Unterminated("[")),
            ("SELECT 1 - -1", Tail::Open),
            ("SELECT 4/2;", Tail::Complete),
            ("create trigger t after insert on a begin\r\n  select 1;\r\nend", Tail::Open),
        ] {
            assert_eq!(tail(sql), expected, "{sql}");
        }
    }
}
