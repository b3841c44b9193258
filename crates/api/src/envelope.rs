//! Cloudflare's v4 envelope: `success`, `errors`, `messages`, `result`, and `result_info` on lists.
//!
//! All four keys are always sent; wrangler needs two of them, the SDK's types promise all.

use base::Error;
use serde::{Deserialize, Serialize};

use crate::error::ErrorBody;

/// An answer as a client reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// Whether the call did what it was asked.
    pub success: bool,
    /// Why not.
    #[serde(default)]
    pub errors: Vec<ErrorBody>,
    /// Remarks. Cloudflare sends strings or objects; Hearth sends none.
    #[serde(default)]
    pub messages: Vec<serde_json::Value>,
    /// The answer; null or empty on failure.
    pub result: T,
    /// Where in a list this page lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_info: Option<ResultInfo>,
    /// On failure: whether the same request may succeed if it is sent again unchanged. `true` only
    /// where the request was refused before it changed anything, so a write is safe to send again
    /// too. Hearth's own; it stands beside `errors` because wrangler prints whatever is in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

/// Where in a list a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultInfo {
    /// From 1.
    pub page: u64,
    /// Items asked for.
    pub per_page: u64,
    /// Items on this page.
    pub count: u64,
    /// Items on all pages.
    pub total_count: u64,
    /// Pages in all.
    pub total_pages: u64,
}

impl ResultInfo {
    /// The figures of a page; `per_page` of 0 counts as 1.
    pub fn new(page: u64, per_page: u64, count: usize, total_count: u64) -> Self {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        Self { page, per_page, count, total_count, total_pages: total_count.div_ceil(per_page.max(1)) }
    }
}

/// What `result` holds when there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// `null`: everywhere else.
    Null,
    /// `[]`: `/query` and `/raw`, as D1 answers them.
    List,
}

/// A successful answer.
pub fn success<T: Serialize>(result: T) -> Vec<u8> {
    to_vec(&Envelope { success: true, errors: Vec::new(), messages: Vec::new(), result, result_info: None, retryable: None })
}

/// A successful page of a list.
pub fn page<T: Serialize>(result: T, info: ResultInfo) -> Vec<u8> {
    to_vec(&Envelope { success: true, errors: Vec::new(), messages: Vec::new(), result, result_info: Some(info), retryable: None })
}

/// A successful answer whose result `write` appends as JSON.
pub fn success_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(br#"{"success":true,"errors":[],"messages":[],"result":"#);
    write(out);
    out.push(b'}');
}

/// A failure.
pub fn failure(error: &Error, empty: Empty) -> Vec<u8> {
    failure_of(ErrorBody::from(error), error.retryable, empty)
}

/// A failure whose error is already in its outside form.
pub fn failure_of(error: ErrorBody, retryable: bool, empty: Empty) -> Vec<u8> {
    let (errors, retryable) = (vec![error], Some(retryable));
    match empty {
        Empty::Null => to_vec(&Envelope { success: false, errors, messages: Vec::new(), result: (), result_info: None, retryable }),
        Empty::List => to_vec(&Envelope { success: false, errors, messages: Vec::new(), result: [(); 0], result_info: None, retryable }),
    }
}

/// `value` as JSON.
pub fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("wire types have string keys and write to memory")
}

#[cfg(test)]
mod tests {
    use base::Code;
    use expect_test::expect;

    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_success_has_all_four_keys() {
        expect![[r#"{"success":true,"errors":[],"messages":[],"result":{"a":1}}"#]].assert_eq(&text(success(serde_json::json!({"a": 1}))));
        let mut out = Vec::new();
        success_with(&mut out, |out| out.extend_from_slice(b"[]"));
        expect![[r#"{"success":true,"errors":[],"messages":[],"result":[]}"#]].assert_eq(&text(out));
    }

    #[test]
    fn a_page_says_where_it_lies() {
        expect![[r#"{"success":true,"errors":[],"messages":[],"result":[7],"result_info":{"page":2,"per_page":10,"count":1,"total_count":11,"total_pages":2}}"#]]
            .assert_eq(&text(page([7], ResultInfo::new(2, 10, 1, 11))));
    }

    #[test]
    fn a_failure_has_a_null_or_an_empty_result() {
        let error = Error::new(Code::Sql, "no such table: nope: SQLITE_ERROR");
        expect![[r#"{"success":false,"errors":[{"code":7500,"message":"no such table: nope: SQLITE_ERROR"}],"messages":[],"result":null,"retryable":false}"#]]
            .assert_eq(&text(failure(&error, Empty::Null)));
        expect![[r#"{"success":false,"errors":[{"code":7500,"message":"no such table: nope: SQLITE_ERROR"}],"messages":[],"result":[],"retryable":false}"#]]
            .assert_eq(&text(failure(&error, Empty::List)));
    }

    #[test]
    fn a_failure_never_shows_what_is_for_the_operator() {
        let error = Error::internal("/var/secret is missing");
        assert!(!text(failure(&error, Empty::Null)).contains("/var"));
    }
}
