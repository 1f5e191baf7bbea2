//! Table `dep_satisfaction`.

use servo_core::{EventId, RunId, TaskKey, Timestamp};

use super::table::table;
use crate::lifecycle::Resolution;

table! {
    /// One row per edge between two tasks of a run.
    "dep_satisfaction" => EdgeRow {
        key (run_id: RunId, upstream_task_key: TaskKey, downstream_task_key: TaskKey),
        sorted by requested_event_id,
        at |row| satisfied_or_requested(row),
        rank |row| u8::from(row.resolution.is_some()),
    }
    columns {
        run_id: RunId;
        requested_event_id: EventId;
        upstream_task_key: TaskKey;
        downstream_task_key: TaskKey;
        satisfied: bool;
        resolution: Option<Resolution>;
        satisfied_at: Option<Timestamp>, unique;
        satisfying_attempt: Option<u32>;
        row_version: EventId, unique;
    }
}

/// When an edge was resolved; before that, when its run was asked for.
fn satisfied_or_requested(row: &EdgeRow) -> Timestamp {
    let requested = || Timestamp::from_millis(row.requested_event_id.timestamp_ms().cast_signed());
    row.satisfied_at.unwrap_or_else(requested)
}
