//! Table `materializations`.

use std::collections::BTreeMap;

use servo_core::{AssetKey, AttemptId, EventId, MaterializationId, PartitionKey, RunId, TaskKey, Timestamp};

use super::table::table;
use super::{Json, JsonTexts};
use crate::lifecycle::GatingDecision;
use crate::outputs::DataFormat;

table! {
    /// One row per asset of each good materialization.
    "materializations" => MaterializationRow {
        key (materialization_id: MaterializationId, asset_key: AssetKey, row_version: EventId),
        sorted by row_version,
        at |row| row.materialized_at,
        lookup asset_key,
    }
    columns {
        materialization_id: MaterializationId, unique;
        /// A task with several outputs has a row for each.
        asset_key: AssetKey;
        partition_key: Option<PartitionKey>;
        run_id: RunId;
        task_key: TaskKey;
        attempt: u32;
        attempt_id: AttemptId, unique;
        materialized_at: Timestamp, unique;
        format: Option<DataFormat>;
        /// Location of the data, if it is not the default one.
        uri: Option<String>;
        row_count: Option<u64>;
        byte_size: Option<u64>;
        content_hash: Option<String>, unique;
        schema_hash: Option<String>;
        /// The types of the columns by name.
        schema: Option<Json<BTreeMap<String, String>>>;
        /// Metadata that the function attached, by name.
        metadata: Option<Json<JsonTexts>>;
        /// The version of the code that made it: as the worker reported it, or else as it was dispatched.
        code_version: Option<String>;
        /// Number of the deployment that it was dispatched with.
        deployment_number: u64;
        /// The event that decided what its attempt reads.
        inputs_as_of: Option<EventId>, unique;
        checks_passed: u32;
        checks_failed: u32;
        gating_decision: GatingDecision;
        row_version: EventId, unique;
    }
}
