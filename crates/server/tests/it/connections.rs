//! Connections: how many, how long, and how they end.

use std::time::Duration;

use crate::harness::{ACCOUNT, Hearth, owner, request};

#[tokio::test]
async fn requests_on_one_connection_are_answered_in_order() {
    let hearth = Hearth::start().await;
    let mut wire = hearth.connect().await;
    let mut all = request("GET", "/health", "", b"");
    all.extend(request("GET", "/nowhere", "", b""));
    all.extend(request("GET", "/client/v4/user", &owner(), b""));
    wire.send(all).await;
    for status in [200, 404, 200] {
        assert_eq!(wire.reply().await.unwrap().status, status);
    }
}

#[tokio::test]
async fn a_slow_head_is_cut_off() {
    let hearth = Hearth::start_with(|config| config.header_timeout = Duration::from_millis(300)).await;
    for sent in ["", "G", "GET /health HTTP/1.1\r\nhost: test\r\n"] {
        let mut wire = hearth.connect().await;
        wire.send(sent).await;
        assert!(wire.reply().await.is_none_or(|reply| reply.status == 408), "{sent:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let hearth = Hearth::start_with(|config| config.header_timeout = Duration::from_millis(300)).await;
    let mut wire = hearth.connect().await;
    wire.send(request("GET", "/health", "", b"")).await;
    assert_eq!(wire.reply().await.unwrap().status, 200);
    assert!(wire.is_closed().await);
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_closed() {
    let hearth = Hearth::start().await;
    for sent in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"hello\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET /he alth HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /health HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"POST /health HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST /health HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
    ] {
        let mut wire = hearth.connect().await;
        wire.send(sent).await;
        let reply = wire.reply().await.unwrap_or_else(|| panic!("{:?} was not answered", String::from_utf8_lossy(sent)));
        assert_eq!(reply.status, 400, "{:?}", String::from_utf8_lossy(sent));
        assert!(wire.is_closed().await);
    }
    assert_eq!(hearth.call("GET", "/health", "").await.status, 200);
}

#[tokio::test]
async fn a_head_past_its_limit_is_refused() {
    let hearth = Hearth::start().await;
    let head = |n: usize| format!("GET /health HTTP/1.1\r\nhost: t\r\nx-long: {}\r\n\r\n", "x".repeat(n));
    for (n, status) in [(32 * 1024, 200), (256 * 1024, 431)] {
        let mut wire = hearth.connect().await;
        wire.send(head(n)).await;
        assert_eq!(wire.reply().await.unwrap().status, status, "{n}");
    }
}

#[tokio::test]
async fn connections_beyond_the_bound_are_told_that_the_server_is_full() {
    let hearth = Hearth::start_with(|config| config.connections_max = 2).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut wire = hearth.connect().await;
        wire.send(request("GET", "/health", "", b"")).await;
        assert_eq!(wire.reply().await.unwrap().status, 200);
        held.push(wire);
    }
    let mut third = hearth.connect().await;
    third.send(request("GET", "/health", "", b"")).await;
    let reply = third.reply().await.unwrap();
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert!(third.is_closed().await);
    held.pop();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(hearth.call("GET", "/health", "").await.status, 200);
}

#[tokio::test]
async fn a_stop_lets_a_request_in_flight_end_and_takes_no_new_one() {
    let mut hearth = Hearth::start().await;
    let whole = request("POST", &format!("{ACCOUNT}/d1/database"), &owner(), br#"{"name":"late"}"#);
    let mut idle = hearth.connect().await;
    let mut wire = hearth.connect().await;
    wire.send(&whole[..whole.len() - 1]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    hearth.begin_stop();
    assert!(idle.is_closed().await);
    wire.send(&whole[whole.len() - 1..]).await;
    let reply = wire.reply().await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(wire.is_closed().await);
    assert!(tokio::net::TcpStream::connect(hearth.addr).await.is_err());
    hearth.stopped().await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_ever() {
    let mut hearth = Hearth::start_with(|config| config.drain_timeout = Duration::from_millis(300)).await;
    let whole = request("POST", &format!("{ACCOUNT}/d1/database"), &owner(), br#"{"name":"never"}"#);
    let mut wire = hearth.connect().await;
    wire.send(&whole[..whole.len() - 1]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    hearth.begin_stop();
    hearth.stopped().await;
    assert!(wire.is_closed().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_has_begun_ends_although_its_client_is_gone() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    hearth.sql("shop", "CREATE TABLE t(a)").await;
    let insert = "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 300000) SELECT x FROM c";
    let body = serde_json::json!({ "sql": insert }).to_string();
    let mut wire = hearth.connect().await;
    wire.send(request("POST", &format!("{ACCOUNT}/d1/database/shop/query"), &owner(), body.as_bytes())).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    drop(wire);
    let mut n = 0;
    for _ in 0..200 {
        n = hearth.sql("shop", "SELECT COUNT(*) AS n FROM t").await.json()["result"][0]["results"][0]["n"].as_u64().unwrap();
        if n > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(n, 300_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_at_any_moment_leaves_a_whole_database_or_none() {
    let hearth = Hearth::start().await;
    let create = format!("{ACCOUNT}/d1/database");
    for i in 0..60 {
        let mut wire = hearth.connect().await;
        wire.send(request("POST", &create, &owner(), format!(r#"{{"name":"gone-{i}"}}"#).as_bytes())).await;
        tokio::time::sleep(Duration::from_micros(i * 100)).await;
        drop(wire);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for i in 0..60 {
        let found = hearth.call("GET", &format!("{create}/gone-{i}"), "").await.status;
        // What is not there can be made; half a database would be in the way.
        let again = hearth.call("POST", &create, format!(r#"{{"name":"gone-{i}"}}"#)).await;
        let expected = if found == 200 { 409 } else { 200 };
        assert_eq!(again.status, expected, "gone-{i}, {found}: {}", again.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_its_answer_is_given_up() {
    let hearth = Hearth::start_with(|config| {
        config.idle_timeout = Duration::from_millis(500);
        config.connections_max = 1;
    })
    .await;
    let body = r#"{"sql":"SELECT hex(zeroblob(900000)) a, hex(zeroblob(900000)) b, hex(zeroblob(900000)) c, hex(zeroblob(900000)) d, hex(zeroblob(900000)) e, hex(zeroblob(900000)) f, hex(zeroblob(900000)) g, hex(zeroblob(900000)) h"}"#;
    let mut wire = hearth.connect().await;
    wire.send(request("POST", &format!("{ACCOUNT}/d1/database"), &owner(), br#"{"name":"shop"}"#)).await;
    assert_eq!(wire.reply().await.unwrap().status, 200);
    wire.send(request("POST", &format!("{ACCOUNT}/d1/database/shop/query"), &owner(), body.as_bytes())).await;
    // The one slot comes free although the client neither reads nor closes.
    for i in 0.. {
        tokio::time::sleep(Duration::from_millis(250)).await;
        if hearth.call("GET", "/health", "").await.status == 200 {
            break;
        }
        assert!(i < 40, "the connection is still held");
    }
    drop(wire);
}
