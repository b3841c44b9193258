//! API tokens over REST: Cloudflare's paths, Hearth's shape (see `api::token`).

use api::{
    envelope,
    token::{CreateToken, Token},
};
use base::{Result, TokenId};

use crate::{answer::Answer, call::Call, convert};

/// `GET /user/tokens` and `GET /accounts/{account}/tokens`: the same list, as there is one user.
pub(crate) async fn list(call: Call) -> Result<Answer> {
    let (page, per_page) = call.query.page()?;
    let tokens = call.app.d1.token_list(&call.ctx, page, per_page).await?;
    let now = call.ctx.clock.now();
    Ok(Answer::json(convert::page(tokens, |info| convert::token(info, now))))
}

/// `POST /accounts/{account}/tokens`. The answer holds the secret, once.
pub(crate) async fn create(call: Call) -> Result<Answer> {
    let body: CreateToken = call.json()?;
    let (info, secret) = call.app.d1.token_create(&call.ctx, &body.name, body.scopes()?, body.expires_at()?).await?;
    let token = Token { value: Some(secret), ..convert::token(info, call.ctx.clock.now()) };
    Ok(Answer::json(envelope::success(token)))
}

/// `DELETE /accounts/{account}/tokens/{token}`.
pub(crate) async fn revoke(call: Call) -> Result<Answer> {
    let id = TokenId(call.capture("token").to_owned());
    let info = call.app.d1.token_revoke(&call.ctx, &id).await?;
    Ok(Answer::json(envelope::success(convert::token(info, call.ctx.clock.now()))))
}
