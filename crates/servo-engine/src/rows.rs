//! The rows of Servo's tables: state as plain data, ready to be written, read, merged and compared.
//!
//! Hot rows ([`HotRows`]) are exactly the state in memory: [`crate::State::rows`] and [`crate::State::from_rows`] are
//! inverse. Rows of ended runs leave memory and are written once to history.

mod definitions;
mod delta;
mod materializations;
mod partitions;

pub use definitions::{AssetDefinitionRow, DeploymentRow};
pub use delta::{Delta, GoneKeys, Head, HotRows};
pub use materializations::{CheckResultRow, Discard, MaterializationRow, QuarantineRow};
pub use partitions::{DynamicPartitionRow, PartitionSetRow, PartitionStatusRow};

use servo_core::{
    AttemptId, EventId, Fingerprint, MaterializationId, Millis, PlanId, RunId, TaskKey, Timestamp,
};

use crate::event::TimerKind;
use crate::lifecycle::{
    OutboxStatus, Resolution, RunState, RunTransitionReason, TaskState, TimerState, TransitionReason,
};

/// One row of `runs`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RunRow {
    pub run_id: RunId,
    /// Event that asked for the run: its place in every list of runs.
    pub requested_event_id: EventId,
    pub run_key: String,
    pub request_fingerprint: String,
    pub plan_id: Option<PlanId>,
    pub plan_fingerprint: Option<String>,
    pub state: RunState,
    pub transition_reason: RunTransitionReason,
    /// Kind of the source.
    pub source_type: String,
    /// JSON of the source.
    pub source: String,
    /// Who asked.
    pub requested_by: String,
    /// The caller's own id of the request.
    pub request_id: Option<String>,
    /// Which assets were asked for, as a selection.
    pub selection: String,
    /// JSON of the partitions that were asked for.
    pub partitions: String,
    /// JSON object of configuration values.
    pub config: String,
    /// JSON object of labels.
    pub labels: String,
    pub priority: i32,
    pub tasks_total: u32,
    pub tasks_succeeded: u32,
    pub tasks_failed: u32,
    pub tasks_skipped: u32,
    pub tasks_cancelled: u32,
    pub timeout: Option<Millis>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub cancel_requested_at: Option<Timestamp>,
    pub cancel_actor: Option<String>,
    pub cancel_reason: Option<String>,
    /// Event that ended the run.
    pub finished_event_id: Option<EventId>,
    pub row_version: EventId,
}

/// One row of `tasks`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TaskRow {
    pub run_id: RunId,
    /// Same as in `runs`, so that the tasks of a run lie together in history.
    pub requested_event_id: EventId,
    pub task_key: TaskKey,
    pub asset_key: String,
    pub partition_key: Option<String>,
    pub operation: String,
    pub state: TaskState,
    pub transition_reason: TransitionReason,
    pub transition_at: Timestamp,
    pub attempt: u32,
    pub attempt_id: Option<AttemptId>,
    /// Attempts that count against `max_attempts`.
    pub failures: u32,
    /// Attempts lost in a row without blame.
    pub interruptions: u32,
    pub deps_total: u32,
    pub deps_satisfied_count: u32,
    /// When the newest of them was satisfied.
    pub deps_satisfied_at: Option<Timestamp>,
    /// JSON of the task's options (priority, retry rules, timeouts, queue).
    pub options: String,
    pub ready_at: Option<Timestamp>,
    pub dispatched_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub last_heartbeat_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub retry_at: Option<Timestamp>,
    pub worker_id: Option<String>,
    pub progress_ppm: Option<u32>,
    pub progress_message: Option<String>,
    /// Task whose failure this one was skipped for.
    pub caused_by: Option<TaskKey>,
    /// JSON of the last error.
    pub error: Option<String>,
    pub error_code: Option<String>,
    /// What a worker reported after the task had been cancelled.
    pub late_outcome: Option<String>,
    pub materialization_id: Option<MaterializationId>,
    /// JSON list of what became of each asset.
    pub outputs: Option<String>,
    /// JSON of what the newest attempt has used.
    pub usage: Option<String>,
    /// JSON list of the attempts that ended without ending it, oldest first.
    pub past_attempts: Option<String>,
    pub row_version: EventId,
}

/// One row of `dep_satisfaction`: an edge of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct EdgeRow {
    pub run_id: RunId,
    pub requested_event_id: EventId,
    pub upstream_task_key: TaskKey,
    pub downstream_task_key: TaskKey,
    pub satisfied: bool,
    pub resolution: Option<Resolution>,
    pub satisfied_at: Option<Timestamp>,
    pub satisfying_attempt: Option<u32>,
    pub row_version: EventId,
}

/// One row of `timers`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TimerRow {
    pub timer_id: String,
    pub cloud_task_id: String,
    pub timer_type: TimerKind,
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub fire_at: Timestamp,
    pub state: TimerState,
    pub row_version: EventId,
}

/// One row of `dispatch_outbox`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct OutboxRow {
    pub dispatch_id: String,
    pub cloud_task_id: String,
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub attempt_id: AttemptId,
    pub status: OutboxStatus,
    pub worker_queue: String,
    pub created_at: Timestamp,
    pub row_version: EventId,
}

/// One row of `run_key_index`. Written once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RunKeyRow {
    pub run_id: RunId,
    /// The bits of the run id: what memory keeps of the key.
    pub key_hash: u128,
    pub run_key: String,
    pub request_fingerprint: Fingerprint,
    /// Its digest alone: what memory keeps of the request.
    pub fingerprint_digest: [u8; 32],
    pub created_at: Timestamp,
    pub row_version: EventId,
}

/// What memory keeps of a run key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RunKeyEntry {
    pub run_id: RunId,
    /// Digest of the request's fingerprint.
    pub fingerprint: [u8; 32],
    pub created_at: Timestamp,
}

/// One row of `run_key_conflicts`. Written once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RunKeyConflictRow {
    pub run_id: RunId,
    pub run_key: String,
    pub existing_fingerprint: Fingerprint,
    pub conflicting_fingerprint: Fingerprint,
    pub conflicting_event_id: EventId,
    pub detected_at: Timestamp,
    pub row_version: EventId,
}

/// One row of `idempotency_keys`. Written once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct IdempotencyRow {
    /// First 128 bits of SHA-256 of the key: what memory keeps.
    pub key_hash: u128,
    pub idempotency_key: String,
    pub event_id: EventId,
    pub created_at: Timestamp,
    pub row_version: EventId,
}

/// What memory keeps of an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct IdempotencyEntry {
    pub key_hash: u128,
    pub created_at: Timestamp,
}
