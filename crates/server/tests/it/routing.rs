//! Which path and method goes where.

use expect_test::expect;

use crate::harness::{ACCOUNT, Hearth, OWNER, owner, request};

#[tokio::test]
async fn every_route_of_the_table_is_reached() {
    let hearth = Hearth::start().await;
    for route in server::routes().into_iter().filter(|route| route.binding.is_none()) {
        let path = route.path.replace("{account}", "00000000000000000000000000000001").replace(['{', '}'], "");
        let reply = hearth.call(&route.method, &path, "{}").await;
        assert!(reply.status != 405 && !reply.text().contains("Could not route"), "{} {path}: {}", route.method, reply.text());
    }
}

#[tokio::test]
async fn an_unknown_path_is_told_in_cloudflares_words() {
    let hearth = Hearth::start().await;
    for (path, shown) in [
        ("/", "/"),
        ("/client/v4", ""),
        ("/client/v4/zones", "/zones"),
        ("/client/v4/accounts/", "/accounts/"),
        ("//client/v4/user", "//client/v4/user"),
        ("/client/v4/./user", "/./user"),
        ("/client/v4/accounts/../user", "/accounts/../user"),
        ("/query", "/query"),
    ] {
        let reply = hearth.call("GET", path, "").await;
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
        assert_eq!(reply.error(), (7003, format!("Could not route to {shown}, perhaps your object identifier is invalid?")));
        assert_eq!(reply.json()["result"], serde_json::Value::Null);
    }
}

#[tokio::test]
async fn another_account_is_not_routed_to() {
    let hearth = Hearth::start().await;
    for account in ["00000000000000000000000000000002", "x", "%00"] {
        for path in ["", "/d1/database", "/tokens"] {
            let reply = hearth.call("GET", &format!("/client/v4/accounts/{account}{path}"), "").await;
            assert_eq!((reply.status, reply.error().0), (404, 7003), "{account}{path}");
        }
    }
    // Decoded after splitting, so this is the account.
    let reply = hearth.call("GET", &ACCOUNT.replacen("/0", "/%30", 1), "").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test]
async fn a_wrong_method_is_told_which_are_right() {
    let hearth = Hearth::start().await;
    let reply = hearth.call("DELETE", &format!("{ACCOUNT}/d1/database"), "").await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, POST")));
    expect!["method DELETE is not available for this path (expected GET, POST)"].assert_eq(&reply.error().1);
    let reply = hearth.call("OPTIONS", "/client/v4/user", "").await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET")));
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let hearth = Hearth::start().await;
    let get = hearth.call("GET", "/health", "").await;
    let head = hearth.call("HEAD", "/health", "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), get.header("content-length"));
}

#[tokio::test]
async fn health_asks_for_nothing_and_says_nothing() {
    let hearth = Hearth::start().await;
    let reply = hearth.call_as(None, "GET", "/health", "").await;
    assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"ok":true}"#));
}

#[tokio::test]
async fn every_answer_has_the_headers_that_clients_look_at() {
    let hearth = Hearth::start().await;
    let fine = hearth.call("GET", "/client/v4/user", "").await;
    let failed = hearth.call("GET", "/client/v4/nowhere", "").await;
    for reply in [&fine, &failed] {
        assert_eq!(reply.header("content-type"), Some("application/json; charset=UTF-8"));
        assert_eq!(reply.header("cache-control"), Some("no-cache"));
        assert!(reply.header("api-version").is_some() && reply.header("date").is_some());
        let (id, ray) = (reply.header("x-request-id").unwrap(), reply.header("cf-ray").unwrap());
        assert!(id.len() == 32 && ray == format!("{}-HTH", &id[..16]), "{id} {ray}");
    }
    assert_ne!(fine.header("x-request-id"), failed.header("x-request-id"));
    assert_eq!((fine.header("x-should-retry"), failed.header("x-should-retry")), (None, Some("false")));
}

#[tokio::test]
async fn a_target_in_absolute_form_is_the_same_as_in_origin_form() {
    let hearth = Hearth::start().await;
    let mut wire = hearth.connect().await;
    for target in ["http://anything.example:99/client/v4/user", "https://d1/client/v4/user", "/client/v4/user"] {
        wire.send(request("GET", target, &owner(), b"")).await;
        let reply = wire.reply().await.unwrap();
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_target_without_a_path_is_not_routed() {
    let hearth = Hearth::start().await;
    for (method, target) in [("OPTIONS", "*"), ("GET", "http://host"), ("CONNECT", "host:80")] {
        let reply = hearth.call(method, target, "").await;
        assert_eq!(reply.status, 404, "{method} {target}: {}", reply.text());
    }
}

#[tokio::test]
async fn http_1_0_is_answered_and_closed() {
    let hearth = Hearth::start().await;
    let mut wire = hearth.connect().await;
    wire.send(format!("GET /client/v4/user HTTP/1.0\r\nAuthorization: Bearer {OWNER}\r\n\r\n")).await;
    assert_eq!(wire.reply().await.unwrap().status, 200);
    assert!(wire.is_closed().await);
}

#[tokio::test]
async fn what_is_no_utf8_once_decoded_is_refused() {
    let hearth = Hearth::start().await;
    let reply = hearth.call("GET", &format!("{ACCOUNT}/d1/database/%ff"), "").await;
    assert_eq!((reply.status, reply.error().0), (400, 7400));
    let reply = hearth.call("GET", &format!("{ACCOUNT}/d1/database?name=%ff"), "").await;
    assert_eq!((reply.status, reply.error().0), (400, 7400));
}
