//! Table `dep_sets`.

use servo_core::{EventId, RunId, Timestamp};

use super::Json;
use super::table::table;
use crate::dep_sets::Positions;

table! {
    /// One row per set of tasks of a run that all wait for the same tasks.
    "dep_sets" => DepSetRow {
        key (run_id: RunId, set_number: u32),
        sorted by requested_event_id,
        at |row| requested(row),
        rank |_row| 0,
    }
    columns {
        run_id: RunId;
        requested_event_id: EventId;
        /// From 0, in the order of the plan.
        set_number: u32;
        /// Tasks that must end first: ranges of positions among the tasks of the run, ordered by key.
        upstream: Json<Positions>;
        /// Tasks that wait for all of them.
        downstream: Json<Positions>;
        row_version: EventId;
    }
}

fn requested(row: &DepSetRow) -> Timestamp {
    Timestamp::from_millis(row.requested_event_id.timestamp_ms().cast_signed())
}
