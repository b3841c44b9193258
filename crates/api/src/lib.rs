//! The JSON of every face: Cloudflare's v4 envelope, D1's objects, bindings, and the error table.
//!
//! `api` knows no service, no axum and does no IO. It turns bytes into typed requests and typed
//! answers into bytes; `server` moves them to and from the services' own types. The one design
//! decision: rows are written straight into a byte buffer through [`result::Rowset`], which borrows
//! them from where they lie, because a result may be 50 MB and a tree of values would be ten times that.
//!
//! ```
//! use base::{Code, Error};
//! let error = Error::new(Code::DatabaseNotFound, "no database `shop`");
//! let entry = api::error::entry(error.code);
//! assert_eq!((entry.code, entry.status), (7404, 404));
//! let body = String::from_utf8(api::envelope::failure(&error, api::envelope::Empty::Null)).unwrap();
//! assert!(body.starts_with(r#"{"success":false,"errors":[{"code":7404,"message":"no database `shop`""#));
//! ```

pub mod decode;
pub mod envelope;
pub mod error;
pub mod json;
pub mod time;

pub mod account;
pub mod binding;
pub mod database;
pub mod export;
pub mod graphql;
pub mod import;
pub mod query;
pub mod result;
pub mod token;

pub use decode::decode;
