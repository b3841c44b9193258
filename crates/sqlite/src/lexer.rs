//! SQLite's tokens, as far as rewriting a `LIMIT` clause and skipping comments need them.
//!
//! This never decides where a statement ends: SQLite's own tail pointer does.

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// White space or a comment.
    Blank,
    /// A bare word: keyword, identifier or number.
    Word,
    /// A quoted string, identifier or blob.
    Quoted,
    /// `?`, `?7`, `:a`, `@a`, `$a`.
    Variable,
    /// Any other single character.
    Symbol,
}

/// A token: its kind and its bytes' range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Iterates over the tokens of `sql` from `from` on. Always ends; an unterminated quote or comment
/// reaches to the end of the text.
pub(crate) fn tokens(sql: &[u8], from: usize) -> impl Iterator<Item = Token> + '_ {
    let mut at = from;
    std::iter::from_fn(move || {
        let first = *sql.get(at)?;
        let start = at;
        let (kind, end) = scan(sql, start, first);
        at = end;
        Some(Token { kind, start, end })
    })
}

/// Where white space and comments that begin at `from` end.
pub(crate) fn skip_blank(sql: &[u8], from: usize) -> usize {
    tokens(sql, from).find(|token| token.kind != Kind::Blank).map_or(sql.len(), |token| token.start)
}

fn scan(sql: &[u8], start: usize, first: u8) -> (Kind, usize) {
    let next = sql.get(start + 1).copied();
    match (first, next) {
        (b' ' | b'\t' | b'\n' | b'\r' | 0x0c, _) => (Kind::Blank, until(sql, start, |b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0c))),
        (b'-', Some(b'-')) => (Kind::Blank, until(sql, start, |b| b == b'\n')),
        (b'/', Some(b'*')) => {
            let body = start + 2;
            let end = sql[body.min(sql.len())..].windows(2).position(|pair| pair == b"*/").map_or(sql.len(), |at| body + at + 2);
            (Kind::Blank, end)
        }
        (b'\'' | b'"' | b'`', _) => (Kind::Quoted, quoted(sql, start, first)),
        (b'[', _) => (Kind::Quoted, sql[start..].iter().position(|b| *b == b']').map_or(sql.len(), |at| start + at + 1)),
        (b'x' | b'X', Some(b'\'')) => (Kind::Quoted, quoted(sql, start + 1, b'\'')),
        (b'?', _) => (Kind::Variable, until(sql, start + 1, |b| !b.is_ascii_digit())),
        (b':' | b'@' | b'$' | b'#', Some(b)) if is_word(b) => (Kind::Variable, until(sql, start + 1, |b| !is_word(b))),
        (b, _) if is_word(b) => (Kind::Word, until(sql, start, |b| !is_word(b))),
        _ => (Kind::Symbol, start + 1),
    }
}

fn until(sql: &[u8], from: usize, stop: impl Fn(u8) -> bool) -> usize {
    sql[from.min(sql.len())..].iter().position(|b| stop(*b)).map_or(sql.len(), |at| from + at)
}

/// A doubled quote stands for itself.
fn quoted(sql: &[u8], open: usize, quote: u8) -> usize {
    let mut at = open + 1;
    while at < sql.len() {
        if sql[at] == quote {
            if sql.get(at + 1) != Some(&quote) {
                return at + 1;
            }
            at += 1;
        }
        at += 1;
    }
    sql.len()
}

const fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_and_space_are_skipped_and_quotes_are_not() {
        let sql = b" -- a ; b\r\n /* ; */\t'x;--'";
        let at = skip_blank(sql, 0);
        assert_eq!(&sql[at..], b"'x;--'");
        assert_eq!(skip_blank(b"/* open", 0), 7);
        assert_eq!(tokens(b"'it''s' x'00' [a b] ?12 :a", 0).filter(|t| t.kind != Kind::Blank).count(), 5);
    }

    proptest! {
        #[test]
        fn tokens_cover_every_byte_once(sql in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut at = 0;
            for token in tokens(&sql, 0) {
                prop_assert_eq!(token.start, at);
                prop_assert!(token.end > token.start);
                at = token.end;
            }
            prop_assert_eq!(at, sql.len());
        }
    }
}
