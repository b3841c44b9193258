//! From bytes to a typed body, with an error that says where and what.

use base::{Code, Error, Result};
use serde::de::DeserializeOwned;

/// Characters of a parser's message that are passed on. The parser quotes what it met, and that may
/// be a string of megabytes.
const MESSAGE_CHARS_MAX: usize = 300;

/// Reads a JSON body, whatever its `Content-Type` said.
///
/// # Errors
/// [`Code::BadRequest`], with line and column, if `bytes` is empty, no JSON, or of another shape.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::new(Code::BadRequest, "the body is empty (expected a JSON document)"));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let what = if error.is_data() { "the body has the wrong shape" } else { "the body is not valid JSON" };
        Error::new(Code::BadRequest, format!("{what}: {}", shorten(&error.to_string())))
    })
}

/// `text`, cut in the middle if it is long: the place of the error stands at the end.
fn shorten(text: &str) -> String {
    let n = text.chars().count();
    if n <= MESSAGE_CHARS_MAX {
        return text.to_owned();
    }
    let half = MESSAGE_CHARS_MAX / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(n - half).collect();
    format!("{head} […] {tail}")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Named {
        #[expect(dead_code, reason = "only the error is looked at")]
        name: String,
    }

    fn check(body: &str, expected: Expect) {
        expected.assert_eq(&decode::<Named>(body.as_bytes()).unwrap_err().message);
    }

    #[test]
    fn an_error_names_the_place_and_what_was_expected() {
        check("", expect!["the body is empty (expected a JSON document)"]);
        check(" \r\n", expect!["the body is empty (expected a JSON document)"]);
        check("{", expect!["the body is not valid JSON: EOF while parsing an object at line 1 column 1"]);
        check("{\"name\":1}", expect!["the body has the wrong shape: invalid type: integer `1`, expected a string at line 1 column 9"]);
        check("{}", expect!["the body has the wrong shape: missing field `name` at line 1 column 2"]);
        check("{\"name\":\"a\"} x", expect!["the body is not valid JSON: trailing characters at line 1 column 14"]);
    }

    #[test]
    fn a_quoted_value_of_any_length_leaves_the_message_short() {
        let body = format!("\"{}\"", "x".repeat(1_000_000));
        let message = decode::<Named>(body.as_bytes()).unwrap_err().message;
        assert!(message.len() < 400 && message.ends_with("at line 1 column 1000002"), "{message}");
    }
}
