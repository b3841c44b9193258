//! Writes a database as SQL that imports again, here and on Cloudflare.
//!
//! Order: all tables, virtual ones last, since a row needs the tables that its foreign keys name; then
//! rows in the same order, then indexes and views, then what is
//! built from those (FTS5 over a table or a view), then triggers, so that no trigger fires, no index
//! slows the import, and everything is there before it is used. No statement is longer than the statement
//! limit allows: a long value is sent in parts through a table that the script makes and drops.

use std::io::Write;

use base::{Code, Error, Result};
use rusqlite::ffi;

use crate::{
    Conn, Value,
    error::{self, Stage},
    lexer::{self, Kind},
    raw::{self, RawStatement, SqlText},
};

/// What to write.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Leave out `CREATE` statements.
    pub no_schema: bool,
    /// Leave out rows.
    pub no_data: bool,
    /// Only these tables and what belongs to them; empty is all.
    pub tables: Vec<String>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tables, virtual ones too.
    pub tables: u64,
    /// Rows.
    pub rows: u64,
}

/// The table through which long values pass.
const STAGING: &str = "_hearth_long_values";
/// Bytes that a statement may have; under production's 100,000.
const STATEMENT_BYTES: usize = 90_000;
/// Bytes of one part of a long value, written as hex or with every quote doubled at worst.
const PART_BYTES: usize = 40_000;

