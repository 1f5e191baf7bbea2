//! Pauses of dispatching: of everything, of a queue, of an asset (ADR-097).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, ParseError};

use super::Payload;
use crate::audit::Act;

/// The scope of a pause. Its text is `all`, `queue:NAME` or `asset:NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PauseScope {
    /// The whole workspace: nothing is dispatched and no queued run starts.
    All,
    /// Tasks of a queue.
    Queue(Arc<str>),
    /// Tasks that make an asset.
    Asset(AssetKey),
}

impl PauseScope {
    const QUEUE: &'static str = "queue:";
    pub(crate) const ASSET: &'static str = "asset:";
}

impl fmt::Display for PauseScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PauseScope::All => f.write_str("all"),
            PauseScope::Queue(queue) => write!(f, "{}{queue}", Self::QUEUE),
            PauseScope::Asset(asset) => write!(f, "{}{}", Self::ASSET, asset.canonical()),
        }
    }
}

impl FromStr for PauseScope {
    type Err = ParseError;

    /// Assets are taken as `namespace/name` and as `namespace.name`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text == "all" {
            return Ok(PauseScope::All);
        }
        if let Some(queue) = text.strip_prefix(Self::QUEUE)
            && !queue.is_empty()
            && queue.len() <= 256
            && !queue.chars().any(|c| c.is_control() || c.is_whitespace())
        {
            return Ok(PauseScope::Queue(queue.into()));
        }
        if let Some(asset) = text.strip_prefix(Self::ASSET) {
            let canonical = AssetKey::parse_canonical(asset);
            return canonical.or_else(|_| AssetKey::parse(asset)).map(PauseScope::Asset);
        }
        Err(ParseError {
            what: "scope",
            text: text.chars().take(80).collect(),
            at: 0,
            problem: "it is all, queue:NAME or asset:NAMESPACE.NAME".to_owned(),
        })
    }
}

impl TryFrom<String> for PauseScope {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl From<PauseScope> for String {
    fn from(scope: PauseScope) -> Self {
        scope.to_string()
    }
}

/// Dispatching was paused or resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseChanged {
    /// Its scope.
    pub scope: PauseScope,
    /// Number of this change among those of the scope, from 1.
    pub number: u64,
    /// Whether it is paused from now on.
    pub paused: bool,
    /// Why, in the words of whoever asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Payload for PauseChanged {
    /// `pause:{scope}:{number}`.
    fn idempotency_key(&self) -> String {
        format!("pause:{}:{}", self.scope, self.number)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::pause_action(self.paused), &self.scope, self.reason.as_str()))
    }
}
