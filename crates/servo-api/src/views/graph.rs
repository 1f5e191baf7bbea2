//! The graph of assets, small enough to be sent whole.

use serde::{Deserialize, Serialize};
use servo_core::AssetKey;
use utoipa::ToSchema;

use super::Asset;
use super::assets::{AssetActivity, PartitionTotals};
use super::staleness::StaleTotals;

/// Assets and what reads what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Graph {
    /// The assets, by key.
    pub nodes: Vec<GraphNode>,
    /// Pairs of positions in `nodes`: from an asset to one that reads it or waits for it.
    pub edges: Vec<(u32, u32)>,
    /// Whether there are more assets than are sent.
    pub has_more: bool,
}

/// An asset as a graph shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GraphNode {
    /// `namespace/name`.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// Its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The first of its kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Made outside of Servo; never planned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub external: bool,
    /// Whether it has partitions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partitioned: bool,
    /// Number of partitions by status.
    pub partitions: PartitionTotals,
    /// Tasks that failed since the last one that succeeded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// When it was last made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_success_at: Option<servo_core::Timestamp>,
    /// Whether all checks passed when they last ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_check_passed: Option<bool>,
    /// Since when it is older than its freshness allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub late_since: Option<servo_core::Timestamp>,
    /// Its stale partitions; absent if it is up to date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<StaleTotals>,
    /// Number of its checks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checks: u32,
    /// The first of its owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Its tasks that have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<AssetActivity>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl From<Asset> for GraphNode {
    fn from(asset: Asset) -> Self {
        let health = asset.health.unwrap_or_default();
        Self {
            asset_key: asset.asset_key,
            group: asset.group,
            kind: asset.kinds.into_iter().next(),
            external: asset.external,
            partitioned: asset.partitioned,
            partitions: asset.partitions,
            failures: health.consecutive_failures,
            last_success_at: health.last_success_at,
            last_check_passed: health.last_check_passed,
            late_since: asset.late_since,
            stale: asset.stale,
            checks: asset.checks,
            owner: asset.owners.into_iter().next(),
            active: asset.active,
        }
    }
}
