//! The protocol behind `env.DB`.

use serde_json::{Value, json};

use crate::harness::{ACCOUNT, Hearth, OWNER, Reply, owner};

async fn call(hearth: &Hearth, path: &str, body: Value) -> Reply {
    let headers = format!("{}x-binding-kind: d1\r\nx-binding-id: shop\r\ncontent-type: application/json\r\n", owner());
    hearth.call_with(&headers, "POST", path, body.to_string()).await
}

#[tokio::test]
async fn a_prepared_statement_is_answered_in_the_form_it_asks_for() {
    let hearth = Hearth::start().await;
    let id = hearth.database("shop").await;
    let body = json!({"sql": "SELECT ?1 AS a", "params": ["x"]});
    for (format, results) in [
        ("ROWS_AND_COLUMNS", json!({"columns": ["a"], "rows": [["x"]]})),
        ("ARRAY_OF_OBJECTS", json!([{"a": "x"}])),
        ("NONE", json!([{"a": "x"}])),
    ] {
        for path in ["query", "execute"] {
            let reply = call(&hearth, &format!("/{path}?resultsFormat={format}"), body.clone()).await;
            assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
            assert_eq!((&reply.json()["success"], &reply.json()["results"]), (&json!(true), &results));
            assert!(reply.json()["meta"]["duration"].is_number());
        }
    }
    let by_id = format!("{}x-binding-kind: d1\r\nx-binding-id: {id}\r\n", owner());
    assert_eq!(hearth.call_with(&by_id, "POST", "http://d1/query", body.to_string()).await.status, 200);
}

#[tokio::test]
async fn a_list_is_one_transaction_and_answered_by_a_list() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let made = call(
        &hearth,
        "/query?resultsFormat=NONE",
        json!([{"sql": "CREATE TABLE t(a UNIQUE)"}, {"sql": "INSERT INTO t VALUES(?)", "params": [7]}]),
    )
    .await;
    assert_eq!(made.json().as_array().unwrap().len(), 2);
    let failed =
        call(&hearth, "/query?resultsFormat=NONE", json!([{"sql": "INSERT INTO t VALUES(8)"}, {"sql": "INSERT INTO t VALUES(7)"}])).await;
    let failed = failed.json();
    assert_eq!(failed.as_array().unwrap().len(), 1, "a failure behind a success is not seen");
    assert!(failed[0]["success"] == false && failed[0]["error"].as_str().unwrap().starts_with("UNIQUE constraint failed"));
    let count = call(&hearth, "/query", json!({"sql": "SELECT COUNT(*) n FROM t"})).await.json();
    assert_eq!(count["results"], json!([{"n": 1}]));
}

#[tokio::test]
async fn a_failure_is_an_element_with_an_error() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let reply = call(&hearth, "/query?resultsFormat=ROWS_AND_COLUMNS", json!({"sql": "SELECT * FROM nope"})).await;
    assert_eq!(reply.text(), r#"{"success":false,"error":"no such table: nope: SQLITE_ERROR","retryable":false}"#);
    assert_eq!(call(&hearth, "/query", json!([])).await.json()["error"], "No SQL statements detected.");
}

#[tokio::test]
async fn what_is_wrong_with_a_binding_is_said_in_its_form() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let body = r#"{"sql":"SELECT 1"}"#;
    for (headers, method, path, status) in [
        (format!("{}x-binding-kind: d1\r\n", owner()), "POST", "/query", 400),
        (format!("{}x-binding-kind: d1\r\nx-binding-id: \r\n", owner()), "POST", "/query", 400),
        (format!("{}x-binding-kind: d1\r\nx-binding-id: nope\r\n", owner()), "POST", "/query", 404),
        (format!("{}x-binding-kind: kv\r\nx-binding-id: shop\r\n", owner()), "POST", "/query", 400),
        (format!("{}x-binding-kind: d1\r\nx-binding-id: shop\r\n", owner()), "GET", "/query", 405),
        (format!("{}x-binding-kind: d1\r\nx-binding-id: shop\r\n", owner()), "POST", "/nowhere", 404),
        (format!("{}x-binding-kind: d1\r\nx-binding-id: shop\r\n", owner()), "GET", "/client/v4/user", 404),
        (format!("{}x-binding-kind: d1\r\nx-binding-id: shop\r\n", owner()), "POST", "/query?resultsFormat=CSV", 400),
        (format!("{}x-binding-kind: d1\r\nx-binding-id: shop\r\n", owner()), "POST", "/dump", 501),
        ("x-binding-kind: d1\r\nx-binding-id: shop\r\n".to_owned(), "POST", "/query", 401),
    ] {
        let reply = hearth.call_with(&headers, method, path, body).await;
        assert_eq!((reply.status, reply.header("content-type")), (status, Some("application/json")), "{headers} {method} {path}");
        assert!(reply.json()["success"] == false && reply.json()["error"].is_string(), "{headers} {path}: {}", reply.text());
    }
}

#[tokio::test]
async fn miniflares_proxy_reaches_the_same_database() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let token = hearth.token(&["d1:shop:write"]).await;
    let headers =
        "MF-Binding: DB\r\nMF-URL: http://d1/query?resultsFormat=ARRAY_OF_OBJECTS\r\nMF-Header-content-type: application/json\r\n";
    let path = format!("/bindings/d1/shop?token={token}");
    let reply = hearth.call_with(headers, "POST", &path, r#"{"sql":"SELECT 1 AS a"}"#).await;
    assert_eq!(reply.json()["results"], json!([{"a": 1}]), "{}", reply.text());
    assert_eq!(hearth.call_with(headers, "POST", "/bindings/d1/shop", "{}").await.status, 401);
    let spoofed = format!("{headers}MF-Header-authorization: Bearer {OWNER}\r\n");
    assert_eq!(hearth.call_with(&spoofed, "POST", "/bindings/d1/shop", "{}").await.status, 401);
    let socket = hearth.call_with("connection: upgrade\r\nupgrade: websocket\r\n", "GET", &path, "").await;
    assert_eq!(socket.status, 426);
}

#[tokio::test]
async fn a_session_token_is_accepted() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    for token in ["first-primary", "first-unconstrained", "00000001-00000000-00004e4a-4f5f7a2d9bd5e3ee3d7d3f1ea0a4a2a3"] {
        let headers = format!(
            "{}x-binding-kind: d1\r\nx-binding-id: shop\r\nx-cf-d1-session-commit-token: {token}\r\nx-d1-bookmark: {token}\r\n",
            owner()
        );
        assert_eq!(hearth.call_with(&headers, "POST", "/query", r#"{"sql":"SELECT 1"}"#).await.status, 200);
    }
    assert_eq!(hearth.call("GET", &format!("{ACCOUNT}/d1/database/shop"), "").await.status, 200);
}
