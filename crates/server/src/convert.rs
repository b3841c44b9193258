//! Wire types to the services' types and back: the only file that knows both.

use std::borrow::Cow;

use api::{
    binding::ResultsFormat,
    database::{CreateDatabase, Database, DatabaseListItem, ReadReplication, VERSION},
    envelope::ResultInfo,
    export::{DumpOptions, ExportPoll, ExportResult},
    import::{ImportMeta, ImportPoll, ImportResult, Status},
    query::{Param, StatementBody},
    result::{Cell, Form, Meta, Rowset, Timings, write_query_result},
    time::iso,
    token::Token,
};
use base::Timestamp;
use d1::{Batch, DatabaseInfo, DatabaseStats, ExportOptions, ExportState, ImportState, ItemResults, NewDatabase, Page, Statement};
use d1::{StatementResult, TokenInfo, TransferStatus, Value};

use crate::answer::HEAVY_BYTES;

/// Names the server in `meta.served_by`.
pub(crate) const SERVED_BY: &str = concat!("hearth-", env!("CARGO_PKG_VERSION"));

/// A REST request's statements: each text is a script, which may end in comments and semicolons.
pub(crate) fn scripts(statements: Vec<StatementBody>) -> Batch {
    Batch { items: items(statements), is_prepared: false }
}

/// A binding's statements: prepared ones, after which nothing may stand.
pub(crate) fn prepared(statements: Vec<StatementBody>) -> Batch {
    Batch { items: items(statements), is_prepared: true }
}

fn items(statements: Vec<StatementBody>) -> Vec<Statement> {
    let item = |body: StatementBody| Statement { sql: body.sql, params: body.params.into_iter().map(value).collect() };
    statements.into_iter().map(item).collect()
}

fn value(param: Param) -> Value {
    match param {
        Param::Null => Value::Null,
        Param::Number(number) => Value::Real(number),
        Param::Text(text) => Value::Text(text),
        Param::Blob(bytes) => Value::Blob(bytes),
    }
}

/// A statement's rows, seen as the wire sees them.
struct Rows<'a>(&'a StatementResult);

impl Rowset for Rows<'_> {
    fn columns(&self) -> &[String] {
        &self.0.columns
    }

    fn n_rows(&self) -> usize {
        self.0.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match &self.0.rows[row][column] {
            Value::Null => Cell::Null,
            Value::Integer(value) => Cell::Integer(*value),
            Value::Real(value) => Cell::Real(*value),
            Value::Text(text) => Cell::Text(text),
            Value::Blob(bytes) => Cell::Blob(bytes),
        }
    }
}

fn meta<'a>(meta: &d1::Meta, region: &'a str) -> Meta<'a> {
    Meta {
        served_by: Cow::Borrowed(SERVED_BY),
        served_by_region: Cow::Borrowed(region),
        served_by_primary: true,
        timings: Timings { sql_duration_ms: meta.duration_ms },
        duration: meta.duration_ms,
        changes: meta.changes,
        last_row_id: meta.last_row_id,
        changed_db: meta.changed_db,
        size_after: meta.size_after,
        rows_read: meta.rows_read,
        rows_written: meta.rows_written,
        total_attempts: 1,
    }
}

/// Whether writing `results` as JSON is more than a connection's thread should do. Stops counting once it is.
pub(crate) fn are_heavy(results: &[ItemResults]) -> bool {
    let mut bytes = 0;
    for row in results.iter().flatten().flat_map(|result| &result.rows) {
        for value in row {
            bytes += match value {
                Value::Null | Value::Integer(_) | Value::Real(_) => 8,
                Value::Text(text) => text.len(),
                Value::Blob(blob) => blob.len() * 4,
            };
        }
        if bytes > HEAVY_BYTES {
            return true;
        }
    }
    false
}

/// The envelope of `/query` and `/raw`: one result for each statement of every item.
pub(crate) fn rest_results(results: &[ItemResults], region: &str, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    api::envelope::success_with(&mut out, |out| {
        out.push(b'[');
        for (i, result) in results.iter().flatten().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            write_query_result(out, &Rows(result), &meta(&result.meta, region), form);
        }
        out.push(b']');
    });
    out
}

