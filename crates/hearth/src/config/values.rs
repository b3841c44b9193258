//! What each setting may be. An error says what was expected; the caller adds what was got and where from.

use std::str::FromStr;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("expected `text` or `json`".to_owned()),
        }
    }
}

/// `host:port`; the host is looked up when the server binds to it.
pub(super) fn listen(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    if let Some(Ok(_)) = port { Ok(text.to_owned()) } else { Err("expected `host:port`, for example `127.0.0.1:8787`".to_owned()) }
}

/// An address without a trailing slash.
pub(super) fn public_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or_default();
    if rest.is_empty() || rest.starts_with('/') || text.contains(['?', '#', ' ', '@']) {
        return Err("expected `http://host` or `https://host`, without user, query or fragment".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// A number of databases.
pub(super) fn open_databases_max(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=100_000) => Ok(n),
        _ => Err("expected a number from 1 to 100000".to_owned()),
    }
}

/// Text of at most `max` bytes for people to read.
pub(super) fn short_text(text: &str, max: usize) -> Result<String, String> {
    if text.is_empty() || text.len() > max || text.chars().any(char::is_control) {
        return Err(format!("expected 1 to {max} bytes of text without control characters"));
    }
    Ok(text.to_owned())
}

/// A `tracing` filter.
pub(super) fn log_level(text: &str) -> Result<String, String> {
    tracing_subscriber::EnvFilter::builder()
        .parse(text)
        .map(|_| text.to_owned())
        .map_err(|_| "expected error, warn, info, debug, trace or a filter such as `info,d1=debug`".to_owned())
}
