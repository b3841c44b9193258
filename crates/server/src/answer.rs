//! From a handler's outcome to a response: status, headers, and the error's form on each face.

use api::{
    envelope::{self, Empty},
    error::ErrorBody,
};
use axum::{
    body::Body,
    http::{
        HeaderName, HeaderValue, Response, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
};
use base::{Error, Kind, Result};

/// The date of the contract that these answers follow.
const API_VERSION: HeaderValue = HeaderValue::from_static("2026-08-01");

/// Who reads the answer, which decides how errors look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    /// Clients of the REST API: the v4 envelope, with this result on failure.
    Rest(Empty),
    /// The same, on routes that tell who asks; a bad credential has this code there.
    Identity(u32),
    /// The module behind a Worker's binding. It parses a body as JSON only under this exact content type.
    Binding,
}

impl Face {
    fn content_type(self) -> HeaderValue {
        match self {
            Self::Rest(_) | Self::Identity(_) => HeaderValue::from_static("application/json; charset=UTF-8"),
            Self::Binding => HeaderValue::from_static("application/json"),
        }
    }
}

/// What a handler answers.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// Beside the face's own; a `content-type` here wins over the face's.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Body,
    /// The error that the body tells, for the log and the headers.
    pub(crate) error: Option<Error>,
}

impl Answer {
    /// A JSON body with status 200.
    pub(crate) fn json(body: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, headers: Vec::new(), body: Body::from(body), error: None }
    }

    /// An error whose form is already made.
    pub(crate) fn failed(error: Error, body: Vec<u8>) -> Self {
        let status = StatusCode::from_u16(api::error::entry(error.code).status).expect("the error table holds valid statuses");
        Self { status, headers: Vec::new(), body: Body::from(body), error: Some(error) }
    }

    /// An error in the face's usual form.
    pub(crate) fn error(error: Error, face: Face) -> Self {
        let body = match face {
            Face::Rest(empty) => envelope::failure(&error, empty),
            Face::Identity(code) if error.kind() == Kind::Unauthenticated => {
                envelope::failure_of(ErrorBody { code, ..ErrorBody::from(&error) }, error.retryable, Empty::Null)
            }
            Face::Identity(_) => envelope::failure(&error, Empty::Null),
            Face::Binding => api::binding::failure(&error, false),
        };
        Self::failed(error, body)
    }

    /// The same answer with one more header.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same answer with more headers.
    pub(crate) fn with_headers(mut self, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        self.headers.extend(headers);
        self
    }

    /// The response, with the headers that every answer has.
    pub(crate) fn finish(self, face: Face, request_id: &str) -> Response<Body> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, face.content_type());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert("api-version", API_VERSION);
        // Hex digits are valid in a header; an id of another form is left out rather than refused.
        if let Ok(id) = HeaderValue::from_str(request_id) {
            headers.insert("x-request-id", id);
        }
        if let Ok(ray) = HeaderValue::from_str(&format!("{}-HTH", &request_id[..request_id.len().min(16)])) {
            headers.insert("cf-ray", ray);
        }
        if let Some(error) = &self.error {
            // The SDK sends 408, 409, 429 and 5xx again on its own unless it is told not to.
            headers.insert("x-should-retry", HeaderValue::from_static(if error.retryable { "true" } else { "false" }));
        }
        for (name, value) in self.headers {
            headers.insert(name, value);
        }
        response
    }
}

/// Bytes of JSON from which on writing it is moved off the threads that serve connections:
/// about a millisecond of work.
pub(crate) const HEAVY_BYTES: usize = 256 * 1024;

/// Runs `work` here if it is light, else on a thread that may block.
///
/// # Errors
/// `work`'s own; [`base::Code::Internal`] if it panics.
pub(crate) async fn offload<T: Send + 'static>(heavy: bool, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    if !heavy {
        return work();
    }
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Error::internal(format!("conversion failed: {error}"))))
}

#[cfg(test)]
mod tests {
    use base::Code;

    use super::*;

    fn header(answer: Answer, face: Face, name: &str) -> Option<String> {
        answer.finish(face, "0123456789abcdef0123456789abcdef").headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn each_face_has_its_content_type() {
        let rest = Face::Rest(Empty::Null);
        assert_eq!(header(Answer::json(vec![]), rest, "content-type").unwrap(), "application/json; charset=UTF-8");
        assert_eq!(header(Answer::json(vec![]), Face::Binding, "content-type").unwrap(), "application/json");
        let own = Answer::json(vec![]).with_header(CONTENT_TYPE, HeaderValue::from_static("application/sql"));
        assert_eq!(header(own, rest, "content-type").unwrap(), "application/sql");
    }

    #[test]
    fn only_errors_say_whether_to_retry() {
        let face = Face::Rest(Empty::Null);
        let retry = |code| header(Answer::error(Error::new(code, ""), face), face, "x-should-retry");
        assert_eq!(retry(Code::DatabaseExists).unwrap(), "false");
        assert_eq!(retry(Code::Internal).unwrap(), "false");
        assert_eq!(retry(Code::Overloaded).unwrap(), "true");
        assert_eq!(header(Answer::json(vec![]), face, "x-should-retry"), None);
    }

    #[test]
    fn every_answer_can_be_traced() {
        let face = Face::Binding;
        assert_eq!(header(Answer::json(vec![]), face, "cf-ray").unwrap(), "0123456789abcdef-HTH");
        assert_eq!(header(Answer::json(vec![]), face, "x-request-id").unwrap(), "0123456789abcdef0123456789abcdef");
    }

    #[tokio::test]
    async fn a_panic_in_moved_work_is_an_internal_error() {
        let error = offload::<()>(true, || panic!("boom")).await.unwrap_err();
        assert_eq!(error.code, Code::Internal);
        assert!(!error.message.contains("boom"));
    }
}
