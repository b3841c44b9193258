//! A running server, over Cloudflare's REST routes.

use std::time::Duration;

use base::AccountId;
use serde_json::{Value as Json, json};
use sqlite::{Batch, StatementResult};

use super::{Backend, Shape, from_json, meta, params_json};

/// Time that one request may take; longer than the 30 s that a query may.
const REQUEST: Duration = Duration::from_secs(60);
/// Bytes of one answer.
const ANSWER_BYTES_MAX: u64 = 100_000_000;

/// Speaks to a server as wrangler and the SDK do.
pub struct Rest {
    agent: ureq::Agent,
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
        Self {
            agent: config.into(),
            databases: format!("{}/client/v4/accounts/{account}/d1/database", url.trim_end_matches('/')),
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
        let item = |item: &sqlite::Statement| match item.params.as_slice() {
            [] => json!({ "sql": item.sql }),
            params => json!({ "sql": item.sql, "params": params_json(params) }),
        };
        let body = match batch.items.as_slice() {
            [one] => item(one),
            items => json!({ "batch": items.iter().map(item).collect::<Vec<_>>() }),
        };
        let answer = self.post(&format!("/{database}/raw"), &body)?;
        answer.as_array().ok_or("the answer's result is no list")?.iter().map(result).collect()
    }
}

/// The `result` of an answer, or the text of its first error.
fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Json, String> {
    let mut response = response.map_err(|e| format!("the server did not answer: {e}"))?;
    let status = response.status();
    let text =
        response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().map_err(|e| format!("the answer broke off: {e}"))?;
    let envelope: Json = serde_json::from_str(&text)
        .map_err(|e| format!("the answer ({status}) is no JSON ({e}): {}", text.chars().take(200).collect::<String>()))?;
    if envelope["success"] == true && status.is_success() {
        return Ok(envelope["result"].clone());
    }
    match envelope["errors"][0]["message"].as_str() {
        Some(message) if envelope["success"] == false && status.as_u16() >= 400 => Err(message.to_owned()),
        _ => Err(format!("the answer ({status}) is no envelope: {}", text.chars().take(200).collect::<String>())),
    }
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
