//! Sessions of browsers: whose they are, and when they end. A session that is not in the ledger is none.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use servo_core::Timestamp;
use servo_engine::Principal;

use crate::grant::{Grant, Identity, Scope};
use crate::key::KeyId;
use crate::role::Role;
use crate::state::ControlState;

/// Bytes of an id.
const ID: usize = 8;
/// How every id begins.
const PREFIX: &str = "ses_";

/// The name of a session. It is no secret: what a browser shows is signed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// Makes one of random bytes.
    pub fn of(random: [u8; ID]) -> Self {
        Self(format!("{PREFIX}{}", HEXLOWER.encode(&random)))
    }

    /// It as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.strip_prefix(PREFIX).and_then(|id| HEXLOWER.decode(id.as_bytes()).ok());
        match bytes {
            Some(bytes) if bytes.len() == ID => Ok(Self(text.to_owned())),
            Some(_) | None => {
                Err("a session is ses_ and letters and digits, as servo admin sessions list shows them"
                    .to_owned())
            }
        }
    }
}

impl TryFrom<String> for SessionId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

/// Whose session it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum SessionOf {
    /// Of whoever runs this server.
    Owner,
    /// Of whoever has an API key, for as long as that is good.
    Key {
        /// The key.
        id: KeyId,
    },
    /// Of somebody whom another provider of identities vouched for.
    Identity(Identity),
}

impl SessionOf {
    /// How its holder logged in, as lists show it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Key { .. } => "key",
            Self::Identity(_) => "provider",
        }
    }
}

/// A session that was begun and has not been ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub of: SessionOf,
    /// The same as it is in the audit.
    pub principal: Principal,
    /// When the browser logged in.
    pub started_at: Timestamp,
    /// From then on it is refused.
    pub expires_at: Timestamp,
}

impl Session {
    /// The grants that its holder has with it. A key that is gone has none.
    pub fn grants(&self, state: &ControlState) -> Vec<Grant> {
        match &self.of {
            SessionOf::Owner => vec![Grant { role: Role::Admin, scope: Scope::Server, assets: None }],
            SessionOf::Key { id } => state.key(id).map(|key| key.grant.clone()).into_iter().collect(),
            SessionOf::Identity(identity) => identity.grants.clone(),
        }
    }

    /// Whether it is about nothing but what is in a scope, so that whoever manages that may end it.
    pub fn is_within(&self, state: &ControlState, is_in: impl Fn(&Scope) -> bool) -> bool {
        let grants = self.grants(state);
        match grants.as_slice() {
            [] => is_in(&Scope::Server),
            grants => grants.iter().all(|grant| is_in(&grant.scope)),
        }
    }
}
