//! Rows about data that was made: what counts, what its checks said, what waits for review.

use servo_core::{AssetKey, AttemptId, EventId, MaterializationId, PartitionKey, RunId, TaskKey, Timestamp};

use crate::outputs::DataFormat;

/// One row of `materializations`. Written once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MaterializationRow {
    pub materialization_id: MaterializationId,
    /// A task with several outputs has a row for each.
    pub asset_key: AssetKey,
    pub partition_key: Option<PartitionKey>,
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub attempt_id: AttemptId,
    pub materialized_at: Timestamp,
    pub format: Option<DataFormat>,
    /// Where the data lies, if not where Servo puts it.
    pub uri: Option<String>,
    pub row_count: Option<u64>,
    pub byte_size: Option<u64>,
    pub content_hash: Option<String>,
    pub schema_hash: Option<String>,
    /// JSON object: the types of the columns by name.
    pub schema: Option<String>,
    /// JSON object: what the function said about it, as JSON texts by name.
    pub metadata: Option<String>,
    /// Version of the code that was deployed.
    pub code_version: Option<String>,
    pub row_version: EventId,
}

/// One row of `check_results`. Written once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CheckResultRow {
    pub asset_key: AssetKey,
    pub partition_key: Option<PartitionKey>,
    pub check_name: String,
    pub check_type: String,
    pub passed: bool,
    pub severity: String,
    pub blocking: Option<bool>,
    pub message: Option<String>,
    /// JSON object of JSON texts by name.
    pub metadata: String,
    pub duration_ms: u64,
    /// What was checked.
    pub materialization_id: MaterializationId,
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub checked_at: Timestamp,
    pub row_version: EventId,
}

/// One row of `quarantine`: what a check has blocked and somebody should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct QuarantineRow {
    pub asset_key: AssetKey,
    pub materialization_id: MaterializationId,
    pub partition_key: Option<PartitionKey>,
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub quarantined_at: Timestamp,
    /// JSON of the output as its worker reported it.
    pub output: String,
    /// Event that approved it; its data has not been moved yet.
    pub approved_event_id: Option<EventId>,
    pub approved_at: Option<Timestamp>,
    pub row_version: EventId,
}
