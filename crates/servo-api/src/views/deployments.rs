//! Deployments.

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, EventId, Timestamp};
use servo_engine::rows::{DefinitionVersionRow, DeploymentRow};
use utoipa::ToSchema;

use super::definition_diff::{self, FieldChange};
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

/// A deployment, with what it has and what it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct DeploymentDetail {
    #[serde(flatten)]
    pub deployment: Deployment,
    /// Whether it is what the workspace runs with.
    pub is_current: bool,
    /// Number of schedules that code declares.
    pub schedules: u64,
    /// Number of sensors that code declares.
    pub sensors: u64,
    /// What it changed of the deployment before it.
    pub changes: DiffCounts,
}

/// How many definitions differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffCounts {
    /// Definitions that are new.
    pub added: u64,
    /// Definitions with another meaning.
    pub changed: u64,
    /// Definitions that are at another place in the code, and else the same.
    pub moved: u64,
    /// Definitions that are gone.
    pub removed: u64,
}

/// The differences between two deployments, a page of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentDiff {
    /// The deployment that is compared; 0 is before the first.
    pub from: u64,
    /// The deployment that it is compared with.
    pub to: u64,
    /// How many there are of each kind.
    pub counts: DiffCounts,
    /// Differences: assets, then schedules, then sensors, each by name.
    pub items: Vec<DefinitionDiff>,
    /// Where the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A definition that differs between two deployments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DefinitionDiff {
    /// `asset`, `schedule` or `sensor`.
    pub kind: String,
    /// The key of an asset, the name of a schedule or a sensor.
    pub name: String,
    /// `ADDED`, `CHANGED`, `MOVED` or `REMOVED`.
    pub change: String,
    /// Fields that differ; of one that is changed or moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// Fields that differ and are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_fields: u64,
}

/// A version of an asset's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct AssetVersion {
    /// The deployment that brought it.
    pub deployment: u64,
    /// `ADDED`, `CHANGED`, `MOVED` or `REMOVED`.
    pub change: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_version: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub deployed_at: Timestamp,
    /// Fields that differ from the version before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// Fields that differ and are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_fields: u64,
}

/// A request to make the definitions of an earlier deployment current.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackBody {
    /// The number that the caller knows as current; refused if there is another by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_current: Option<u64>,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// The result of returning to an earlier deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RolledBack {
    /// The deployment whose definitions are current.
    pub rolled_back_to: u64,
    /// Digest of its manifest.
    pub digest: String,
    /// Number of assets.
    pub assets: u64,
    /// Workers that have other code: they get no tasks until they have that of the deployment.
    pub outdated_workers: u64,
    /// The event; absent if the deployment was current already.
    #[serde(flatten)]
    pub accepted: Accepted,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl AssetVersion {
    /// A version, compared with the one before it.
    pub(crate) fn of(row: &DefinitionVersionRow, before: Option<&DefinitionVersionRow>) -> Self {
        let earlier = before.and_then(|row| row.definition.as_ref());
        let fields = match (earlier, row.definition.as_ref()) {
            (Some(before), Some(after)) => definition_diff::fields(before, after),
            _ => definition_diff::Fields::default(),
        };
        let is_moved = !fields.listed.is_empty() && !fields.is_more_than_moved;
        Self {
            deployment: row.deployment_number,
            change: if is_moved { "MOVED".to_owned() } else { row.change.to_text() },
            code_version: row.code_version.clone(),
            deployed_at: row.deployed_at,
            more_fields: fields.more,
            fields: fields.listed,
        }
    }
}

impl From<DeploymentRow> for Deployment {
    fn from(row: DeploymentRow) -> Self {
        Self {
            number: row.number,
            digest: row.digest,
            time_zones: row.time_zones,
            project: row.project,
            deployed_by: row.deployed_by.to_string(),
            assets: row.assets,
            assets_upserted: row.assets_upserted,
            assets_removed: row.assets_removed,
            deployed_at: row.deployed_at,
            event_id: row.row_version,
        }
    }
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
