//! `DELETE` and `UPDATE` with their own `ORDER BY` and `LIMIT`.
//!
//! Production compiles SQLite with these clauses; the shipped amalgamation has no grammar for them.
//! So a statement that fails at one of the two words is rewritten over the row's key:
//! `DELETE FROM t WHERE c LIMIT 3` becomes `DELETE FROM t WHERE rowid IN (SELECT rowid FROM t WHERE c LIMIT 3)`.
//! The rows that change are the same; `rows_read` is higher by the second look-up (COMPAT.md).

use base::Result;

use crate::{
    Conn, Value,
    lexer::{self, Kind, Token},
};

/// Whether a syntax error may come from one of the clauses.
pub(crate) fn may_be(message: &str) -> bool {
    ["near \"LIMIT\"", "near \"ORDER\"", "near \"limit\"", "near \"order\""].iter().any(|start| message.starts_with(start))
        || message
            .get(..12)
            .is_some_and(|start| start.eq_ignore_ascii_case("near \"limit\"") || start.eq_ignore_ascii_case("near \"order\""))
}

/// Rewrites the statement at `from`: returns its new text and where the next one begins, or `None`
/// if it is no such statement.
pub(crate) fn rewrite(conn: &Conn, sql: &[u8], from: usize) -> Result<Option<(Vec<u8>, usize)>> {
    let Some(parts) = Parts::find(sql, from) else { return Ok(None) };
    let Some(key) = row_key(conn, parts.table)? else { return Ok(None) };
    let word = |range: (usize, usize)| &sql[range.0..range.1];
    let mut out = Vec::with_capacity((parts.end - from) * 2);
    let mut variables = Variables::default();
    variables.append(&mut out, word((from, parts.where_start)));
    out.extend_from_slice(b" WHERE ");
    out.extend_from_slice(key.tuple().as_bytes());
    out.extend_from_slice(b" IN (SELECT ");
    out.extend_from_slice(key.list().as_bytes());
    out.extend_from_slice(b" FROM ");
    out.extend_from_slice(parts.table_text(sql));
    out.push(b' ');
    let mut returning = Vec::new();
    // RETURNING stands before ORDER BY in this grammar and after the rewritten condition, so its
    // variables are numbered in the order of the user's text first.
    variables.append(&mut out, word((parts.where_start, parts.returning_start)));
    variables.append(&mut returning, word((parts.returning_start, parts.limit_start)));
    out.push(b' ');
    variables.append(&mut out, word((parts.limit_start, parts.end)));
    out.extend_from_slice(b") ");
    out.extend_from_slice(&returning);
    Ok(Some((out, parts.next)))
}

/// Byte positions of a statement's clauses. Each clause ends where the next begins.
struct Parts<'a> {
    table: &'a [u8],
    /// The table's name with its schema and alias.
    table_range: (usize, usize),
    where_start: usize,
    returning_start: usize,
    limit_start: usize,
    /// The end of the last clause.
    end: usize,
    /// Where the next statement begins.
    next: usize,
}

