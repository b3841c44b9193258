//! Just enough of Rust's lexical grammar to tell code from comments and literals.

/// The same text with every comment, string and character literal turned into spaces. Line breaks
/// stay, so that positions and line numbers are those of the source.
pub(super) fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = token_end(bytes, at);
        match end {
            Some(end) => {
                out.extend(bytes[at..end].iter().map(|&byte| if byte == b'\n' { b'\n' } else { b' ' }));
                at = end;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).expect("whole literals and comments were replaced by ASCII, the rest is unchanged")
}

/// End of the comment or literal that begins at `at`; `None` if none begins there.
fn token_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => Some(at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())),
        b'/' if rest.starts_with(b"/*") => Some(block_comment_end(bytes, at)),
        b'"' => Some(quoted_end(bytes, at + 1, b'"')),
        b'\'' => char_end(bytes, at),
        b'r' if !ends_in_identifier(&bytes[..at]) || prefixed(bytes, at) => raw_string_end(bytes, at),
        _ => None,
    }
}

fn ends_in_identifier(before: &[u8]) -> bool {
    before.last().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80)
}

/// Whether the `r` at `at` belongs to `br"…"` or `cr"…"`.
fn prefixed(bytes: &[u8], at: usize) -> bool {
    at >= 1 && matches!(bytes[at - 1], b'b' | b'c') && !ends_in_identifier(&bytes[..at - 1])
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn quoted_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// `'x'` and `'\n'` are literals; `'a` without a closing quote is a lifetime or a label.
fn char_end(bytes: &[u8], at: usize) -> Option<usize> {
    let first = *bytes.get(at + 1)?;
    if first == b'\\' {
        return Some(quoted_end(bytes, at + 1, b'\''));
    }
    let width = match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    (bytes.get(at + 1 + width) == Some(&b'\'')).then_some(at + 2 + width)
}

/// `r"…"` and `r#"…"#`; `r#name` is an identifier.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let body = &bytes[open + 1..];
    Some(body.windows(close.len()).position(|window| window == close).map_or(bytes.len(), |found| open + 1 + found + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, code: &str) {
        let got = code_only(source);
        assert_eq!(got.len(), source.len(), "{source}");
        assert_eq!(got.split_whitespace().collect::<Vec<_>>().join(" "), code, "{source}");
    }

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_kept() {
        check("a // fn {\nb", "a b");
        check("a /* x /* { */ y */ b", "a b");
        check(r#"f("{ \" }", b)"#, "f( , b)");
        check(r##"f(r#"{ " }"#, b)"##, "f( , b)");
        check(r#"f(br"\", x)"#, "f(b , x)");
        check("f('{', '\\'', 'é', b'}')", "f( , , , b )");
        check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
        check("let r#fn = attr\"x\";", "let r#fn = attr ;");
        check("'outer: loop { break 'outer; }", "'outer: loop { break 'outer; }");
        check("\"open", "");
    }
}
