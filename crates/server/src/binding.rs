//! The protocol behind a Worker's bindings.
//!
//! workerd sends a binding's requests to one address and says neither in path nor in body which database
//! is meant. The header `x-binding-kind` says what is bound, and `x-binding-id` which; workerd's
//! `injectRequestHeaders` sets both, and the credential, over whatever the Worker sent. So such a request is
//! sorted by kind before its path is looked at, and a kind's paths never clash with those of REST.
//!
//! Miniflare has another form: it sends everything to one URL, with the request's own URL and headers in
//! `MF-URL` and `MF-Header-*`. That URL is `/bindings/{kind}/{id}?token=…`, as Miniflare can carry a
//! credential nowhere else, and the request is turned into the first form here.
//!
//! A request that carries a session's token gets the bookmark of the state that it saw, see [`crate::session`].

use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri,
    header::{AUTHORIZATION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE},
};
use base::{Access, Code, Error, Result, Service};
use percent_encoding::percent_decode_str;

use crate::{
    answer::{Answer, Face, HEAVY_BYTES, offload},
    auth::Guard,
    call::{Call, Query},
    convert,
    route::{Outcome, Route, Takes},
    session,
};

/// What is bound.
const KIND: HeaderName = HeaderName::from_static("x-binding-kind");
/// Which of it: a name or an id.
const ID: HeaderName = HeaderName::from_static("x-binding-id");
/// Where Miniflare's form arrives.
const MINIFLARE_PATH: &str = "/bindings/";

/// One kind of binding.
pub(crate) struct Kind {
    /// Its name in `x-binding-kind`.
    pub(crate) name: &'static str,
    /// Its routes.
    pub(crate) routes: &'static [Route],
}

/// Every kind. A service that serves bindings adds a row.
pub(crate) const KINDS: &[Kind] = &[Kind { name: "d1", routes: D1 }];

#[rustfmt::skip]
const D1: &[Route] = &[
    d1("/query", |c| Box::pin(query(c))),
    d1("/execute", |c| Box::pin(query(c))),
    d1("/dump", |c| Box::pin(dump(c))),
];

const fn d1(path: &'static str, handler: fn(Call) -> Outcome) -> Route {
    let guard = Guard::Needs(Service::D1, Access::Read);
    Route { method: Method::POST, path, guard, takes: Takes::Sql, face: Face::Binding, handler }
}

/// Where a request goes.
pub(crate) enum Addressed<B> {
    /// By its path.
    Path(Request<B>),
    /// To the routes of a kind.
    Kind(String, Request<B>),
}

/// Sorts a request, and turns Miniflare's form into the usual one.
///
/// # Errors
/// [`Code::BadRequest`], with the request, if it is neither form in full.
#[expect(clippy::result_large_err, reason = "the request goes back so that it can be answered")]
pub(crate) fn addressed<B>(mut request: Request<B>) -> Result<Addressed<B>, (Error, Request<B>)> {
    if request.uri().path().starts_with(MINIFLARE_PATH)
        && let Err(error) = from_miniflare(&mut request)
    {
        return Err((error, request));
    }
    let Some(kind) = request.headers().get(KIND) else { return Ok(Addressed::Path(request)) };
    let kind = String::from_utf8_lossy(kind.as_bytes()).into_owned();
    Ok(Addressed::Kind(kind, request))
}

/// Puts the request inside a request of Miniflare's in its place.
fn from_miniflare<B>(request: &mut Request<B>) -> Result<()> {
    let wrong = |what: &str| Error::new(Code::BadRequest, what.to_owned());
    let rest = request.uri().path().strip_prefix(MINIFLARE_PATH).unwrap_or_default();
    let Some((kind, id)) = rest.split_once('/').filter(|(kind, id)| !kind.is_empty() && !id.is_empty() && !id.contains('/')) else {
        return Err(wrong("the path names no binding (expected `/bindings/{kind}/{id}`)"));
    };
    let id = percent_decode_str(id).decode_utf8().map_err(|_| wrong("the binding's id is not UTF-8 once its percent signs are decoded"))?;
    let header = |text: &str| HeaderValue::from_str(text).map_err(|_| wrong("the path names no binding that could exist"));
    let (kind, id) =
        (header(kind)?, HeaderValue::from_bytes(id.as_bytes()).map_err(|_| wrong("the binding's id holds a control character"))?);
    let token = Query::parse(request.uri().query())?.get("token").map(|token| header(&format!("Bearer {token}"))).transpose()?;
    let url = request.headers().get("mf-url").ok_or_else(|| wrong("no MF-URL header (expected a request of Miniflare's remote proxy)"))?;
    let url: Uri = url.to_str().ok().and_then(|url| url.parse().ok()).ok_or_else(|| wrong("the MF-URL header is no URL"))?;
    let inner = inner_headers(request.headers(), token, kind, id);
    *request.uri_mut() = url;
    *request.headers_mut() = inner;
    Ok(())
}