/// The answer of a binding: one element for each item, in a list if the request was one.
pub(crate) fn binding_results(results: &[ItemResults], is_array: bool, region: &str, format: ResultsFormat) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(if is_array { b"[" } else { b"" });
    for (i, item) in results.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        // A prepared statement of several shows the last one's rows and what all of them cost.
        let last = item.last().expect("an item has a result for each of its statements, and at least one");
        api::binding::write_success(&mut out, &Rows(last), &meta(&sum(item), region), format);
    }
    out.extend_from_slice(if is_array { b"]" } else { b"" });
    out
}

fn sum(item: &[StatementResult]) -> d1::Meta {
    let mut sum = d1::Meta::default();
    for result in item {
        let meta = &result.meta;
        sum.rows_read += meta.rows_read;
        sum.rows_written += meta.rows_written;
        sum.changes += meta.changes;
        sum.duration_ms += meta.duration_ms;
        sum.changed_db |= meta.changed_db;
        sum.last_row_id = meta.last_row_id;
        sum.size_after = meta.size_after;
    }
    sum
}

pub(crate) fn new_database(body: CreateDatabase) -> NewDatabase {
    NewDatabase {
        name: body.name,
        location_hint: body.primary_location_hint,
        jurisdiction: body.jurisdiction,
        read_replication: body.read_replication.map(|replication| replication.mode),
    }
}

pub(crate) fn database(info: DatabaseInfo, stats: Option<DatabaseStats>, region: &str) -> Database {
    Database {
        uuid: info.id.to_string(),
        name: info.name,
        version: VERSION.to_owned(),
        created_at: iso(info.created_at),
        num_tables: stats.map(|stats| stats.num_tables),
        file_size: stats.map(|stats| stats.file_size),
        running_in_region: region.to_owned(),
        read_replication: ReadReplication { mode: info.read_replication },
        jurisdiction: info.jurisdiction,
        created_in_region: None,
        primary_location_hint: None,
    }
}

pub(crate) fn created_database(info: DatabaseInfo, stats: Option<DatabaseStats>, region: &str) -> Database {
    let primary_location_hint = info.location_hint.clone();
    Database { created_in_region: Some(region.to_owned()), primary_location_hint, ..database(info, stats, region) }
}

pub(crate) fn list_item(info: DatabaseInfo) -> DatabaseListItem {
    DatabaseListItem {
        uuid: info.id.to_string(),
        name: info.name,
        version: VERSION.to_owned(),
        created_at: iso(info.created_at),
        jurisdiction: info.jurisdiction,
    }
}

/// A page in its envelope.
pub(crate) fn page<T, W: serde::Serialize>(page: Page<T>, item: impl Fn(T) -> W) -> Vec<u8> {
    let info = ResultInfo::new(page.page, page.per_page, page.items.len(), page.total);
    api::envelope::page(page.items.into_iter().map(item).collect::<Vec<_>>(), info)
}

fn status(status: TransferStatus) -> Status {
    match status {
        TransferStatus::Active => Status::Active,
        TransferStatus::Complete => Status::Complete,
        TransferStatus::Error => Status::Error,
    }
}

pub(crate) fn import_poll(state: ImportState) -> ImportPoll {
    ImportPoll {
        success: true,
        r#type: "import".to_owned(),
        at_bookmark: state.at_bookmark,
        status: status(state.status),
        messages: state.messages,
        errors: state.error.clone().into_iter().collect(),
        error: state.error,
        result: state.result.map(|result| ImportResult {
            final_bookmark: result.final_bookmark,
            num_queries: result.num_queries,
            meta: ImportMeta {
                served_by: SERVED_BY.to_owned(),
                duration: result.meta.duration_ms,
                changes: result.meta.changes,
                last_row_id: result.meta.last_row_id,
                changed_db: result.meta.changed_db,
                size_after: result.meta.size_after,
                rows_read: result.meta.rows_read,
                rows_written: result.meta.rows_written,
            },
        }),
    }
}

pub(crate) fn export_options(options: DumpOptions) -> ExportOptions {
    ExportOptions { no_schema: options.no_schema, no_data: options.no_data, tables: options.tables }
}

/// `origin`: what links start with, without a trailing slash.
pub(crate) fn export_poll(state: ExportState, origin: &str) -> ExportPoll {
    ExportPoll {
        success: true,
        r#type: "export".to_owned(),
        at_bookmark: state.at_bookmark,
        status: status(state.status),
        messages: state.messages,
        error: state.error,
        result: state.result.map(|(filename, link)| ExportResult { filename, signed_url: format!("{origin}/exports/{link}") }),
    }
}

