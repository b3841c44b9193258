//! Bodies: too large, half sent, malformed, too many at once.

use std::time::Duration;

use crate::harness::{ACCOUNT, Hearth, owner, request};

const CREATE: &str = "/client/v4/accounts/00000000000000000000000000000001/d1/database";

/// A body that creates `name` and is exactly `n` bytes long.
fn padded(name: &str, n: usize) -> Vec<u8> {
    let mut body = format!(r#"{{"name":"{name}"}}"#).into_bytes();
    body.resize(n, b' ');
    body
}

async fn names(hearth: &Hearth) -> Vec<String> {
    let list = hearth.call("GET", CREATE, "").await.json();
    list["result"].as_array().unwrap().iter().map(|db| db["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_json_body_is_taken_up_to_its_limit() {
    let hearth = Hearth::start_with(|config| config.json_body_bytes_max = 5000).await;
    for (n, status) in [(4999, 200), (5000, 200), (5001, 413)] {
        let reply = hearth.call("POST", CREATE, padded(&format!("sized-{n}"), n)).await;
        assert_eq!(reply.status, status, "{n}: {}", reply.text());
    }
    let reply = hearth.call("POST", CREATE, padded("x", 5001)).await;
    assert_eq!(reply.error(), (7490, "the body is too large (got 5001 bytes, expected at most 5000)".to_owned()));
    assert_eq!(names(&hearth).await, ["sized-4999", "sized-5000"]);
}

#[tokio::test]
async fn a_chunked_body_has_the_same_limit() {
    let hearth = Hearth::start_with(|config| config.json_body_bytes_max = 5000).await;
    for (n, status) in [(5000, 200), (5001, 413)] {
        let mut wire = hearth.connect().await;
        let body = padded(&format!("chunked-{n}"), n);
        wire.send(format!("POST {CREATE} HTTP/1.1\r\nhost: t\r\n{}transfer-encoding: chunked\r\n\r\n", owner())).await;
        for chunk in body.chunks(777) {
            wire.send(format!("{:x}\r\n", chunk.len())).await;
            wire.send(chunk).await;
            wire.send("\r\n").await;
        }
        wire.send("0\r\n\r\n").await;
        let reply = wire.reply().await.unwrap();
        assert_eq!(reply.status, status, "{n}: {}", reply.text());
    }
    assert_eq!(names(&hearth).await, ["chunked-5000"]);
}

#[tokio::test]
async fn a_body_with_sql_has_a_limit_of_its_own() {
    let hearth = Hearth::start_with(|config| (config.json_body_bytes_max, config.query_body_bytes_max) = (100, 300_000)).await;
    hearth.database("shop").await;
    for (n, status) in [(299_999, 200), (300_000, 200), (300_001, 413)] {
        let mut body = br#"{"sql":"SELECT 1"}"#.to_vec();
        body.resize(n, b' ');
        let reply = hearth.call("POST", &format!("{ACCOUNT}/d1/database/shop/query"), body).await;
        assert_eq!(reply.status, status, "{n}: {}", reply.text());
        assert!(reply.json()["result"].is_array());
    }
}

#[tokio::test]
async fn a_client_that_is_still_sending_sees_why_its_body_is_refused() {
    let hearth = Hearth::start_with(|config| config.json_body_bytes_max = 1000).await;
    let reply = hearth.call("POST", CREATE, vec![b' '; 20_000_000]).await;
    assert_eq!((reply.status, reply.error().0), (413, 7490));
    let reply = hearth.call_as(None, "POST", CREATE, vec![b' '; 20_000_000]).await;
    assert_eq!((reply.status, reply.error().0), (401, 10000));
}

#[tokio::test]
async fn a_half_sent_body_is_dropped_after_the_idle_limit_and_changes_nothing() {
    let hearth = Hearth::start_with(|config| config.idle_timeout = Duration::from_millis(300)).await;
    let whole = request("POST", CREATE, &owner(), br#"{"name":"half"}"#);
    let mut wire = hearth.connect().await;
    wire.send(&whole[..whole.len() - 1]).await;
    let reply = wire.reply().await.unwrap();
    assert_eq!(reply.error(), (7400, "the body did not come in time (got 14 bytes of it); nothing was done".to_owned()));
    assert!(wire.is_closed().await);
    assert!(names(&hearth).await.is_empty());
}

#[tokio::test]
async fn a_body_that_drips_is_dropped_after_its_time() {
    let hearth = Hearth::start_with(|config| {
        (config.idle_timeout, config.body_timeout) = (Duration::from_secs(5), Duration::from_millis(500));
    })
    .await;
    let mut wire = hearth.connect().await;
    wire.send(format!("POST {CREATE} HTTP/1.1\r\nhost: t\r\n{}content-length: 100000\r\n\r\n", owner())).await;
    // Each byte comes well within the idle limit, all of them together do not.
    for _ in 0..10 {
        wire.send(" ").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(wire.reply().await.unwrap().status, 400);
}

#[tokio::test]
async fn a_connection_that_breaks_in_its_body_changes_nothing() {
    let hearth = Hearth::start().await;
    let whole = request("POST", CREATE, &owner(), br#"{"name":"broken"}"#);
    for cut in [whole.len() - 1, whole.len() - 10, whole.len() - 17] {
        let mut wire = hearth.connect().await;
        wire.send(&whole[..cut]).await;
        drop(wire);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(names(&hearth).await.is_empty());
}

#[tokio::test]
async fn what_is_no_json_is_refused_with_its_place() {
    let hearth = Hearth::start().await;
    for body in ["", "{", "null", "[]", "{\"name\":1}", "{\"name\":\"a\"", "\u{feff}{}", "{\"name\":\"\u{1}\"}", "name=shop"] {
        let reply = hearth.call("POST", CREATE, body).await;
        assert_eq!((reply.status, reply.error().0), (400, 7400), "{body:?}: {}", reply.text());
    }
    let reply = hearth.call("POST", CREATE, b"{\"name\":\"\xff\"}").await;
    assert_eq!((reply.status, reply.error().0), (400, 7400));
    assert!(names(&hearth).await.is_empty());
}

#[tokio::test]
async fn json_is_read_whatever_its_content_type_says() {
    let hearth = Hearth::start().await;
    for (i, kind) in ["application/json", "application/json; charset=utf-8;", "text/plain;charset=UTF-8", "application/octet-stream", ""]
        .iter()
        .enumerate()
    {
        let headers = format!("{}content-type: {kind}\r\n", owner());
        let reply = hearth.call_with(&headers, "POST", CREATE, format!(r#"{{"name":"kind-{i}"}}"#)).await;
        assert_eq!(reply.status, 200, "{kind}: {}", reply.text());
    }
}

#[tokio::test]
async fn bodies_beyond_what_the_server_holds_are_told_to_come_again() {
    let hearth = Hearth::start_with(|config| config.bodies_total_bytes_max = 64 * 1024).await;
    let head = |n: usize| format!("POST {CREATE} HTTP/1.1\r\nhost: t\r\n{}content-length: {n}\r\n\r\n", owner());
    let mut holder = hearth.connect().await;
    holder.send(head(64 * 1024)).await;
    holder.send("{").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let refused = hearth.call("POST", CREATE, r#"{"name":"second"}"#).await;
    assert_eq!((refused.status, refused.error().0, refused.header("x-should-retry")), (400, 7500, Some("true")));
    assert_eq!(refused.json()["retryable"], true);
    drop(holder);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(hearth.call("POST", CREATE, r#"{"name":"second"}"#).await.status, 200);
}

#[tokio::test]
async fn expect_100_continue_is_answered_before_the_body() {
    let hearth = Hearth::start_with(|config| config.json_body_bytes_max = 1000).await;
    let head = |n: usize| format!("POST {CREATE} HTTP/1.1\r\nhost: t\r\n{}expect: 100-continue\r\ncontent-length: {n}\r\n\r\n", owner());
    let mut wire = hearth.connect().await;
    wire.send(head(16)).await;
    assert_eq!(wire.reply().await.unwrap().status, 100);
    wire.send(r#"{"name":"waited"}"#.get(..16).unwrap()).await;
    assert_eq!(wire.reply().await.unwrap().status, 400);
    let mut wire = hearth.connect().await;
    wire.send(head(17)).await;
    assert_eq!(wire.reply().await.unwrap().status, 100);
    wire.send(r#"{"name":"waited"}"#).await;
    assert_eq!(wire.reply().await.unwrap().status, 200);
    // One that is refused by its length is never asked for.
    let mut wire = hearth.connect().await;
    wire.send(head(1001)).await;
    assert_eq!(wire.reply().await.unwrap().status, 413);
}
