//! The one place where a credential is looked at.
//!
//! A secret comes as `Authorization: Bearer`, as `X-Auth-Key` (whose `X-Auth-Email` says nothing here)
//! or as `x-terminal-key`; the first of them that is there counts. It is the owner's key or an API token.

use std::sync::Arc;

use axum::http::{HeaderMap, header::AUTHORIZATION};
use base::{Access, Code, Ctx, Error, Grant, Result, Service, TokenId};
use subtle::ConstantTimeEq;

use crate::App;

/// Bytes of a secret that is looked up at all; tokens have 44.
const SECRET_BYTES_MAX: usize = 512;

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Nothing; the answer holds nothing worth guarding.
    Open,
    /// Nothing but the link itself: the path ends in a secret that was given to a caller who was asked.
    Link,
    /// Any credential that lives.
    Known,
    /// A scope. For one resource among many the service asks again, with the resource's name.
    Needs(Service, Access),
}

/// Who asks.
pub(crate) struct Caller {
    pub(crate) grant: Arc<Grant>,
    /// The token's id; `None` for the owner and where no credential is asked for.
    pub(crate) token: Option<TokenId>,
}

impl Caller {
    /// A caller of an open route, who may do nothing else.
    fn nobody() -> Self {
        Self { grant: Arc::new(Grant::scoped(Vec::new())), token: None }
    }
}

/// Lets a request in, or says why not.
///
/// # Errors
/// [`Code::CredentialMissing`], [`Code::CredentialUnknown`], [`Code::ScopeMissing`], and the
/// catalogue's own failures.
pub(crate) async fn admit(app: &App, request_id: &str, headers: &HeaderMap, guard: Guard) -> Result<Caller> {
    let needs = match guard {
        Guard::Open | Guard::Link => return Ok(Caller::nobody()),
        Guard::Known => None,
        Guard::Needs(service, access) => Some((service, access)),
    };
    let caller = identify(app, request_id, secret_of(headers)?).await?;
    if let Some((service, access)) = needs {
        check_scope(&caller.grant, service, access)?;
    }
    Ok(caller)
}

/// The secret that a request carries.
fn secret_of(headers: &HeaderMap) -> Result<&[u8]> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let value = value.as_bytes();
        let is_bearer = value.len() > 7 && value[..7].eq_ignore_ascii_case(b"bearer ");
        if !is_bearer {
            return Err(Error::new(Code::CredentialUnknown, "the Authorization header has another scheme (expected `Bearer <token>`)"));
        }
        return Ok(value[7..].trim_ascii());
    }
    headers.get("x-auth-key").or_else(|| headers.get("x-terminal-key")).map(|value| value.as_bytes()).ok_or_else(|| {
        Error::new(Code::CredentialMissing, "no credential (expected `Authorization: Bearer <token>`, `X-Auth-Key` or `x-terminal-key`)")
    })
}

async fn identify(app: &App, request_id: &str, secret: &[u8]) -> Result<Caller> {
    let owner_key = app.config.owner_key.as_bytes();
    if !owner_key.is_empty() && bool::from(owner_key.ct_eq(secret)) {
        return Ok(Caller { grant: Arc::new(Grant::owner()), token: None });
    }
    let unknown = || Error::new(Code::CredentialUnknown, "the credential is not known: mistyped, expired or revoked");
    let secret = std::str::from_utf8(secret).ok().filter(|secret| secret.len() <= SECRET_BYTES_MAX).ok_or_else(unknown)?;
    let ctx = Ctx { request_id: request_id.to_owned(), ..Ctx::owner(Arc::clone(&app.clock), Arc::clone(&app.rng)) };
    let (token, grant) = app.d1.token_grant(&ctx, secret).await?.ok_or_else(unknown)?;
    Ok(Caller { grant: Arc::new(grant), token: Some(token) })
}

/// Whether the grant reaches any resource of the service. Which one is the service's question, as it knows its names.
fn check_scope(grant: &Grant, service: Service, access: Access) -> Result<()> {
    if grant.allows_some(service, access) { Ok(()) } else { grant.require(service, &[], access) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(list: &[(&'static str, &'static [u8])]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_bytes(value).unwrap())).collect()
    }

    #[test]
    fn a_secret_is_read_from_three_headers_in_order() {
        for (list, secret) in [
            (&[("authorization", &b"Bearer abc"[..])][..], &b"abc"[..]),
            (&[("authorization", b"bearer  abc ")], b"abc"),
            (&[("x-auth-key", b"abc"), ("x-auth-email", b"a@b")], b"abc"),
            (&[("x-terminal-key", b"abc")], b"abc"),
            (&[("x-terminal-key", b"no"), ("authorization", b"Bearer abc")], b"abc"),
            (&[("authorization", b"Bearer \xe9")], b"\xe9"),
        ] {
            assert_eq!(secret_of(&headers(list)).unwrap(), secret, "{list:?}");
        }
    }

    #[test]
    fn no_header_and_another_scheme_are_told_apart() {
        assert_eq!(secret_of(&headers(&[])).unwrap_err().code, Code::CredentialMissing);
        for value in [&b"Basic YTpi"[..], b"Bearer", b"Bearer ", b"abc", b""] {
            let map: HeaderMap = [(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap())].into_iter().collect();
            assert!(secret_of(&map).is_err() || secret_of(&map).unwrap().is_empty(), "{value:?}");
        }
    }

    #[test]
    fn a_scope_on_one_resource_opens_the_door_and_no_more_than_its_access() {
        let grant = |text: &str| Grant::scoped(vec![text.parse().unwrap()]);
        assert!(check_scope(&grant("d1:shop:write"), Service::D1, Access::Read).is_ok());
        assert!(check_scope(&grant("d1:shop:read"), Service::D1, Access::Write).is_err());
        assert!(check_scope(&grant("d1:*:write"), Service::D1, Access::Create).is_err());
        assert!(check_scope(&grant("d1:shop:create"), Service::D1, Access::Create).is_ok());
        assert!(check_scope(&grant("d1:*:create"), Service::D1, Access::Create).is_ok());
        assert!(check_scope(&grant("tokens:*:read"), Service::D1, Access::Read).is_err());
        assert!(check_scope(&Grant::owner(), Service::D1, Access::Create).is_ok());
    }
}
