//! D1's sessions, as far as one primary without replicas needs them.
//!
//! A session's request carries `first-primary`, `first-unconstrained` or the last bookmark that it got;
//! the answer carries the bookmark of the state that the request saw. Every query is answered by the
//! primary, which is never behind any session, so the token that comes in needs no look.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base::Ctx;

use crate::App;

/// workerd's binding sends and reads this one.
const COMMIT_TOKEN: HeaderName = HeaderName::from_static("x-cf-d1-session-commit-token");
/// The name that REST clients use.
const BOOKMARK: HeaderName = HeaderName::from_static("x-d1-bookmark");

/// The headers that answer a session's request; none for a request outside of a session.
///
/// To be called after the query: a bookmark from before it could be older than what the query saw.
pub(crate) async fn headers(app: &App, ctx: &Ctx, request: &HeaderMap, database: &str) -> Vec<(HeaderName, HeaderValue)> {
    let asked: Vec<_> = [COMMIT_TOKEN, BOOKMARK].into_iter().filter(|name| request.contains_key(name)).collect();
    if asked.is_empty() {
        return Vec::new();
    }
    // The query has been answered; a database that was deleted meanwhile has no bookmark any more.
    let Ok(info) = app.d1.get(ctx, database).await else { return Vec::new() };
    let Ok(bookmark) = HeaderValue::from_str(&app.d1.bookmark(info.id)) else { return Vec::new() };
    asked.into_iter().map(|name| (name, bookmark.clone())).collect()
}
