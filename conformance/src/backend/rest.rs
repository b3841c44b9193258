//! A running server, over Cloudflare's REST routes and, for prepared statements, over a Worker's binding.

use std::time::Duration;

use base::AccountId;
use serde_json::{Value as Json, json};
use sqlite::{Batch, Statement, StatementResult};
use ureq::http::StatusCode;

use super::{Backend, Shape, from_json, meta, params_json};

/// Time that one request may take; longer than the 30 s that a query may.
const REQUEST: Duration = Duration::from_secs(60);
/// Bytes of one answer.
const ANSWER_BYTES_MAX: u64 = 100_000_000;

type Response = ureq::http::Response<ureq::Body>;

/// Speaks to a server as wrangler and the SDK do.
pub struct Rest {
    agent: ureq::Agent,
    /// Where the server listens, without a slash at the end.
    url: String,
    /// Up to `/d1/database`, without a slash at the end.
    databases: String,
    authorization: String,
    /// The database of the current case.
    database: Option<String>,
    /// Databases made so far; part of their names.
    made: u64,
    /// Tells the databases of one run from those of another.
    run: u64,
}

impl Rest {
    /// `url` is where the server listens, `key` the owner's key or a token that may do everything in `d1`.
    /// `run` tells two users of one server apart.
    pub fn new(url: &str, key: &str, account: &AccountId, run: u64) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(REQUEST)).http_status_as_error(false).build();
        let url = url.trim_end_matches('/').to_owned();
        Self {
            agent: config.into(),
            databases: format!("{url}/client/v4/accounts/{account}/d1/database"),
            url,
            authorization: format!("Bearer {key}"),
            database: None,
            made: 0,
            run,
        }
    }

    fn post(&self, path: &str, body: &Json) -> Result<Json, String> {
        let request = self.agent.post(format!("{}{path}", self.databases)).header("authorization", &self.authorization);
        answer(request.send_json(body))
    }

    /// Sends what `env.DB` sends for `all()` or, with several items, for `batch()`.
    fn bound(&self, database: &str, items: &[Statement]) -> Result<Vec<StatementResult>, String> {
        let request = self.agent.post(format!("{}/query?resultsFormat=ROWS_AND_COLUMNS", self.url));
        let request = request.header("authorization", &self.authorization).header("x-binding-kind", "d1").header("x-binding-id", database);
        let (status, answer) = match items {
            [one] => json_of(request.send_json(item(one)))?,
            items => json_of(request.send_json(Json::from_iter(items.iter().map(item))))?,
        };
        // The binding looks for `error` and ignores the status.
        let elements = answer.as_array().map_or(std::slice::from_ref(&answer), Vec::as_slice);
        match elements.iter().find_map(|element| element["error"].as_str()) {
            Some(error) => Err(error.to_owned()),
            None if status.is_success() => elements.iter().map(result).collect(),
            None => Err(format!("the answer ({status}) holds no error: {answer}")),
        }
    }

    fn delete(&mut self) -> Result<(), String> {
        let Some(database) = self.database.take() else {
            return Ok(());
        };
        let request = self.agent.delete(format!("{}/{database}", self.databases)).header("authorization", &self.authorization);
        answer(request.call()).map(|_| ())
    }
}

impl Backend for Rest {
    fn name(&self) -> &'static str {
        "rest"
    }

    fn shape(&self) -> Shape {
        Shape::Json
    }

    fn fresh(&mut self) -> Result<(), String> {
        self.delete()?;
        self.made += 1;
        let made = self.post("", &json!({ "name": format!("corpus-{:x}-{}", self.run, self.made) }))?;
        self.database = Some(made["uuid"].as_str().ok_or("a new database has no uuid")?.to_owned());
        Ok(())
    }

    fn run(&mut self, batch: &Batch) -> Result<Vec<StatementResult>, String> {
        let database = self.database.as_ref().ok_or("no database: `fresh` was not called")?;
        if batch.is_prepared {
            return self.bound(database, &batch.items);
        }
        let body = match batch.items.as_slice() {
            [one] => item(one),
            items => json!({ "batch": items.iter().map(item).collect::<Vec<_>>() }),
        };
        let answer = self.post(&format!("/{database}/raw"), &body)?;
        answer.as_array().ok_or("the answer's result is no list")?.iter().map(result).collect()
    }
}

fn item(item: &Statement) -> Json {
    match item.params.as_slice() {
        [] => json!({ "sql": item.sql }),
        params => json!({ "sql": item.sql, "params": params_json(params) }),
    }
}

/// The `result` of an envelope, or the text of its first error.
fn answer(response: Result<Response, ureq::Error>) -> Result<Json, String> {
    let (status, envelope) = json_of(response)?;
    if envelope["success"] == true && status.is_success() {
        return Ok(envelope["result"].clone());
    }
    match envelope["errors"][0]["message"].as_str() {
        Some(message) if envelope["success"] == false && status.as_u16() >= 400 => Err(message.to_owned()),
        _ => Err(format!("the answer ({status}) is no envelope: {}", start(&envelope.to_string()))),
    }
}

fn json_of(response: Result<Response, ureq::Error>) -> Result<(StatusCode, Json), String> {
    let mut response = response.map_err(|e| format!("the server did not answer: {e}"))?;
    let status = response.status();
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
    let text = body.map_err(|e| format!("the answer broke off: {e}"))?;
    let json = serde_json::from_str(&text).map_err(|e| format!("the answer ({status}) is no JSON ({e}): {}", start(&text)))?;
    Ok((status, json))
}

fn start(text: &str) -> String {
    text.chars().take(200).collect()
}

fn result(json: &Json) -> Result<StatementResult, String> {
    let names = json["results"]["columns"].as_array().ok_or("a result has no columns")?;
    let columns =
        names.iter().map(|name| name.as_str().map(str::to_owned).ok_or("a column's name is no text")).collect::<Result<Vec<_>, _>>()?;
    let rows = json["results"]["rows"].as_array().ok_or("a result has no rows")?;
    let rows = rows
        .iter()
        .map(|row| row.as_array().ok_or("a row is no list")?.iter().map(from_json).collect::<Result<Vec<_>, _>>())
        .collect::<Result<Vec<_>, String>>()?;
    if let Some(row) = rows.iter().find(|row| row.len() != columns.len()) {
        return Err(format!("a row has {} values (expected {})", row.len(), columns.len()));
    }
    Ok(StatementResult { columns, rows, meta: meta(&json["meta"])? })
}

impl Drop for Rest {
    fn drop(&mut self) {
        if let Err(error) = self.delete() {
            eprintln!("warning: the last database of the corpus could not be deleted: {error}");
        }
    }
}
