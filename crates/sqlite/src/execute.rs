//! Runs a batch: prepare, bind, step, collect, meter. One transaction for all of it.

use std::time::Duration;

use base::{Code, Error, Result};

use crate::{
    Batch, Conn, ItemResults, Meta, Statement, StatementResult, Value,
    error::{self, Stage},
    lexer, limit_clause,
    raw::{self, RawStatement, SqlText},
};

/// Text for a request without any statement.
const NO_STATEMENTS: &str = "No SQL statements detected.";
/// Text for a statement's place that holds only a comment or a semicolon.
const NO_STATEMENT: &str = "SQL code did not contain a statement.";
const PARAMETER_COUNT: &str = "Wrong number of parameter bindings for SQL query.";
const PARAMETERS_NOT_LAST: &str = "When executing multiple SQL statements in a single call, only the last statement can have parameters.";

/// How to run a batch.
#[derive(Default)]
pub struct Options {
    /// If set, statements that write are refused with the error that this makes.
    pub refuse_writes: Option<fn() -> Error>,
    /// No limits on time, statements and result: for Hearth's own work.
    pub unmetered: bool,
}

/// Runs `batch` as one transaction and returns the results of each item's statements. Items that
/// hold nothing are left out.
///
/// Cost: what SQLite takes; results are collected in memory, up to the profile's `result_bytes_max`.
///
/// # Errors
/// SQLite's, in production's words (see the wire form in this crate's `error` module), or a refusal
/// before SQLite. After an error nothing has changed.
pub fn batch(conn: &mut Conn, batch: &Batch, options: &Options) -> Result<Vec<ItemResults>> {
    batch_reserving(conn, batch, options, &mut |_| Ok(()))
}

/// As [`batch`]; `reserve` may refuse the commit, see [`Conn::transaction`].
///
/// # Errors
/// As [`batch`], and `reserve`'s.
pub fn batch_reserving(
    conn: &mut Conn,
    batch: &Batch,
    options: &Options,
    reserve: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Vec<ItemResults>> {
    let limits = conn.limits().clone();
    if batch.items.is_empty() {
        return Err(Error::new(Code::Statement, NO_STATEMENTS));
    }
    conn.set_time_limit((!options.unmetered).then(|| Duration::from_millis(limits.query_ms_max)));
    let mut budget = Budget {
        statements: if options.unmetered { u32::MAX } else { limits.statements_per_request_max },
        bytes: if options.unmetered { u64::MAX } else { limits.result_bytes_max },
        bytes_max: limits.result_bytes_max,
        statements_max: limits.statements_per_request_max,
    };
    let outcome = conn.transaction(reserve, |conn| {
        let mut results = Vec::with_capacity(batch.items.len());
        for item in &batch.items {
            results.extend(run_item(conn, item, batch.is_prepared, options, &mut budget)?);
        }
        if results.is_empty() {
            return Err(Error::new(Code::Statement, NO_STATEMENTS));
        }
        Ok(results)
    });
    conn.set_time_limit(None);
    outcome
}

/// What is left for the request.
struct Budget {
    statements: u32,
    statements_max: u32,
    bytes: u64,
    bytes_max: u64,
}

impl Budget {
    fn take_statement(&mut self) -> Result<()> {
        self.statements = self.statements.checked_sub(1).ok_or_else(|| {
            Error::new(
                Code::Statement,
                format!("too many statements in one request (expected at most {}); send them in several requests", self.statements_max),
            )
        })?;
        Ok(())
    }

    fn take_bytes(&mut self, bytes: u64) -> Result<()> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| {
            Error::new(
                Code::ResultTooLarge,
                format!("the result is too large (expected at most {} bytes); select fewer rows or columns", self.bytes_max),
            )
        })?;
        Ok(())
    }
}

