//! Freshness of assets: a status that changed, and a look that changed nothing but when to look again.

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, Millis, Timestamp};

use super::Payload;
use crate::lifecycle::FreshnessStatus;

/// An asset has become fresh, is about to be late, or is late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreshnessChanged {
    /// The asset.
    pub asset_key: AssetKey,
    /// The deployment that its policy is of.
    pub deployment: u64,
    /// The status before.
    pub old: FreshnessStatus,
    /// The status from now on.
    pub new: FreshnessStatus,
    /// Since when that holds: the deadline that was missed, even if nobody was there to notice it.
    pub since: Timestamp,
    /// When the oldest of what its newest data was made from was made; none if it was never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_as_of: Option<Timestamp>,
    /// How old that data is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_ms: Option<Millis>,
    /// When the status changes next if nothing is made until then; none if only something that is made can change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
}

impl Payload for FreshnessChanged {
    fn idempotency_key(&self) -> String {
        let data = self.data_as_of.map(|at| at.to_string()).unwrap_or_default();
        let (asset, status) = (self.asset_key.canonical(), self.new.name());
        format!("freshness:{asset}:{}:{status}:{data}", self.deployment)
    }
}

/// An asset was looked at when its deadline came, and has newer data: the deadline has moved, its status has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreshnessObserved {
    /// The asset.
    pub asset_key: AssetKey,
    /// The deployment that its policy is of.
    pub deployment: u64,
    /// When the oldest of what its newest data was made from was made; none if it was never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_as_of: Option<Timestamp>,
    /// When the status changes next if nothing is made until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
}

impl Payload for FreshnessObserved {
    fn idempotency_key(&self) -> String {
        let text = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
        let (asset, data, due) = (self.asset_key.canonical(), text(self.data_as_of), text(self.due_at));
        format!("freshness-observed:{asset}:{}:{data}:{due}", self.deployment)
    }
}
