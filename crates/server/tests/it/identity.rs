//! What `wrangler whoami` and a client's first calls read.

use expect_test::expect;

use crate::harness::{Hearth, OWNER};

#[tokio::test]
async fn the_first_calls_of_wrangler_are_answered() {
    let hearth = Hearth::start().await;
    let get = async |path: &str| {
        let reply = hearth.call("GET", path, "").await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.text()
    };
    expect![[r#"{"success":true,"errors":[],"messages":[],"result":{"id":"00000000000000000000000000000001","status":"active"}}"#]]
        .assert_eq(&get("/client/v4/user/tokens/verify").await);
    expect![[
        r#"{"success":true,"errors":[],"messages":[],"result":{"id":"00000000000000000000000000000001","email":"owner@hearth.invalid"}}"#
    ]]
    .assert_eq(&get("/client/v4/user").await);
    expect![[r#"{"success":true,"errors":[],"messages":[],"result":[{"id":"00000000000000000000000000000001","name":"Hearth"}],"result_info":{"page":1,"per_page":1000,"count":1,"total_count":1,"total_pages":1}}"#]]
        .assert_eq(&get("/client/v4/accounts?page=1").await);
    expect![[r#"{"success":true,"errors":[],"messages":[],"result":{"id":"00000000000000000000000000000001","name":"Hearth"}}"#]]
        .assert_eq(&get("/client/v4/accounts/00000000000000000000000000000001").await);
    expect![[r#"{"success":true,"errors":[],"messages":[],"result":[{"id":"00000000000000000000000000000001","status":"accepted","account":{"id":"00000000000000000000000000000001","name":"Hearth"},"roles":["Owner"]}],"result_info":{"page":1,"per_page":1000,"count":1,"total_count":1,"total_pages":1}}"#]]
        .assert_eq(&get("/client/v4/memberships?page=1").await);
}

#[tokio::test]
async fn a_page_past_the_last_is_empty() {
    let hearth = Hearth::start().await;
    for path in ["/client/v4/accounts?page=2", "/client/v4/memberships?page=9"] {
        assert_eq!(hearth.call("GET", path, "").await.json()["result"], serde_json::json!([]));
    }
}

#[tokio::test]
async fn a_token_verifies_as_itself() {
    let hearth = Hearth::start().await;
    let token = hearth.token(&["d1:*:read"]).await;
    let list = hearth.call("GET", "/client/v4/user/tokens", "").await.json();
    for path in ["/client/v4/user/tokens/verify", "/client/v4/accounts/00000000000000000000000000000001/tokens/verify"] {
        let verified = hearth.call_as(Some(&token), "GET", path, "").await.json();
        assert_eq!(verified["result"]["id"], list["result"][0]["id"]);
    }
    assert_ne!(token, OWNER);
}
