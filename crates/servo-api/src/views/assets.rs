//! Assets, their partitions, and what waits for review.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_core::partitions::MappingDef;
use servo_core::{
    AssetId, AssetKey, EventId, MaterializationId, Millis, PartitionKey, PartitionsDef, RunId, TaskKey,
    Timestamp,
};
use servo_engine::definitions::AssetDef;
use servo_engine::rows::QuarantineRow;
use servo_engine::{
    AssetState, AttemptOutcome, DataFormat, DataStatus, GatingDecision, Materialized, PartitionCounts,
    PartitionStatus,
};
use utoipa::ToSchema;

use super::freshness::AssetFreshness;
use super::names::{AttemptOutcomeName, DataFormatName, DataStatusName, GatingDecisionName};
use super::outputs::Output;
use super::staleness::StaleTotals;
use super::tasks::Task;

/// An asset that is deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Asset {
    /// `namespace/name`.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// Kept over deployments.
    #[schema(value_type = String)]
    pub asset_id: AssetId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_version: Option<String>,
    /// Made outside of Servo; never planned.
    pub external: bool,
    /// Whether it has partitions; without them it counts as one.
    pub partitioned: bool,
    /// How it is partitioned, as in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub partitioning: Option<PartitionsDef>,
    pub partitions: PartitionTotals,
    /// Upstream assets, as `namespace/name`.
    #[schema(value_type = Vec<String>)]
    pub upstream: Vec<AssetKey>,
    /// How many checks it has.
    pub checks: u32,
    /// How it fares; absent if it was never attempted nor checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<AssetHealth>,
    /// Since when it is older than its freshness allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub late_since: Option<Timestamp>,
    /// How fresh it is; absent if it has no policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freshness: Option<AssetFreshness>,
    /// Its stale partitions; absent if it is up to date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<StaleTotals>,
    /// Its tasks that have not ended; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<AssetActivity>,
    /// What has it made without anybody asking: its condition, and schedules and sensors whose selection has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub automation: Vec<AssetAutomation>,
}

/// Something that has an asset made without anybody asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetAutomation {
    /// `condition`, `schedule` or `sensor`.
    pub kind: String,
    /// Name of the schedule or sensor; the condition as it could be written in Python.
    pub name: String,
    /// Whether it is paused.
    pub paused: bool,
}

/// Tasks of an asset that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetActivity {
    /// Tasks that workers are at.
    pub running: u32,
    /// Tasks that wait: for others, for a place, for a worker, to be tried again.
    pub waiting: u32,
    /// The newest run that has any of them.
    #[schema(value_type = String)]
    pub run_id: RunId,
}

/// Number of partitions by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartitionTotals {
    /// Number of partitions.
    pub total: u64,
    /// Materialized, and the last attempt succeeded.
    pub materialized: u64,
    /// Materialized, and the last attempt failed.
    pub last_attempt_failed: u64,
    /// Attempted, and never materialized.
    pub never_succeeded: u64,
    /// Materialized, and too old to count.
    pub expired: u64,
}

/// Details of one asset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AssetDetail {
    /// The asset.
    #[serde(flatten)]
    pub asset: Asset,
    /// The declaration, as in the manifest.
    #[schema(value_type = Object)]
    pub definition: serde_json::Value,
    /// How it reads what it reads or waits for.
    pub deps: Vec<AssetDep>,
    /// Assets that read it or wait for it, as `namespace/name`.
    #[schema(value_type = Vec<String>)]
    pub downstream: Vec<AssetKey>,
    /// Other outputs of the same function, as `namespace/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub made_with: Vec<AssetKey>,
    /// The first of its partitions, as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_partition: Option<String>,
    /// The last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_partition: Option<String>,
    /// How long an attempt to make it may run: as it says itself, or setting `execution_timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub timeout_ms: Option<Millis>,
    /// The latest materialization: of the last partition in the order of keys that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Materialization>,
}

/// An asset that another one reads or waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetDep {
    /// Which, as `namespace/name`.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// The parameter that receives its data; absent if only the order matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// Whether it has partitions.
    pub partitioned: bool,
    /// Which of its partitions, as in the manifest.
    #[schema(value_type = Object)]
    pub mapping: MappingDef,
}

/// Assets and what reads what, as commands print it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetGraph {
    /// The assets, by key.
    pub nodes: Vec<Asset>,
    /// From an asset to one that reads it or waits for it, each once.
    pub edges: Vec<AssetEdge>,
}

/// An asset that another one reads or waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AssetEdge {
    /// The one that is read.
    pub from: AssetKey,
    /// The one that reads it.
    pub to: AssetKey,
}

/// A good materialization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Materialization {
    #[schema(value_type = String)]
    pub materialization_id: MaterializationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub partition_key: Option<PartitionKey>,
    /// The partition as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The run that made it; absent if somebody has said that it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub run_id: Option<RunId>,
    #[schema(value_type = String, format = DateTime)]
    pub materialized_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DataFormatName>)]
    pub format: Option<DataFormat>,
    #[schema(value_type = String)]
    pub event_id: EventId,
}

