//! Tables about partitions: which there are, and what is known of their data.

use arrow_array::ArrayRef;
use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, RunId, Timestamp};
use servo_engine::outputs::DataFormat;
use servo_engine::rows::{DynamicPartitionRow, PartitionSetRow, PartitionStatusRow};
use servo_engine::{AttemptOutcome, DataStatus};

use crate::batch::Batch;
use crate::error::Error;
use crate::table::{ColumnSpec, HotTable, Table, hot_table, table};
use crate::value::{Field, Value};

table! {
    /// One row per key of dynamic partitions that is there now.
    DynamicPartitions = "dynamic_partitions", DynamicPartitionRow, placed by row_version, at |row| row.added_at; columns {
        name: String;
        partition: String, unique;
        added_at: Timestamp;
        row_version: EventId;
    }
}
hot_table!(DynamicPartitions, DynamicPartitionRow, key (name, partition) = (name: String, partition: String), rank |_| 0);

table! {
    /// One row per name of dynamic partitions.
    PartitionSets = "dynamic_partition_sets", PartitionSetRow, placed by row_version, at |row| row.changed_at; columns {
        name: String, unique;
        change_number: u64;
        partitions: u64;
        actor: String;
        changed_at: Timestamp, unique;
        row_version: EventId, unique;
    }
}
hot_table!(PartitionSets, PartitionSetRow, key name = (name: String), rank |_| 0);

table! {
    /// One row per partition that somebody tried to materialize, and per asset without partitions.
    PartitionStatuses = "partition_status", PartitionStatusRow, placed by row_version, at |row| row.last_attempt_at; columns {
        asset_key: AssetKey;
        partition_key: Option<PartitionKey>, unique;
        status: DataStatus;
        last_materialization_id: Option<MaterializationId>, unique;
        last_materialization_format: Option<DataFormat>;
        last_materialization_at: Option<Timestamp>, unique;
        last_materialization_run_id: Option<RunId>;
        last_materialization_event_id: Option<EventId>, unique;
        last_attempt_outcome: AttemptOutcome;
        last_attempt_at: Timestamp, unique;
        last_attempt_run_id: RunId;
        row_version: EventId, unique;
    }
}
hot_table!(
    PartitionStatuses,
    PartitionStatusRow,
    key (asset_key, partition_key) = (asset_key: AssetKey, partition_key: Option<PartitionKey>),
    rank |_| 0
);
