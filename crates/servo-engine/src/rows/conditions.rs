//! Tables `condition_state`, `condition_requests` and `condition_evaluations`.

use std::sync::Arc;

use servo_core::{AssetKey, EventId, PartitionKey, RunId, Timestamp};

use super::Json;
use super::table::table;
use crate::conditions::TraceNode;
use crate::definitions::Condition;
use crate::lifecycle::TickStatus;

table! {
    /// One row per asset that has an automation condition.
    "condition_state" => ConditionStateRow {
        key (asset_key: AssetKey),
        sorted by row_version,
        at |row| row.deployed_at,
    }
    columns {
        asset_key: AssetKey, unique;
        /// The condition, as in the manifest.
        condition: Json<Arc<Condition>>, unique;
        /// The deployment that it is in force from: what was so before does not count.
        in_force_event_id: EventId;
        deployed_at: Timestamp;
        paused: bool;
        /// Counts conditions, pauses and resumptions.
        state_version: u64;
        last_evaluation_id: Option<String>;
        last_requested_at: Option<Timestamp>;
        last_run_id: Option<RunId>;
        /// Requests that failed in a row.
        failures: u32;
        last_error: Option<String>;
        row_version: EventId;
    }
}

table! {
    /// One row per partition that a condition requested and that is not made since, or whose requests are counted.
    "condition_requests" => ConditionRequestRow {
        key (asset_key: AssetKey, partition_key: Option<PartitionKey>),
        sorted by row_version,
        at |row| row.requested_at,
    }
    columns {
        asset_key: AssetKey;
        partition_key: Option<PartitionKey>, unique;
        /// What happened up to this event was a reason to request it, or was read by an attempt since. All zeros if it
        /// was made good and is only counted.
        handled_event_id: EventId;
        requested_at: Timestamp;
        run_id: Option<RunId>;
        /// The last times that it was requested, as many as a limit has to know.
        recent: Json<Vec<Timestamp>>;
        row_version: EventId;
    }
}

table! {
    /// One row per asset that an evaluation of conditions requested.
    "condition_evaluations" => ConditionEvaluationRow {
        key (evaluation_id: String, asset_key: AssetKey),
        sorted by row_version,
        at |row| row.evaluated_at,
        facet status,
        lookup asset_key,
    }
    columns {
        evaluation_id: String;
        asset_key: AssetKey;
        evaluated_at: Timestamp;
        status: TickStatus;
        /// How many partitions were requested; 1 if it has none.
        partitions: u64;
        /// The first of them.
        partition_keys: Json<Vec<PartitionKey>>;
        run_id: Option<RunId>;
        run_key: Option<String>;
        /// Why there is no run.
        reason: Option<String>;
        /// Why it was requested; none of an asset that was requested with another of its function.
        trace: Option<Json<Arc<TraceNode>>>;
        row_version: EventId;
    }
}
