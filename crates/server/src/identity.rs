//! Who asks and what account there is: the first calls of wrangler and the SDK.

use api::{
    account::{Account, Membership, TokenVerify, User},
    envelope::{self, ResultInfo},
};
use base::Result;

use crate::{answer::Answer, call::Call};

/// `GET /user/tokens/verify`. A credential that does not live is refused before this is reached.
#[expect(clippy::unused_async, reason = "a handler")]
pub(crate) async fn verify(call: Call) -> Result<Answer> {
    let id = call.token.as_ref().map_or_else(|| call.app.config.account.to_string(), ToString::to_string);
    Ok(Answer::json(envelope::success(TokenVerify { id, status: "active".to_owned() })))
}

/// `GET /user`. There is one user, the owner, and the account's id is theirs.
#[expect(clippy::unused_async, reason = "a handler")]
pub(crate) async fn user(call: Call) -> Result<Answer> {
    let config = &call.app.config;
    Ok(Answer::json(envelope::success(User { id: config.account.to_string(), email: config.owner_email.clone() })))
}

/// `GET /accounts`.
#[expect(clippy::unused_async, reason = "a handler")]
pub(crate) async fn accounts(call: Call) -> Result<Answer> {
    one_page(&call, the_account(&call))
}

/// `GET /accounts/{account}`.
#[expect(clippy::unused_async, reason = "a handler")]
pub(crate) async fn account(call: Call) -> Result<Answer> {
    Ok(Answer::json(envelope::success(the_account(&call))))
}

/// `GET /memberships`.
#[expect(clippy::unused_async, reason = "a handler")]
pub(crate) async fn memberships(call: Call) -> Result<Answer> {
    let role = if call.ctx.grant.is_owner() { "Owner" } else { "API token" };
    let account = the_account(&call);
    let membership = Membership { id: account.id.clone(), status: "accepted".to_owned(), account, roles: vec![role.to_owned()] };
    one_page(&call, membership)
}

fn the_account(call: &Call) -> Account {
    Account { id: call.app.config.account.to_string(), name: call.app.config.account_name.clone() }
}

/// A list of one item: on the first page, and on no other.
fn one_page<T: serde::Serialize>(call: &Call, item: T) -> Result<Answer> {
    let (page, per_page) = call.query.page()?;
    let items: Vec<T> = if page == 1 { vec![item] } else { Vec::new() };
    let info = ResultInfo::new(page, per_page, items.len(), 1);
    Ok(Answer::json(envelope::page(items, info)))
}