/// Writes `conn`'s database to `out` as the running transaction sees it.
///
/// Memory: one row at a time. `on_row` is called after each row, with the totals so far.
///
/// # Errors
/// [`Code::Transfer`] for a table that is not there or whose rows cannot be read back (a contentless
/// FTS5 table); SQLite's and the writer's.
pub fn write(conn: &Conn, options: &Options, out: &mut dyn Write, on_row: &mut dyn FnMut(&Totals)) -> Result<Totals> {
    let schema = Schema::read(conn, options)?;
    let mut dump = Dump {
        conn,
        options,
        out,
        staging: schema.staging.clone(),
        staged: false,
        totals: Totals::default(),
        keep_rowids: schema.has_virtual,
        on_row,
    };
    dump.line("PRAGMA defer_foreign_keys=TRUE;")?;
    let plain = || schema.tables.iter().filter(|table| table.kind == TableKind::Plain);
    let others = || schema.tables.iter().filter(|table| table.kind != TableKind::Plain);
    if !options.no_schema {
        for table in plain().chain(others()) {
            dump.line(&format!("{};", table.sql))?;
        }
    }
    for table in plain().chain(others()) {
        dump.rows(table)?;
    }
    if !options.no_data {
        dump.sequences(&schema)?;
    }
    if dump.staged {
        let drop = format!("DROP TABLE \"{}\";", dump.staging);
        dump.line(&drop)?;
    }
    if !options.no_schema {
        for sql in &schema.others {
            dump.line(&format!("{sql};"))?;
        }
    }
    if !options.no_data {
        for table in schema.tables.iter().filter(|table| table.kind == TableKind::External) {
            let quoted = quote_name(&table.name);
            dump.line(&format!("INSERT INTO {quoted}({quoted}) VALUES('rebuild');"))?;
        }
    }
    if !options.no_schema {
        for sql in &schema.triggers {
            dump.line(&format!("{sql};"))?;
        }
    }
    dump.out.flush().map_err(|error| Error::io("the export", error))?;
    Ok(dump.totals)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TableKind {
    Plain,
    /// FTS5 with its own content, R-Tree: rows are read and inserted.
    Virtual,
    /// FTS5 over another table: rebuilt from it.
    External,
    /// No rows of its own.
    View,
}

struct Table {
    name: String,
    sql: String,
    kind: TableKind,
}

struct Schema {
    tables: Vec<Table>,
    /// Indexes and views in the order in which they were made.
    others: Vec<String>,
    triggers: Vec<String>,
    has_virtual: bool,
    has_sequence: bool,
    /// A name for the table of long values that nothing else has.
    staging: String,
}

impl Schema {
    fn read(conn: &Conn, options: &Options) -> Result<Self> {
        let shadows: Vec<String> =
            texts(&conn.query_internal("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'", &[])?);
        let rows = conn.query_internal("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid", &[])?;
        let mut schema = Self {
            tables: Vec::new(),
            others: Vec::new(),
            triggers: Vec::new(),
            has_virtual: false,
            has_sequence: false,
            staging: STAGING.to_owned(),
        };
        let taken = |name: &str| rows.iter().any(|row| text(&row[1]).eq_ignore_ascii_case(name));
        while taken(&schema.staging) {
            schema.staging.push('_');
        }
        for row in &rows {
            let [kind, name, owner, sql] = [text(&row[0]), text(&row[1]), text(&row[2]), text(&row[3])];
            schema.has_sequence |= name == "sqlite_sequence";
            let reserved = name.starts_with("sqlite_") || name.starts_with("_cf_") || shadows.contains(&name);
            let wanted = options.tables.is_empty() || options.tables.iter().any(|table| table.eq_ignore_ascii_case(&owner));
            if reserved || sql.is_empty() || !wanted {
                continue;
            }
            if kind == "table" {
                let kind = table_kind(&name, &sql)?;
                schema.has_virtual |= kind != TableKind::Plain;
                schema.tables.push(Table { name, sql, kind });
            } else if kind == "trigger" {
                schema.triggers.push(sql);
            } else {
                schema.others.push(sql);
            }
        }
        for wanted in &options.tables {
            if !schema.tables.iter().any(|table| table.name.eq_ignore_ascii_case(wanted)) {
                return Err(Error::new(Code::Transfer, format!("no such table: {wanted}")));
            }
        }
        Ok(schema)
    }
}

/// Reads from its SQL what kind of table it is.
fn table_kind(name: &str, sql: &str) -> Result<TableKind> {
    let bytes = sql.as_bytes();
    let words: Vec<&[u8]> = lexer::tokens(bytes, 0).filter(|t| t.kind != Kind::Blank).map(|t| &bytes[t.start..t.end]).collect();
    if !words.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"VIRTUAL")) {
        return Ok(TableKind::Plain);
    }
    let module =
        words.iter().position(|word| word.eq_ignore_ascii_case(b"USING")).and_then(|at| words.get(at + 1)).copied().unwrap_or_default();
    if module.eq_ignore_ascii_case(b"fts5vocab") {
        return Ok(TableKind::View);
    }
    let content = words.windows(3).find(|w| w[0].eq_ignore_ascii_case(b"content") && w[1] == b"=").map(|w| w[2]);
    match content {
        Some(b"''" | b"\"\"") => Err(Error::new(
            Code::Transfer,
            format!("the rows of the contentless FTS5 table `{name}` cannot be read back; export the other tables by name"),
        )),
        Some(_) => Ok(TableKind::External),
        None => Ok(TableKind::Virtual),
    }
}

struct Dump<'a> {
    conn: &'a Conn,
    options: &'a Options,
    out: &'a mut dyn Write,
    /// Name of the table through which long values pass.
    staging: String,
    staged: bool,
    totals: Totals,
    /// Other tables may point at rowids, so they must not change.
    keep_rowids: bool,
    on_row: &'a mut dyn FnMut(&Totals),
}

