//! A client of the D1 REST interface: as little as the kill run needs.

use std::{path::Path, time::Duration};

use serde_json::{Value as Json, json};
use sqlite::{Batch, Value};

/// The account that a server has unless it is told otherwise.
const ACCOUNT: &str = "00000000000000000000000000000001";

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// One client with its own connections.
pub struct Client {
    agent: ureq::Agent,
    base: String,
    authorization: String,
}

impl Client {
    /// A client of the server at `url`, with the owner's key from the folder `data`.
    ///
    /// # Errors
    /// The key cannot be read.
    pub fn new(url: &str, data: &Path) -> Result<Self, String> {
        let key = std::fs::read_to_string(data.join("owner.key")).map_err(|error| format!("cannot read owner.key: {error}"))?;
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(ANSWER_MAX)).build();
        Ok(Self {
            agent: config.into(),
            base: format!("{url}/client/v4/accounts/{ACCOUNT}/d1/database"),
            authorization: format!("Bearer {}", key.trim_end()),
        })
    }

    /// The id of the database `name`, which is made if it is not there.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub fn database(&self, name: &str) -> Result<String, String> {
        let request = self.agent.get(format!("{}?name={name}", self.base)).header("authorization", &self.authorization);
        let found = result(request.call())?;
        let exact = found.as_array().into_iter().flatten().find(|database| database["name"] == name);
        let made = match exact {
            Some(database) => database.clone(),
            None => self.post("", &json!({ "name": name }))?,
        };
        made["uuid"].as_str().map(str::to_owned).ok_or_else(|| format!("a database without uuid: {made}"))
    }

    /// Runs `batch` as one transaction.
    ///
    /// # Errors
    /// The server's, or the connection's: then nothing is known of the transaction.
    pub fn apply(&self, database: &str, batch: Batch) -> Result<(), String> {
        let items: Vec<Json> = batch
            .items
            .into_iter()
            .map(|item| json!({ "sql": item.sql, "params": item.params.into_iter().map(to_json).collect::<Vec<_>>() }))
            .collect();
        let n_items = items.len();
        let results = self.post(&format!("/{database}/query"), &json!({ "batch": items }))?;
        let all_done = results.as_array().is_some_and(|list| list.len() == n_items && list.iter().all(|one| one["success"] == true));
        if all_done { Ok(()) } else { Err(format!("acknowledged without a result for each of {n_items} statements")) }
    }

    /// The rows of one SELECT.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub fn query(&self, database: &str, sql: &str) -> Result<Vec<Vec<Value>>, String> {
        let results = self.post(&format!("/{database}/raw"), &json!({ "sql": sql }))?;
        let rows = results[0]["results"]["rows"].as_array().ok_or_else(|| "an answer without rows".to_owned())?;
        rows.iter().map(|row| row.as_array().into_iter().flatten().map(from_json).collect()).collect()
    }

    fn post(&self, path: &str, body: &Json) -> Result<Json, String> {
        let request = self.agent.post(format!("{}{path}", self.base)).header("authorization", &self.authorization);
        result(request.send_json(body))
    }
}

/// The `result` of an envelope that says `success`.
fn result(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Json, String> {
    let mut answer = answer.map_err(|error| error.to_string())?;
    let status = answer.status();
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_json::<Json>();
    let mut envelope = body.map_err(|error| format!("status {status}, {error}"))?;
    if envelope["success"] == true { Ok(envelope["result"].take()) } else { Err(format!("status {status}: {}", envelope["errors"])) }
}

fn to_json(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(n) => n.into(),
        Value::Real(x) => x.into(),
        Value::Text(text) => text.into(),
        Value::Blob(bytes) => bytes.into(),
    }
}

fn from_json(value: &Json) -> Result<Value, String> {
    match value {
        Json::Null => Ok(Value::Null),
        Json::Number(n) => n.as_i64().map(Value::Integer).or_else(|| n.as_f64().map(Value::Real)).ok_or_else(|| format!("a number `{n}`")),
        Json::String(text) => Ok(Value::Text(text.clone())),
        other => Err(format!("a value of another kind: {other}")),
    }
}
