//! Results of checks, whatever they are about.

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, MaterializationId, PartitionKey, RunId, Timestamp};
use servo_engine::rows::CheckResultRow;
use utoipa::ToSchema;

use super::outputs::Check;
use super::runs::values;
use super::tasks::Task;

/// The result of a check, with what it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckResult {
    /// The asset.
    #[schema(value_type = String)]
    pub asset_key: AssetKey,
    /// The partition; absent for an asset without partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The check and what it found.
    #[serde(flatten)]
    pub check: Check,
    /// The materialization that it looked at.
    #[schema(value_type = String)]
    pub materialization_id: MaterializationId,
    /// The run that it was part of.
    #[schema(value_type = String)]
    pub run_id: RunId,
    /// The task of the run, as addresses name it.
    pub task_id: String,
    /// The attempt of the task.
    pub attempt: u32,
    /// When its result was reported.
    #[schema(value_type = String, format = DateTime)]
    pub checked_at: Timestamp,
}

impl From<CheckResultRow> for CheckResult {
    fn from(row: CheckResultRow) -> Self {
        Self {
            asset_key: row.asset_key,
            partition: row.partition_key.as_ref().map(PartitionKey::to_string),
            check: Check {
                name: row.check_name,
                kind: row.check_type.0,
                passed: row.passed,
                severity: row.severity.0,
                blocking: row.blocking,
                message: row.message,
                error: row.error,
                metadata: values(row.metadata.0.into_texts()),
                duration_ms: row.duration_ms,
            },
            materialization_id: row.materialization_id,
            run_id: row.run_id,
            task_id: Task::id_of(&row.task_key),
            attempt: row.attempt,
            checked_at: row.checked_at,
        }
    }
}
