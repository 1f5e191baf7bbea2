//! Rows about partitions: which there are, and what is known of their data.

use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, RunId, Timestamp};

use crate::lifecycle::{AttemptOutcome, DataStatus};
use crate::outputs::DataFormat;

/// One row of `dynamic_partitions`: a key that is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DynamicPartitionRow {
    pub name: String,
    pub partition: String,
    pub added_at: Timestamp,
    pub row_version: EventId,
}

/// One row of `dynamic_partition_sets`: a name that has, or once had, keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PartitionSetRow {
    pub name: String,
    /// Number of the last change.
    pub change_number: u64,
    /// How many keys there are.
    pub partitions: u64,
    /// Who made the last change.
    pub actor: String,
    pub changed_at: Timestamp,
    pub row_version: EventId,
}

/// One row of `partition_status`: what is known of the data of a partition, or of an asset without partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PartitionStatusRow {
    pub asset_key: AssetKey,
    /// None: the asset has no partitions.
    pub partition_key: Option<PartitionKey>,
    /// Follows from the other columns; here for those who query.
    pub status: DataStatus,
    pub last_materialization_id: Option<MaterializationId>,
    /// The form of its data.
    pub last_materialization_format: Option<DataFormat>,
    pub last_materialization_at: Option<Timestamp>,
    pub last_materialization_run_id: Option<RunId>,
    pub last_materialization_event_id: Option<EventId>,
    /// The event that decided what its attempt reads.
    pub last_materialization_inputs_as_of: Option<EventId>,
    /// The version of the code that made it.
    pub last_materialization_code_version: Option<String>,
    pub last_attempt_outcome: AttemptOutcome,
    pub last_attempt_at: Timestamp,
    pub last_attempt_run_id: RunId,
    /// The event that ended the last attempt.
    pub row_version: EventId,
}
