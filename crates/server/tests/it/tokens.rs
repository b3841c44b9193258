//! API tokens: made, shown once, listed, revoked.

use serde_json::{Value, json};

use crate::harness::{ACCOUNT, Hearth};

fn tokens() -> String {
    format!("{ACCOUNT}/tokens")
}

#[tokio::test]
async fn a_secret_is_shown_once() {
    let hearth = Hearth::start().await;
    let body = json!({"name": "ci", "scopes": ["d1:*:read", "d1:shop:write"], "expires_on": "2999-01-01T00:00:00Z"}).to_string();
    let made = hearth.call("POST", &tokens(), body).await.json()["result"].clone();
    assert!(made["value"].as_str().unwrap().starts_with("hth_"));
    assert_eq!((&made["name"], &made["status"]), (&json!("ci"), &json!("active")));
    assert_eq!(made["scopes"], json!(["d1:*:read", "d1:shop:write"]));
    assert_eq!((&made["expires_on"], &made["revoked_on"]), (&json!("2999-01-01T00:00:00.000Z"), &Value::Null));
    for path in [tokens(), "/client/v4/user/tokens".to_owned()] {
        let list = hearth.call("GET", &path, "").await;
        assert!(!list.text().contains(made["value"].as_str().unwrap()), "a list shows a secret");
        assert_eq!(list.json()["result"][0]["id"], made["id"]);
    }
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once() {
    let hearth = Hearth::start().await;
    let secret = hearth.token(&["account:*:read"]).await;
    assert_eq!(hearth.call_as(Some(&secret), "GET", "/client/v4/user", "").await.status, 200);
    let id = hearth.call("GET", &tokens(), "").await.json()["result"][0]["id"].as_str().unwrap().to_owned();
    let revoked = hearth.call("DELETE", &format!("{}/{id}", tokens()), "").await;
    assert_eq!((revoked.status, &revoked.json()["result"]["status"]), (200, &json!("revoked")));
    assert_eq!(hearth.call_as(Some(&secret), "GET", "/client/v4/user", "").await.status, 401);
}

#[tokio::test]
async fn an_unknown_token_cannot_be_revoked() {
    let hearth = Hearth::start().await;
    let reply = hearth.call("DELETE", &format!("{}/{}", tokens(), "0".repeat(32)), "").await;
    assert_eq!((reply.status, reply.error().0), (404, 7492));
}

#[tokio::test]
async fn an_expired_token_is_refused() {
    let hearth = Hearth::start().await;
    let soon = api::time::iso(base::Timestamp(base::Clock::now(&base::SystemClock::default()).0 + 300));
    let body = json!({"name": "short", "scopes": ["account:*:read"], "expires_on": soon}).to_string();
    let secret = hearth.call("POST", &tokens(), body).await.json()["result"]["value"].as_str().unwrap().to_owned();
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    assert_eq!(hearth.call_as(Some(&secret), "GET", "/client/v4/user", "").await.status, 401);
    assert_eq!(hearth.call("GET", &tokens(), "").await.json()["result"][0]["status"], "expired");
}

#[tokio::test]
async fn a_token_cannot_make_a_wider_one() {
    let hearth = Hearth::start().await;
    let maker = hearth.token(&["tokens:*:create", "d1:shop:write"]).await;
    let make =
        async |scopes: Value| hearth.call_as(Some(&maker), "POST", &tokens(), json!({"name": "child", "scopes": scopes}).to_string()).await;
    for wider in [
        json!(["d1:*:read"]),
        json!(["d1:other:read"]),
        json!(["d1:shop:create"]),
        json!(["tokens:*:write"]),
        json!(["d1:shop:read", "account:*:read"]),
    ] {
        let reply = make(wider.clone()).await;
        assert_eq!((reply.status, reply.error().0), (403, 9109), "{wider}");
    }
    for within in [json!(["d1:shop:write"]), json!(["d1:shop:read"]), json!(["tokens:*:create"])] {
        assert_eq!(make(within.clone()).await.status, 200, "{within}");
    }
}

#[tokio::test]
async fn a_malformed_token_is_refused_by_its_member() {
    let hearth = Hearth::start().await;
    for (body, named) in [
        (json!({"name": "", "scopes": ["d1:*:read"]}), "a token needs a name of 1 to 100 characters"),
        (json!({"name": "a", "scopes": []}), "a token needs 1 to 100 scopes"),
        (json!({"name": "a", "scopes": ["all"]}), "not a scope (got `all`"),
        (json!({"name": "a", "scopes": ["d1:*:read"], "expires_on": "2001-01-01T00:00:00Z"}), "the token's end lies in the past"),
        (json!({"scopes": ["d1:*:read"]}), "missing field `name`"),
    ] {
        let reply = hearth.call("POST", &tokens(), body.to_string()).await;
        assert_eq!((reply.status, reply.error().0), (400, 7400), "{body}");
        assert!(reply.error().1.contains(named), "{body}: {}", reply.error().1);
    }
    assert_eq!(hearth.call("GET", &tokens(), "").await.json()["result"], json!([]));
}
