//! The table of routes, and the path that every request takes through it.
//!
//! The router is built from the table, so a handler cannot be reached but through a row, and a row
//! says what it asks of the caller. The tests hold a copy of the whole table: whoever adds a route or
//! widens one changes that copy too.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use api::{
    envelope::Empty,
    error::{INVALID_ACCESS_TOKEN, INVALID_API_TOKEN},
};
use axum::{
    Router,
    body::{Body, HttpBody},
    extract::{FromRequestParts, RawPathParams, Request},
    http::{HeaderValue, Method, Response, header::ALLOW, request::Parts},
    routing::any,
};
use base::{Access, Code, Ctx, Error, Result, Service};

use crate::{
    answer::{Answer, Face},
    auth::{self, Guard},
    binding::KINDS,
    body,
    call::{Call, Query, origin},
    d1_rest, graphql, health, identity,
    serve::Server,
    tokens, transfer,
};

/// What a handler returns.
pub(crate) type Outcome = Pin<Box<dyn Future<Output = Result<Answer>> + Send>>;

/// How a route takes a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// None; what comes is ignored.
    Nothing,
    /// JSON, of `json_body_bytes_max` at most.
    Json,
    /// JSON that carries SQL, of `query_body_bytes_max` at most.
    Sql,
    /// Bytes that are never held as a whole; the service limits them.
    Stream,
}

/// One row of the table.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) guard: Guard,
    pub(crate) takes: Takes,
    pub(crate) face: Face,
    pub(crate) handler: fn(Call) -> Outcome,
}

/// A row of the REST face.
const fn rest(method: Method, path: &'static str, guard: Guard, takes: Takes, handler: fn(Call) -> Outcome) -> Route {
    Route { method, path, guard, takes, face: Face::Rest(Empty::Null), handler }
}

/// A row that tells who asks.
const fn identity(path: &'static str, guard: Guard, code: u32, handler: fn(Call) -> Outcome) -> Route {
    Route { method: Method::GET, path, guard, takes: Takes::Nothing, face: Face::Identity(code), handler }
}

/// A row whose failures have an empty list for a result.
const fn rest_list(path: &'static str, guard: Guard, handler: fn(Call) -> Outcome) -> Route {
    Route { method: Method::POST, path, guard, takes: Takes::Sql, face: Face::Rest(Empty::List), handler }
}

const D1_READ: Guard = Guard::Needs(Service::D1, Access::Read);
const D1_WRITE: Guard = Guard::Needs(Service::D1, Access::Write);
const ACCOUNT_READ: Guard = Guard::Needs(Service::Account, Access::Read);
const TOKENS_READ: Guard = Guard::Needs(Service::Tokens, Access::Read);

