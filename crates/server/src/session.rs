//! D1's sessions, as far as one primary without replicas needs them.
//!
//! A session's request carries `first-primary`, `first-unconstrained` or the last bookmark that it got;
//! the answer carries the bookmark of the state that the request saw. Every query is answered by the
//! primary, which is never behind any session, so the token that comes in needs no look.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use d1::Bookmark;

/// workerd's binding sends and reads this one.
const COMMIT_TOKEN: HeaderName = HeaderName::from_static("x-cf-d1-session-commit-token");
/// The name that REST clients use.
const BOOKMARK: HeaderName = HeaderName::from_static("x-d1-bookmark");

/// The headers that answer a session's request; none for a request outside of a session.
pub(crate) fn headers(request: &HeaderMap, bookmark: Bookmark) -> Vec<(HeaderName, HeaderValue)> {
    let asked = [COMMIT_TOKEN, BOOKMARK].into_iter().filter(|name| request.contains_key(name));
    let value = |name| Some((name, HeaderValue::from_str(&bookmark.to_string()).ok()?));
    asked.filter_map(value).collect()
}
