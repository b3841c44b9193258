//! Who asks, and what account there is: what `wrangler whoami` and the first calls of a client read.

use serde::{Deserialize, Serialize};

/// The account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// 32 hex digits.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// Answer of `GET /user`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// 32 hex digits.
    pub id: String,
    /// Shown by `wrangler whoami`.
    pub email: String,
}

/// One member of `GET /memberships`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// 32 hex digits.
    pub id: String,
    /// Always `accepted`.
    pub status: String,
    /// The account.
    pub account: Account,
    /// What the credential is: the owner's key or a token.
    pub roles: Vec<String>,
}

/// Answer of `GET /user/tokens/verify`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenVerify {
    /// The token's id; the account's, for the owner's key.
    pub id: String,
    /// Always `active`: other tokens are refused before.
    pub status: String,
}