/// Every route that is found by its path. Routes of bindings are found by kind first: [`KINDS`].
#[rustfmt::skip]
pub(crate) const ROUTES: &[Route] = &[
    rest(Method::GET, "/health", Guard::Open, Takes::Nothing, |c| Box::pin(health::get(c))),

    identity("/client/v4/user", ACCOUNT_READ, INVALID_ACCESS_TOKEN, |c| Box::pin(identity::user(c))),
    rest(Method::GET, "/client/v4/user/tokens", TOKENS_READ, Takes::Nothing, |c| Box::pin(tokens::list(c))),
    identity("/client/v4/user/tokens/verify", Guard::Known, INVALID_API_TOKEN, |c| Box::pin(identity::verify(c))),
    identity("/client/v4/memberships", ACCOUNT_READ, INVALID_ACCESS_TOKEN, |c| Box::pin(identity::memberships(c))),
    identity("/client/v4/accounts", ACCOUNT_READ, INVALID_ACCESS_TOKEN, |c| Box::pin(identity::accounts(c))),
    identity("/client/v4/accounts/{account}", ACCOUNT_READ, INVALID_ACCESS_TOKEN, |c| Box::pin(identity::account(c))),
    rest(Method::GET, "/client/v4/accounts/{account}/tokens", TOKENS_READ, Takes::Nothing, |c| Box::pin(tokens::list(c))),
    rest(Method::POST, "/client/v4/accounts/{account}/tokens", Guard::Needs(Service::Tokens, Access::Create), Takes::Json, |c| Box::pin(tokens::create(c))),
    identity("/client/v4/accounts/{account}/tokens/verify", Guard::Known, INVALID_API_TOKEN, |c| Box::pin(identity::verify(c))),
    rest(Method::DELETE, "/client/v4/accounts/{account}/tokens/{token}", Guard::Needs(Service::Tokens, Access::Write), Takes::Nothing, |c| Box::pin(tokens::revoke(c))),
    rest(Method::POST, "/client/v4/graphql", ACCOUNT_READ, Takes::Json, |c| Box::pin(graphql::answer(c))),

    rest(Method::GET, "/client/v4/accounts/{account}/d1/database", D1_READ, Takes::Nothing, |c| Box::pin(d1_rest::list(c))),
    rest(Method::POST, "/client/v4/accounts/{account}/d1/database", Guard::Needs(Service::D1, Access::Create), Takes::Json, |c| Box::pin(d1_rest::create(c))),
    rest(Method::GET, "/client/v4/accounts/{account}/d1/database/{database}", D1_READ, Takes::Nothing, |c| Box::pin(d1_rest::get(c))),
    rest(Method::PATCH, "/client/v4/accounts/{account}/d1/database/{database}", D1_WRITE, Takes::Json, |c| Box::pin(d1_rest::update(c))),
    rest(Method::PUT, "/client/v4/accounts/{account}/d1/database/{database}", D1_WRITE, Takes::Json, |c| Box::pin(d1_rest::update(c))),
    rest(Method::DELETE, "/client/v4/accounts/{account}/d1/database/{database}", D1_WRITE, Takes::Nothing, |c| Box::pin(d1_rest::delete(c))),
    rest_list("/client/v4/accounts/{account}/d1/database/{database}/query", D1_READ, |c| Box::pin(d1_rest::query(c))),
    rest_list("/client/v4/accounts/{account}/d1/database/{database}/raw", D1_READ, |c| Box::pin(d1_rest::raw(c))),
    rest(Method::POST, "/client/v4/accounts/{account}/d1/database/{database}/import", D1_WRITE, Takes::Json, |c| Box::pin(transfer::import(c))),
    rest(Method::POST, "/client/v4/accounts/{account}/d1/database/{database}/export", D1_READ, Takes::Json, |c| Box::pin(transfer::export(c))),
    rest(Method::GET, "/client/v4/accounts/{account}/d1/database/{database}/time_travel/bookmark", D1_READ, Takes::Nothing, |c| Box::pin(d1_rest::time_travel(c))),
    rest(Method::POST, "/client/v4/accounts/{account}/d1/database/{database}/time_travel/restore", D1_WRITE, Takes::Nothing, |c| Box::pin(d1_rest::time_travel(c))),

    rest(Method::PUT, "/uploads/{link}", Guard::Link, Takes::Stream, |c| Box::pin(transfer::upload(c))),
    rest(Method::GET, "/exports/{link}", Guard::Link, Takes::Nothing, |c| Box::pin(transfer::download(c))),
];

/// A row of the table, as documents and tests read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteInfo {
    /// The kind of binding, in `x-binding-kind`, under which the path is found; `None` for a path of its own.
    pub binding: Option<&'static str>,
    /// `GET`, `POST`, …
    pub method: String,
    /// The path, with its captures in braces.
    pub path: &'static str,
    /// What it asks of the caller: `nothing`, `the link`, `any credential`, or a scope such as `d1:*:read`.
    pub asks: String,
}

/// Every route and what it asks of its caller.
pub fn routes() -> Vec<RouteInfo> {
    let info = |binding, route: &Route| RouteInfo {
        binding,
        method: route.method.to_string(),
        path: route.path,
        asks: match route.guard {
            Guard::Open => "nothing".to_owned(),
            Guard::Link => "the link".to_owned(),
            Guard::Known => "any credential".to_owned(),
            Guard::Needs(service, access) => base::Scope { service, resource: "*".to_owned(), access }.to_string(),
        },
    };
    let by_path = ROUTES.iter().map(|route| info(None, route));
    by_path.chain(KINDS.iter().flat_map(|kind| kind.routes.iter().map(move |route| info(Some(kind.name), route)))).collect()
}

/// The router over `routes`; what is in none of them is answered by `face`.
pub(crate) fn router(server: &Arc<Server>, routes: &'static [Route], face: Face) -> Router {
    let mut router = Router::new();
    let mut paths: Vec<&'static str> = routes.iter().map(|route| route.path).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let server = Arc::clone(server);
        router = router.route(path, any(move |request: Request| dispatch(Arc::clone(&server), routes, path, request)));
    }
    let server = Arc::clone(server);
    router.fallback(move |request: Request| no_route(Arc::clone(&server), face, request))
}

