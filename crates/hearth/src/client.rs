//! The REST client of the commands: Cloudflare's v4 envelope over plain HTTP.

use std::{
    fs::File,
    io::{self, Read, Write},
    time::Duration,
};

use api::envelope::Envelope;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use ureq::{Agent, Body, SendBody, http::Response};

use crate::{failure::Failure, progress::Progress, target::Target};

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time until an answer begins. The server's own limits are 30 s in the queue and 30 s of work; a
/// profile may allow more, so this only ends a wait that nothing will end.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Time that a transfer may stand still.
const TRANSFER_IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes of a JSON answer. The widest profile allows results of 1 GB.
const ANSWER_BYTES_MAX: u64 = 1_100_000_000;
/// Bytes of a file that is downloaded.
const DOWNLOAD_BYTES_MAX: u64 = 1 << 44;
/// Bytes that one step of a download takes.
const COPY_BUFFER_BYTES: usize = 64 * 1_024;
/// Pages of a list that are read before the server is taken to be at fault.
const PAGES_MAX: u64 = 100_000;
/// Items asked for on a page.
const PAGE_ITEMS: usize = 100;
/// What stays as it is in a path segment: the unreserved characters of RFC 3986.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A server, ready to be called.
pub(crate) struct Client {
    agent: Agent,
    target: Target,
}

impl Client {
    /// Sends nothing yet.
    pub(crate) fn new(target: Target) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // A proxy of the environment is for the internet; Hearth is on this machine or near it.
            .proxy(None)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            .user_agent(concat!("hearth/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Self { agent, target }
    }

    /// The server and the key.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// `GET /client/v4/accounts/{account}{path}`; returns `result`.
    ///
    /// # Errors
    /// If the server cannot be reached or answers with an error.
    pub(crate) fn get(&self, path: &str) -> Result<Value, Failure> {
        let url = self.account_url(path);
        self.result(self.agent.get(&url).header("authorization", self.bearer()).call())
    }

    /// `POST` of JSON; returns `result`.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, Failure> {
        let url = self.account_url(path);
        self.result(self.send_json(&url, body))
    }