impl Dump<'_> {
    fn line(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.write_all(b"\n")).map_err(|error| Error::io("the export", error))
    }

    fn rows(&mut self, table: &Table) -> Result<()> {
        self.totals.tables += 1;
        if self.options.no_data || matches!(table.kind, TableKind::View | TableKind::External) {
            return Ok(());
        }
        let quoted = quote_name(&table.name);
        let names = self.columns(table)?;
        let list = names.join(",");
        let text = SqlText::new(&format!("SELECT {list} FROM {quoted}")).expect("names hold no NUL");
        let (stmt, _) = self.conn.unauthorized(|| raw::prepare(self.conn.handle(), &text, 0, false)).map_err(|rc| self.failed(rc))?;
        let stmt = stmt.expect("a SELECT is a statement");
        self.conn.limit_values(true);
        while self.conn.unauthorized(|| stmt.step()).map_err(|rc| self.failed(rc))? {
            self.row(&stmt, &format!("INSERT INTO {quoted} ({list}) VALUES("), names.len())?;
            self.totals.rows += 1;
            (self.on_row)(&self.totals);
        }
        self.conn.limit_values(false);
        Ok(())
    }

    /// The names of the columns that hold data of their own, and the rowid where it must be kept.
    fn columns(&self, table: &Table) -> Result<Vec<String>> {
        let name = Value::Text(table.name.clone());
        let rows = self.conn.query_internal("SELECT name, pk, type, hidden FROM pragma_table_xinfo(?1)", std::slice::from_ref(&name))?;
        let without_rowid = self.conn.query_internal("SELECT wr FROM pragma_table_list(?1) WHERE schema = 'main'", &[name])?;
        let has_rowid = without_rowid.first().is_some_and(|row| row[0] == Value::Integer(0));
        let is_rowid_alias = |row: &Vec<Value>| row[1] == Value::Integer(1) && text(&row[2]).eq_ignore_ascii_case("INTEGER");
        let hides = rows.iter().any(|row| text(&row[0]).eq_ignore_ascii_case("rowid"));
        let mut names: Vec<String> = rows.iter().filter(|row| row[3] == Value::Integer(0)).map(|row| quote_name(&text(&row[0]))).collect();
        let is_rtree = table.kind == TableKind::Virtual && !table.sql.to_ascii_lowercase().contains("fts5");
        if self.keep_rowids && has_rowid && !hides && !is_rtree && !rows.iter().any(is_rowid_alias) {
            names.insert(0, "rowid".to_owned());
        }
        Ok(names)
    }

    fn row(&mut self, stmt: &RawStatement, head: &str, columns: usize) -> Result<()> {
        let lengths: Vec<usize> = (0..columns).map(|i| literal_bytes(stmt, i)).collect();
        let mut staged = vec![false; columns];
        let mut total = head.len() + lengths.iter().sum::<usize>() + columns + 4;
        while total > STATEMENT_BYTES {
            let Some(longest) = (0..columns).filter(|i| !staged[*i] && lengths[*i] > 200).max_by_key(|i| lengths[*i]) else { break };
            staged[longest] = true;
            total = total + 200 - lengths[longest];
        }
        for i in (0..columns).filter(|i| staged[*i]) {
            self.stage(stmt, i)?;
        }
        let mut line = head.as_bytes().to_vec();
        for (i, is_staged) in staged.iter().enumerate() {
            if i > 0 {
                line.push(b',');
            }
            if *is_staged {
                line.extend_from_slice(unstage(&self.staging, i, stmt.column_type(i) == ffi::SQLITE_TEXT).as_bytes());
            } else {
                push_literal(&mut line, stmt, i);
            }
        }
        line.extend_from_slice(b");\n");
        self.out.write_all(&line).map_err(|error| Error::io("the export", error))?;
        if staged.contains(&true) {
            let clear = format!("DELETE FROM \"{}\";", self.staging);
            self.line(&clear)?;
        }
        Ok(())
    }

    /// Sends one long value in parts, as hex, so that any bytes pass.
    fn stage(&mut self, stmt: &RawStatement, column: usize) -> Result<()> {
        if !self.staged {
            self.staged = true;
            let create = format!("CREATE TABLE \"{}\" (c INTEGER, n INTEGER, part BLOB, PRIMARY KEY(c, n));", self.staging);
            self.line(&create)?;
        }
        for (n, part) in stmt.column_bytes(column).chunks(PART_BYTES).enumerate() {
            let insert = format!("INSERT INTO \"{}\" VALUES({column},{n},X'{}');", self.staging, hex(part));
            self.line(&insert)?;
        }
        Ok(())
    }

    fn sequences(&mut self, schema: &Schema) -> Result<()> {
        if !schema.has_sequence {
            return Ok(());
        }
        let rows = self.conn.query_internal("SELECT name, seq FROM sqlite_sequence ORDER BY rowid", &[])?;
        for row in rows {
            let (name, seq) = (text(&row[0]), if let Value::Integer(seq) = row[1] { seq } else { 0 });
            if !schema.tables.iter().any(|table| table.name == name) {
                continue;
            }
            let literal = format!("'{}'", name.replace('\'', "''"));
            self.line(&format!("DELETE FROM sqlite_sequence WHERE name = {literal};"))?;
            self.line(&format!("INSERT INTO sqlite_sequence (name, seq) VALUES({literal},{seq});"))?;
        }
        Ok(())
    }

    fn failed(&self, rc: i32) -> Error {
        error::from_conn(self.conn, rc, Stage::ReadStep)
    }
}