/// Takes one request from its matched path to its response.
async fn dispatch(server: Arc<Server>, routes: &'static [Route], path: &'static str, request: Request) -> Response<Body> {
    let log = Log::start(&server, request.method().clone(), path, &request);
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let mut of_path = routes.iter().filter(|route| route.path == path);
    let Some(route) = of_path.clone().find(|route| route.method == *method) else {
        let allowed = of_path.clone().map(|route| route.method.as_str()).collect::<Vec<_>>().join(", ");
        let face = of_path.next().map_or(Face::Rest(Empty::Null), |route| route.face);
        let error =
            Error::new(Code::MethodNotAllowed, format!("method {} is not available for this path (expected {allowed})", log.method));
        let allowed = HeaderValue::from_str(&allowed).expect("names of methods are valid in a header");
        return log.end(Answer::error(error, face).with_header(ALLOW, allowed), face);
    };
    let (mut parts, mut body) = request.into_parts();
    let answer = match admit_and_read(&server, route, &log.request_id, &mut parts, &mut body).await {
        Ok(call) => run(&server, route, call).await,
        Err(error) => {
            body::drain(&parts.headers, &mut body).await;
            Err(error)
        }
    };
    log.end(answer.unwrap_or_else(|error| Answer::error(error, route.face)), route.face)
}

/// Checks the credential, then the account, and only then takes the body in.
async fn admit_and_read(server: &Server, route: &Route, request_id: &str, parts: &mut Parts, body: &mut Body) -> Result<Call> {
    let app = &server.app;
    let caller = auth::admit(app, request_id, &parts.headers, route.guard).await?;
    let path = captures(parts).await?;
    if path.iter().any(|(name, value)| name == "account" && value != app.config.account.as_str()) {
        return Err(not_routed(parts.uri.path()));
    }
    let query = Query::parse(parts.uri.query())?;
    let held = match route.takes {
        Takes::Nothing | Takes::Stream => body::Held::default(),
        Takes::Json => body::read(app, &parts.headers, body, app.config.json_body_bytes_max).await?,
        Takes::Sql => body::read(app, &parts.headers, body, app.config.query_body_bytes_max).await?,
    };
    let ctx = Ctx { grant: caller.grant, request_id: request_id.to_owned(), clock: Arc::clone(&app.clock), rng: Arc::clone(&app.rng) };
    let origin = origin(app.config.public_url.as_deref(), &parts.uri, &parts.headers, server.local_addr);
    let stream = if route.takes == Takes::Stream { std::mem::take(body) } else { Body::empty() };
    let headers = std::mem::take(&mut parts.headers);
    Ok(Call { app: Arc::clone(app), ctx, token: caller.token, path, query, headers, origin, body: held, stream })
}

/// Runs the handler in a task of its own: if the client goes, the connection's task ends, and what has
/// begun must not end with it. A database whose creation stopped half way would be in the way of its own name.
async fn run(server: &Server, route: &'static Route, call: Call) -> Result<Answer> {
    let alive = server.alive.clone();
    let handler = tokio::spawn(async move {
        let answer = (route.handler)(call).await;
        drop(alive);
        answer
    });
    handler.await.unwrap_or_else(|error| Err(Error::internal(format!("the handler of {} failed: {error}", route.path))))
}

/// The captures of the matched path. axum splits the path first and decodes each capture then, so `%2F` stays inside one.
async fn captures(parts: &mut Parts) -> Result<Vec<(String, String)>> {
    let params = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|_| Error::new(Code::BadRequest, "the path is not UTF-8 once its percent signs are decoded"))?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Answers a path that is in no row.
async fn no_route(server: Arc<Server>, face: Face, request: Request) -> Response<Body> {
    let log = Log::start(&server, request.method().clone(), "unmatched", &request);
    let (parts, mut body) = request.into_parts();
    body::drain(&parts.headers, &mut body).await;
    log.end(Answer::error(not_routed(parts.uri.path()), face), face)
}

/// Cloudflare's text, with the path as Cloudflare shows it.
fn not_routed(path: &str) -> Error {
    let shown: String = path.strip_prefix("/client/v4").unwrap_or(path).chars().take(200).collect();
    Error::new(Code::NoRoute, format!("Could not route to {shown}, perhaps your object identifier is invalid?"))
}

/// One request's line in the log. It names the route and not the path, which may hold a link's secret,
/// and holds no header, no body and no message.
pub(crate) struct Log {
    pub(crate) request_id: String,
    pub(crate) method: Method,
    route: &'static str,
    bytes_in: Option<u64>,
    server: Arc<Server>,
    start: Duration,
}

impl Log {
    pub(crate) fn start<B: HttpBody>(server: &Arc<Server>, method: Method, route: &'static str, request: &Request<B>) -> Self {
        let mut id = [0; 16];
        server.app.rng.fill(&mut id);
        let request_id = format!("{:032x}", u128::from_be_bytes(id));
        let bytes_in = request.body().size_hint().exact();
        Self { request_id, method, route, bytes_in, server: Arc::clone(server), start: server.app.clock.monotonic() }
    }

