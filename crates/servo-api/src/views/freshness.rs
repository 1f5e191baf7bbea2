//! Freshness of assets.

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, Millis, Timestamp};
use servo_engine::FreshnessStatus;
use servo_engine::freshness::Evaluated;
use utoipa::ToSchema;

use super::names::FreshnessStatusName;

/// How fresh an asset is that has a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct AssetFreshness {
    /// `namespace/name`.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    #[schema(value_type = FreshnessStatusName)]
    pub status: FreshnessStatus,
    /// Since when it has this status; if it is fresh, the time of its data.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// When the oldest of what its newest data was made from was made; absent if it was never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub data_as_of: Option<Timestamp>,
    /// How old that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub lag_ms: Option<Millis>,
    /// When it fails if nothing is made until then, or has failed.
    #[schema(value_type = String, format = DateTime)]
    pub fails_at: Timestamp,
}

impl AssetFreshness {
    pub(crate) fn new(asset: &AssetKey, found: &Evaluated, now: Timestamp) -> Self {
        Self {
            asset_key: asset.clone(),
            status: found.status,
            since: found.since,
            data_as_of: found.data_as_of,
            lag_ms: found.data_as_of.map(|at| now.since(at)),
            fails_at: found.fails_at,
        }
    }
}