/// Puts a long value together again. The first part is joined by `||` and not by `group_concat`,
/// which cannot make a string of just the longest length that is allowed.
fn unstage(staging: &str, column: usize, is_text: bool) -> String {
    let first = format!("(SELECT part FROM \"{staging}\" WHERE c={column} AND n=0)");
    let rest = format!("(SELECT group_concat(part,'') FROM (SELECT part FROM \"{staging}\" WHERE c={column} AND n>0 ORDER BY n))");
    format!("CAST({first}||coalesce({rest},'') AS {})", if is_text { "TEXT" } else { "BLOB" })
}

/// About as many bytes as the literal will have, never fewer.
fn literal_bytes(stmt: &RawStatement, column: usize) -> usize {
    match stmt.column_type(column) {
        ffi::SQLITE_TEXT if is_plain(stmt.column_bytes(column)) => {
            let bytes = stmt.column_bytes(column);
            bytes.len() + 2 + bytes.iter().filter(|b| **b == b'\'').count()
        }
        ffi::SQLITE_TEXT => stmt.column_bytes(column).len() * 2 + 16,
        ffi::SQLITE_BLOB => stmt.column_bytes(column).len() * 2 + 3,
        _ => 26,
    }
}

/// Whether text can stand between quotes: UTF-8 without NUL.
fn is_plain(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() && !bytes.contains(&0)
}

fn push_literal(line: &mut Vec<u8>, stmt: &RawStatement, column: usize) {
    match stmt.column_type(column) {
        ffi::SQLITE_INTEGER => line.extend_from_slice(stmt.column_i64(column).to_string().as_bytes()),
        ffi::SQLITE_FLOAT => line.extend_from_slice(real(stmt.column_f64(column)).as_bytes()),
        ffi::SQLITE_TEXT if is_plain(stmt.column_bytes(column)) => {
            line.push(b'\'');
            for part in stmt.column_bytes(column).split_inclusive(|b| *b == b'\'') {
                line.extend_from_slice(part);
                if part.ends_with(b"'") {
                    line.push(b'\'');
                }
            }
            line.push(b'\'');
        }
        ffi::SQLITE_TEXT => line.extend_from_slice(format!("CAST(X'{}' AS TEXT)", hex(stmt.column_bytes(column))).as_bytes()),
        ffi::SQLITE_BLOB => line.extend_from_slice(format!("X'{}'", hex(stmt.column_bytes(column))).as_bytes()),
        _ => line.extend_from_slice(b"NULL"),
    }
}

/// The shortest literal that SQLite reads as the same double.
fn real(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "9e999".to_owned() } else { "-9e999".to_owned() };
    }
    format!("{value:?}")
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)] as char, DIGITS[usize::from(b & 15)] as char]).collect()
}

fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn text(value: &Value) -> String {
    if let Value::Text(text) = value { text.clone() } else { String::new() }
}

fn texts(rows: &[Vec<Value>]) -> Vec<String> {
    rows.iter().map(|row| text(&row[0])).collect()
}
