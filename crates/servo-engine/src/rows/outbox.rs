//! Table `dispatch_outbox`.

use servo_core::{AttemptId, EventId, RunId, TaskKey, Timestamp};

use super::table::table;
use crate::lifecycle::OutboxStatus;

table! {
    /// One row per attempt on its way to a queue.
    "dispatch_outbox" => OutboxRow {
        key (dispatch_id: String),
        sorted by row_version,
        at |row| row.created_at,
        rank |row| match row.status {
            OutboxStatus::Pending => 0,
            OutboxStatus::Created => 1,
            OutboxStatus::Acked => 2,
            OutboxStatus::Failed => 3,
        },
    }
    columns {
        dispatch_id: String, unique;
        cloud_task_id: String, unique;
        run_id: RunId;
        task_key: TaskKey;
        attempt: u32;
        attempt_id: AttemptId, unique;
        status: OutboxStatus;
        worker_queue: String;
        created_at: Timestamp, unique;
        row_version: EventId, unique;
    }
}
