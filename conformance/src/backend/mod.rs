//! What a case can run on.

mod in_process;
mod reference;
mod rest;

pub use in_process::InProcess;
pub use reference::Reference;
pub use rest::Rest;

use sqlite::{Batch, StatementResult, Value};

/// Every backend's name, as `%` lines of the corpus use it.
pub const NAMES: [&str; 3] = ["in-process", "rest", "miniflare"];

/// An engine that runs batches as D1 does.
pub trait Backend {
    /// One of [`NAMES`].
    fn name(&self) -> &'static str;

    /// What its answers went through.
    fn shape(&self) -> Shape;

    /// Continues on a new, empty database.
    ///
    /// # Errors
    /// Says why there is none.
    fn fresh(&mut self) -> Result<(), String>;

    /// Runs a batch as one transaction and returns a result for each statement.
    ///
    /// # Errors
    /// The exact error text that a client would be shown.
    fn run(&mut self, batch: &Batch) -> Result<Vec<StatementResult>, String>;
}

/// What values went through on their way here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing: integers, reals and infinities are told apart.
    Exact,
    /// JSON arrays: numbers are doubles, infinities are null, blobs are arrays of bytes.
    Json,
    /// JSON objects: as [`Shape::Json`], and of two columns with one name the last is kept.
    Objects,
}

/// Parameters as a client sends them: every number and boolean is bound as a real, an array as a blob.
///
/// # Errors
/// Names what is no array of null, booleans, numbers, strings and arrays of bytes.
pub fn params(json: &str) -> Result<Vec<Value>, String> {
    let list: Vec<serde_json::Value> = serde_json::from_str(json).map_err(|e| format!("the parameters are no JSON array: {e}"))?;
    list.iter().map(param).collect()
}

fn param(value: &serde_json::Value) -> Result<Value, String> {
    use serde_json::Value as Json;
    match value {
        Json::Null => Ok(Value::Null),
        Json::Bool(flag) => Ok(Value::Real(f64::from(u8::from(*flag)))),
        Json::Number(number) => number.as_f64().map(Value::Real).ok_or_else(|| format!("`{number}` is no double")),
        Json::String(text) => Ok(Value::Text(text.clone())),
        Json::Array(_) => json_blob(value).map(Value::Blob).ok_or_else(|| "an array is no parameter unless it holds bytes".to_owned()),
        Json::Object(_) => Err("an object is no parameter".to_owned()),
    }
}

/// The parameters back as JSON, for backends that are spoken to in it.
fn params_json(params: &[Value]) -> serde_json::Value {
    params.iter().map(json).collect()
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Integer(number) => (*number).into(),
        Value::Real(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Blob(bytes) => bytes.as_slice().into(),
    }
}

/// A value out of a JSON result.
fn from_json(value: &serde_json::Value) -> Result<Value, String> {
    use serde_json::Value as Json;
    match value {
        Json::Null => Ok(Value::Null),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Ok(Value::Integer(integer)),
            None => number.as_f64().map(Value::Real).ok_or_else(|| format!("`{number}` is no double")),
        },
        Json::String(text) => Ok(Value::Text(text.clone())),
        Json::Array(_) => json_blob(value).map(Value::Blob).ok_or_else(|| format!("an array in a result is no blob: {value}")),
        Json::Bool(_) | Json::Object(_) => Err(format!("no SQL value looks like this: {value}")),
    }
}

fn json_blob(value: &serde_json::Value) -> Option<Vec<u8>> {
    value.as_array()?.iter().map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect()
}

/// The figures of a result's `meta`.
fn meta(json: &serde_json::Value) -> Result<sqlite::Meta, String> {
    let count = |name: &str| json[name].as_u64().ok_or_else(|| format!("meta.{name} is no count: {json}"));
    Ok(sqlite::Meta {
        rows_read: count("rows_read")?,
        rows_written: count("rows_written")?,
        changes: count("changes")?,
        last_row_id: json["last_row_id"].as_i64().ok_or_else(|| format!("meta.last_row_id is no integer: {json}"))?,
        changed_db: json["changed_db"].as_bool().ok_or_else(|| format!("meta.changed_db is no boolean: {json}"))?,
        size_after: count("size_after")?,
        duration_ms: json["duration"].as_f64().ok_or_else(|| format!("meta.duration is no number: {json}"))?,
    })
}
