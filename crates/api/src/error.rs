//! The one table from our error codes to Cloudflare's codes and HTTP statuses.
//!
//! Codes that clients act upon are Cloudflare's own: wrangler knows 7502, 7406, 9109 and 10000 and
//! prints the rest, and 10000 makes it run `whoami`, so nothing but a bad credential may carry it.
//! Codes in the 7490s are ours, for answers that Cloudflare has no number for.
//!
//! Everything that ends a query inside the database is 7500 with status 400, as D1 answers: full
//! queues and time-outs too. A client that only looks at 5xx would otherwise send a write again on
//! its own; whether that is safe is said by the envelope's `retryable`.

use base::{Code, Error};
use serde::{Deserialize, Serialize};

/// Code of a bad credential on `/user/tokens/verify`.
pub const INVALID_API_TOKEN: u32 = 1000;
/// Code of a bad credential on the other routes that tell who asks. wrangler runs `whoami` after a
/// 10000, and `whoami` calls these: with 10000 here too, one mistyped key would end in two stack traces.
pub const INVALID_ACCESS_TOKEN: u32 = 9109;

/// How an error looks outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `errors[].code`.
    pub code: u32,
    /// HTTP status.
    pub status: u16,
}

/// The entry of a code.
pub const fn entry(code: Code) -> Entry {
    let (code, status) = match code {
        Code::BadRequest => (7400, 400),
        Code::BodyTooLarge => (7490, 413),
        Code::NoRoute => (7003, 404),
        Code::MethodNotAllowed => (7001, 405),
        Code::CredentialMissing | Code::CredentialUnknown => (10000, 401),
        Code::ScopeMissing => (9109, 403),
        Code::DatabaseNotFound => (7404, 404),
        Code::DatabaseExists => (7502, 409),
        Code::DatabasesMax => (7406, 400),
        Code::Sql | Code::Statement | Code::Overloaded | Code::Timeout | Code::Reset | Code::ResultTooLarge | Code::Transfer => (7500, 400),
        Code::LinkUnknown => (7491, 404),
        Code::TokenNotFound => (7492, 404),
        Code::NotImplemented => (7493, 501),
        Code::DiskFull => (7494, 507),
        Code::Io => (7495, 500),
        Code::Corrupt => (7496, 500),
        Code::Internal => (7497, 500),
    };
    Entry { code, status }
}

/// One member of `errors`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Cloudflare's code, see [`entry`].
    pub code: u32,
    /// For the user.
    pub message: String,
}

impl From<&Error> for ErrorBody {
    fn from(error: &Error) -> Self {
        Self { code: entry(error.code).code, message: error.message.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fmt::Write};

    use expect_test::expect;

    use super::*;

    #[test]
    fn the_table_of_all_codes() {
        let mut table = String::new();
        for code in Code::ALL {
            let Entry { code: number, status } = entry(code);
            let retryable = Error::new(code, "").retryable;
            writeln!(table, "{code:?} {number} {status}{}", if retryable { " retryable" } else { "" }).unwrap();
        }
        expect![[r"
            BadRequest 7400 400
            BodyTooLarge 7490 413
            NoRoute 7003 404
            MethodNotAllowed 7001 405
            CredentialMissing 10000 401
            CredentialUnknown 10000 401
            ScopeMissing 9109 403
            DatabaseNotFound 7404 404
            DatabaseExists 7502 409
            DatabasesMax 7406 400
            Sql 7500 400
            Statement 7500 400
            Overloaded 7500 400 retryable
            Timeout 7500 400
            Reset 7500 400 retryable
            ResultTooLarge 7500 400
            Transfer 7500 400
            LinkUnknown 7491 404
            TokenNotFound 7492 404
            NotImplemented 7493 501
            DiskFull 7494 507 retryable
            Io 7495 500
            Corrupt 7496 500
            Internal 7497 500
        "]]
        .assert_eq(&table);
    }

    #[test]
    fn all_codes_are_in_all_once() {
        let mut seen = BTreeMap::new();
        for code in Code::ALL {
            assert!(seen.insert(format!("{code:?}"), ()).is_none(), "{code:?} stands twice in Code::ALL");
        }
    }

    #[test]
    fn no_5xx_tells_a_client_to_repeat_a_write_that_may_have_happened() {
        for code in Code::ALL {
            let error = Error::new(code, "");
            assert!(entry(code).status < 500 || !error.retryable || code == Code::DiskFull, "{code:?}");
        }
    }
}
