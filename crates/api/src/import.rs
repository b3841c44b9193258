//! `POST …/import`: three actions, and the object that wrangler polls.

use serde::{Deserialize, Serialize};

/// What the client wants of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum ImportRequest {
    /// Step 1: has a file with this digest been sent already?
    Init {
        /// MD5 of the file, lower-case hex.
        etag: String,
    },
    /// Step 3: run the uploaded file.
    Ingest {
        /// As `init` gave it.
        filename: String,
        /// MD5 of the file, lower-case hex.
        etag: String,
    },
    /// Step 4: how far is it?
    Poll {
        /// `at_bookmark` of the last answer.
        current_bookmark: String,
    },
}

/// Answer to `init` if the file must be sent. wrangler decides by the presence of `upload_url`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportUpload {
    /// Where to `PUT` the file, without a credential.
    pub upload_url: String,
    /// To be sent back in `ingest`.
    pub filename: String,
}

/// Where an import stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportPoll {
    /// Always true: the question was answered. `status` says how the import fares.
    pub success: bool,
    /// Always `import`.
    pub r#type: String,
    /// To be sent back in `poll`.
    pub at_bookmark: String,
    /// State.
    pub status: Status,
    /// Lines for the user. Never left out: wrangler loops over it.
    pub messages: Vec<String>,
    /// For wrangler: the failure, if `status` is `error`.
    pub errors: Vec<String>,
    /// For the SDK: the same failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Set if `status` is `complete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ImportResult>,
}

/// State of an import or export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Runs.
    Active,
    /// Done.
    Complete,
    /// Failed; the database is as it was.
    Error,
}

/// What an import did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportResult {
    /// Bookmark after the import.
    pub final_bookmark: String,
    /// Statements run.
    pub num_queries: u64,
    /// Sums over all statements.
    pub meta: ImportMeta,
}

/// Figures of an import. wrangler reads `duration`, `size_after` and both row counts without looking whether they are there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportMeta {
    /// What served it.
    pub served_by: String,
    /// Milliseconds.
    pub duration: f64,
    /// Rows changed.
    pub changes: u64,
    /// Last rowid inserted.
    pub last_row_id: i64,
    /// Whether the database changed.
    pub changed_db: bool,
    /// Bytes of the database afterwards.
    pub size_after: u64,
    /// Rows scanned.
    pub rows_read: u64,
    /// Rows and index entries written.
    pub rows_written: u64,
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::decode;

    fn check(body: &str, expected: Expect) {
        let shown = match decode::<ImportRequest>(body.as_bytes()) {
            Ok(request) => format!("{request:?}"),
            Err(error) => error.message,
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn the_three_actions_are_read_and_others_refused() {
        check(r#"{"action":"init","etag":"e"}"#, expect![[r#"Init { etag: "e" }"#]]);
        check(r#"{"action":"ingest","filename":"f","etag":"e"}"#, expect![[r#"Ingest { filename: "f", etag: "e" }"#]]);
        check(r#"{"action":"poll","current_bookmark":"b"}"#, expect![[r#"Poll { current_bookmark: "b" }"#]]);
        check(r#"{"action":"poll"}"#, expect!["the body has the wrong shape: missing field `current_bookmark`"]);
        check(
            r#"{"action":"stop"}"#,
            expect!["the body has the wrong shape: unknown variant `stop`, expected one of `init`, `ingest`, `poll` at line 1 column 16"],
        );
        check("{}", expect!["the body has the wrong shape: missing field `action` at line 1 column 2"]);
    }

    #[test]
    fn a_poll_always_carries_its_lists() {
        let poll = ImportPoll {
            success: true,
            r#type: "import".to_owned(),
            at_bookmark: "b".to_owned(),
            status: Status::Active,
            messages: Vec::new(),
            errors: Vec::new(),
            error: None,
            result: None,
        };
        expect![[r#"{"success":true,"type":"import","at_bookmark":"b","status":"active","messages":[],"errors":[]}"#]]
            .assert_eq(&serde_json::to_string(&poll).unwrap());
        assert_eq!(serde_json::from_str::<ImportPoll>(&serde_json::to_string(&poll).unwrap()).unwrap(), poll);
    }
}
