//! The D1 database object, the bodies that make and change one, and the `fields` filter.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `production` on every database; `alpha` would make wrangler refuse time travel.
pub const VERSION: &str = "production";

/// A database as `GET`, `POST` and `PATCH` show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// Its id.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// [`VERSION`].
    pub version: String,
    /// ISO 8601.
    pub created_at: String,
    /// Tables; left out where the request did not ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_tables: Option<u64>,
    /// Bytes; left out where the request did not ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
    /// For example `WEUR`.
    pub running_in_region: String,
    /// Whether replicas may serve reads.
    pub read_replication: ReadReplication,
    /// `eu`, `fedramp`, `us` or null.
    pub jurisdiction: Option<String>,
    /// Only in the answer to `POST`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_in_region: Option<String>,
    /// Only in the answer to `POST`, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_location_hint: Option<String>,
}

/// A database as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseListItem {
    /// Its id.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// [`VERSION`].
    pub version: String,
    /// ISO 8601.
    pub created_at: String,
    /// `eu`, `fedramp`, `us` or null.
    pub jurisdiction: Option<String>,
}

/// Whether replicas may serve reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadReplication {
    /// `auto` or `disabled`.
    pub mode: String,
}

/// Body of `POST …/d1/database`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateDatabase {
    /// The name.
    pub name: String,
    /// Where most writes will come from, for example `weur`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_location_hint: Option<String>,
    /// `eu`, `fedramp` or `us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jurisdiction: Option<String>,
    /// Whether replicas may serve reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_replication: Option<ReadReplication>,
}

/// Body of `PATCH` and `PUT …/d1/database/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateDatabase {
    /// Whether replicas may serve reads.
    pub read_replication: ReadReplication,
}

/// Which members of a database the client wants: all, if it named none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(BTreeSet<String>);

impl Fields {
    /// From the decoded values of every `fields` in the query: wrangler sends one with commas, the SDK several.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        Self(
            values
                .into_iter()
                .flat_map(|value| value.split(','))
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Whether the client wants `name`.
    pub fn wants(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.contains(name)
    }

    /// The object with the wanted members only, in their usual order. Names that it does not have are ignored.
    pub fn select(&self, database: &Database) -> Value {
        let mut value = serde_json::to_value(database).expect("wire types have string keys");
        if let (false, Value::Object(members)) = (self.0.is_empty(), &mut value) {
            members.retain(|name, _| self.0.contains(name));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn database() -> Database {
        Database {
            uuid: "6f1a2f5e-27e0-4a35-9d7a-1e0d0f5ac3b1".to_owned(),
            name: "shop".to_owned(),
            version: VERSION.to_owned(),
            created_at: "2026-07-26T04:36:19.832Z".to_owned(),
            num_tables: Some(3),
            file_size: Some(12288),
            running_in_region: "WEUR".to_owned(),
            read_replication: ReadReplication { mode: "disabled".to_owned() },
            jurisdiction: None,
            created_in_region: None,
            primary_location_hint: None,
        }
    }

    fn check(fields: &[&str], expected: Expect) {
        expected.assert_eq(&Fields::new(fields.iter().copied()).select(&database()).to_string());
    }

    #[test]
    fn a_database_is_shown_whole_unless_fields_are_named() {
        check(
            &[],
            expect![[
                r#"{"uuid":"6f1a2f5e-27e0-4a35-9d7a-1e0d0f5ac3b1","name":"shop","version":"production","created_at":"2026-07-26T04:36:19.832Z","num_tables":3,"file_size":12288,"running_in_region":"WEUR","read_replication":{"mode":"disabled"},"jurisdiction":null}"#
            ]],
        );
        check(&["uuid,name"], expect![[r#"{"uuid":"6f1a2f5e-27e0-4a35-9d7a-1e0d0f5ac3b1","name":"shop"}"#]]);
        check(&["name", "uuid"], expect![[r#"{"uuid":"6f1a2f5e-27e0-4a35-9d7a-1e0d0f5ac3b1","name":"shop"}"#]]);
        check(&[" name ,, jurisdiction"], expect![[r#"{"name":"shop","jurisdiction":null}"#]]);
        check(&["nothing"], expect!["{}"]);
    }

    #[test]
    fn an_empty_fields_asks_for_all() {
        assert_eq!(Fields::new([""]), Fields::default());
        assert!(Fields::new([",", ""]).wants("file_size"));
        assert!(!Fields::new(["uuid,name"]).wants("file_size"));
    }

    #[test]
    fn a_database_reads_back_the_same() {
        let text = serde_json::to_string(&database()).unwrap();
        assert_eq!(serde_json::from_str::<Database>(&text).unwrap(), database());
    }
}
