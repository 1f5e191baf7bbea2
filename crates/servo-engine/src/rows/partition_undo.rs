//! Table `partition_undo`.

use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, RunId, Timestamp};

use super::table::table;
use crate::lifecycle::AttemptOutcome;
use crate::outputs::DataFormat;

table! {
    /// One row per partition that was wiped without its data or marked, for as long as that can be undone.
    "partition_undo" => PartitionUndoRow {
        key (asset_key: AssetKey, partition_key: Option<PartitionKey>),
        sorted by row_version,
        at |row| row.changed_at,
    }
    columns {
        asset_key: AssetKey;
        /// None: the asset has no partitions.
        partition_key: Option<PartitionKey>, unique;
        /// When it was wiped or marked.
        changed_at: Timestamp;
        /// The columns of `partition_status` before; without an outcome there was no row.
        last_materialization_id: Option<MaterializationId>, unique;
        last_materialization_format: Option<DataFormat>;
        last_materialization_at: Option<Timestamp>, unique;
        last_materialization_run_id: Option<RunId>;
        last_materialization_event_id: Option<EventId>, unique;
        last_materialization_inputs_as_of: Option<EventId>, unique;
        last_materialization_code_version: Option<String>;
        last_materialization_content_since: Option<EventId>, unique;
        last_materialization_content: Option<u64>, unique;
        last_materialization_data_as_of: Option<Timestamp>, unique;
        last_attempt_outcome: Option<AttemptOutcome>;
        last_attempt_at: Option<Timestamp>, unique;
        last_attempt_run_id: Option<RunId>;
        last_attempt_event_id: Option<EventId>, unique;
        /// The event that wiped or marked it.
        row_version: EventId;
    }
}
