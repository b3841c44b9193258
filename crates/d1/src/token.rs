//! API tokens: made, shown once, stored as a hash, looked up in memory.

use base::{Access, Code, Ctx, Error, Grant, Result, Scope, Service, Timestamp, TokenId};
use sha2::{Digest, Sha256};
use sqlite::Value;

use crate::{
    D1, Page, TokenInfo,
    catalogue::{self, TokenRecord, optional_time, statement, text},
    link,
};

/// What every secret begins with, so that one that leaked can be found by a scan.
const PREFIX: &str = "hth_";
const SECRET_LETTERS: usize = 40;
const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TOKENS_MAX: usize = 10_000;
const SCOPES_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 100;

/// A secret has 238 bits of chance, so one round of SHA-256 is enough against guessing.
fn hash(secret: &str) -> String {
    link::hex(&Sha256::digest(secret.as_bytes()))
}

fn new_secret(ctx: &Ctx) -> String {
    let mut secret = PREFIX.to_owned();
    let mut bytes = [0; 64];
    while secret.len() < PREFIX.len() + SECRET_LETTERS {
        ctx.rng.fill(&mut bytes);
        // Bytes past the last multiple of 62 are dropped, so that every letter is as likely.
        let letters = bytes.iter().filter(|b| **b < 248).map(|b| LETTERS[usize::from(*b % 62)] as char);
        secret.extend(letters.take(PREFIX.len() + SECRET_LETTERS - secret.len()));
    }
    secret
}

impl D1 {
    /// The grant of the token with this secret: `None` if no such token lives.
    ///
    /// The look-up is by the secret's hash, so its time tells nothing about other secrets.
    ///
    /// # Errors
    /// None today.
    #[expect(clippy::unused_async, reason = "the service's calls are all asynchronous")]
    pub async fn token_grant(&self, ctx: &Ctx, secret: &str) -> Result<Option<(TokenId, Grant)>> {
        if !secret.starts_with(PREFIX) {
            return Ok(None);
        }
        let catalogue = self.read_catalogue();
        let Some(token) = catalogue.tokens.get(&hash(secret)) else { return Ok(None) };
        let expired = token.info.expires_at.is_some_and(|end| end <= ctx.clock.now());
        if expired || token.info.revoked_at.is_some() {
            return Ok(None);
        }
        Ok(Some((token.info.id.clone(), token.grant())))
    }

    /// Makes a token; returns it with its secret (`hth_` and 40 letters), which is shown only now.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for a name, scope list or end that is not allowed; [`Code::ScopeMissing`]
    /// if the caller may not make tokens or the token would allow more than the caller may do.
    pub async fn token_create(
        &self,
        ctx: &Ctx,
        name: &str,
        scopes: Vec<Scope>,
        expires_at: Option<Timestamp>,
    ) -> Result<(TokenInfo, String)> {
        ctx.grant.require(Service::Tokens, &[], Access::Create)?;
        for scope in &scopes {
            let names: &[&str] = if scope.resource == "*" { &[] } else { &[&scope.resource] };
            ctx.grant.require(scope.service, names, scope.access)?;
        }
        let wrong = |text: String| Err(Error::new(Code::BadRequest, text));
        if name.trim().is_empty() || name.chars().count() > NAME_CHARS_MAX {
            return wrong(format!("a token needs a name of 1 to {NAME_CHARS_MAX} characters"));
        }
        if scopes.is_empty() || scopes.len() > SCOPES_MAX {
            return wrong(format!("a token needs 1 to {SCOPES_MAX} scopes (got {}), for example `d1:*:read`", scopes.len()));
        }
        let now = ctx.clock.now();
        if expires_at.is_some_and(|end| end <= now) {
            return wrong("the token's end lies in the past".to_owned());
        }
        if let Some(end) = ctx.grant.ends_at()
            && expires_at.is_none_or(|own| own > end)
        {
            return wrong("a token cannot outlive the one that makes it; give it an end that is not later".to_owned());
        }
        let _changing = self.changing.lock().await;
        if self.read_catalogue().tokens.len() >= TOKENS_MAX {
            self.forget_dead_tokens(now).await?;
        }
        if self.read_catalogue().tokens.len() >= TOKENS_MAX {
            return Err(Error::new(Code::BadRequest, format!("there are {TOKENS_MAX} tokens already; no more can be made")));
        }
        let secret = new_secret(ctx);
        let info = TokenInfo {
            id: TokenId::random(ctx.rng.as_ref()),
            name: name.trim().to_owned(),
            scopes,
            created_at: now,
            expires_at,
            revoked_at: None,
        };
        let record = TokenRecord { info: info.clone(), hash: hash(&secret) };
        let list: Vec<String> = info.scopes.iter().map(ToString::to_string).collect();
        let params = vec![
            text(info.id.to_string()),
            text(info.name.clone()),
            text(record.hash.clone()),
            text(list.join(" ")),
            Value::Integer(now.0),
            optional_time(expires_at),
        ];
        let sql = "INSERT INTO tokens(id, name, hash, scopes, created_at, expires_at) VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
        catalogue::run(&self.system, vec![statement(sql, params)]).await?;
        self.catalogue.write().expect("no thread panics while it holds the catalogue").tokens.insert(record.hash.clone(), record);
        Ok((info, secret))
    }

