//! Table `timers`.

use servo_core::{EventId, RunId, TaskKey, Timestamp};

use super::Name;
use super::table::table;
use crate::event::TimerKind;
use crate::lifecycle::TimerState;

table! {
    /// One row per wait before a retry.
    "timers" => TimerRow {
        key (timer_id: String),
        sorted by row_version,
        at |row| row.fire_at,
        rank |row| match row.state {
            TimerState::Scheduled => 0,
            TimerState::Enqueued => 1,
            TimerState::Fired => 2,
            TimerState::Cancelled => 3,
        },
    }
    columns {
        timer_id: String, unique;
        cloud_task_id: String, unique;
        timer_type: Name<TimerKind>;
        run_id: RunId;
        task_key: TaskKey;
        attempt: u32;
        fire_at: Timestamp, unique;
        state: TimerState;
        row_version: EventId, unique;
    }
}
