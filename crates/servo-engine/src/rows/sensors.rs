//! Tables `sensor_definitions`, `sensor_state`, `sensor_messages` and `sensor_evals`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::{EvaluationId, EventId, Millis, RunId, SensorId, Timestamp};

use super::Json;
use super::table::table;
use crate::definitions::SensorDef;
use crate::event::RequestedRun;
use crate::lifecycle::{AutomationStatus, Origin, SensorKind, SensorStatus};
use crate::state::PendingEvaluation;

table! {
    /// One row per sensor that is or was defined.
    "sensor_definitions" => SensorDefinitionRow {
        key (sensor_id: SensorId),
        sorted by row_version,
        at |row| row.defined_at,
    }
    columns {
        sensor_id: SensorId, unique;
        name: String, unique;
        /// Who defines it: code or api.
        origin: Origin;
        /// What makes it be evaluated: poll, push, asset or run.
        kind: SensorKind;
        /// The selection that it requests; none if its function decides.
        asset_selection: Option<String>;
        /// How long after one evaluation the next one starts; of those that poll.
        interval_ms: Option<Millis>;
        /// Whether it was to be evaluated from its first definition on.
        enabled: bool;
        /// The whole definition, as in the manifest.
        definition: Json<Arc<SensorDef>>, unique;
        created_at: Timestamp;
        /// When this definition was made.
        defined_at: Timestamp;
        /// When it was removed; none if it is there.
        removed_at: Option<Timestamp>;
        row_version: EventId;
    }
}

table! {
    /// One row per sensor that is or was defined: where it is.
    "sensor_state" => SensorStateRow {
        key (sensor_id: SensorId),
        sorted by row_version,
        at |row| row.changed_at,
    }
    columns {
        sensor_id: SensorId, unique;
        status: AutomationStatus;
        paused: bool;
        /// Counts definitions, pauses, resumptions and cursors.
        state_version: u64;
        cursor: Option<String>;
        last_evaluation_at: Option<Timestamp>;
        last_eval_id: Option<String>;
        last_run_id: Option<RunId>;
        /// When it is evaluated next; of those that poll.
        next_evaluation_at: Option<Timestamp>;
        /// Evaluations that failed in a row.
        failures: u32;
        last_error: Option<String>;
        /// The call that a worker is asked for.
        evaluating: Option<Json<PendingEvaluation>>;
        /// Assets that were made since it last requested something, by partition; of those that wait for all of several.
        seen: Json<BTreeMap<String, BTreeSet<String>>>;
        /// Messages that were left out because too many wait.
        messages_dropped: u64;
        /// When this row last changed.
        changed_at: Timestamp;
        row_version: EventId, unique;
    }
}

table! {
    /// One row per message that waits for its sensor.
    "sensor_messages" => SensorMessageRow {
        key (sensor_id: SensorId, message_id: String),
        sorted by row_version,
        at |row| row.received_at,
    }
    columns {
        sensor_id: SensorId;
        message_id: String, unique;
        /// The message, a JSON object.
        message: String;
        received_at: Timestamp;
        /// The event with which it came.
        received_event_id: EventId;
        /// Tries that have failed.
        attempts: u32;
        /// When it is tried again; none if it has not failed, or is tried as soon as its turn comes.
        retry_at: Option<Timestamp>;
        row_version: EventId;
    }
}

table! {
    /// One row per evaluation of a sensor.
    "sensor_evals" => SensorEvalRow {
        key (eval_id: String),
        sorted by row_version,
        at |row| row.evaluated_at,
        facet status,
        lookup sensor_id,
    }
    columns {
        eval_id: String, unique;
        sensor_id: SensorId;
        sensor_name: String;
        /// Why it was evaluated: poll, push, asset or run.
        trigger_source: String;
        message_id: Option<String>;
        /// The call; none if nothing was called.
        evaluation_id: Option<EvaluationId>;
        attempt: u32;
        manual: bool;
        evaluated_at: Timestamp;
        /// The event that made the definition which it followed.
        definition_version: EventId;
        expected_state_version: Option<u64>;
        cursor_before: Option<String>;
        cursor_after: Option<String>;
        status: SensorStatus;
        /// Why there is no run.
        reason: Option<String>;
        /// The first of its runs.
        run_key: Option<String>;
        run_id: Option<RunId>;
        /// All its runs.
        runs: Json<Vec<RequestedRun>>;
        retry_at: Option<Timestamp>;
        /// The end of what the function printed.
        output: Option<String>;
        row_version: EventId, unique;
    }
}
