//! The analytics of `wrangler d1 info` and `insights`.

use serde_json::{Value, json};

use crate::harness::{Hearth, Reply};

async fn ask(hearth: &Hearth, name: &str, variables: Value) -> Reply {
    let body = json!({"query": "query { x }", "operationName": name, "variables": variables}).to_string();
    hearth.call("POST", "/client/v4/graphql", body).await
}

#[tokio::test]
async fn info_gets_groups_of_one_database() {
    let hearth = Hearth::start().await;
    let id = hearth.database("shop").await;
    hearth.sql("shop", "CREATE TABLE t(a)").await;
    let variables = json!({"accountTag": "00000000000000000000000000000001", "filter": {"AND": [{"databaseId": id}]}});
    let groups = ask(&hearth, "getD1MetricsOverviewQuery", variables).await.json();
    let group = &groups["data"]["viewer"]["accounts"][0]["d1AnalyticsAdaptiveGroups"][0];
    assert!(group["sum"]["writeQueries"].as_u64().unwrap() >= 1 && group["dimensions"]["datetimeHour"].is_string(), "{groups}");
    assert!(groups["errors"].is_null());
}

#[tokio::test]
async fn other_questions_get_an_account_without_figures() {
    let hearth = Hearth::start().await;
    let empty = json!({"data": {"viewer": {"accounts": [{}]}}, "errors": null});
    assert_eq!(ask(&hearth, "getR2StorageMetrics", json!({})).await.json(), empty);
    let insights = ask(&hearth, "getD1QueriesOverviewQuery", json!({})).await.json();
    assert_eq!(insights["data"]["viewer"]["accounts"][0]["d1QueriesAdaptiveGroups"], json!([]));
    let other = ask(&hearth, "getD1QueriesOverviewQuery", json!({"accountTag": "f".repeat(32)})).await.json();
    assert_eq!(other["data"]["viewer"]["accounts"], json!([]));
}

#[tokio::test]
async fn a_database_that_is_not_there_is_refused() {
    let hearth = Hearth::start().await;
    let of = |id: &str| json!({"filter": {"databaseId": id}});
    assert_eq!(ask(&hearth, "getD1MetricsOverviewQuery", of("no id")).await.status, 400);
    assert_eq!(ask(&hearth, "getD1MetricsOverviewQuery", of("6f1a2f5e-27e0-4a35-9d7a-1e0d0f5ac3b1")).await.status, 404);
}
