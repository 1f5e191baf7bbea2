//! Table `check_results`.

use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, RunId, TaskKey, Timestamp};

use super::table::table;
use super::{Json, JsonTexts, Name};
use crate::definitions::{CheckKind, Severity};

table! {
    /// One row per check that ran.
    "check_results" => CheckResultRow {
        key (asset_key: AssetKey, check_name: String, row_version: EventId),
        sorted by row_version,
        at |row| row.checked_at,
        lookup asset_key,
    }
    columns {
        asset_key: AssetKey;
        partition_key: Option<PartitionKey>;
        check_name: String;
        check_type: Name<CheckKind>;
        passed: bool;
        severity: Name<Severity>;
        blocking: Option<bool>;
        message: Option<String>;
        /// Type of the exception that the check itself raised.
        error: Option<String>;
        /// Findings by name.
        metadata: Json<JsonTexts>;
        duration_ms: u64;
        /// The checked materialization.
        materialization_id: MaterializationId;
        run_id: RunId;
        task_key: TaskKey;
        attempt: u32;
        checked_at: Timestamp;
        row_version: EventId;
    }
}
