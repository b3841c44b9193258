//! API tokens. The paths are Cloudflare's, the shape is Hearth's own: scopes are written
//! `service:resource:access`, where Cloudflare has policies over permission groups.

use base::{Code, Error, Result, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::time;

/// Scopes of one token.
pub const SCOPES_MAX: usize = 64;
/// Characters of a token's name.
pub const NAME_CHARS_MAX: usize = 120;

/// A token as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// 32 hex digits; no secret.
    pub id: String,
    /// What the owner calls it.
    pub name: String,
    /// `active`, `expired` or `revoked`.
    pub status: String,
    /// What it allows, for example `d1:orders:write`.
    pub scopes: Vec<String>,
    /// ISO 8601.
    pub issued_on: String,
    /// ISO 8601, or null if it never ends.
    pub expires_on: Option<String>,
    /// ISO 8601, or null.
    pub revoked_on: Option<String>,
    /// The secret. Only in the answer to `POST`, and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Body of `POST …/tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateToken {
    /// What the owner calls it.
    pub name: String,
    /// What it shall allow.
    pub scopes: Vec<String>,
    /// RFC 3339; left out: it never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_on: Option<String>,
}

/// A checked [`CreateToken`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Not blank.
    pub name: String,
    /// At least one.
    pub scopes: Vec<Scope>,
    /// Later than now.
    pub expires_at: Option<Timestamp>,
}

impl CreateToken {
    /// Checks names, scopes and time.
    ///
    /// # Errors
    /// [`Code::BadRequest`] that says which member is wrong.
    pub fn check(self, now: Timestamp) -> Result<NewToken> {
        let n_chars = self.name.chars().count();
        if self.name.trim().is_empty() || n_chars > NAME_CHARS_MAX {
            let got = format!("got {n_chars} characters, expected 1 to {NAME_CHARS_MAX}, not all blank");
            return Err(Error::new(Code::BadRequest, format!("`name` does not do ({got})")));
        }
        if self.scopes.is_empty() || self.scopes.len() > SCOPES_MAX {
            let n = self.scopes.len();
            return Err(Error::new(Code::BadRequest, format!("wrong number of `scopes` (got {n}, expected 1 to {SCOPES_MAX})")));
        }
        let scopes = self.scopes.iter().map(|scope| scope.parse()).collect::<Result<_>>()?;
        let expires_at = self.expires_on.map(|text| time::parse("expires_on", &text)).transpose()?;
        if let Some(expires_at) = expires_at.filter(|at| *at <= now) {
            let got = time::iso(expires_at);
            return Err(Error::new(Code::BadRequest, format!("`expires_on` lies in the past (got {got}, now is {})", time::iso(now))));
        }
        Ok(NewToken { name: self.name, scopes, expires_at })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(name: &str, scopes: &[&str], expires_on: Option<&str>, expected: Expect) {
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        let body = CreateToken { name: name.to_owned(), scopes, expires_on: expires_on.map(str::to_owned) };
        let shown = match body.check(Timestamp(1_000)) {
            Ok(new) => {
                format!("{} {} {:?}", new.name, new.scopes.iter().map(Scope::to_string).collect::<Vec<_>>().join(","), new.expires_at)
            }
            Err(error) => error.message,
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn a_token_needs_a_name_scopes_and_a_later_end() {
        check("ci", &["d1:*:read", "d1:shop:write"], None, expect!["ci d1:*:read,d1:shop:write None"]);
        check("ci", &["d1:*:read"], Some("1970-01-01T00:00:01.001Z"), expect!["ci d1:*:read Some(Timestamp(1001))"]);
        check(
            "ci",
            &["d1:*:read"],
            Some("1970-01-01T00:00:01Z"),
            expect!["`expires_on` lies in the past (got 1970-01-01T00:00:01.000Z, now is 1970-01-01T00:00:01.000Z)"],
        );
        check(
            "ci",
            &["d1:*:read"],
            Some("soon"),
            expect!["`expires_on` is not a time (got `soon`, expected for example `2026-12-31T23:59:59Z`)"],
        );
        check(" ", &["d1:*:read"], None, expect!["`name` does not do (got 1 characters, expected 1 to 120, not all blank)"]);
        check("ci", &[], None, expect!["wrong number of `scopes` (got 0, expected 1 to 64)"]);
    }

    #[test]
    fn name_and_scopes_are_counted_at_their_limits() {
        let name = |n: usize| "é".repeat(n);
        let new = |n_chars, n_scopes| CreateToken { name: name(n_chars), scopes: vec!["d1:*:read".to_owned(); n_scopes], expires_on: None };
        assert!(new(NAME_CHARS_MAX, SCOPES_MAX).check(Timestamp(0)).is_ok());
        assert!(new(NAME_CHARS_MAX + 1, 1).check(Timestamp(0)).is_err());
        assert!(new(1, SCOPES_MAX + 1).check(Timestamp(0)).is_err());
    }
}
