//! Rows about data that was made: what counts, what its checks said, what waits for review.

use servo_core::{AssetKey, AttemptId, EventId, MaterializationId, PartitionKey, RunId, TaskKey, Timestamp};

use crate::lifecycle::GatingDecision;
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
    /// The version of the code that made it: as the worker reported it, or else as it was dispatched.
    pub code_version: Option<String>,
    /// Number of the deployment that it was dispatched with.
    pub deployment_number: u64,
    /// The event that decided what its attempt reads.
    pub inputs_as_of: Option<EventId>,
    pub checks_passed: u32,
    pub checks_failed: u32,
    pub gating_decision: GatingDecision,
    pub row_version: EventId,
}

/// One row of `materialization_inputs`: something that was read to make a materialization. Written once.
///
/// A row names one materialization, or, of very many partitions, the first and the last: then the newest
/// materializations at `inputs_as_of` were read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MaterializationInputRow {
    /// What was made.
    pub materialization_id: MaterializationId,
    pub asset_key: AssetKey,
    pub partition_key: Option<PartitionKey>,
    pub upstream_asset_key: AssetKey,
    pub upstream_partition_key: Option<PartitionKey>,
    pub upstream_materialization_id: Option<MaterializationId>,
    /// The last of very many partitions, of which `upstream_partition_key` is the first.
    pub upstream_last_partition_key: Option<PartitionKey>,
    /// How many materializations the row stands for.
    pub upstream_count: u64,
    /// The event that decided what was read.
    pub inputs_as_of: Option<EventId>,
    pub run_id: RunId,
    pub materialized_at: Timestamp,
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
    /// JSON of the code and the data of the attempt that made it.
    pub provenance: Option<String>,
    /// The event that decided what that attempt reads.
    pub inputs_as_of: Option<EventId>,
    pub row_version: EventId,
}

/// Files that do not count, and will not: of an attempt that came to nothing, or of a review that threw them away.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Discard {
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub attempt_id: AttemptId,
    /// Of which of the assets that it was to make. What waits for review is not among them.
    pub assets: Vec<AssetKey>,
    /// Whether nothing of its run is at work any more: then all that the run has staged goes too.
    pub whole_run: bool,
}
