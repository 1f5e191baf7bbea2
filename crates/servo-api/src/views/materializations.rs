//! Materializations as they were recorded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_core::{EventId, MaterializationId, RunId, Timestamp};
use servo_engine::rows::MaterializationRow;
use servo_engine::{DataFormat, GatingDecision};
use utoipa::ToSchema;

use super::names::{DataFormatName, GatingDecisionName};
use super::runs::values;
use super::tasks::Task;

/// A good materialization with everything that was recorded of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct MaterializationRecord {
    #[schema(value_type = String)]
    pub materialization_id: MaterializationId,
    /// The partition as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    #[schema(value_type = String)]
    pub run_id: RunId,
    pub task_id: String,
    pub attempt: u32,
    #[schema(value_type = String, format = DateTime)]
    pub materialized_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DataFormatName>)]
    pub format: Option<DataFormat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_size: Option<u64>,
    /// Metadata that the function attached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub metadata: BTreeMap<String, serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_version: Option<String>,
    /// Number of the deployment that it was dispatched with.
    pub deployment_number: u64,
    pub checks_passed: u32,
    pub checks_failed: u32,
    #[schema(value_type = GatingDecisionName)]
    pub gating_decision: GatingDecision,
    #[schema(value_type = String)]
    pub row_version: EventId,
}

impl From<MaterializationRow> for MaterializationRecord {
    fn from(row: MaterializationRow) -> Self {
        Self {
            materialization_id: row.materialization_id,
            partition: row.partition_key.as_ref().map(ToString::to_string),
            run_id: row.run_id,
            task_id: Task::id_of(&row.task_key),
            attempt: row.attempt,
            materialized_at: row.materialized_at,
            format: row.format,
            row_count: row.row_count,
            byte_size: row.byte_size,
            metadata: row.metadata.map(|metadata| values(metadata.0.into_texts())).unwrap_or_default(),
            code_version: row.code_version,
            deployment_number: row.deployment_number,
            checks_passed: row.checks_passed,
            checks_failed: row.checks_failed,
            gating_decision: row.gating_decision,
            row_version: row.row_version,
        }
    }
}