    /// `DELETE`; returns `result`.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn delete(&self, path: &str) -> Result<Value, Failure> {
        let url = self.account_url(path);
        self.result(self.agent.delete(&url).header("authorization", self.bearer()).call())
    }

    /// Whether `GET` of `path` is answered with 404.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub(crate) fn is_missing(&self, path: &str) -> Result<bool, Failure> {
        let got = self.agent.get(self.account_url(path)).header("authorization", self.bearer()).call();
        got.map(|response| response.status() == 404).map_err(|error| self.unreachable(&error))
    }

    /// All pages of a list.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn list(&self, path: &str) -> Result<Vec<Value>, Failure> {
        let mut items = Vec::new();
        for page in 1..=PAGES_MAX {
            let mut more: Vec<Value> = typed(self.get(&format!("{path}?page={page}&per_page={PAGE_ITEMS}"))?)?;
            // Only an empty page is certainly the last: a server may give fewer items than were asked for.
            if more.is_empty() {
                return Ok(items);
            }
            items.append(&mut more);
        }
        Err(Failure::new(format!("{} answered more than {PAGES_MAX} pages", self.target.url)))
    }

    /// `POST /client/v4/graphql`, which has no envelope; returns `data`.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn graphql(&self, body: &Value) -> Result<Value, Failure> {
        let url = format!("{}/client/v4/graphql", self.target.url);
        let mut response = self.send_json(&url, body).map_err(|error| self.unreachable(&error))?;
        let body = self.read(&mut response)?;
        if response.status() != 200 {
            return Err(self.refusal(&response, &body));
        }
        let mut answer: Value = serde_json::from_slice(&body).map_err(|_| self.not_hearth(&response, &body))?;
        match answer.get_mut("data").map(Value::take) {
            Some(data) if !data.is_null() => Ok(data),
            _ => Err(Failure::new(format!("the figures could not be had: {}", answer["errors"]))),
        }
    }

    /// `PUT` of a file to a signed link, without the key; returns the `etag` that the server computed.
    ///
    /// # Errors
    /// As [`Self::get`], and if the answer is not 200 with an `etag`.
    pub(crate) fn upload(&self, link: &str, file: File, bytes: u64, progress: &Progress) -> Result<String, Failure> {
        let mut reader = Counting { inner: file, progress };
        let sent = self
            .agent
            .put(link)
            .config()
            .timeout_per_write(Some(TRANSFER_IDLE_TIMEOUT))
            .build()
            .header("content-length", bytes)
            .header("content-type", "application/octet-stream")
            .send(SendBody::from_reader(&mut reader));
        let mut response = sent.map_err(|error| self.unreachable(&error))?;
        if response.status() != 200 {
            let body = self.read(&mut response)?;
            return Err(self.refusal(&response, &body));
        }
        let etag = response.headers().get("etag").and_then(|etag| etag.to_str().ok()).map(|etag| etag.trim_matches('"').to_owned());
        etag.ok_or_else(|| Failure::new("the upload's answer has no `etag` header, so it is not known whether the file arrived"))
    }

    /// `GET` of a signed link, without the key, into `out`; returns the bytes written.
    ///
    /// # Errors
    /// As [`Self::get`], and if `out` cannot be written or the file ends early.
    pub(crate) fn download(&self, link: &str, out: &mut dyn Write, progress: &Progress) -> Result<u64, Failure> {
        let got = self.agent.get(link).config().timeout_per_read(Some(TRANSFER_IDLE_TIMEOUT)).build().call();
        let mut response = got.map_err(|error| self.unreachable(&error))?;
        if response.status() != 200 {
            let body = self.read(&mut response)?;
            return Err(self.refusal(&response, &body));
        }
        let expected = response.body().content_length();
        progress.set_total(expected);
        let mut reader = response.body_mut().with_config().limit(DOWNLOAD_BYTES_MAX).reader();
        let mut buffer = vec![0; COPY_BUFFER_BYTES];
        let mut written = 0;
        loop {
            let n = reader.read(&mut buffer).map_err(|error| Failure::io("the download broke off", &error))?;
            if n == 0 {
                break;
            }
            out.write_all(&buffer[..n]).map_err(|error| Failure::output("the download", &error))?;
            written += n as u64;
            progress.advance(n as u64);
        }
        if expected.is_some_and(|expected| expected != written) {
            return Err(Failure::new(format!("the download broke off after {written} bytes (expected {})", expected.unwrap_or_default())));
        }
        Ok(written)
    }

    fn account_url(&self, path: &str) -> String {
        format!("{}/client/v4/accounts/{}{path}", self.target.url, self.target.account)
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.target.key.reveal())
    }

    fn send_json(&self, url: &str, body: &impl Serialize) -> Result<Response<Body>, ureq::Error> {
        let body = serde_json::to_vec(body).expect("wire types have text keys and always serialise");
        self.agent.post(url).header("authorization", self.bearer()).content_type("application/json").send(body)
    }

    fn read(&self, response: &mut Response<Body>) -> Result<Vec<u8>, Failure> {
        let read = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        read.map_err(|error| Failure::new(format!("the answer of {} broke off: {error}", self.target.url)))
    }

    fn result(&self, sent: Result<Response<Body>, ureq::Error>) -> Result<Value, Failure> {
        let mut response = sent.map_err(|error| self.unreachable(&error))?;
        let body = self.read(&mut response)?;
        match serde_json::from_slice::<Envelope<Value>>(&body) {
            Ok(envelope) if envelope.success => Ok(envelope.result),
            _ => Err(self.refusal(&response, &body)),
        }
    }

    /// An answer that says no, in the server's words, with what can be done about it.
    fn refusal(&self, response: &Response<Body>, body: &[u8]) -> Failure {
        let Ok(envelope) = serde_json::from_slice::<Envelope<Value>>(body) else {
            return self.not_hearth(response, body);
        };
        let lines: Vec<_> = envelope.errors.iter().map(|error| format!("{} [code: {}]", error.message, error.code)).collect();
        let failure = Failure::new(if lines.is_empty() { format!("the server refused ({})", response.status()) } else { lines.join("; ") });
        let retryable = envelope.retryable == Some(true);
        let is = |code: base::Code| envelope.errors.iter().any(|error| error.code == api::error::entry(code).code);
        match response.status().as_u16() {
            404 if is(base::Code::DatabaseNotFound) => failure.hint("`hearth d1 list` shows the databases that are there"),
            404 if is(base::Code::TokenNotFound) => failure.hint("`hearth token list` shows the tokens and their ids"),
            404 => failure.hint("if the server's account is not the default one, set HEARTH_ACCOUNT_ID"),
            401 => failure.hint("the key is not this server's: check HEARTH_KEY, or unset it to use the owner.key of --data"),
            403 => failure.hint("use the owner's key, or make a token with that scope: `hearth token create --name NAME --scope SCOPE`"),
            _ if retryable => failure.hint("nothing was changed; the same command may succeed if it is run again"),
            _ => failure,
        }
    }

    fn not_hearth(&self, response: &Response<Body>, body: &[u8]) -> Failure {
        let start: String = String::from_utf8_lossy(body).chars().take(100).map(|c| if c.is_control() { ' ' } else { c }).collect();
        Failure::new(format!("{} gave no answer of Hearth's (got status {}: `{start}`)", self.target.url, response.status()))
            .hint("another program may listen there: check the address")
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        let url = &self.target.url;
        match error {
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Failure::new(format!("no server answers at {url}"))
                    .hint("start one with `hearth serve`, or name another with --url or HEARTH_URL")
            }
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
                Failure::new(format!("{url} cannot be reached: {error}")).hint("check --url or HEARTH_URL")
            }
            error => Failure::new(format!("the call of {url} failed: {error}"))
                .hint("it is not known whether the server did it; look before running the command again"),
        }
    }
}

/// A `result` as a type of the wire.
///
/// # Errors
/// If it has another shape: the server is of another release.
pub(crate) fn typed<T: DeserializeOwned>(result: Value) -> Result<T, Failure> {
    serde_json::from_value(result).map_err(|error| {
        Failure::new(format!("the server's answer has an unexpected shape: {error}"))
            .hint("client and server may be of different releases: compare `hearth --version` on both")
    })
}

/// `text` as one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// A reader that reports what passes through it.
struct Counting<'a> {
    inner: File,
    progress: &'a Progress,
}

impl Read for Counting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.progress.advance(n as u64);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_segment_keeps_what_a_path_would_read_otherwise() {
        assert_eq!(super::segment("a-b_c.d~1"), "a-b_c.d~1");
        assert_eq!(super::segment("a/b?c#d%e é"), "a%2Fb%3Fc%23d%25e%20%C3%A9");
    }
}