impl<'a> Parts<'a> {
    fn table_text(&self, sql: &'a [u8]) -> &'a [u8] {
        &sql[self.table_range.0..self.table_range.1]
    }

    fn find(sql: &'a [u8], from: usize) -> Option<Self> {
        let (words, end, next) = top_level(sql, from);
        let is = |token: &Token, word: &str| token.kind == Kind::Word && sql[token.start..token.end].eq_ignore_ascii_case(word.as_bytes());
        let verb = words.iter().position(|token| is(token, "DELETE") || is(token, "UPDATE"))?;
        // A `WITH` clause before the verb stays where it is; the inner SELECT sees it too.
        if verb != 0 && !is(&words[0], "WITH") {
            return None;
        }
        let mut at = verb + 1;
        if is(words.get(at)?, "OR") {
            at += 2;
        }
        if is(words.get(at)?, "FROM") {
            at += 1;
        }
        let first = at;
        let mut name = at;
        if words.get(at + 1).is_some_and(|token| &sql[token.start..token.end] == b".") {
            name = at + 2;
        }
        let mut table_end = name;
        if words.get(name + 1).is_some_and(|token| is(token, "AS")) {
            table_end = name + 2;
        }
        let find = |word: &str, after: usize| words.iter().skip(after).find(|token| is(token, word)).map(|token| token.start);
        let limit_start = [find("ORDER", table_end), find("LIMIT", table_end)].into_iter().flatten().min()?;
        let returning_start = find("RETURNING", table_end).filter(|at| *at < limit_start).unwrap_or(limit_start);
        let where_start = find("WHERE", table_end).filter(|at| *at < returning_start).unwrap_or(returning_start);
        let table = words.get(name)?;
        Some(Self {
            table: &sql[table.start..table.end],
            table_range: (words.get(first)?.start, words.get(table_end)?.end),
            where_start,
            returning_start,
            limit_start,
            end,
            next,
        })
    }
}

/// The tokens of the statement that stand in no parentheses, where it ends and where the next begins.
fn top_level(sql: &[u8], from: usize) -> (Vec<Token>, usize, usize) {
    let mut depth = 0_u32;
    let mut words = Vec::new();
    for token in lexer::tokens(sql, from) {
        let symbol = if token.kind == Kind::Symbol { sql[token.start] } else { 0 };
        match symbol {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => return (words, token.start, token.end),
            _ if depth == 0 && token.kind != Kind::Blank => words.push(token),
            _ => {}
        }
    }
    (words, sql.len(), sql.len())
}

/// Numbers the plain `?` of a text that is put together anew, as their places in the first text would.
#[derive(Default)]
struct Variables {
    highest: u32,
}

impl Variables {
    fn append(&mut self, out: &mut Vec<u8>, text: &[u8]) {
        for token in lexer::tokens(text, 0) {
            let bytes = &text[token.start..token.end];
            if token.kind == Kind::Variable && bytes == b"?" {
                self.highest += 1;
                out.extend_from_slice(format!("?{}", self.highest).as_bytes());
                continue;
            }
            if token.kind == Kind::Variable
                && let Some(number) = bytes.strip_prefix(b"?").and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
            {
                self.highest = self.highest.max(number);
            }
            out.extend_from_slice(bytes);
        }
    }
}

/// What names one row of a table.
struct RowKey(Vec<String>);

impl RowKey {
    fn list(&self) -> String {
        self.0.join(",")
    }

    fn tuple(&self) -> String {
        if self.0.len() == 1 { self.list() } else { format!("({})", self.list()) }
    }
}

/// The table's rowid under a name that no column hides, or its primary key. `None` for a view or no table.
fn row_key(conn: &Conn, quoted: &[u8]) -> Result<Option<RowKey>> {
    let name = Value::Text(unquote(quoted));
    let kind = conn.query_internal("SELECT type, wr FROM pragma_table_list(?1) WHERE schema = 'main'", std::slice::from_ref(&name))?;
    let without_rowid = match kind.first().map(Vec::as_slice) {
        Some([Value::Text(kind), Value::Integer(wr)]) if kind == "table" || kind == "virtual" || kind == "shadow" => *wr == 1,
        _ => return Ok(None),
    };
    let columns = conn.query_internal("SELECT name, pk FROM pragma_table_xinfo(?1) ORDER BY pk", &[name])?;
    let text = |row: &[Value]| match &row[0] {
        Value::Text(name) => name.clone(),
        _ => String::new(),
    };
    if without_rowid {
        let keys = columns.iter().filter(|row| row[1] != Value::Integer(0));
        return Ok(Some(RowKey(keys.map(|row| format!("\"{}\"", text(row).replace('"', "\"\""))).collect())));
    }
    let free = ["rowid", "_rowid_", "oid"].into_iter().find(|alias| !columns.iter().any(|row| text(row).eq_ignore_ascii_case(alias)));
    Ok(free.map(|alias| RowKey(vec![alias.to_owned()])))
}

fn unquote(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let inner = |quote: char| text.get(1..text.len() - 1).unwrap_or_default().replace(&format!("{quote}{quote}"), &quote.to_string());
    match name.first() {
        Some(b'"') => inner('"'),
        Some(b'`') => inner('`'),
        Some(b'\'') => inner('\''),
        Some(b'[') => text.get(1..text.len() - 1).unwrap_or_default().to_owned(),
        _ => text.into_owned(),
    }
}
