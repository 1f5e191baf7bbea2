//! Deployments.

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, EventId, Timestamp};
use utoipa::ToSchema;

use super::requests::Accepted;

/// A deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Deployment {
    /// Its number, from 1.
    pub number: u64,
    /// Digest of the manifest.
    pub digest: String,
    /// Release of the time zone database that its partitions follow.
    pub time_zones: String,
    pub project: String,
    pub deployed_by: String,
    /// Number of deployed assets.
    pub assets: u32,
    /// Number of new or changed assets.
    pub assets_upserted: u32,
    /// Number of removed assets.
    pub assets_removed: u32,
    #[schema(value_type = String, format = DateTime)]
    pub deployed_at: Timestamp,
    #[schema(value_type = String)]
    pub event_id: EventId,
}

/// The result of deploying a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deployed {
    /// `sha256:` and the hash of its canonical text.
    pub digest: String,
    /// Number of assets.
    pub assets: u64,
    /// Assets whose partitions are others than before, and what becomes of those that are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repartitioned: Vec<Repartitioned>,
    /// The event; absent if the very same manifest was deployed already, or it was only looked at.
    #[serde(flatten)]
    pub accepted: Accepted,
}

/// An asset whose partitions are others than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Repartitioned {
    /// The asset.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// Partitions that keep their status.
    pub kept: u64,
    /// Partitions that the new definition does not have. They stay until they are wiped.
    pub outside: u64,
}

impl From<servo_engine::requests::Repartitioned> for Repartitioned {
    fn from(found: servo_engine::requests::Repartitioned) -> Self {
        Self { asset_key: found.asset, kept: found.kept, outside: found.outside }
    }
}

impl From<&servo_engine::Deployment> for Deployment {
    fn from(deployment: &servo_engine::Deployment) -> Self {
        Self {
            number: deployment.number,
            digest: deployment.digest.to_string(),
            time_zones: deployment.time_zones.to_string(),
            project: deployment.project.clone(),
            deployed_by: deployment.principal.to_string(),
            assets: deployment.assets,
            assets_upserted: deployment.upserted,
            assets_removed: deployment.removed,
            deployed_at: deployment.deployed_at,
            event_id: deployment.event_id,
        }
    }
}