/// Runs one item; `None` if it holds nothing but white space and `--` comments, which production leaves out.
fn run_item(conn: &mut Conn, item: &Statement, strict: bool, options: &Options, budget: &mut Budget) -> Result<Option<ItemResults>> {
    let Some(text) = SqlText::new(&item.sql) else {
        let at = item.sql.bytes().position(|b| b == 0).unwrap_or_default();
        return Err(Error::new(Code::Sql, format!("unrecognized token: \"\\0\" at offset {at}: SQLITE_ERROR")));
    };
    if let Some(long) = item.params.iter().find(|value| value_bytes(value) > u64::from(conn.limits().value_bytes_max)) {
        let detail = format!("a parameter of {} bytes", value_bytes(long));
        return Err(Error::new(Code::Sql, "string or blob too big: SQLITE_TOOBIG").with_internal(detail));
    }
    let end = text.bytes().len();
    let mut results = Vec::new();
    let mut from = 0;
    loop {
        let (stmt, next) = prepare(conn, &text, from)?;
        let Some(stmt) = stmt else {
            let at_end = next >= end || lexer::skip_blank(text.bytes(), next) == end;
            if !at_end && !strict {
                from = skip_space(text.bytes(), next);
                continue;
            }
            if !results.is_empty() && !strict {
                break;
            }
            if results.is_empty() && is_nothing(&text.bytes()[from..]) {
                return Ok(None);
            }
            return Err(Error::new(Code::Statement, NO_STATEMENT));
        };
        let last = if strict { blank_tail(&text.bytes()[next..]) } else { is_last(text.bytes(), next) };
        if !last && stmt.parameter_count() > 0 {
            return Err(Error::new(Code::Statement, PARAMETERS_NOT_LAST));
        }
        let params: &[Value] = if last { &item.params } else { &[] };
        budget.take_statement()?;
        results.push(run_statement(conn, &stmt, params, options, budget)?);
        if last {
            break;
        }
        // Offsets in errors count from here, as in production: space is passed over, comments are not.
        from = skip_space(text.bytes(), next);
    }
    Ok(Some(results))
}

/// White space alone and `--` comments are nothing; a block comment or `;` is a statement that is missing.
fn is_nothing(rest: &[u8]) -> bool {
    lexer::skip_blank(rest, 0) == rest.len() && !rest.windows(2).any(|pair| pair == b"/*")
}

const fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn blank_tail(rest: &[u8]) -> bool {
    rest.iter().all(|b| is_space(*b))
}

fn skip_space(sql: &[u8], from: usize) -> usize {
    sql[from..].iter().position(|b| !is_space(*b)).map_or(sql.len(), |at| from + at)
}

/// Whether only blanks and semicolons follow.
fn is_last(sql: &[u8], from: usize) -> bool {
    let mut at = lexer::skip_blank(sql, from);
    while sql.get(at) == Some(&b';') {
        at = lexer::skip_blank(sql, at + 1);
    }
    at == sql.len()
}

/// Prepares the next statement; a `DELETE` or `UPDATE` with a `LIMIT` of its own is rewritten.
pub(crate) fn prepare(conn: &Conn, text: &SqlText, from: usize) -> Result<(Option<RawStatement>, usize)> {
    if from >= text.bytes().len() {
        return Ok((None, from));
    }
    match raw::prepare(conn.handle(), text, from, false) {
        Ok(prepared) => Ok(prepared),
        Err(rc) => {
            let error = error::from_conn(conn, rc, Stage::Prepare);
            if limit_clause::may_be(&error.message)
                && let Some(rewritten) = limit_clause::rewrite(conn, text.bytes(), from)?
            {
                let new = SqlText::from_bytes(&rewritten.text).expect("the rewritten text has the bytes of the first");
                return match raw::prepare(conn.handle(), &new, 0, false) {
                    Ok((stmt, _)) => Ok((stmt, rewritten.next)),
                    Err(rc) => Err(error::from_conn_mapped(conn, rc, Stage::Prepare, |offset| rewritten.map(offset, from))),
                };
            }
            Err(error)
        }
    }
}

