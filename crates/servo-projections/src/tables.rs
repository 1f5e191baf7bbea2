//! The tables: a line per column. Names and types are a contract with everybody who queries the files.

mod definitions;
mod materializations;
mod partitions;

pub(crate) use definitions::{AssetDefinitions, Deployments};
pub(crate) use materializations::{CheckResults, Materializations, Quarantine};
pub(crate) use partitions::{DynamicPartitions, PartitionSets, PartitionStatuses};

use arrow_array::ArrayRef;
use servo_core::{
    AttemptId, EventId, Fingerprint, MaterializationId, Millis, PlanId, RunId, TaskKey, Timestamp,
};
use servo_engine::event::TimerKind;
use servo_engine::rows::{
    EdgeRow, IdempotencyRow, OutboxRow, RunKeyConflictRow, RunKeyRow, RunRow, TaskRow, TimerRow,
};
use servo_engine::{
    OutboxStatus, Resolution, RunState, RunTransitionReason, TaskState, TimerState, TransitionReason,
};

use crate::batch::Batch;
use crate::error::Error;
use crate::table::{ColumnSpec, HistoryTable, HotTable, Table, hot_table, table};
use crate::value::{Field, Value};

/// Every table, in the order in which people are shown them.
pub const TABLES: [&str; 16] = [
    Runs::NAME,
    Tasks::NAME,
    Edges::NAME,
    Timers::NAME,
    Outbox::NAME,
    AssetDefinitions::NAME,
    Deployments::NAME,
    PartitionStatuses::NAME,
    Materializations::NAME,
    CheckResults::NAME,
    Quarantine::NAME,
    DynamicPartitions::NAME,
    PartitionSets::NAME,
    RunKeys::NAME,
    RunKeyConflicts::NAME,
    Idempotency::NAME,
];

table! {
    /// One row per run.
    Runs = "runs", RunRow, placed by requested_event_id, at |row| row.created_at, facet state, lookup "run_id"; columns {
        run_id: RunId, unique;
        requested_event_id: EventId, unique;
        run_key: String, unique;
        request_fingerprint: String, unique;
        plan_id: Option<PlanId>, unique;
        plan_fingerprint: Option<String>;
        state: RunState;
        transition_reason: RunTransitionReason;
        source_type: String;
        source: String;
        requested_by: String;
        request_id: Option<String>;
        selection: String;
        partitions: String;
        config: String;
        labels: String;
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
        cancel_actor: Option<String>;
        cancel_reason: Option<String>;
        finished_event_id: Option<EventId>, unique;
        row_version: EventId, unique;
    }
}
hot_table!(Runs, RunRow, key run_id = (run_id: RunId), rank |row| match row.state {
    RunState::Pending => 0,
    RunState::Running => 1,
    RunState::Cancelling => 2,
    RunState::Cancelled => 10,
    RunState::TimedOut => 11,
    RunState::Failed => 12,
    RunState::Succeeded => 13,
});

table! {
    /// One row per task of a run.
    Tasks = "tasks", TaskRow, placed by requested_event_id, at |row| row.transition_at; columns {
        run_id: RunId;
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
        failures: u32;
        interruptions: u32;
        deps_total: u32;
        deps_satisfied_count: u32;
        deps_satisfied_at: Option<Timestamp>, unique;
        options: String;
        ready_at: Option<Timestamp>, unique;
        dispatched_at: Option<Timestamp>, unique;
        started_at: Option<Timestamp>, unique;
        last_heartbeat_at: Option<Timestamp>, unique;
        finished_at: Option<Timestamp>, unique;
        retry_at: Option<Timestamp>, unique;
        worker_id: Option<String>;
        progress_ppm: Option<u32>;
        progress_message: Option<String>;
        caused_by: Option<TaskKey>;
        error: Option<String>;
        error_code: Option<String>;
        late_outcome: Option<String>;
        materialization_id: Option<MaterializationId>, unique;
        outputs: Option<String>, unique;
        usage: Option<String>, unique;
        past_attempts: Option<String>;
        row_version: EventId, unique;
    }
}
hot_table!(Tasks, TaskRow, key (run_id, task_key) = (run_id: RunId, task_key: TaskKey), rank |row| row.state.rank());

table! {
    /// One row per edge between two tasks of a run.
    Edges = "dep_satisfaction", EdgeRow, placed by requested_event_id, at |row| satisfied_or_requested(row); columns {
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
hot_table!(
    Edges,
    EdgeRow,
    key (run_id, upstream_task_key, downstream_task_key) = (run_id: RunId, upstream_task_key: TaskKey, downstream_task_key: TaskKey),
    rank |row| u8::from(row.resolution.is_some())
);

table! {
    /// One row per wait before a retry.
    Timers = "timers", TimerRow, placed by row_version, at |row| row.fire_at; columns {
        timer_id: String, unique;
        cloud_task_id: String, unique;
        timer_type: TimerKind;
        run_id: RunId;
        task_key: TaskKey;
        attempt: u32;
        fire_at: Timestamp, unique;
        state: TimerState;
        row_version: EventId, unique;
    }
}
hot_table!(Timers, TimerRow, key timer_id = (timer_id: String), rank |row| match row.state {
    TimerState::Scheduled => 0,
    TimerState::Enqueued => 1,
    TimerState::Fired => 2,
    TimerState::Cancelled => 3,
});

table! {
    /// One row per attempt on its way to a queue.
    Outbox = "dispatch_outbox", OutboxRow, placed by row_version, at |row| row.created_at; columns {
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
hot_table!(Outbox, OutboxRow, key dispatch_id = (dispatch_id: String), rank |row| match row.status {
    OutboxStatus::Pending => 0,
    OutboxStatus::Created => 1,
    OutboxStatus::Acked => 2,
    OutboxStatus::Failed => 3,
});

table! {
    /// Which requests made which runs. The columns that recovery reads come first, to be fetched in one piece.
    RunKeys = "run_key_index", RunKeyRow, placed by row_version, at |row| row.created_at; columns {
        run_id: RunId, unique;
        key_hash: u128, unique;
        fingerprint_digest: [u8; 32], unique;
        created_at: Timestamp, unique;
        run_key: String, unique;
        request_fingerprint: Fingerprint, unique;
        row_version: EventId, unique;
    }
}

table! {
    /// Requests that reused a run key for something else.
    RunKeyConflicts = "run_key_conflicts", RunKeyConflictRow, placed by row_version, at |row| row.detected_at; columns {
        run_id: RunId;
        run_key: String;
        existing_fingerprint: Fingerprint;
        conflicting_fingerprint: Fingerprint;
        conflicting_event_id: EventId, unique;
        detected_at: Timestamp, unique;
        row_version: EventId, unique;
    }
}

table! {
    /// Requests already carried out. The columns that recovery reads come first.
    Idempotency = "idempotency_keys", IdempotencyRow, placed by row_version, at |row| row.created_at; columns {
        key_hash: u128, unique;
        created_at: Timestamp, unique;
        idempotency_key: String, unique;
        event_id: EventId, unique;
        row_version: EventId, unique;
    }
}

impl HistoryTable for Runs {}
impl HistoryTable for Tasks {}
impl HistoryTable for Edges {}
