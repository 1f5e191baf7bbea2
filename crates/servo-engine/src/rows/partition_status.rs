//! Table `partition_status`.

use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, RunId, Timestamp};

use super::table::table;
use crate::lifecycle::{AttemptOutcome, DataStatus};
use crate::outputs::DataFormat;

table! {
    /// One row per attempted partition, and per attempted asset without partitions.
    "partition_status" => PartitionStatusRow {
        key (asset_key: AssetKey, partition_key: Option<PartitionKey>),
        sorted by row_version,
        at |row| row.last_attempt_at,
    }
    columns {
        asset_key: AssetKey;
        /// None: the asset has no partitions.
        partition_key: Option<PartitionKey>, unique;
        /// Follows from the other columns, unless it is `EXPIRED`: then the last attempt is when that was noticed.
        status: DataStatus;
        last_materialization_id: Option<MaterializationId>, unique;
        /// The form of its data.
        last_materialization_format: Option<DataFormat>;
        last_materialization_at: Option<Timestamp>, unique;
        last_materialization_run_id: Option<RunId>;
        last_materialization_event_id: Option<EventId>, unique;
        /// The event that decided what its attempt reads.
        last_materialization_inputs_as_of: Option<EventId>, unique;
        /// The version of the code that made it.
        last_materialization_code_version: Option<String>;
        /// The event since which its partition has this content.
        last_materialization_content_since: Option<EventId>, unique;
        /// Stands for its content: 56 bits of the hash of its hash.
        last_materialization_content: Option<u64>, unique;
        /// When the oldest of what it was made from was made.
        last_materialization_data_as_of: Option<Timestamp>, unique;
        last_attempt_outcome: AttemptOutcome;
        last_attempt_at: Timestamp, unique;
        last_attempt_run_id: RunId;
        /// The event that ended the last attempt.
        row_version: EventId, unique;
    }
}
