//! Reviews of what a check had blocked (ADR-062).

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, MaterializationId};

use super::Payload;
use crate::audit::Act;

/// A blocked output was approved: it counts as soon as it is released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaterializationApproved {
    /// The asset.
    pub asset_key: AssetKey,
    /// The quarantined materialization.
    pub materialization_id: MaterializationId,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A quarantined materialization was rejected and is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaterializationRejected {
    /// The asset.
    pub asset_key: AssetKey,
    /// The quarantined materialization.
    pub materialization_id: MaterializationId,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The data of what was approved has been moved out of quarantine: it counts from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaterializationReleased {
    /// The asset.
    pub asset_key: AssetKey,
    /// The approved materialization.
    pub materialization_id: MaterializationId,
}

impl Payload for MaterializationApproved {
    /// A materialization is reviewed once: `review:{asset}:{materialization}`.
    fn idempotency_key(&self) -> String {
        format!("review:{}:{}", self.asset_key.canonical(), self.materialization_id)
    }

    fn act(&self) -> Option<Act> {
        let detail = format!("{} {}", self.materialization_id, self.reason);
        Some(Act::new(Act::APPROVE, &self.asset_key, detail.trim_end()))
    }
}

impl Payload for MaterializationRejected {
    /// A materialization is reviewed once: `review:{asset}:{materialization}`.
    fn idempotency_key(&self) -> String {
        format!("review:{}:{}", self.asset_key.canonical(), self.materialization_id)
    }

    fn act(&self) -> Option<Act> {
        let detail = format!("{} {}", self.materialization_id, self.reason);
        Some(Act::new(Act::REJECT, &self.asset_key, detail.trim_end()))
    }
}

impl Payload for MaterializationReleased {
    /// Something is released once: `release:{asset}:{materialization}`.
    fn idempotency_key(&self) -> String {
        format!("release:{}:{}", self.asset_key.canonical(), self.materialization_id)
    }
}
