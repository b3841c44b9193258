//! The faces of Hearth over HTTP: Cloudflare's REST API and the bindings' protocol.
//!
//! The only crate that serves HTTP. A handler is three steps: convert, call, convert; what the JSON
//! looks like is `api`'s affair, what a request means is the service's. The one design decision: a
//! request can only reach a handler through a row of one table ([`routes`]), and a row names the
//! access that it asks for, so there is one place where a credential is checked and none where it is not.
//!
//! The path of one request: [`serve`] accepts the connection; `route::dispatch` finds the row, lets
//! `auth::admit` check the credential, reads the body within its limits, and runs the handler in a task
//! of its own, so that a write that has begun ends even if its client has gone.
//!
//! ```no_run
//! # async fn run(d1: std::sync::Arc<d1::D1>) -> std::io::Result<()> {
//! use std::sync::Arc;
//! let config = server::ServerConfig { owner_key: "a long secret".to_owned(), ..Default::default() };
//! let app = server::App::new(d1, config, Arc::new(base::SystemClock::default()), Arc::new(base::SystemRng));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8787").await?;
//! server::serve(app, listener, std::future::pending()).await
//! # }
//! ```

mod app;
mod serve;
mod stream;

mod answer;
mod auth;
mod body;
mod call;
mod route;

mod binding;
mod convert;
mod d1_rest;
mod graphql;
mod health;
mod identity;
mod session;
mod tokens;
mod transfer;

pub use app::{App, ServerConfig};
pub use route::{RouteInfo, routes};
pub use serve::serve;