/// How an asset fares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct AssetHealth {
    /// Tasks that failed since the last one that succeeded; 100 means 100 or more.
    pub consecutive_failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_success_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub last_success_run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_failure_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub last_failure_run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_check_at: Option<Timestamp>,
    /// Whether all checks passed when they last ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_check_passed: Option<bool>,
    /// The effect that they had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<GatingDecisionName>)]
    pub last_gating_decision: Option<GatingDecision>,
    /// How long the newest attempts ran that made it, in milliseconds, oldest first; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<u64>)]
    pub durations_ms: Vec<Millis>,
}

impl From<&AssetState> for AssetHealth {
    fn from(state: &AssetState) -> Self {
        let (success, failure, check) = (state.last_success(), state.last_failure(), state.last_check());
        Self {
            consecutive_failures: state.consecutive_failures(),
            last_success_at: success.map(|it| it.at),
            last_success_run_id: success.map(|it| it.run_id),
            last_failure_at: failure.map(|it| it.at),
            last_failure_run_id: failure.map(|it| it.run_id),
            last_check_at: check.map(|it| it.at),
            last_check_passed: check.map(|it| it.passed),
            last_gating_decision: check.map(|it| it.decision),
            durations_ms: state.durations().collect(),
        }
    }
}

/// A partition, or an asset without partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Partition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub partition_key: Option<PartitionKey>,
    /// The partition as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    #[schema(value_type = DataStatusName)]
    pub status: DataStatus,
    /// Why it is stale: `CODE_CHANGED`, `UPSTREAM_NEWER`, `UPSTREAM_STALE` or `FRESHNESS_MISSED`; absent if it is not,
    /// or was never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Materialization>,
    /// When it expired, if its status says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expired_at: Option<Timestamp>,
    /// How the last attempt ended; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AttemptOutcomeName>)]
    pub last_attempt_outcome: Option<AttemptOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_attempt_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub last_attempt_run_id: Option<RunId>,
}

/// A materialization that a check blocked and that waits for review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Quarantined {
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    #[schema(value_type = String)]
    pub materialization_id: MaterializationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub partition_key: Option<PartitionKey>,
    /// The partition as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    #[schema(value_type = String)]
    pub run_id: RunId,
    pub task_id: String,
    #[schema(value_type = String)]
    pub task_key: TaskKey,
    pub attempt: u32,
    #[schema(value_type = String, format = DateTime)]
    pub quarantined_at: Timestamp,
    /// The output as the worker reported it, with the checks; none if this version cannot read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    #[schema(value_type = String)]
    pub row_version: EventId,
}

impl Asset {
    pub(crate) fn new(
        key: &AssetKey,
        id: AssetId,
        def: &AssetDef,
        partitions: PartitionTotals,
        upstream: Vec<AssetKey>,
    ) -> Self {
        Self {
            asset_key: key.clone(),
            asset_id: id,
            description: def.description.clone(),
            group: def.group.clone(),
            kinds: def.kinds.clone(),
            owners: def.owners.clone(),
            tags: def.tags.clone(),
            code_version: def.code_version.clone(),
            external: def.external,
            partitioned: def.partitions.is_some(),
            partitioning: def.partitions.clone(),
            partitions,
            upstream,
            checks: def.checks.len() as u32,
            health: None,
            late_since: None,
            freshness: None,
            stale: None,
            active: None,
            automation: Vec::new(),
        }
    }
}

impl PartitionTotals {
    pub(crate) fn new(total: u128, counts: PartitionCounts) -> Self {
        Self {
            total: u64::try_from(total).unwrap_or(u64::MAX),
            materialized: counts.materialized,
            last_attempt_failed: counts.failing,
            never_succeeded: counts.never,
            expired: counts.expired,
        }
    }
}

impl Materialization {
    pub(crate) fn new(partition: Option<PartitionKey>, latest: Materialized) -> Self {
        Self {
            materialization_id: latest.id(),
            partition: partition.as_ref().map(ToString::to_string),
            partition_key: partition,
            run_id: latest.run_id().some(),
            materialized_at: latest.at(),
            format: latest.format(),
            event_id: latest.event_id(),
        }
    }
}

impl Partition {
    pub(crate) fn new(partition: Option<PartitionKey>, status: Option<&PartitionStatus>) -> Self {
        let data = status.map_or(DataStatus::NeverMaterialized, PartitionStatus::status);
        let last = status.map(PartitionStatus::last_attempt);
        let expired_at = last.filter(|_| data == DataStatus::Expired).map(|last| last.at);
        let last = last.filter(|_| data != DataStatus::Expired);
        Self {
            expired_at,
            partition: partition.as_ref().map(ToString::to_string),
            status: data,
            stale: None,
            latest: status
                .and_then(PartitionStatus::latest)
                .map(|latest| Materialization::new(partition.clone(), latest)),
            last_attempt_outcome: last.map(|last| last.outcome),
            last_attempt_at: last.map(|last| last.at),
            last_attempt_run_id: last.and_then(|last| last.run_id.some()),
            partition_key: partition,
        }
    }
}

impl From<QuarantineRow> for Quarantined {
    fn from(row: QuarantineRow) -> Self {
        Self {
            asset_key: row.asset_key,
            materialization_id: row.materialization_id,
            partition: row.partition_key.as_ref().map(ToString::to_string),
            partition_key: row.partition_key,
            run_id: row.run_id,
            task_id: Task::id_of(&row.task_key),
            task_key: row.task_key,
            attempt: row.attempt,
            quarantined_at: row.quarantined_at,
            output: Some(row.output.0.into()),
            row_version: row.row_version,
        }
    }
}
