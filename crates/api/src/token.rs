//! API tokens. The paths are Cloudflare's, the shape is Hearth's own: scopes are written
//! `service:resource:access`, where Cloudflare has policies over permission groups.

use base::{Result, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::time;

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
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// What the owner calls it.
    pub name: String,
    /// What it shall allow.
    pub scopes: Vec<String>,
    /// RFC 3339; left out: it never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_on: Option<String>,
}

impl CreateToken {
    /// The scopes, read.
    ///
    /// # Errors
    /// [`base::Code::BadRequest`] that names the first one that is none.
    pub fn scopes(&self) -> Result<Vec<Scope>> {
        self.scopes.iter().map(|scope| scope.parse()).collect()
    }

    /// The end, read.
    ///
    /// # Errors
    /// [`base::Code::BadRequest`].
    pub fn expires_at(&self) -> Result<Option<Timestamp>> {
        self.expires_on.as_deref().map(|text| time::parse("expires_on", text)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(scopes: &[&str], expires_on: Option<&str>) -> CreateToken {
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        CreateToken { name: "ci".to_owned(), scopes, expires_on: expires_on.map(str::to_owned) }
    }

    #[test]
    fn scopes_and_end_are_read() {
        let body = body(&["d1:*:read", "d1:shop:write"], Some("1970-01-01T00:00:01.001Z"));
        assert_eq!(body.scopes().unwrap().iter().map(Scope::to_string).collect::<Vec<_>>(), body.scopes);
        assert_eq!(body.expires_at().unwrap(), Some(Timestamp(1001)));
    }

    #[test]
    fn what_is_no_scope_and_no_time_is_refused_by_name() {
        assert!(body(&["d1:*:read", "all"], None).scopes().unwrap_err().message.starts_with("not a scope (got `all`, expected"));
        assert!(body(&[], Some("soon")).expires_at().unwrap_err().message.starts_with("`expires_on` is not a time (got `soon`"));
        assert_eq!(body(&[], None).expires_at().unwrap(), None);
    }

    #[test]
    fn a_secret_is_left_out_where_there_is_none() {
        let token = Token {
            id: "0".repeat(32),
            name: "ci".to_owned(),
            status: "active".to_owned(),
            scopes: vec![],
            issued_on: String::new(),
            expires_on: None,
            revoked_on: None,
            value: None,
        };
        let text = serde_json::to_string(&token).unwrap();
        assert!(!text.contains("value"), "{text}");
        assert_eq!(serde_json::from_str::<Token>(&text).unwrap(), token);
    }
}