pub(crate) fn token(info: TokenInfo, now: Timestamp) -> Token {
    let status = match (info.revoked_at, info.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(at)) if at <= now => "expired",
        (None, _) => "active",
    };
    Token {
        id: info.id.to_string(),
        name: info.name,
        status: status.to_owned(),
        scopes: info.scopes.iter().map(ToString::to_string).collect(),
        issued_on: iso(info.created_at),
        expires_on: info.expires_at.map(iso),
        revoked_on: info.revoked_at.map(iso),
        value: None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn statement(columns: &[&str], rows: Vec<Vec<Value>>, changes: u64) -> StatementResult {
        let meta = d1::Meta {
            rows_read: 10,
            rows_written: 1,
            changes,
            last_row_id: 4,
            changed_db: changes > 0,
            size_after: 8192,
            duration_ms: 0.25,
        };
        StatementResult { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows, meta }
    }

    #[test]
    fn rest_shows_every_statement_of_every_item() {
        let results =
            vec![vec![statement(&[], vec![], 2), statement(&["a"], vec![vec![Value::Integer(1)]], 0)], vec![statement(&["b"], vec![], 0)]];
        let body: serde_json::Value = serde_json::from_slice(&rest_results(&results, "WEUR", Form::Objects)).unwrap();
        let shown: Vec<_> = body["result"].as_array().unwrap().iter().map(|result| result["results"].to_string()).collect();
        assert_eq!(shown, ["[]", r#"[{"a":1}]"#, "[]"]);
        expect![[r#"{"served_by":"hearth-0.1.0","served_by_region":"WEUR","served_by_primary":true,"timings":{"sql_duration_ms":0.25},"duration":0.25,"changes":2,"last_row_id":4,"changed_db":true,"size_after":8192,"rows_read":10,"rows_written":1,"total_attempts":1}"#]]
            .assert_eq(&body["result"][0]["meta"].to_string());
    }

    #[test]
    fn a_binding_shows_the_last_statement_of_an_item_and_what_all_of_them_cost() {
        let results = vec![vec![statement(&[], vec![], 2), statement(&["a"], vec![vec![Value::Blob(vec![7])]], 0)]];
        let body = binding_results(&results, true, "WEUR", ResultsFormat::None);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body.as_array().unwrap().len(), 1);
        assert_eq!(body[0]["results"].to_string(), r#"[{"a":[7]}]"#);
        assert_eq!(
            (&body[0]["meta"]["changes"], &body[0]["meta"]["rows_read"], &body[0]["meta"]["changed_db"]),
            (&2.into(), &20.into(), &true.into())
        );
        let one = binding_results(&results, false, "WEUR", ResultsFormat::RowsAndColumns);
        assert!(one.starts_with(br#"{"success":true,"meta":{"#));
    }

    #[test]
    fn only_large_results_are_heavy() {
        let of = |value: Value| vec![vec![statement(&["a"], vec![vec![value]], 0)]];
        assert!(!are_heavy(&of(Value::Text("x".repeat(HEAVY_BYTES)))));
        assert!(are_heavy(&of(Value::Text("x".repeat(HEAVY_BYTES + 1)))));
        assert!(are_heavy(&of(Value::Blob(vec![0; HEAVY_BYTES / 4 + 1]))));
        assert!(!are_heavy(&[]));
    }

    #[test]
    fn numbers_are_bound_as_doubles() {
        let body = api::query::decode_rest(br#"{"sql":"s","params":[1,true,null,"t",[1]]}"#).unwrap();
        let expected = [Value::Real(1.0), Value::Real(1.0), Value::Null, Value::Text("t".to_owned()), Value::Blob(vec![1])].to_vec();
        assert_eq!(scripts(body).items[0].params, expected);
    }

    #[test]
    fn a_token_says_whether_it_lives() {
        let info = |expires_at, revoked_at| TokenInfo {
            id: base::TokenId("a".repeat(32)),
            name: "ci".to_owned(),
            scopes: vec!["d1:*:read".parse().unwrap()],
            created_at: Timestamp(0),
            expires_at,
            revoked_at,
        };
        let status = |expires_at, revoked_at| token(info(expires_at, revoked_at), Timestamp(10)).status;
        assert_eq!(status(None, None), "active");
        assert_eq!(status(Some(Timestamp(11)), None), "active");
        assert_eq!(status(Some(Timestamp(10)), None), "expired");
        assert_eq!(status(Some(Timestamp(5)), Some(Timestamp(4))), "revoked");
    }
}