/// The headers of the inner request. The credential, the body's framing and what is bound are the
/// outer request's to say; the Worker's own headers must not stand in for them.
fn inner_headers(outer: &HeaderMap, token: Option<HeaderValue>, kind: HeaderValue, id: HeaderValue) -> HeaderMap {
    let mut inner = HeaderMap::new();
    for (name, value) in outer {
        if let Some(name) = name.as_str().strip_prefix("mf-header-").and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok()) {
            inner.append(name, value.clone());
        }
    }
    for name in
        [AUTHORIZATION, CONTENT_LENGTH, TRANSFER_ENCODING, HeaderName::from_static("x-auth-key"), HeaderName::from_static("x-terminal-key")]
    {
        inner.remove(&name);
        if let Some(value) = outer.get(&name) {
            inner.insert(name, value.clone());
        }
    }
    if let Some(token) = token {
        inner.insert(AUTHORIZATION, token);
    }
    inner.insert(KIND, kind);
    inner.insert(ID, id);
    inner
}

/// The answer to a request that is no binding's. Miniflare tries a WebSocket first and falls back to
/// plain requests on 426.
pub(crate) fn refusal<B>(error: Error, request: &Request<B>) -> Answer {
    let answer = Answer::error(error, Face::Binding);
    if request.headers().contains_key(UPGRADE) { Answer { status: StatusCode::UPGRADE_REQUIRED, ..answer } } else { answer }
}

/// The error of a kind that is not served.
pub(crate) fn unknown_kind(kind: &str) -> Error {
    let known = KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
    let shown: String = kind.chars().take(32).collect();
    Error::new(Code::BadRequest, format!("unknown binding kind (got `{shown}`, expected one of: {known})"))
}

/// `POST /query` and `POST /execute`: the same call, in the form that `resultsFormat` asks for.
async fn query(mut call: Call) -> Result<Answer> {
    let database = bound_id(&call)?;
    let format = call.query.get("resultsFormat").unwrap_or("ARRAY_OF_OBJECTS").parse()?;
    let body = std::mem::take(&mut call.body);
    let decoded = offload(body.bytes.len() > HEAVY_BYTES, move || {
        let body = api::query::decode_binding(&body.bytes)?;
        Ok((body.is_array, convert::prepared(body.statements)))
    });
    let (is_array, batch) = decoded.await?;
    match call.app.d1.query(&call.ctx, &database, batch).await {
        Ok((results, bookmark)) => {
            let (heavy, app) = (convert::are_heavy(&results), call.app);
            let bookmark = session::headers(&call.headers, bookmark);
            let body = offload(heavy, move || Ok(convert::binding_results(&results, is_array, &app.config.region, format))).await?;
            Ok(Answer::json(body).with_headers(bookmark))
        }
        Err(error) => {
            let body = api::binding::failure(&error, is_array);
            Ok(Answer::failed(error, body))
        }
    }
}

/// `POST /dump`: withdrawn by Cloudflare for databases of today's kind.
#[expect(clippy::unused_async, reason = "a handler")]
async fn dump(_: Call) -> Result<Answer> {
    Err(Error::new(Code::NotImplemented, "dump() is not served; use `wrangler d1 export`"))
}