    /// Writes the line and makes the response.
    pub(crate) fn end(self, answer: Answer, face: Face) -> Response<Body> {
        let status = answer.status.as_u16();
        let ms = self.server.app.clock.monotonic().saturating_sub(self.start).as_micros() as f64 / 1000.0;
        let bytes_out = answer.body.size_hint().exact();
        let (request_id, method, route) = (self.request_id.as_str(), self.method.as_str(), self.route);
        let code = answer.error.as_ref().map(|error| format!("{:?}", error.code));
        tracing::info!(request_id, method, route, status, ms, bytes_in = self.bytes_in, bytes_out, code, "request");
        if let Some(error) = answer.error.as_ref().filter(|error| status >= 500 || error.internal.is_some()) {
            tracing::error!(request_id, route, code, detail = error.internal.as_deref().unwrap_or(&error.message), "request failed");
        }
        answer.finish(face, &self.request_id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use expect_test::expect;

    use super::*;

    /// Whoever changes this list changes who may do what.
    #[test]
    fn the_table_of_all_routes_and_what_they_ask() {
        let lines = routes().into_iter().map(|route| {
            let binding = route.binding.map(|kind| format!("[{kind}] ")).unwrap_or_default();
            format!("{binding}{} {} <- {}\n", route.method, route.path, route.asks)
        });
        expect![[r#"
            GET /health <- nothing
            GET /client/v4/user <- account:*:read
            GET /client/v4/user/tokens <- tokens:*:read
            GET /client/v4/user/tokens/verify <- any credential
            GET /client/v4/memberships <- account:*:read
            GET /client/v4/accounts <- account:*:read
            GET /client/v4/accounts/{account} <- account:*:read
            GET /client/v4/accounts/{account}/tokens <- tokens:*:read
            POST /client/v4/accounts/{account}/tokens <- tokens:*:create
            GET /client/v4/accounts/{account}/tokens/verify <- any credential
            DELETE /client/v4/accounts/{account}/tokens/{token} <- tokens:*:write
            POST /client/v4/graphql <- account:*:read
            GET /client/v4/accounts/{account}/d1/database <- d1:*:read
            POST /client/v4/accounts/{account}/d1/database <- d1:*:create
            GET /client/v4/accounts/{account}/d1/database/{database} <- d1:*:read
            PATCH /client/v4/accounts/{account}/d1/database/{database} <- d1:*:write
            PUT /client/v4/accounts/{account}/d1/database/{database} <- d1:*:write
            DELETE /client/v4/accounts/{account}/d1/database/{database} <- d1:*:write
            POST /client/v4/accounts/{account}/d1/database/{database}/query <- d1:*:read
            POST /client/v4/accounts/{account}/d1/database/{database}/raw <- d1:*:read
            POST /client/v4/accounts/{account}/d1/database/{database}/import <- d1:*:write
            POST /client/v4/accounts/{account}/d1/database/{database}/export <- d1:*:read
            GET /client/v4/accounts/{account}/d1/database/{database}/time_travel/bookmark <- d1:*:read
            POST /client/v4/accounts/{account}/d1/database/{database}/time_travel/restore <- d1:*:write
            PUT /uploads/{link} <- the link
            GET /exports/{link} <- the link
            [d1] POST /query <- d1:*:read
            [d1] POST /execute <- d1:*:read
            [d1] POST /dump <- d1:*:read
        "#]]
        .assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn no_row_stands_twice() {
        for routes in std::iter::once(ROUTES).chain(KINDS.iter().map(|kind| kind.routes)) {
            let mut seen = HashSet::new();
            for route in routes {
                assert!(seen.insert((route.method.as_str(), route.path)), "{} {}", route.method, route.path);
            }
        }
    }

    #[test]
    fn only_links_and_health_ask_for_no_credential() {
        let open: Vec<_> = routes().into_iter().filter(|route| matches!(route.asks.as_str(), "nothing" | "the link")).collect();
        assert_eq!(open.iter().map(|route| route.path).collect::<Vec<_>>(), ["/health", "/uploads/{link}", "/exports/{link}"]);
    }

    #[test]
    fn an_account_in_a_path_is_always_called_account() {
        for route in ROUTES.iter().filter(|route| route.path.contains("/accounts/")) {
            assert!(route.path.starts_with("/client/v4/accounts/{account}"), "{}: its account would not be checked", route.path);
        }
    }
}
