//! The catalogue: which databases and tokens there are. SQL in the system database, a copy in memory.

use std::collections::{BTreeMap, HashMap, HashSet};

use base::{Code, DatabaseId, Error, Grant, Limits, Result, Scope, Timestamp, TokenId};
use log::Database;
use sqlite::{Batch, Statement, Value, execute};

use crate::{DatabaseInfo, TokenInfo};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS databases(
  id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, location_hint TEXT, jurisdiction TEXT,
  read_replication TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS removed(id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens(
  id TEXT PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL, created_at INTEGER NOT NULL,
  expires_at INTEGER, revoked_at INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage(
  database TEXT NOT NULL, hour INTEGER NOT NULL, read_queries INTEGER NOT NULL, write_queries INTEGER NOT NULL,
  rows_read INTEGER NOT NULL, rows_written INTEGER NOT NULL, PRIMARY KEY(database, hour)) WITHOUT ROWID";

pub(crate) const DATABASES: &str = "SELECT id, name, created_at, location_hint, jurisdiction, read_replication FROM databases";
pub(crate) const REMOVED: &str = "SELECT id FROM removed";

/// A token with the hash of its secret.
#[derive(Clone)]
pub(crate) struct TokenRecord {
    pub(crate) info: TokenInfo,
    pub(crate) hash: String,
}

impl TokenRecord {
    pub(crate) fn grant(&self) -> Grant {
        Grant::scoped(self.info.scopes.clone()).ending(self.info.expires_at)
    }
}

/// The copy in memory.
#[derive(Default)]
pub(crate) struct Catalogue {
    /// In the order in which lists show them.
    databases: BTreeMap<(Timestamp, DatabaseId), DatabaseInfo>,
    ids: HashMap<DatabaseId, Timestamp>,
    names: HashMap<String, DatabaseId>,
    pub(crate) tokens: HashMap<String, TokenRecord>,
    /// Databases that were deleted and whose files may still be there.
    pub(crate) removed: HashSet<DatabaseId>,
}

impl Catalogue {
    pub(crate) fn insert(&mut self, info: DatabaseInfo) {
        self.ids.insert(info.id, info.created_at);
        self.names.insert(info.name.clone(), info.id);
        self.databases.insert((info.created_at, info.id), info);
    }

    pub(crate) fn remove(&mut self, id: DatabaseId) {
        if let Some(created) = self.ids.remove(&id)
            && let Some(info) = self.databases.remove(&(created, id))
        {
            self.names.remove(&info.name);
        }
    }

    pub(crate) fn by_id(&self, id: DatabaseId) -> Option<&DatabaseInfo> {
        self.databases.get(&(*self.ids.get(&id)?, id))
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// By id or by name; a name that looks like an id loses to the id.
    pub(crate) fn find(&self, name_or_id: &str) -> Option<&DatabaseInfo> {
        let by_id = name_or_id.parse().ok().and_then(|id| self.by_id(id));
        by_id.or_else(|| self.by_id(*self.names.get(name_or_id)?))
    }

    pub(crate) fn databases(&self) -> impl Iterator<Item = &DatabaseInfo> {
        self.databases.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.databases.len()
    }
}

/// Runs statements on the system database as one transaction; returns the rows of the last.
pub(crate) async fn run(system: &Database, items: Vec<Statement>) -> Result<Vec<Vec<Value>>> {
    let results = system
        .run(move |conn, reserve| {
            let batch = Batch { items, is_prepared: false };
            execute::batch_reserving(conn, &batch, &execute::Options { unmetered: true, ..Default::default() }, reserve)
        })
        .await?;
    Ok(results.into_iter().flatten().next_back().map(|result| result.rows).unwrap_or_default())
}

pub(crate) fn statement(sql: &str, params: Vec<Value>) -> Statement {
    Statement { sql: sql.to_owned(), params }
}

pub(crate) fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

pub(crate) fn optional_text(value: Option<&String>) -> Value {
    value.map_or(Value::Null, |value| Value::Text(value.clone()))
}

pub(crate) fn optional_time(value: Option<Timestamp>) -> Value {
    value.map_or(Value::Null, |time| Value::Integer(time.0))
}

pub(crate) fn database_info(row: Vec<Value>) -> Result<DatabaseInfo> {
    let mut row = Row(row.into_iter());
    Ok(DatabaseInfo {
        id: row.text()?.parse()?,
        name: row.text()?,
        created_at: row.time()?,
        location_hint: row.optional_text()?,
        jurisdiction: row.optional_text()?,
        read_replication: row.text()?,
    })
}

/// Makes the tables that are missing and reads the catalogue.
pub(crate) async fn load(system: &Database) -> Result<Catalogue> {
    run(system, vec![statement(SCHEMA, Vec::new())]).await?;
    let mut catalogue = Catalogue::default();
    for row in run(system, vec![statement(DATABASES, Vec::new())]).await? {
        catalogue.insert(database_info(row)?);
    }
    for row in run(system, vec![statement(REMOVED, Vec::new())]).await? {
        catalogue.removed.insert(Row(row.into_iter()).text()?.parse()?);
    }
    let sql = "SELECT id, name, hash, scopes, created_at, expires_at, revoked_at FROM tokens";
    for row in run(system, vec![statement(sql, Vec::new())]).await? {
        let mut row = Row(row.into_iter());
        let (id, name, hash, scopes) = (TokenId(row.text()?), row.text()?, row.text()?, row.text()?);
        let scopes: Vec<Scope> = scopes.split_whitespace().map(str::parse).collect::<Result<_>>()?;
        let info =
            TokenInfo { id, name, scopes, created_at: row.time()?, expires_at: row.optional_time()?, revoked_at: row.optional_time()? };
        catalogue.tokens.insert(hash.clone(), TokenRecord { info, hash });
    }
    Ok(catalogue)
}

/// A row that is taken apart from left to right.
pub(crate) struct Row(pub(crate) std::vec::IntoIter<Value>);

impl Row {
    fn wrong() -> Error {
        Error::new(Code::Corrupt, "the catalogue holds a value of the wrong type")
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        self.optional_text()?.ok_or_else(Self::wrong)
    }

    pub(crate) fn optional_text(&mut self) -> Result<Option<String>> {
        match self.0.next() {
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Null) => Ok(None),
            _ => Err(Self::wrong()),
        }
    }

    pub(crate) fn integer(&mut self) -> Result<i64> {
        match self.0.next() {
            Some(Value::Integer(integer)) => Ok(integer),
            _ => Err(Self::wrong()),
        }
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp> {
        self.integer().map(Timestamp)
    }

    pub(crate) fn optional_time(&mut self) -> Result<Option<Timestamp>> {
        match self.0.next() {
            Some(Value::Integer(time)) => Ok(Some(Timestamp(time))),
            Some(Value::Null) => Ok(None),
            _ => Err(Self::wrong()),
        }
    }
}

/// The profile of the databases that Hearth keeps for itself.
pub(crate) fn system_limits() -> Limits {
    Limits::unlimited()
}
