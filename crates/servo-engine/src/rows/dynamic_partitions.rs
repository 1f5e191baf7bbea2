//! Tables `dynamic_partitions` and `dynamic_partition_sets`.

use servo_core::{EventId, Timestamp};

use super::table::table;
use crate::principal::Principal;

table! {
    /// One row per key of dynamic partitions that is there now.
    "dynamic_partitions" => DynamicPartitionRow {
        key (name: String, partition: String),
        sorted by row_version,
        at |row| row.added_at,
    }
    columns {
        name: String;
        partition: String, unique;
        added_at: Timestamp;
        row_version: EventId;
    }
}

table! {
    /// One row per name of dynamic partitions that has, or once had, keys.
    "dynamic_partition_sets" => PartitionSetRow {
        key (name: String),
        sorted by row_version,
        at |row| row.changed_at,
    }
    columns {
        name: String, unique;
        /// Number of the last change.
        change_number: u64;
        /// How many keys there are.
        partitions: u64;
        /// The author of the last change.
        changed_by: Principal;
        changed_at: Timestamp, unique;
        row_version: EventId, unique;
    }
}
