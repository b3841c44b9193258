//! Every environment variable that the binary reads, in one place.
//!
//! Flags win over variables, variables over the config file, the file over the defaults. An empty
//! variable counts as one that is not set.

use std::env::VarError;

use crate::failure::Failure;

/// The data folder of `serve`, and where client commands look for the owner's key.
pub(crate) const HEARTH_DATA: &str = "HEARTH_DATA";
/// Address and port that `serve` listens on, `host:port`; port 0 takes a free one.
pub(crate) const HEARTH_LISTEN: &str = "HEARTH_LISTEN";
/// A TOML config file for `serve`.
pub(crate) const HEARTH_CONFIG: &str = "HEARTH_CONFIG";
/// The owner's key. In `serve` it takes the place of `owner.key`; in client commands it, or an API
/// token, is what they send. Never printed but by `hearth env`.
pub(crate) const HEARTH_KEY: &str = "HEARTH_KEY";
/// Where client commands find the server, for example `http://127.0.0.1:8787`.
pub(crate) const HEARTH_URL: &str = "HEARTH_URL";
/// The account's id, 32 lower-case hex digits, for `serve` and for client commands.
pub(crate) const HEARTH_ACCOUNT_ID: &str = "HEARTH_ACCOUNT_ID";
/// The account's name, as `wrangler whoami` shows it.
pub(crate) const HEARTH_ACCOUNT_NAME: &str = "HEARTH_ACCOUNT_NAME";
/// The limits profile: `d1-paid`, `d1-free`, `unlimited`, or a table of the config file.
pub(crate) const HEARTH_PROFILE: &str = "HEARTH_PROFILE";
/// The region that answers name, for example `WEUR`.
pub(crate) const HEARTH_REGION: &str = "HEARTH_REGION";
/// The address that clients see, where it is not the listen address (a proxy stands before Hearth).
pub(crate) const HEARTH_PUBLIC_URL: &str = "HEARTH_PUBLIC_URL";
/// Databases kept open at once.
pub(crate) const HEARTH_OPEN_DATABASES_MAX: &str = "HEARTH_OPEN_DATABASES_MAX";
/// `text` or `json`.
pub(crate) const HEARTH_LOG_FORMAT: &str = "HEARTH_LOG_FORMAT";
/// A level (`error`, `warn`, `info`, `debug`, `trace`) or a filter such as `info,d1=debug`.
pub(crate) const HEARTH_LOG_LEVEL: &str = "HEARTH_LOG_LEVEL";

/// What `hearth env` prints for wrangler: the address of the API.
pub(crate) const CLOUDFLARE_API_BASE_URL: &str = "CLOUDFLARE_API_BASE_URL";
/// What `hearth env` prints for the `cloudflare` SDK: the same address under its other name.
pub(crate) const CLOUDFLARE_BASE_URL: &str = "CLOUDFLARE_BASE_URL";
/// What `hearth env` prints for both: the key as a token.
pub(crate) const CLOUDFLARE_API_TOKEN: &str = "CLOUDFLARE_API_TOKEN";
/// What `hearth env` prints for both: the account's id.
pub(crate) const CLOUDFLARE_ACCOUNT_ID: &str = "CLOUDFLARE_ACCOUNT_ID";

/// Every variable that is read.
const READ: [&str; 13] = [
    HEARTH_DATA,
    HEARTH_LISTEN,
    HEARTH_CONFIG,
    HEARTH_KEY,
    HEARTH_URL,
    HEARTH_ACCOUNT_ID,
    HEARTH_ACCOUNT_NAME,
    HEARTH_PROFILE,
    HEARTH_REGION,
    HEARTH_PUBLIC_URL,
    HEARTH_OPEN_DATABASES_MAX,
    HEARTH_LOG_FORMAT,
    HEARTH_LOG_LEVEL,
];

/// Refuses variables that are not UTF-8, so that [`read`] leaves none out silently.
///
/// # Errors
/// Names the first one, without its value.
pub(crate) fn check() -> Result<(), Failure> {
    match READ.into_iter().find(|name| matches!(std::env::var(name), Err(VarError::NotUnicode(_)))) {
        Some(name) => Err(Failure::usage(format!("the environment variable {name} is not UTF-8"))),
        None => Ok(()),
    }
}

/// The value of a variable of this process; `None` if it is not set or empty.
pub(crate) fn read(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
