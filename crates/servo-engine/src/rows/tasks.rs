//! Table `tasks`.

use std::sync::Arc;

use servo_core::{AssetKey, AttemptId, EventId, MaterializationId, MicroUsd, RunId, TaskKey, Timestamp};

use super::table::table;
use super::{Json, Name};
use crate::event::Outcome;
use crate::failure::{ErrorCategory, ErrorCode, TaskError};
use crate::lifecycle::{TaskState, TransitionReason};
use crate::outputs::{OutputReport, Usage};
use crate::plan::TaskOptions;
use crate::provenance::Provenance;
use crate::state::PastAttempt;

table! {
    /// One row per task of a run.
    "tasks" => TaskRow {
        key (run_id: RunId, task_key: TaskKey),
        sorted by requested_event_id,
        at |row| row.transition_at,
        rank |row| row.state.rank(),
    }
    columns {
        run_id: RunId;
        /// Same as in `runs`, so that the tasks of a run lie together in history.
        requested_event_id: EventId;
        task_key: TaskKey, unique;
        asset_key: String;
        partition_key: Option<String>;
        operation: String;
        state: TaskState;
        transition_reason: TransitionReason;
        transition_at: Timestamp, unique;
        attempt: u32;
        attempt_id: Option<AttemptId>, unique;
        /// Attempts that count against `max_attempts`.
        failures: u32;
        /// Consecutive attempts that were lost without counting against the limit.
        interruptions: u32;
        deps_total: u32;
        deps_satisfied_count: u32;
        /// When the newest of them was satisfied.
        deps_satisfied_at: Option<Timestamp>, unique;
        options: Json<Arc<TaskOptions>>;
        ready_at: Option<Timestamp>, unique;
        /// The code and the data of the newest attempt.
        provenance: Option<Json<Arc<Provenance>>>;
        /// The dispatch event: the newest attempt reads what was newest then.
        inputs_as_of: Option<EventId>, unique;
        /// Assets that were wiped while the newest attempt was at work on them: its result does not count for them.
        voided: Option<Json<Arc<[AssetKey]>>>;
        dispatched_at: Option<Timestamp>, unique;
        started_at: Option<Timestamp>, unique;
        last_heartbeat_at: Option<Timestamp>, unique;
        finished_at: Option<Timestamp>, unique;
        /// The event that ended it; if it was skipped, that of the failure.
        finished_event_id: Option<EventId>, unique;
        retry_at: Option<Timestamp>, unique;
        worker_id: Option<String>;
        progress_ppm: Option<u32>;
        progress_message: Option<String>;
        /// Task whose failure this one was skipped for.
        caused_by: Option<TaskKey>;
        /// The last error.
        error: Option<Json<Arc<TaskError>>>;
        error_code: Option<Name<ErrorCode>>;
        error_category: Option<Name<ErrorCategory>>;
        /// Whether errors of this category are tried again unless the asset says otherwise.
        error_retriable: Option<bool>;
        /// The outcome a worker reported after the task had been cancelled.
        late_outcome: Option<Name<Outcome>>;
        materialization_id: Option<MaterializationId>, unique;
        /// The reported state of each asset.
        outputs: Option<Json<Arc<[OutputReport]>>>, unique;
        /// Resource usage of the newest attempt.
        usage: Option<Json<Usage>>, unique;
        /// What its attempts cost that have ended; absent if that is nothing.
        cost_micro_usd: Option<MicroUsd>;
        /// The attempts that ended without ending it, oldest first.
        past_attempts: Option<Json<Vec<PastAttempt>>>;
        row_version: EventId, unique;
    }
}
