//! Tables about data that was made.

use arrow_array::ArrayRef;
use servo_core::{AssetKey, AttemptId, EventId, MaterializationId, PartitionKey, RunId, TaskKey, Timestamp};
use servo_engine::outputs::DataFormat;
use servo_engine::rows::{CheckResultRow, MaterializationRow, QuarantineRow};

use crate::batch::Batch;
use crate::error::Error;
use crate::table::{ColumnSpec, HotTable, Table, hot_table, table};
use crate::value::{Field, Value};

table! {
    /// One row per asset of each good materialization.
    Materializations = "materializations", MaterializationRow, placed by row_version, at |row| row.materialized_at; columns {
        materialization_id: MaterializationId, unique;
        asset_key: AssetKey;
        partition_key: Option<PartitionKey>;
        run_id: RunId;
        task_key: TaskKey;
        attempt: u32;
        attempt_id: AttemptId, unique;
        materialized_at: Timestamp, unique;
        format: Option<DataFormat>;
        uri: Option<String>;
        row_count: Option<u64>;
        byte_size: Option<u64>;
        content_hash: Option<String>, unique;
        schema_hash: Option<String>;
        schema: Option<String>;
        metadata: Option<String>;
        code_version: Option<String>;
        row_version: EventId, unique;
    }
}

table! {
    /// One row per check that ran.
    CheckResults = "check_results", CheckResultRow, placed by row_version, at |row| row.checked_at; columns {
        asset_key: AssetKey;
        partition_key: Option<PartitionKey>;
        check_name: String;
        check_type: String;
        passed: bool;
        severity: String;
        blocking: Option<bool>;
        message: Option<String>;
        metadata: String;
        duration_ms: u64;
        materialization_id: MaterializationId;
        run_id: RunId;
        task_key: TaskKey;
        attempt: u32;
        checked_at: Timestamp;
        row_version: EventId;
    }
}

table! {
    /// One row per output that waits for review, or was approved and is not released yet.
    Quarantine = "quarantine", QuarantineRow, placed by row_version, at |row| row.quarantined_at; columns {
        asset_key: AssetKey;
        materialization_id: MaterializationId, unique;
        partition_key: Option<PartitionKey>;
        run_id: RunId;
        task_key: TaskKey;
        attempt: u32;
        quarantined_at: Timestamp, unique;
        output: String, unique;
        approved_event_id: Option<EventId>, unique;
        approved_at: Option<Timestamp>, unique;
        row_version: EventId, unique;
    }
}
hot_table!(
    Quarantine,
    QuarantineRow,
    key (asset_key, materialization_id) = (asset_key: AssetKey, materialization_id: MaterializationId),
    rank |_| 0
);