fn bound_id(call: &Call) -> Result<String> {
    let id = call.headers.get(ID).and_then(|id| std::str::from_utf8(id.as_bytes()).ok()).filter(|id| !id.is_empty());
    id.map(str::to_owned).ok_or_else(|| Error::new(Code::BadRequest, "no x-binding-id header (expected the database's name or id)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    fn kind_of(request: Request<()>) -> (String, Request<()>) {
        match addressed(request) {
            Ok(Addressed::Kind(kind, request)) => (kind, request),
            Ok(Addressed::Path(_)) => panic!("went by its path"),
            Err((error, _)) => panic!("{error}"),
        }
    }

    #[test]
    fn a_request_goes_by_its_kind_before_its_path() {
        let (kind, request) = kind_of(request("http://d1/client/v4/user", &[("x-binding-kind", "d1"), ("x-binding-id", "shop")]));
        assert_eq!((kind.as_str(), request.uri().path()), ("d1", "/client/v4/user"));
        assert!(matches!(addressed(super::tests::request("/query", &[])), Ok(Addressed::Path(_))));
    }

    #[test]
    fn miniflares_form_becomes_the_usual_one() {
        let (kind, inner) = kind_of(request(
            "/bindings/d1/my%20shop?token=hth_x",
            &[
                ("mf-url", "http://d1/query?resultsFormat=NONE"),
                ("mf-binding", "DB"),
                ("mf-header-content-type", "application/json"),
                ("content-length", "5"),
                ("cookie", "outer"),
            ],
        ));
        assert_eq!(kind, "d1");
        assert_eq!(inner.uri(), "http://d1/query?resultsFormat=NONE");
        let header = |name: &str| inner.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("x-binding-id"), Some("my shop"));
        assert_eq!(header("authorization"), Some("Bearer hth_x"));
        assert_eq!(header("content-type"), Some("application/json"));
        assert_eq!(header("content-length"), Some("5"));
        assert_eq!(header("cookie"), None);
    }

    #[test]
    fn a_worker_cannot_speak_for_the_one_who_bound_it() {
        let (_, inner) = kind_of(request(
            "/bindings/d1/shop",
            &[
                ("mf-url", "http://d1/query"),
                ("mf-header-authorization", "Bearer stolen"),
                ("mf-header-x-auth-key", "stolen"),
                ("mf-header-x-terminal-key", "stolen"),
                ("mf-header-x-binding-id", "other"),
                ("mf-header-x-binding-kind", "kv"),
                ("mf-header-content-length", "9"),
                ("x-auth-key", "own"),
            ],
        ));
        let header = |name: &str| inner.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("authorization"), None);
        assert_eq!(header("x-auth-key"), Some("own"));
        assert_eq!(header("x-terminal-key"), None);
        assert_eq!(header("x-binding-id"), Some("shop"));
        assert_eq!(header("x-binding-kind"), Some("d1"));
        assert_eq!(header("content-length"), None);
    }

    #[test]
    fn a_request_that_is_no_miniflares_is_refused() {
        for (uri, headers) in [
            ("/bindings/", &[("mf-url", "http://d1/query")][..]),
            ("/bindings/d1", &[("mf-url", "http://d1/query")]),
            ("/bindings/d1/", &[("mf-url", "http://d1/query")]),
            ("/bindings/d1/a/b", &[("mf-url", "http://d1/query")]),
            ("/bindings/d1/a%ff", &[("mf-url", "http://d1/query")]),
            ("/bindings/d1/a%0a", &[("mf-url", "http://d1/query")]),
            ("/bindings/d1/a?token=%0d%0a", &[("mf-url", "http://d1/query")]),
            ("/bindings/d1/a", &[]),
            ("/bindings/d1/a", &[("mf-url", "not a url")]),
        ] {
            let Err((error, _)) = addressed(request(uri, headers)) else { panic!("{uri} was taken") };
            assert_eq!(error.code, Code::BadRequest, "{uri}");
        }
    }

    #[test]
    fn a_websocket_is_told_to_use_plain_requests() {
        let wrong = || Error::new(Code::BadRequest, "");
        assert_eq!(refusal(wrong(), &request("/bindings/d1/a", &[("upgrade", "websocket")])).status, 426);
        assert_eq!(refusal(wrong(), &request("/bindings/d1/a", &[])).status, 400);
    }
}
