//! Assets that are given another name, and their data, which follows (ADR-181).

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, EventId};

use super::Payload;
use crate::audit::Act;

/// Intent: what was made of an asset belongs to another name from now on, and its data is moved there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetRenamed {
    /// The name before.
    pub asset_key: AssetKey,
    /// The name from now on.
    pub renamed_to: AssetKey,
    /// The newest event when it was decided: tells one rename from the next.
    pub after: EventId,
}

/// Acknowledgement: the data is where the new name is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetMoved {
    /// The name before.
    pub asset_key: AssetKey,
    /// The event that renamed it.
    pub renamed_by: EventId,
}

impl Payload for AssetRenamed {
    /// `rename:{asset}:{after}`.
    fn idempotency_key(&self) -> String {
        format!("rename:{}:{}", self.asset_key.canonical(), self.after)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::RENAME, &self.asset_key, format!("to {}", self.renamed_to)))
    }
}

impl Payload for AssetMoved {
    /// `moved:{asset}:{event}`.
    fn idempotency_key(&self) -> String {
        format!("moved:{}:{}", self.asset_key.canonical(), self.renamed_by)
    }
}