/// Bytes that the value takes in JSON, or a few more.
fn json_bytes(value: &Value) -> u64 {
    match value {
        Value::Null => 5,
        Value::Integer(_) | Value::Real(_) => 25,
        Value::Text(text) => {
            let escapes: u64 = text.bytes().map(|b| if b < 0x20 { 5 } else { u64::from(b == b'"' || b == b'\\') }).sum();
            text.len() as u64 + escapes + 3
        }
        Value::Blob(bytes) => {
            bytes
                .iter()
                .map(|b| {
                    if *b < 10 {
                        2
                    } else if *b < 100 {
                        3
                    } else {
                        4
                    }
                })
                .sum::<u64>()
                + 3
        }
    }
}

fn value_bytes(value: &Value) -> u64 {
    match value {
        Value::Text(text) => text.len() as u64,
        Value::Blob(bytes) => bytes.len() as u64,
        _ => 8,
    }
}

/// Binds and runs one statement to its end.
fn run_statement(conn: &Conn, stmt: &RawStatement, params: &[Value], options: &Options, budget: &mut Budget) -> Result<StatementResult> {
    if stmt.parameter_count() != params.len() {
        return Err(Error::new(Code::Statement, PARAMETER_COUNT));
    }
    let readonly = stmt.is_readonly();
    if let Some(refusal) = options.refuse_writes
        && !readonly
    {
        return Err(refusal());
    }
    let mut result = StatementResult::default();
    // Rows are objects on the wire, so each repeats the names.
    let names: u64 = (0..stmt.column_count()).map(|i| stmt.column_name(i).len() as u64 + 4).sum();
    let meta = metered(conn, stmt, params, |stmt| {
        if result.columns.is_empty() {
            result.columns = (0..stmt.column_count()).map(|i| stmt.column_name(i)).collect();
        }
        let row: Vec<Value> = (0..stmt.column_count()).map(|i| stmt.column(i)).collect();
        budget.take_bytes(names + row.iter().map(json_bytes).sum::<u64>())?;
        result.rows.push(row);
        Ok(())
    })?;
    if result.columns.is_empty() {
        result.columns = (0..stmt.column_count()).map(|i| stmt.column_name(i)).collect();
    }
    result.meta = meta;
    Ok(result)
}

/// Runs one statement to its end, gives each row to `on_row` and returns the figures.
pub(crate) fn metered(
    conn: &Conn,
    stmt: &RawStatement,
    params: &[Value],
    mut on_row: impl FnMut(&RawStatement) -> Result<()>,
) -> Result<Meta> {
    let readonly = stmt.is_readonly();
    conn.limit_values(readonly);
    for (i, value) in params.iter().enumerate() {
        stmt.bind(i + 1, value).map_err(|rc| error::from_conn(conn, rc, Stage::WriteStep))?;
    }
    let size = conn.size()?;
    let before = (conn.total_changes(), conn.last_row_id(), size);
    let start = conn.monotonic();
    let stage = if readonly { Stage::ReadStep } else { Stage::WriteStep };
    let outcome = loop {
        match stmt.step() {
            Ok(true) => {
                if let Err(error) = on_row(stmt) {
                    break Err(error);
                }
            }
            Ok(false) => break Ok(()),
            Err(rc) => break Err(error::from_conn(conn, rc, stage)),
        }
    };
    let (rows_read, rows_written) = stmt.rows();
    let duration = conn.monotonic().saturating_sub(start);
    stmt.reset();
    conn.limit_values(false);
    outcome?;
    let after = (conn.total_changes(), conn.last_row_id(), if readonly { size } else { conn.size()? });
    Ok(Meta {
        rows_read,
        rows_written,
        changes: after.0 - before.0,
        last_row_id: after.1,
        changed_db: before != after,
        size_after: after.2,
        duration_ms: (duration.as_secs_f64() * 10_000_000.0).round() / 10_000.0,
    })
}
