//! Who is let in, on every route.

use crate::harness::{ACCOUNT, Hearth, OWNER};

/// A path of this server for a route's pattern.
fn path_of(pattern: &str) -> String {
    pattern
        .replace("{account}", "00000000000000000000000000000001")
        .replace("{database}", "shop")
        .replace("{token}", &"0".repeat(32))
        .replace("{link}", "nothing")
}

fn binding_headers(kind: Option<&str>) -> String {
    kind.map(|kind| format!("x-binding-kind: {kind}\r\nx-binding-id: shop\r\n")).unwrap_or_default()
}

/// A scope that does not open what `asks` names: another service, or less access to the same one.
fn lesser_scopes(asks: &str) -> Vec<String> {
    let (service, access) = (asks.split(':').next().unwrap(), asks.rsplit(':').next().unwrap());
    let mut scopes: Vec<String> =
        ["d1", "tokens", "account"].iter().filter(|other| **other != service).map(|other| format!("{other}:*:write")).collect();
    match access {
        "read" => scopes.push(format!("{service}:*:create")),
        "write" => scopes.extend([format!("{service}:*:read"), format!("{service}:*:create")]),
        _ => scopes.push(format!("{service}:*:write")),
    }
    scopes
}

#[tokio::test]
async fn every_guarded_route_refuses_no_wrong_and_lesser_credentials() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let mut n_guarded = 0;
    for route in server::routes().into_iter().filter(|route| !matches!(route.asks.as_str(), "nothing" | "the link")) {
        n_guarded += 1;
        let path = path_of(route.path);
        let binding = binding_headers(route.binding);
        let name = format!("{} {path} {binding:?}", route.method);
        let none = hearth.call_with(&binding, &route.method, &path, "{}").await;
        assert_eq!(none.status, 401, "{name} without a credential: {}", none.text());
        for wrong in
            ["authorization: Bearer wrong\r\n", "authorization: Basic b3duZXI6\r\n", "x-auth-key: wrong\r\n", "x-terminal-key: \r\n"]
        {
            let reply = hearth.call_with(&format!("{binding}{wrong}"), &route.method, &path, "{}").await;
            assert_eq!(reply.status, 401, "{name} with {wrong:?}: {}", reply.text());
        }
        if route.asks == "any credential" {
            continue;
        }
        let lesser = lesser_scopes(&route.asks);
        let token = hearth.token(&lesser.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let reply = hearth.call_with(&format!("{binding}authorization: Bearer {token}\r\n"), &route.method, &path, "{}").await;
        assert_eq!(reply.status, 403, "{name} with {lesser:?}: {}", reply.text());
    }
    assert!(n_guarded > 20, "only {n_guarded} routes ask for a credential");
}

#[tokio::test]
async fn every_guarded_route_takes_the_scope_that_it_names() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    for route in server::routes().into_iter().filter(|route| route.asks.contains(':')) {
        let token = hearth.token(&[&route.asks]).await;
        let headers = format!("{}authorization: Bearer {token}\r\n", binding_headers(route.binding));
        let reply = hearth.call_with(&headers, &route.method, &path_of(route.path), "{}").await;
        // The request itself may be refused: an empty object is no query. But not for want of a scope.
        assert!(!matches!(reply.status, 401 | 403), "{} {} with {}: {}", route.method, route.path, route.asks, reply.text());
    }
}

#[tokio::test]
async fn the_owner_is_known_by_three_headers() {
    let hearth = Hearth::start().await;
    for headers in [
        format!("Authorization: Bearer {OWNER}\r\n"),
        format!("authorization: bearer {OWNER}\r\n"),
        format!("X-Auth-Key: {OWNER}\r\nX-Auth-Email: someone@example.org\r\n"),
        format!("x-terminal-key: {OWNER}\r\n"),
    ] {
        let reply = hearth.call_with(&headers, "GET", "/client/v4/user/tokens/verify", "").await;
        assert_eq!(reply.status, 200, "{headers}: {}", reply.text());
    }
    for key in [&OWNER[..OWNER.len() - 1], &format!("{OWNER}x"), &OWNER.to_uppercase(), ""] {
        assert_eq!(hearth.call_as(Some(key), "GET", "/client/v4/user", "").await.status, 401, "{key}");
    }
}

