//! Rows about what is deployed.

use servo_core::{AssetId, AssetKey, EventId, Timestamp};

/// One row of `asset_definitions`: an asset that is or was deployed, as of the last deployment that had it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AssetDefinitionRow {
    pub asset_key: AssetKey,
    /// Kept over deployments, also if the asset was removed in between.
    pub asset_id: AssetId,
    /// JSON of the asset, as in the manifest.
    pub definition: String,
    pub code_version: Option<String>,
    pub group_name: Option<String>,
    /// The deployment that last changed or removed it.
    pub deployment_number: u64,
    pub deployment_digest: String,
    /// When this definition was deployed.
    pub deployed_at: Timestamp,
    /// When the asset was removed; none if it is deployed.
    pub removed_at: Option<Timestamp>,
    pub row_version: EventId,
}

/// One row of `deployments`. The newest is hot; those before are written once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DeploymentRow {
    pub number: u64,
    pub digest: String,
    pub project: String,
    pub actor: String,
    /// How many assets are deployed with it.
    pub assets: u32,
    pub assets_upserted: u32,
    pub assets_removed: u32,
    pub deployed_at: Timestamp,
    pub row_version: EventId,
}
