//! The D1 that Miniflare ships, driven by `reference.mjs`. It judges expectations, not Hearth.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value as Json, json};
use sqlite::{Batch, StatementResult};

use super::{Backend, Shape, from_json, meta, params_json};

/// What the binding puts before every error of the database.
const PREFIX: &str = "D1_ERROR: ";

/// Bytes of one answer.
const ANSWER_BYTES_MAX: u64 = 100_000_000;
/// How often, and how long in between, the child is asked whether it has ended before it is killed.
const END_TRIES: u32 = 200;
const END_PAUSE: Duration = Duration::from_millis(100);

/// A running Miniflare.
pub struct Reference {
    child: Child,
    /// `None` once closed, which is how the child is asked to end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Reference {
    /// Starts it. `folder` holds `reference.mjs` and `clients`, where `npm ci` must have run.
    ///
    /// # Errors
    /// Node cannot be started.
    pub fn start(folder: &Path) -> Result<Self, String> {
        let mut child = Command::new("node")
            .arg("reference.mjs")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("node could not be started: {e}"))?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Ok(Self { child, requests, answers })
    }

    fn ask(&mut self, request: &Json) -> Result<Json, String> {
        let requests = self.requests.as_mut().expect("stdin is open until drop");
        writeln!(requests, "{request}").map_err(|e| format!("the reference engine ended: {e}"))?;
        let mut line = String::new();
        match (&mut self.answers).take(ANSWER_BYTES_MAX).read_line(&mut line) {
            Ok(0) => return Err("the reference engine ended; has `npm ci` run in conformance/clients?".to_owned()),
            Ok(_) => {}
            Err(error) => return Err(format!("the reference engine could not be read: {error}")),
        }
        let answer: Json = serde_json::from_str(&line).map_err(|e| format!("the reference engine answered no JSON ({e}): {line}"))?;
        match answer["error"].as_str() {
            Some(text) => Err(text.strip_prefix(PREFIX).unwrap_or(text).to_owned()),
            None => Ok(answer["ok"].clone()),
        }
    }
}

impl Backend for Reference {
    fn name(&self) -> &'static str {
        "miniflare"
    }

    fn shape(&self) -> Shape {
        Shape::Objects
    }

    fn fresh(&mut self) -> Result<(), String> {
        self.ask(&json!({ "fresh": true })).map(|_| ())
    }

    fn run(&mut self, batch: &Batch) -> Result<Vec<StatementResult>, String> {
        let items: Vec<Json> = batch.items.iter().map(|item| json!({ "sql": item.sql, "params": params_json(&item.params) })).collect();
        let answer = self.ask(&json!({ "items": items }))?;
        answer.as_array().ok_or("the reference engine answered no list")?.iter().map(result).collect()
    }
}

fn result(json: &Json) -> Result<StatementResult, String> {
    let objects = json["results"].as_array().ok_or("a result has no rows")?;
    let mut columns = Vec::new();
    let mut rows = Vec::new();
    for object in objects {
        let object = object.as_object().ok_or("a row is no object")?;
        columns = object.keys().cloned().collect();
        rows.push(object.values().map(from_json).collect::<Result<_, _>>()?);
    }
    Ok(StatementResult { columns, rows, meta: meta(&json["meta"])? })
}

impl Drop for Reference {
    fn drop(&mut self) {
        // A closed stdin is the sign to remove its folder and end.
        self.requests = None;
        for _ in 0..END_TRIES {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(END_PAUSE),
                Ok(Some(_)) => return,
                Err(error) => {
                    eprintln!("warning: the reference engine could not be waited for: {error}");
                    return;
                }
            }
        }
        eprintln!("warning: the reference engine did not end when its input was closed, and is killed");
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("warning: the reference engine could not be killed: {error}");
        }
    }
}
