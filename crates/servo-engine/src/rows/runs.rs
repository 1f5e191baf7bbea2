//! Table `runs`.

use std::collections::BTreeMap;

use servo_core::{EventId, MicroUsd, Millis, PlanId, RunId, Timestamp};

use super::table::table;
use super::{Json, JsonTexts};
use crate::event::RunSource;
use crate::lifecycle::{RunState, RunTransitionReason};
use crate::planner::PartitionChoice;
use crate::principal::Principal;

table! {
    /// One row per run.
    "runs" => RunRow {
        key (run_id: RunId),
        sorted by requested_event_id,
        at |row| row.created_at,
        rank |row| match row.state {
            RunState::Pending => 0,
            RunState::Queued => 1,
            RunState::Running => 2,
            RunState::Cancelling => 3,
            RunState::Cancelled => 10,
            RunState::TimedOut => 11,
            RunState::Failed => 12,
            RunState::Succeeded => 13,
        },
        facet state,
        lookup run_id,
    }
    columns {
        run_id: RunId, unique;
        /// Event that asked for the run: its place in every list of runs.
        requested_event_id: EventId, unique;
        run_key: String, unique;
        request_fingerprint: String, unique;
        plan_id: Option<PlanId>, unique;
        plan_fingerprint: Option<String>;
        /// Number of the deployment that it was planned with; 0 if nothing was deployed.
        deployment_number: u64;
        /// Whether some task ran other code than was planned.
        code_changed: bool;
        /// Failed checks of severity error and above, and checks that raised, of all its attempts.
        checks_failed: u32;
        /// What its attempts cost that have ended; absent if that is nothing.
        cost_micro_usd: Option<MicroUsd>;
        state: RunState;
        transition_reason: RunTransitionReason;
        /// Kind of the source.
        source_type: String;
        /// Origin of the run.
        source: Json<RunSource>;
        /// The caller.
        requested_by: Principal;
        /// The caller's own id of the request.
        request_id: Option<String>;
        /// Which assets were asked for; empty if the tasks were given one by one, or are those of another run.
        selection: String;
        /// The operation on them: `materialize`, `check` or `backfill`; absent in rows of older versions.
        operation: Option<String>;
        /// Which of their partitions, as they were asked for.
        partitions: Json<PartitionChoice>;
        /// Values of configuration fields by name.
        config: Json<JsonTexts>;
        labels: Json<BTreeMap<String, String>>;
        priority: i32;
        tasks_total: u32;
        tasks_succeeded: u32;
        tasks_failed: u32;
        tasks_skipped: u32;
        tasks_cancelled: u32;
        timeout: Option<Millis>;
        created_at: Timestamp, unique;
        started_at: Option<Timestamp>, unique;
        finished_at: Option<Timestamp>, unique;
        cancel_requested_at: Option<Timestamp>, unique;
        cancelled_by: Option<Principal>;
        cancel_reason: Option<String>;
        /// Event that ended the run.
        finished_event_id: Option<EventId>, unique;
        row_version: EventId, unique;
    }
}
