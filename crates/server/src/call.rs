//! What a handler is given: who asks, and every part of the request, decoded.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderMap, Uri, header::HOST, uri::Authority},
};
use base::{Code, Ctx, Error, Result, TokenId};
use percent_encoding::percent_decode;
use serde::de::DeserializeOwned;

use crate::{App, body::Held};

/// Items on a page if the request does not say.
const PER_PAGE_DEFAULT: u64 = 1_000;
/// Items on a page at most.
const PER_PAGE_MAX: u64 = 10_000;

/// One admitted request.
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) ctx: Ctx,
    /// The token that asks; `None` for the owner.
    pub(crate) token: Option<TokenId>,
    /// Captures of the route's path, decoded after the path was split.
    pub(crate) path: Vec<(String, String)>,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    /// What links in answers start with, without a trailing slash.
    pub(crate) origin: String,
    /// The body, of routes that take one into memory.
    pub(crate) body: Held,
    /// The body, of routes that stream it.
    pub(crate) stream: Body,
}

impl Call {
    /// The capture `name` of the route's path.
    pub(crate) fn capture(&self, name: &str) -> &str {
        self.path.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).expect("the route's path has this capture")
    }

    /// The body as JSON, whatever its content type says.
    ///
    /// # Errors
    /// [`Code::BadRequest`].
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        api::decode(&self.body.bytes)
    }
}

/// The decoded pairs of a query string, in order.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Splits, then decodes; `+` is a space.
    ///
    /// # Errors
    /// [`Code::BadRequest`] if a name or value is not UTF-8.
    pub(crate) fn parse(query: Option<&str>) -> Result<Self> {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        });
        decoded.collect::<Result<_>>().map(Self)
    }

    /// The first value of `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every value of `name`.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// `page` and `per_page`, with their defaults. A page past the last is no error: clients that
    /// stop at the first empty page would not stop at an error.
    ///
    /// # Errors
    /// [`Code::BadRequest`] if one is no whole number or out of range.
    pub(crate) fn page(&self) -> Result<(u64, u64)> {
        let page = self.whole("page", 1, 1, u64::from(u32::MAX))?;
        Ok((page, self.whole("per_page", PER_PAGE_DEFAULT, 1, PER_PAGE_MAX)?))
    }

    fn whole(&self, name: &str, default: u64, min: u64, max: u64) -> Result<u64> {
        let Some(text) = self.get(name).filter(|text| !text.is_empty()) else { return Ok(default) };
        text.parse().ok().filter(|value| (min..=max).contains(value)).ok_or_else(|| {
            let shown: String = text.chars().take(32).collect();
            Error::new(Code::BadRequest, format!("`{name}` does not do (got `{shown}`, expected a whole number from {min} to {max})"))
        })
    }
}

fn decode(text: &str) -> Result<String> {
    let spaced = text.replace('+', " ");
    percent_decode(spaced.as_bytes())
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| Error::new(Code::BadRequest, "the query string is not UTF-8 once its percent signs are decoded"))
}

/// What links in answers start with: the configured URL, else what the client called this server by,
/// else the address it listens on.
pub(crate) fn origin(public_url: Option<&str>, uri: &Uri, headers: &HeaderMap, local: std::net::SocketAddr) -> String {
    if let Some(url) = public_url {
        return url.trim_end_matches('/').to_owned();
    }
    // A `Host` that is no authority could break out of the link it would stand in.
    let from_host = || headers.get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let authority = uri.authority().cloned().or_else(from_host).filter(|authority| !authority.as_str().contains('@'));
    let scheme = uri.scheme_str().unwrap_or("http");
    authority.map_or_else(|| format!("http://{local}"), |authority| format!("{scheme}://{authority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_split_and_then_decoded() {
        let query = Query::parse(Some("fields=uuid%2Cname&fields=a+b&empty=&flag&x=1=2&&%66ields=%26")).unwrap();
        assert_eq!(query.all("fields").collect::<Vec<_>>(), ["uuid,name", "a b", "&"]);
        assert_eq!(query.get("empty"), Some(""));
        assert_eq!(query.get("flag"), Some(""));
        assert_eq!(query.get("x"), Some("1=2"));
        assert_eq!(query.get("none"), None);
        assert!(Query::parse(None).unwrap().0.is_empty());
        assert_eq!(Query::parse(Some("a=%ff")).unwrap_err().code, Code::BadRequest);
    }

    #[test]
    fn pages_are_checked_at_their_limits() {
        let page = |text| Query::parse(Some(text)).unwrap().page();
        assert_eq!(page("").unwrap(), (1, 1_000));
        assert_eq!(page("page=2&per_page=10").unwrap(), (2, 10));
        assert_eq!(page("page=4294967295&per_page=10000").unwrap(), (4_294_967_295, 10_000));
        for wrong in ["page=0", "page=4294967296", "page=-1", "page=x", "page=1.5", "per_page=0", "per_page=10001"] {
            let error = page(wrong).unwrap_err();
            assert!(error.code == Code::BadRequest && error.message.contains(wrong.split('=').next().unwrap()), "{wrong}");
        }
    }

    #[test]
    fn links_start_with_what_the_client_called() {
        let local = "127.0.0.1:8787".parse().unwrap();
        let of = |public: Option<&str>, uri: &str, host: Option<&[u8]>| {
            let headers = host.map(|host| (HOST, axum::http::HeaderValue::from_bytes(host).unwrap())).into_iter().collect();
            origin(public, &uri.parse().unwrap(), &headers, local)
        };
        assert_eq!(of(Some("https://data.example.org/"), "/x", Some(b"other")), "https://data.example.org");
        assert_eq!(of(None, "/x", Some(b"localhost:1")), "http://localhost:1");
        assert_eq!(of(None, "http://proxy.example:2/x", Some(b"other")), "http://proxy.example:2");
        assert_eq!(of(None, "https://proxy.example/x", None), "https://proxy.example");
        for bad in [&b""[..], b"a b", b"a/b", b"user@a", b"a\xff"] {
            assert_eq!(of(None, "/x", Some(bad)), "http://127.0.0.1:8787", "{bad:?}");
        }
        assert_eq!(of(None, "/x", None), "http://127.0.0.1:8787");
    }
}
