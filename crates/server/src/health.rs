//! `GET /health`: whether the server answers. It says nothing else, as it asks for no credential.

use base::Result;

use crate::{answer::Answer, call::Call};

#[expect(clippy::unused_async, reason = "a handler")]
pub(crate) async fn get(_: Call) -> Result<Answer> {
    Ok(Answer::json(br#"{"ok":true}"#.to_vec()))
}
