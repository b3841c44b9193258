//! The three analytics questions that wrangler asks of `/graphql`, told apart by their name.
//!
//! wrangler sends fixed queries, so no GraphQL engine is needed: the operation's name says what is
//! asked, and the variables about what. Answers are not enveloped.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Body of `POST /client/v4/graphql`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphqlRequest {
    /// The query's text.
    #[serde(default)]
    pub query: String,
    /// Its name; taken from the text if it is left out.
    #[serde(default)]
    pub operation_name: Option<String>,
    /// Its variables.
    #[serde(default)]
    pub variables: Value,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Use of one database by hour (`wrangler d1 info`); `None` if the query names no database.
    D1Metrics(Option<String>),
    /// The queries that cost most (`wrangler d1 insights`).
    D1Queries,
    /// Anything else: answered with an account that has no figures.
    Unknown,
}

/// One hour of a database's use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct D1Sum {
    /// Statements that only read.
    pub read_queries: u64,
    /// Statements that wrote.
    pub write_queries: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Rows written.
    pub rows_written: u64,
}

impl GraphqlRequest {
    /// What is asked.
    pub fn question(&self) -> Question {
        match self.operation_name.as_deref().or_else(|| name_in(&self.query)) {
            Some("getD1MetricsOverviewQuery") => Question::D1Metrics(self.database_id()),
            Some("getD1QueriesOverviewQuery") => Question::D1Queries,
            _ => Question::Unknown,
        }
    }

    /// The account asked about, if the query names one.
    pub fn account(&self) -> Option<&str> {
        self.variables.get("accountTag").and_then(Value::as_str)
    }

    /// `filter.databaseId`, or that of a member of `filter.AND`.
    fn database_id(&self) -> Option<String> {
        let filter = self.variables.get("filter")?;
        let all = filter.get("AND").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        std::iter::once(filter).chain(all).find_map(|part| part.get("databaseId").and_then(Value::as_str)).map(str::to_owned)
    }
}

/// The name behind the word `query` at the start of a query's text.
fn name_in(query: &str) -> Option<&str> {
    let rest = query.trim_start().strip_prefix("query")?.trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    (end > 0).then_some(&rest[..end])
}

/// Answer to [`Question::D1Metrics`]: sums by hour, with the hour as ISO 8601.
pub fn d1_metrics(hours: &[(String, D1Sum)]) -> Value {
    let groups: Vec<Value> = hours.iter().map(|(hour, sum)| json!({"sum": sum, "dimensions": {"datetimeHour": hour}})).collect();
    data(&json!({"d1AnalyticsAdaptiveGroups": groups}))
}

/// Answer to [`Question::D1Queries`] while no query is recorded.
pub fn d1_queries_empty() -> Value {
    data(&json!({"d1QueriesAdaptiveGroups": []}))
}

/// Answer to [`Question::Unknown`].
pub fn unknown() -> Value {
    data(&json!({}))
}

/// Answer to a question about an account that is not here.
pub fn no_account() -> Value {
    json!({"data": {"viewer": {"accounts": []}}, "errors": null})
}

fn data(account: &Value) -> Value {
    json!({"data": {"viewer": {"accounts": [account]}}, "errors": null})
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn question(body: Value) -> Question {
        serde_json::from_value::<GraphqlRequest>(body).unwrap().question()
    }

    #[test]
    fn the_database_is_found_where_wrangler_puts_it() {
        let wanted = Question::D1Metrics(Some("id".to_owned()));
        let filter = json!({"AND": [{"datetimeHour_geq": "a", "datetimeHour_leq": "b", "databaseId": "id"}]});
        assert_eq!(
            question(
                json!({"query": "x", "operationName": "getD1MetricsOverviewQuery", "variables": {"accountTag": "a", "filter": filter}})
            ),
            wanted
        );
        assert_eq!(
            question(json!({"query": "\n query getD1MetricsOverviewQuery($a: string) {", "variables": {"filter": {"databaseId": "id"}}})),
            wanted
        );
        assert_eq!(question(json!({"operationName": "getD1MetricsOverviewQuery"})), Question::D1Metrics(None));
    }

    #[test]
    fn other_questions_are_told_apart_by_name() {
        assert_eq!(question(json!({"operationName": "getD1QueriesOverviewQuery", "query": ""})), Question::D1Queries);
        assert_eq!(question(json!({"operationName": "getR2StorageMetrics"})), Question::Unknown);
        assert_eq!(question(json!({"query": "{ viewer { accounts } }"})), Question::Unknown);
        assert_eq!(question(json!({"query": "query"})), Question::Unknown);
        assert_eq!(question(json!({})), Question::Unknown);
    }

    #[test]
    fn answers_have_the_nodes_that_wrangler_reads() {
        let sum = D1Sum { read_queries: 1, write_queries: 2, rows_read: 3, rows_written: 4 };
        expect![[r#"{"data":{"viewer":{"accounts":[{"d1AnalyticsAdaptiveGroups":[{"sum":{"readQueries":1,"writeQueries":2,"rowsRead":3,"rowsWritten":4},"dimensions":{"datetimeHour":"2026-07-26T04:00:00.000Z"}}]}]}},"errors":null}"#]]
            .assert_eq(&d1_metrics(&[("2026-07-26T04:00:00.000Z".to_owned(), sum)]).to_string());
        expect![[r#"{"data":{"viewer":{"accounts":[{"d1QueriesAdaptiveGroups":[]}]}},"errors":null}"#]]
            .assert_eq(&d1_queries_empty().to_string());
        expect![[r#"{"data":{"viewer":{"accounts":[{}]}},"errors":null}"#]].assert_eq(&unknown().to_string());
    }
}
