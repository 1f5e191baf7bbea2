//! What is deployed.

use serde::{Deserialize, Serialize};
use servo_core::{EventId, Timestamp};
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
    /// How many assets are deployed with it.
    pub assets: u32,
    /// How many of them were new or different.
    pub assets_upserted: u32,
    /// How many assets it removed.
    pub assets_removed: u32,
    #[schema(value_type = String, format = DateTime)]
    pub deployed_at: Timestamp,
    #[schema(value_type = String)]
    pub event_id: EventId,
}

/// What became of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deployed {
    /// `sha256:` and the hash of its canonical text.
    pub digest: String,
    /// How many assets it has.
    pub assets: u64,
    /// The event; absent if the very same was deployed before.
    #[serde(flatten)]
    pub accepted: Accepted,
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
