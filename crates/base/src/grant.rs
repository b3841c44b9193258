//! What a credential allows. One grammar for tokens, one function that decides.
//!
//! A scope is written `service:resource:access`, for example `d1:*:read` or `d1:orders:write`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Code, Error, Timestamp};

/// The part of Hearth that a scope opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Databases.
    D1,
    /// API tokens.
    Tokens,
    /// Account, user and analytics look-ups.
    Account,
}

/// How far a scope goes. `write` includes `read`; `create` includes neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Look at it.
    Read,
    /// Change and delete it.
    Write,
    /// Make a new one.
    Create,
}

/// One scope of a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Which service.
    pub service: Service,
    /// Name or id of one resource, or `*` for all.
    pub resource: String,
    /// How far.
    pub access: Access,
}

/// What a request may do: everything (the owner) or what its scopes say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    owner: bool,
    scopes: Vec<Scope>,
    ends_at: Option<Timestamp>,
}

impl Grant {
    /// The owner's grant: everything.
    pub const fn owner() -> Self {
        Self { owner: true, scopes: Vec::new(), ends_at: None }
    }

    /// A token's grant.
    pub const fn scoped(scopes: Vec<Scope>) -> Self {
        Self { owner: false, scopes, ends_at: None }
    }

    /// The same grant, which ends with its token.
    #[must_use]
    pub const fn ending(mut self, ends_at: Option<Timestamp>) -> Self {
        self.ends_at = ends_at;
        self
    }

    /// When the grant ends; a token that is made under it may not live longer.
    pub const fn ends_at(&self) -> Option<Timestamp> {
        self.ends_at
    }

    /// Whether this is the owner's own key.
    pub const fn is_owner(&self) -> bool {
        self.owner
    }

    /// Whether `access` to one of `names` (all of them names or ids of the same resource) is allowed.
    /// An empty `names` asks for the service as a whole, which only `*` opens.
    pub fn allows(&self, service: Service, names: &[&str], access: Access) -> bool {
        self.owner
            || self.scopes.iter().any(|scope| {
                scope.service == service
                    && (scope.resource == "*" || names.contains(&scope.resource.as_str()))
                    && (scope.access == access || (scope.access == Access::Write && access == Access::Read))
            })
    }

    /// Whether any scope opens `access` on some resource of `service`: enough to list, where the
    /// list then shows only what the grant reaches.
    pub fn allows_some(&self, service: Service, access: Access) -> bool {
        self.owner
            || self.scopes.iter().any(|scope| {
                scope.service == service && (scope.access == access || (scope.access == Access::Write && access == Access::Read))
            })
    }

    /// [`Self::allows`], as an error that names what is missing.
    ///
    /// # Errors
    /// [`Code::ScopeMissing`].
    pub fn require(&self, service: Service, names: &[&str], access: Access) -> Result<(), Error> {
        if self.allows(service, names, access) {
            return Ok(());
        }
        let wanted = Scope { service, resource: names.first().map_or("*", |name| name).to_owned(), access };
        Err(Error::new(Code::ScopeMissing, format!("the token does not allow this (expected the scope `{wanted}`)")))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = match self.service {
            Service::D1 => "d1",
            Service::Tokens => "tokens",
            Service::Account => "account",
        };
        let access = match self.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Create => "create",
        };
        write!(f, "{service}:{}:{access}", self.resource)
    }
}

impl FromStr for Scope {
    type Err = Error;

    /// # Errors
    /// [`Code::BadRequest`] with the grammar.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::new(
                Code::BadRequest,
                format!(
                    "not a scope (got `{text}`, expected `service:resource:access` with service d1, tokens or account, resource a name, an id or `*`, and access read, write or create)"
                ),
            )
        };
        let (service, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (resource, access) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let service = match service {
            "d1" => Service::D1,
            "tokens" => Service::Tokens,
            "account" => Service::Account,
            _ => return Err(wrong()),
        };
        let access = match access {
            "read" => Access::Read,
            "write" => Access::Write,
            "create" => Access::Create,
            _ => return Err(wrong()),
        };
        // What a name or an id may hold, and no more: a space or a colon here could say two scopes in one.
        let is_name = (1..=64).contains(&resource.len()) && resource.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if resource != "*" && !is_name {
            return Err(wrong());
        }
        Ok(Self { service, resource: resource.to_owned(), access })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_includes_read_and_create_includes_neither() {
        let grant = |text: &str| Grant::scoped(vec![text.parse().unwrap()]);
        assert!(grant("d1:orders:write").allows(Service::D1, &["orders"], Access::Read));
        assert!(!grant("d1:orders:read").allows(Service::D1, &["orders"], Access::Write));
        assert!(!grant("d1:*:create").allows(Service::D1, &["orders"], Access::Read));
        assert!(!grant("d1:*:write").allows(Service::D1, &[], Access::Create));
        assert!(!grant("d1:orders:write").allows(Service::D1, &[], Access::Write));
        assert!(!grant("tokens:*:write").allows(Service::D1, &["orders"], Access::Read));
    }

    #[test]
    fn a_scope_survives_its_text() {
        for text in ["d1:*:read", "d1:a-b_c:write", "tokens:*:create", "account:*:read"] {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "d1",
            "d1:read",
            "d2:*:read",
            "d1::read",
            "d1:*:all",
            "d1: a:read",
            "d1:a:b:read",
            "d1:**:read",
            "tokens:x:read d1:*:write tokens:y:create",
        ] {
            assert!(text.parse::<Scope>().is_err(), "{text}");
        }
    }
}