    /// Makes room: tokens that were revoked or have ended are taken out of the list.
    async fn forget_dead_tokens(&self, now: Timestamp) -> Result<()> {
        let sql = "DELETE FROM tokens WHERE revoked_at IS NOT NULL OR expires_at <= ?1";
        catalogue::run(&self.system, vec![statement(sql, vec![Value::Integer(now.0)])]).await?;
        let mut catalogue = self.catalogue.write().expect("no thread panics while it holds the catalogue");
        catalogue.tokens.retain(|_, token| token.info.revoked_at.is_none() && token.info.expires_at.is_none_or(|end| end > now));
        Ok(())
    }

    /// All tokens, newest first, revoked and expired ones too.
    ///
    /// # Errors
    /// [`Code::ScopeMissing`].
    #[expect(clippy::unused_async, reason = "the service's calls are all asynchronous")]
    pub async fn token_list(&self, ctx: &Ctx, page: u64, per_page: u64) -> Result<Page<TokenInfo>> {
        ctx.grant.require(Service::Tokens, &[], Access::Read)?;
        let mut all: Vec<TokenInfo> = self.read_catalogue().tokens.values().map(|token| token.info.clone()).collect();
        all.sort_by(|a, b| (b.created_at, &b.id.0).cmp(&(a.created_at, &a.id.0)));
        let (page, per_page, total) = (page.max(1), per_page.clamp(1, 1_000), all.len() as u64);
        let skip = usize::try_from((page - 1).saturating_mul(per_page)).unwrap_or(usize::MAX);
        let items = all.into_iter().skip(skip).take(per_page as usize).collect();
        Ok(Page { items, page, per_page, total })
    }

    /// Revokes a token. It is refused from the moment this returns.
    ///
    /// # Errors
    /// [`Code::TokenNotFound`], [`Code::ScopeMissing`].
    pub async fn token_revoke(&self, ctx: &Ctx, id: &TokenId) -> Result<TokenInfo> {
        ctx.grant.require(Service::Tokens, &[], Access::Write)?;
        let _changing = self.changing.lock().await;
        let found = self.read_catalogue().tokens.values().find(|token| token.info.id == *id).cloned();
        let mut token = found.ok_or_else(|| Error::new(Code::TokenNotFound, format!("no token with the id `{id}`")))?;
        if token.info.revoked_at.is_none() {
            let now = ctx.clock.now();
            let sql = "UPDATE tokens SET revoked_at = ?1 WHERE id = ?2";
            catalogue::run(&self.system, vec![statement(sql, vec![Value::Integer(now.0), text(id.to_string())])]).await?;
            token.info.revoked_at = Some(now);
            self.catalogue.write().expect("no thread panics while it holds the catalogue").tokens.insert(token.hash.clone(), token.clone());
        }
        Ok(token.info)
    }
}
