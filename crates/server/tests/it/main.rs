//! A real server on a port of its own, spoken to over raw sockets: what goes wrong on the wire cannot be
//! sent through an HTTP client that keeps to the rules.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail as the test may")]

mod harness;

mod auth;
mod binding;
mod bodies;
mod connections;
mod d1;
mod graphql;
mod identity;
mod logging;
mod routing;
mod tokens;
mod transfer;
