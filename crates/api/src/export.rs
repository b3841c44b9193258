//! `POST …/export`: one request, repeated until the file is there.

use serde::{Deserialize, Serialize};

pub use crate::import::Status;

/// What to export, or how far an export is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRequest {
    /// `polling` is the only format.
    pub output_format: OutputFormat,
    /// What the file shall hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dump_options: Option<DumpOptions>,
    /// `at_bookmark` of the last answer; missing in the first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_bookmark: Option<String>,
}

/// How the file is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// Asked for until it is ready, then fetched by a link.
    Polling,
}

/// What the file shall hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DumpOptions {
    /// Leave out `CREATE` statements.
    pub no_schema: bool,
    /// Leave out rows.
    pub no_data: bool,
    /// Only these tables; empty is all.
    pub tables: Vec<String>,
}

/// Where an export stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportPoll {
    /// Always true: the question was answered.
    pub success: bool,
    /// Always `export`.
    pub r#type: String,
    /// To be sent back in the next request.
    pub at_bookmark: String,
    /// State.
    pub status: Status,
    /// Lines for the user.
    pub messages: Vec<String>,
    /// The failure, if `status` is `error`.
    pub error: Option<String>,
    /// Set if `status` is `complete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ExportResult>,
}

/// Where the file lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportResult {
    /// A name for the file.
    pub filename: String,
    /// Where to `GET` it, without a credential.
    pub signed_url: String,
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::decode;

    fn check(body: &str, expected: Expect) {
        let shown = match decode::<ExportRequest>(body.as_bytes()) {
            Ok(request) => serde_json::to_string(&request).unwrap(),
            Err(error) => error.message,
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn options_may_be_left_out() {
        check(r#"{"output_format":"polling"}"#, expect![[r#"{"output_format":"polling"}"#]]);
        check(
            r#"{"output_format":"polling","dump_options":{"no_data":true},"current_bookmark":"b"}"#,
            expect![[
                r#"{"output_format":"polling","dump_options":{"no_schema":false,"no_data":true,"tables":[]},"current_bookmark":"b"}"#
            ]],
        );
    }

    #[test]
    fn another_format_is_refused() {
        check(
            r#"{"output_format":"file"}"#,
            expect!["the body has the wrong shape: unknown variant `file`, expected `polling` at line 1 column 23"],
        );
        check("{}", expect!["the body has the wrong shape: missing field `output_format` at line 1 column 2"]);
    }

    #[test]
    fn an_answer_reads_back_the_same() {
        let poll = ExportPoll {
            success: true,
            r#type: "export".to_owned(),
            at_bookmark: "b".to_owned(),
            status: Status::Complete,
            messages: vec!["line".to_owned()],
            error: None,
            result: Some(ExportResult { filename: "f.sql".to_owned(), signed_url: "http://h/exports/x".to_owned() }),
        };
        let text = serde_json::to_string(&poll).unwrap();
        expect![[r#"{"success":true,"type":"export","at_bookmark":"b","status":"complete","messages":["line"],"error":null,"result":{"filename":"f.sql","signed_url":"http://h/exports/x"}}"#]]
            .assert_eq(&text);
        assert_eq!(serde_json::from_str::<ExportPoll>(&text).unwrap(), poll);
    }
}
