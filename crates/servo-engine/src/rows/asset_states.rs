//! Table `asset_states`.

use servo_core::{AssetKey, EventId, MaterializationId, MicroUsd, Millis, PartitionKey, RunId, Timestamp};

use super::Json;
use super::table::table;
use crate::lifecycle::GatingDecision;

table! {
    /// One row per asset that was ever attempted or checked: how it fares.
    "asset_states" => AssetStateRow {
        key (asset_key: AssetKey),
        sorted by row_version,
        at |row| Timestamp::from_millis(row.row_version.timestamp_ms().cast_signed()),
    }
    columns {
        asset_key: AssetKey, unique;
        /// Tasks that failed since the last one that succeeded; 100 means 100 or more.
        consecutive_failures: u32;
        /// The events that ended them, oldest first.
        failure_event_ids: Json<Vec<EventId>>;
        last_success_at: Option<Timestamp>, unique;
        last_success_run_id: Option<RunId>;
        last_success_event_id: Option<EventId>, unique;
        /// The partition that it was about.
        last_partition_key: Option<PartitionKey>;
        /// The materialization that it made.
        last_materialization_id: Option<MaterializationId>, unique;
        last_failure_at: Option<Timestamp>, unique;
        last_failure_run_id: Option<RunId>;
        last_failure_event_id: Option<EventId>, unique;
        last_check_at: Option<Timestamp>, unique;
        last_check_event_id: Option<EventId>, unique;
        /// Whether all checks passed when they last ran.
        last_check_passed: Option<bool>;
        last_gating_decision: Option<GatingDecision>;
        /// The newest tasks that made it, oldest first: the event that ended each, how long its last attempt ran in
        /// milliseconds, and what all its attempts cost in micro-USD.
        efforts: Json<Vec<(EventId, Millis, MicroUsd)>>;
        /// The newest event of all.
        row_version: EventId, unique;
    }
}
