//! The table inside the database that records which migrations were applied. Same shape as wrangler's.

use serde_json::{Value, json};

use crate::{client::Client, commands::d1::database_path, failure::Failure};

/// Names that one `INSERT` carries: a statement may bind 100 values under every profile.
const NAMES_PER_INSERT: usize = 50;

/// The ledger of one database.
pub(super) struct Ledger<'a> {
    client: &'a Client,
    database: &'a str,
    table: &'a str,
}

impl<'a> Ledger<'a> {
    /// Sends nothing yet.
    ///
    /// # Errors
    /// If `table` cannot be the name of a table.
    pub(super) fn new(client: &'a Client, database: &'a str, table: &'a str) -> Result<Self, Failure> {
        if table.is_empty() || table.chars().any(char::is_control) {
            return Err(Failure::usage("wrong --migrations-table (expected a name without control characters)"));
        }
        Ok(Self { client, database, table })
    }

    /// Names in the ledger, oldest first; none if there is no ledger yet. Changes nothing.
    ///
    /// # Errors
    /// If the database cannot be asked.
    pub(super) fn names(&self) -> Result<Vec<String>, Failure> {
        let known = self.query(&json!({
            "sql": "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?1",
            "params": [self.table],
        }))?;
        if names_of(&known).next().is_none() {
            return Ok(Vec::new());
        }
        let rows = self.query(&json!({ "sql": format!("SELECT name FROM {} ORDER BY id", self.quoted()) }))?;
        Ok(names_of(&rows).map(str::to_owned).collect())
    }

    /// Makes the ledger if it is not there.
    ///
    /// # Errors
    /// If the database refuses.
    pub(super) fn make(&self) -> Result<(), Failure> {
        self.query(&json!({ "sql": self.create_sql() })).map(|_| ())
    }

    /// Runs `sql` and what notes `name` in the ledger, as one transaction.
    ///
    /// # Errors
    /// SQLite's message; then neither took effect.
    pub(super) fn apply(&self, sql: &str, name: &str) -> Result<(), Failure> {
        self.query(&json!({ "sql": format!("{sql}{}", self.insert_sql(name)) })).map(|_| ())
    }

    /// Notes `names` without running anything; all of them or none.
    ///
    /// # Errors
    /// If the database refuses.
    pub(super) fn mark(&self, names: &[String]) -> Result<(), Failure> {
        let mut batch = vec![json!({ "sql": self.create_sql() })];
        for names in names.chunks(NAMES_PER_INSERT) {
            let places: Vec<_> = (1..=names.len()).map(|n| format!("(?{n})")).collect();
            let sql = format!("INSERT INTO {} (name) VALUES {}", self.quoted(), places.join(", "));
            batch.push(json!({ "sql": sql, "params": names }));
        }
        self.query(&json!({ "batch": batch })).map(|_| ())
    }

    fn create_sql(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {}(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL);",
            self.quoted()
        )
    }

    fn insert_sql(&self, name: &str) -> String {
        format!("INSERT INTO {} (name) VALUES ('{}');", self.quoted(), name.replace('\'', "''"))
    }

    fn quoted(&self) -> String {
        format!("\"{}\"", self.table.replace('"', "\"\""))
    }

    fn query(&self, body: &Value) -> Result<Value, Failure> {
        self.client.post(&format!("{}/query", database_path(self.database)), body)
    }
}

/// The `name` of each row of the last statement.
fn names_of(results: &Value) -> impl Iterator<Item = &str> {
    let rows = results.as_array().and_then(|results| results.last()).and_then(|last| last["results"].as_array());
    rows.into_iter().flatten().filter_map(|row| row["name"].as_str())
}
