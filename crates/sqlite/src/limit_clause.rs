//! `DELETE` and `UPDATE` with their own `ORDER BY` and `LIMIT`.
//!
//! Production compiles SQLite with these clauses; the shipped amalgamation has no grammar for them.
//! So a statement that fails at one of the two words is rewritten over the row's key:
//! `DELETE FROM t WHERE c LIMIT 3` becomes `DELETE FROM t WHERE rowid IN (SELECT rowid FROM t WHERE c LIMIT 3)`.
//! The rows that change are the same; `rows_read` is higher by the second look-up (COMPAT.md).

use base::{Code, Error, Result};

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

/// A statement in SQLite's own grammar, and where its bytes came from.
#[derive(Default)]
pub(crate) struct Rewritten {
    pub(crate) text: Vec<u8>,
    /// Where the next statement begins in the user's text.
    pub(crate) next: usize,
    /// Runs of the user's bytes: position here, position there, length.
    runs: Vec<(usize, usize, usize)>,
    /// The highest number of a variable so far.
    highest: u32,
}

impl Rewritten {
    /// Leads from an offset in the new text to one in the user's, counted from the statement's begin.
    pub(crate) fn map(&self, offset: u32, from: usize) -> Option<u32> {
        let offset = offset as usize;
        let (here, there, _) = self.runs.iter().find(|(here, _, len)| (*here..here + len).contains(&offset))?;
        u32::try_from(there + (offset - here) - from).ok()
    }

    fn own(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Appends the user's bytes from `start` to `end`. Plain `?` are numbered as their places in the
    /// user's text would, since a later part may stand before an earlier one here.
    fn user(&mut self, sql: &[u8], (start, end): (usize, usize)) {
        for token in lexer::tokens(&sql[..end], start) {
            let bytes = &sql[token.start..token.end];
            if token.kind == Kind::Variable && bytes == b"?" {
                self.highest += 1;
                let number = format!("?{}", self.highest);
                self.own(&number);
                continue;
            }
            if token.kind == Kind::Variable
                && let Some(number) = bytes.strip_prefix(b"?").and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
            {
                self.highest = self.highest.max(number);
            }
            self.runs.push((self.text.len(), token.start, bytes.len()));
            self.text.extend_from_slice(bytes);
        }
    }
}

/// Rewrites the statement at `from`; `None` if it is no such statement.
///
/// # Errors
/// SQLite's own text for an `ORDER BY` that has no `LIMIT`, and for a table that cannot be changed.
pub(crate) fn rewrite(conn: &Conn, sql: &[u8], from: usize) -> Result<Option<Rewritten>> {
    let Some(parts) = Parts::find(sql, from) else { return Ok(None) };
    let Some(key) = row_key(conn, parts.table)? else { return Ok(None) };
    if !parts.has_limit {
        return Err(Error::new(Code::Sql, format!("ORDER BY without LIMIT on {}: SQLITE_ERROR", parts.verb)));
    }
    let mut out = Rewritten { next: parts.next, ..Rewritten::default() };
    out.user(sql, (from, parts.where_start));
    out.own(" WHERE ");
    out.own(&key.tuple());
    out.own(" IN (SELECT ");
    out.own(&key.list());
    out.own(" FROM ");
    out.user(sql, parts.table_range);
    out.own(" ");
    out.user(sql, (parts.where_start, parts.returning_start));
    // RETURNING stands before ORDER BY in this grammar and after the rewritten condition, so its
    // variables take their numbers first and its text comes last.
    let mut returning = Rewritten { highest: out.highest, ..Rewritten::default() };
    returning.user(sql, (parts.returning_start, parts.limit_start));
    out.highest = returning.highest;
    out.own(" ");
    out.user(sql, (parts.limit_start, parts.end));
    out.own(") ");
    let shift = out.text.len();
    out.runs.extend(returning.runs.iter().map(|(here, there, len)| (here + shift, *there, *len)));
    out.text.extend_from_slice(&returning.text);
    Ok(Some(out))
}

/// Byte positions of a statement's clauses. Each clause ends where the next begins.
struct Parts<'a> {
    /// `DELETE` or `UPDATE`.
    verb: &'static str,
    has_limit: bool,
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
            verb: if is(&words[verb], "DELETE") { "DELETE" } else { "UPDATE" },
            has_limit: find("LIMIT", table_end).is_some(),
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

/// The table's rowid under a name that no column hides, or its primary key.
///
/// # Errors
/// SQLite's own text for a table that is not there or is a view.
fn row_key(conn: &Conn, quoted: &[u8]) -> Result<Option<RowKey>> {
    let name = Value::Text(unquote(quoted));
    let kind = conn.query_internal("SELECT type, wr FROM pragma_table_list(?1) WHERE schema = 'main'", std::slice::from_ref(&name))?;
    let without_rowid = match kind.first().map(Vec::as_slice) {
        Some([Value::Text(kind), _]) if kind == "view" => {
            return Err(Error::new(Code::Sql, format!("cannot modify {} because it is a view: SQLITE_ERROR", unquote(quoted))));
        }
        Some([_, Value::Integer(wr)]) => *wr == 1,
        _ => return Err(Error::new(Code::Sql, format!("no such table: {}: SQLITE_ERROR", unquote(quoted)))),
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
