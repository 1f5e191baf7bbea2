//! Deployments: the definitions that a workspace works with, as differences (ADR-057).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AssetId, AssetKey, ParseError};

use super::Payload;
use crate::audit::Act;
use crate::definitions::AssetDef;

/// The definitions of a project were deployed. Only what differs from the deployment before is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetsDeployed {
    /// Number of the deployment, from 1.
    pub number: u64,
    /// Digest of the whole manifest, as the SDK wrote it.
    pub digest: Arc<str>,
    /// Release of the time zone database that partitions follow, such as `2026f`.
    pub time_zones: Arc<str>,
    /// Name of the project.
    pub project: String,
    /// Assets that are new or different, by key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upsert: Vec<DeployedAsset>,
    /// Assets that are no longer declared, by key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<AssetKey>,
}

/// One asset of a deployment. Its definition has a valid key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire")]
pub struct DeployedAsset {
    #[serde(skip_serializing)]
    key: AssetKey,
    asset_id: AssetId,
    definition: Arc<AssetDef>,
}

#[derive(Deserialize)]
struct Wire {
    asset_id: AssetId,
    definition: Arc<AssetDef>,
}

impl TryFrom<Wire> for DeployedAsset {
    type Error = ParseError;

    fn try_from(wire: Wire) -> Result<Self, ParseError> {
        Self::new(wire.asset_id, wire.definition)
    }
}

impl DeployedAsset {
    /// An asset under its id; refused if its key is none.
    pub fn new(asset_id: AssetId, definition: Arc<AssetDef>) -> Result<Self, ParseError> {
        Ok(Self { key: AssetKey::parse(&definition.key)?, asset_id, definition })
    }

    /// Its key.
    pub fn key(&self) -> &AssetKey {
        &self.key
    }

    /// The id that it keeps.
    pub fn asset_id(&self) -> AssetId {
        self.asset_id
    }

    /// The declaration.
    pub fn definition(&self) -> &Arc<AssetDef> {
        &self.definition
    }
}

impl Payload for AssetsDeployed {
    /// `deploy:{number}:{digest}`: what was deployed before can be deployed again.
    fn idempotency_key(&self) -> String {
        format!("deploy:{}:{}", self.number, self.digest)
    }

    fn act(&self) -> Option<Act> {
        let (upserted, removed) = (self.upsert.len(), self.removed.len());
        let detail = format!("deployment {}: {upserted} changed, {removed} removed", self.number);
        Some(Act::new(Act::DEPLOY, &self.project, detail))
    }
}
