//! Import and export, as wrangler does them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{ACCOUNT, Hearth, request};

fn path(name: &str) -> String {
    format!("{ACCOUNT}/d1/database/shop/{name}")
}

/// The path of a link, whatever it starts with.
fn path_of(url: &Value) -> String {
    let url = url.as_str().unwrap();
    url.strip_prefix("http://test").unwrap_or_else(|| panic!("{url} does not lead back to where it was asked for")).to_owned()
}

async fn init(hearth: &Hearth, etag: &str) -> Value {
    let reply = hearth.call("POST", &path("import"), json!({"action": "init", "etag": etag}).to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["result"].clone()
}

/// Polls until the import is no longer active.
async fn settle(hearth: &Hearth, mut state: Value) -> Value {
    while state["status"] == "active" {
        let body = json!({"action": "poll", "current_bookmark": state["at_bookmark"]}).to_string();
        state = hearth.call("POST", &path("import"), body).await.json()["result"].clone();
    }
    state
}

/// `file` and its MD5, which `md5sum` gave.
const FILE: &str = "CREATE TABLE t(a);\nINSERT INTO t VALUES('x');\n";
const FILE_MD5: &str = "1c8935a803b6adb78091affba837fafd";

#[tokio::test]
async fn a_file_is_imported_and_exported() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let upload = init(&hearth, FILE_MD5).await;
    let put = hearth.call_as(None, "PUT", &path_of(&upload["upload_url"]), FILE).await;
    assert_eq!((put.status, put.header("etag")), (200, Some(format!("\"{FILE_MD5}\"").as_str())));
    let body = json!({"action": "ingest", "filename": upload["filename"], "etag": FILE_MD5}).to_string();
    let state = hearth.call("POST", &path("import"), body).await.json()["result"].clone();
    let state = settle(&hearth, state).await;
    assert_eq!((&state["success"], &state["type"], &state["status"]), (&json!(true), &json!("import"), &json!("complete")), "{state}");
    assert!(state["messages"].is_array() && state["errors"] == json!([]));
    for figure in ["duration", "rows_read", "rows_written", "size_after"] {
        assert!(state["result"]["meta"][figure].is_number(), "{figure}");
    }
    let rows = hearth.sql("shop", "SELECT a FROM t").await.json();
    assert_eq!(rows["result"][0]["results"], json!([{"a": "x"}]));

    let mut body = json!({"output_format": "polling", "dump_options": {"no_schema": false, "no_data": false, "tables": []}});
    let export = loop {
        let state = hearth.call("POST", &path("export"), body.to_string()).await.json()["result"].clone();
        if state["status"] != "active" {
            break state;
        }
        body["current_bookmark"] = state["at_bookmark"].clone();
    };
    assert_eq!((&export["type"], &export["status"], &export["error"]), (&json!("export"), &json!("complete"), &Value::Null), "{export}");
    let file = hearth.call_as(None, "GET", &path_of(&export["result"]["signed_url"]), "").await;
    assert_eq!((file.status, file.header("content-type")), (200, Some("application/sql")));
    assert_eq!(file.header("content-length"), Some(file.body.len().to_string().as_str()));
    assert!(file.text().starts_with("PRAGMA defer_foreign_keys=TRUE;") && file.text().contains("INSERT INTO"), "{}", file.text());
}

#[tokio::test]
async fn a_link_that_was_never_given_is_refused() {
    let hearth = Hearth::start().await;
    for link in ["not-a-link", &"0".repeat(64), "..%2F..%2Fetc%2Fpasswd", "%00"] {
        for (method, kind) in [("PUT", "uploads"), ("GET", "exports")] {
            let reply = hearth.call_as(None, method, &format!("/{kind}/{link}"), "data").await;
            assert_eq!((reply.status, reply.error().0), (404, 7491), "{kind} {link}: {}", reply.text());
            assert!(!reply.text().contains(link));
        }
    }
}

#[tokio::test]
async fn a_client_that_sends_a_large_file_to_a_dead_link_sees_why_it_is_refused() {
    let hearth = Hearth::start().await;
    let reply = hearth.call_as(None, "PUT", "/uploads/nothing", vec![b'-'; 20_000_000]).await;
    assert_eq!((reply.status, reply.error().0), (404, 7491));
}

#[tokio::test]
async fn a_half_sent_upload_is_dropped_and_its_link_stays_good() {
    let hearth = Hearth::start_with(|config| config.idle_timeout = Duration::from_millis(300)).await;
    hearth.database("shop").await;
    let link = path_of(&init(&hearth, FILE_MD5).await["upload_url"]);
    let whole = request("PUT", &link, "", FILE.as_bytes());
    let mut wire = hearth.connect().await;
    wire.send(&whole[..whole.len() - 5]).await;
    assert_eq!(wire.reply().await.unwrap().status, 400);
    let mut wire = hearth.connect().await;
    wire.send(&whole[..whole.len() - 5]).await;
    drop(wire);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(hearth.call_as(None, "PUT", &link, FILE).await.status, 200);
}

#[tokio::test]
async fn links_lead_to_the_public_url_if_there_is_one() {
    let hearth = Hearth::start_with(|config| config.public_url = Some("https://data.example.org/".to_owned())).await;
    hearth.database("shop").await;
    let url = init(&hearth, FILE_MD5).await["upload_url"].as_str().unwrap().to_owned();
    assert!(url.starts_with("https://data.example.org/uploads/"), "{url}");
}

#[tokio::test]
async fn malformed_steps_are_refused() {
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    for (name, body) in [
        ("import", json!({})),
        ("import", json!({"action": "cancel"})),
        ("import", json!({"action": "init"})),
        ("export", json!({"output_format": "file"})),
        ("export", json!({"output_format": "polling", "dump_options": {"tables": "t"}})),
    ] {
        let reply = hearth.call("POST", &path(name), body.to_string()).await;
        assert_eq!((reply.status, reply.error().0), (400, 7400), "{name} {body}");
    }
}
