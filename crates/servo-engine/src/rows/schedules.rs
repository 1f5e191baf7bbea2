//! Tables `schedule_definitions`, `schedule_state` and `schedule_ticks`.

use std::sync::Arc;

use servo_core::{EventId, Fingerprint, RunId, ScheduleId, Timestamp};

use super::Json;
use super::table::table;
use crate::definitions::ScheduleDef;
use crate::event::RequestedRun;
use crate::lifecycle::{AutomationStatus, Origin, TickStatus};
use crate::planner::PartitionChoice;
use crate::state::PendingTick;

table! {
    /// One row per schedule that is or was defined.
    "schedule_definitions" => ScheduleDefinitionRow {
        key (schedule_id: ScheduleId),
        sorted by row_version,
        at |row| row.defined_at,
    }
    columns {
        schedule_id: ScheduleId, unique;
        name: String, unique;
        /// Who defines it: code or api.
        origin: Origin;
        cron_expression: String;
        timezone: String;
        /// Ticks that are older than this when they are noticed are left out.
        catchup_window_minutes: u32;
        /// The most ticks that are made up for at once.
        max_catchup_ticks: u32;
        /// The selection that its ticks request; none if a function decides.
        asset_selection: Option<String>;
        /// Whether it was to run from its first definition on.
        enabled: bool;
        /// The whole definition, as in the manifest.
        definition: Json<Arc<ScheduleDef>>, unique;
        created_at: Timestamp;
        /// When this definition was made.
        defined_at: Timestamp;
        /// When it was removed; none if it is there.
        removed_at: Option<Timestamp>;
        row_version: EventId;
    }
}

table! {
    /// One row per schedule that is or was defined: where it is.
    "schedule_state" => ScheduleStateRow {
        key (schedule_id: ScheduleId),
        sorted by row_version,
        at |row| row.ticks_after,
    }
    columns {
        schedule_id: ScheduleId, unique;
        status: AutomationStatus;
        paused: bool;
        /// Counts definitions, pauses and resumptions.
        state_version: u64;
        /// Ticks up to this time are not made any more.
        ticks_after: Timestamp;
        last_scheduled_for: Option<Timestamp>;
        last_tick_id: Option<String>;
        last_run_key: Option<String>;
        last_run_id: Option<RunId>;
        next_tick_at: Option<Timestamp>;
        /// Ticks and evaluations that failed in a row.
        failures: u32;
        last_error: Option<String>;
        /// Evaluations of the next tick that have failed.
        attempts: u32;
        /// When a failed evaluation is tried again.
        retry_at: Option<Timestamp>;
        /// The call of its function that a worker is asked for.
        evaluating: Option<Json<PendingTick>>;
        row_version: EventId, unique;
    }
}

table! {
    /// One row per tick of a schedule.
    "schedule_ticks" => ScheduleTickRow {
        key (tick_id: String),
        sorted by row_version,
        at |row| row.ticked_at,
        facet status,
        lookup schedule_id,
    }
    columns {
        tick_id: String, unique;
        schedule_id: ScheduleId;
        schedule_name: String;
        scheduled_for: Timestamp;
        /// When it was noticed.
        ticked_at: Timestamp;
        manual: bool;
        /// The event that made the definition which it followed.
        definition_version: EventId;
        /// The selection that was requested.
        asset_selection: Option<String>;
        /// The partitions that were requested.
        partition_selection: Option<Json<PartitionChoice>>;
        status: TickStatus;
        /// Why there is no run.
        reason: Option<String>;
        /// The first of its runs.
        run_key: Option<String>;
        run_id: Option<RunId>;
        request_fingerprint: Option<Fingerprint>;
        /// All its runs.
        runs: Json<Vec<RequestedRun>>;
        /// The end of what its function printed.
        output: Option<String>;
        row_version: EventId, unique;
    }
}
