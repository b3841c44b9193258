//! Finds functions and their lengths by matching braces.

use super::lexer::code_only;

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// Line of `fn`, from 1.
    pub(super) line: usize,
    /// Lines from `fn` to the closing brace.
    pub(super) lines: usize,
}

/// Every function of a Rust file, inner ones too. Closures count to the function that holds them.
pub(super) fn functions(source: &str) -> Vec<Function<'_>> {
    let code = code_only(source);
    let bytes = code.as_bytes();
    let line_of = |at: usize| bytes[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
    code.match_indices("fn ")
        .filter(|&(at, _)| at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || matches!(bytes[at - 1], b'_' | b'#')))
        .filter_map(|(at, _)| {
            let name_at = at + 3 + code[at + 3..].find(|c: char| !c.is_whitespace())?;
            let name_len = code[name_at..].find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(0);
            let (_, close) = body(bytes, name_at)?;
            let line = line_of(at);
            (name_len > 0).then(|| Function { name: &source[name_at..name_at + name_len], line, lines: line_of(close) - line + 1 })
        })
        .collect()
}

/// Positions of the braces around the body of the function whose name is at `from`. A declaration ends
/// with `;` outside of brackets and has none.
fn body(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut brackets = 0_usize;
    let mut open = None;
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' if open.is_none() => brackets += 1,
            b')' | b']' if open.is_none() => brackets = brackets.checked_sub(1)?,
            b';' if open.is_none() && brackets == 0 => return None,
            b'{' if open.is_some() || brackets == 0 => {
                open = open.or(Some(at));
                depth += 1;
            }
            b'}' if open.is_some() => {
                depth -= 1;
                if depth == 0 {
                    return Some((open?, at));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_from_fn_to_the_closing_brace() {
        let source = "trait T {\n    fn declared(&self) -> [u8; 4];\n}\nimpl T for U {\n    fn f(&self, x: [u8; 4])\n    where\n        U: Sized,\n    {\n        let s = \"}\"; // }\n        fn inner() {}\n        match x { _ => {} }\n    }\n}\ntype F = fn (u8);\n";
        let found: Vec<_> = functions(source).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
        assert_eq!(found, [("f", 5, 8), ("inner", 10, 1)]);
    }
}