#[tokio::test]
async fn without_an_owner_key_no_empty_credential_is_the_owners() {
    let hearth = Hearth::start_with(|config| config.owner_key.clear()).await;
    for headers in ["authorization: Bearer \r\n", "x-auth-key: \r\n", "x-terminal-key:\r\n", ""] {
        assert_eq!(hearth.call_with(headers, "GET", "/client/v4/user", "").await.status, 401, "{headers:?}");
    }
}

#[tokio::test]
async fn a_refusal_has_cloudflares_codes() {
    let hearth = Hearth::start().await;
    let list = format!("{ACCOUNT}/d1/database");
    let missing = hearth.call_as(None, "GET", &list, "").await;
    assert_eq!((missing.status, missing.error().0), (401, 10000));
    let unknown = hearth.call_as(Some("nope"), "GET", &list, "").await;
    assert_eq!((unknown.status, unknown.error().0), (401, 10000));
    assert!(!unknown.text().contains("nope"), "an answer shows the credential");
    // wrangler calls these after a 10000; with a 10000 of their own they would be called for ever.
    for (path, code) in [("/user/tokens/verify", 1000), ("/user", 9109), ("/accounts", 9109), ("/memberships", 9109)] {
        let reply = hearth.call_as(Some("nope"), "GET", &format!("/client/v4{path}"), "").await;
        assert_eq!((reply.status, reply.error().0), (401, code), "{path}");
    }
    let token = hearth.token(&["d1:*:read"]).await;
    let scope = hearth.call_as(Some(&token), "GET", "/client/v4/user", "").await;
    assert_eq!((scope.status, scope.error().0), (403, 9109));
    assert_eq!(scope.error().1, "the token does not allow this (expected the scope `account:*:read`)");
}

#[tokio::test]
async fn a_refused_request_changes_nothing_and_reads_no_body() {
    let hearth = Hearth::start().await;
    let token = hearth.token(&["d1:*:read"]).await;
    let create = format!("{ACCOUNT}/d1/database");
    assert_eq!(hearth.call_as(Some(&token), "POST", &create, r#"{"name":"new"}"#).await.status, 403);
    assert_eq!(hearth.call_as(None, "POST", &create, "not even JSON").await.status, 401);
    let list = hearth.call("GET", &create, "").await.json();
    assert_eq!(list["result"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn a_token_sees_and_reaches_only_its_own_database() {
    let hearth = Hearth::start().await;
    let (orders, _other) = (hearth.database("orders").await, hearth.database("other").await);
    hearth.sql("orders", "CREATE TABLE t(a)").await;
    let token = hearth.token(&["d1:orders:read"]).await;
    let call = async |method: &str, path: String, body: &str| hearth.call_as(Some(&token), method, &path, body).await;
    let list = call("GET", format!("{ACCOUNT}/d1/database"), "").await.json();
    assert_eq!(list["result"].as_array().unwrap().iter().map(|db| &db["name"]).collect::<Vec<_>>(), ["orders"]);
    let query = |name: &str| format!("{ACCOUNT}/d1/database/{name}/query");
    assert_eq!(call("POST", query("orders"), r#"{"sql":"SELECT 1"}"#).await.status, 200);
    assert_eq!(call("POST", query(&orders), r#"{"sql":"SELECT 1"}"#).await.status, 200);
    let other = call("POST", query("other"), r#"{"sql":"SELECT 1"}"#).await;
    assert!(matches!(other.status, 403 | 404), "{}", other.text());
    let write = call("POST", query("orders"), r#"{"sql":"INSERT INTO t VALUES(1)"}"#).await;
    assert_eq!((write.status, write.error().0), (403, 9109), "{}", write.text());
    assert_eq!(hearth.sql("orders", "SELECT COUNT(*) n FROM t").await.json()["result"][0]["results"][0]["n"], 0);
    assert_eq!(call("DELETE", format!("{ACCOUNT}/d1/database/orders"), "").await.status, 403);
}

#[tokio::test]
async fn a_token_for_one_name_creates_that_database_and_no_other() {
    let hearth = Hearth::start().await;
    let token = hearth.token(&["d1:orders:create"]).await;
    let create = async |name: &str| {
        let body = format!(r#"{{"name":"{name}"}}"#);
        hearth.call_as(Some(&token), "POST", &format!("{ACCOUNT}/d1/database"), body).await
    };
    assert_eq!(create("other").await.status, 403);
    let made = create("orders").await;
    assert_eq!(made.status, 200, "{}", made.text());
    // It may not read what it made, so the figures that take a read are left out.
    assert_eq!(made.json()["result"].get("file_size"), None);
}
