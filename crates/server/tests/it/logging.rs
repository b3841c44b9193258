//! What the log says, and what it must never say.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

use tracing::{Event, Metadata, Subscriber, field::Visit, span};

use crate::harness::{ACCOUNT, Hearth, OWNER};

/// Keeps every event's fields as text.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Kept {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut Line(&mut self.0.lock().unwrap()));
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut Line(&mut self.0.lock().unwrap()));
    }
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut kept = self.0.lock().unwrap();
        event.record(&mut Line(&mut kept));
        kept.push('\n');
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn the_log_names_requests_and_holds_no_secret() {
    let kept = Kept::default();
    // One thread runs this whole test, so the subscriber of this thread sees all of it.
    let _guard = tracing::subscriber::set_default(kept.clone());
    let hearth = Hearth::start().await;
    hearth.database("shop").await;
    let token = hearth.token(&["d1:*:write"]).await;
    let query = format!("{ACCOUNT}/d1/database/shop/query");
    hearth.call_as(Some(&token), "POST", &query, r#"{"sql":"SELECT ?","params":["a-private-value"]}"#).await;
    hearth.call_as(Some(&token), "POST", &query, r#"{"sql":"SELECT a_private_name"}"#).await;
    hearth.call_as(Some("a-mistyped-key"), "GET", "/client/v4/user", "").await;
    hearth.call_as(None, "GET", "/exports/a-private-link", "").await;
    hearth.call_as(None, "GET", "/somewhere/a-private-path?token=a-private-query", "").await;
    hearth.call_with("MF-URL: http://d1/query\r\n", "POST", &format!("/bindings/d1/shop?token={token}"), r#"{"sql":"SELECT 1"}"#).await;
    let mut wire = hearth.connect().await;
    wire.send(format!("GET /a-private-path HTTP/1.1\r\nauthorization: Bearer {token}\r\nno colon\r\n\r\n")).await;
    assert_eq!(wire.reply().await.unwrap().status, 400);
    assert!(wire.is_closed().await);

    let log = kept.0.lock().unwrap().clone();
    for secret in [OWNER, &token, "a-private", "a_private", "a-mistyped"] {
        assert!(!log.contains(secret), "the log holds {secret}:\n{log}");
    }
    for expected in [
        "method=\"POST\" route=\"/client/v4/accounts/{account}/d1/database/{database}/query\" status=200",
        "route=\"/client/v4/user\" status=401",
        "route=\"/exports/{link}\" status=404",
        "route=\"unmatched\" status=404",
        "code=\"Sql\"",
        "a request was refused, as it is no HTTP",
    ] {
        assert!(log.contains(expected), "the log lacks {expected}:\n{log}");
    }
    assert!(log.lines().filter(|line| line.contains("request_id=")).count() >= 8, "{log}");
}
