//! Tasks of runs.

use serde::{Deserialize, Serialize};
use servo_core::{AttemptId, EventId, MaterializationId, MicroUsd, RunId, TaskKey, Timestamp, cloud_task_id};
use servo_engine::rows::TaskRow;
use servo_engine::{TaskState, TransitionReason};
use utoipa::ToSchema;

use super::attempts::{Attempt, Failure};
use super::names::{OutcomeName, TaskStateName};
use super::outputs::Output;

/// One task of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Task {
    /// `t_` and 26 characters: the name of the task in addresses.
    pub task_id: String,
    #[schema(value_type = String)]
    pub run_id: RunId,
    /// Identity of the task: `{asset}[{partition}]:{operation}`.
    #[schema(value_type = String)]
    pub task_key: TaskKey,
    /// `namespace/name`.
    pub asset_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<String>,
    /// The partition as people write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    pub operation: String,
    #[schema(value_type = TaskStateName)]
    pub state: TaskState,
    /// Reason of its state.
    #[schema(value_type = String)]
    pub transition_reason: TransitionReason,
    /// Time of the last transition.
    #[schema(value_type = String, format = DateTime)]
    pub transition_at: Timestamp,
    /// Number of the newest attempt; 0 before the first.
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub attempt_id: Option<AttemptId>,
    /// Attempts that count against the limit.
    pub failures: u32,
    /// Consecutive attempts that were lost without counting against the limit.
    pub interruptions: u32,
    /// Number of its dependencies.
    pub deps_total: u32,
    /// Number of succeeded dependencies.
    pub deps_satisfied_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ready_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub dispatched_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_heartbeat_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
    /// Start time of the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub retry_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The task whose failure this one was skipped for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub caused_by: Option<TaskKey>,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// How many checks the newest attempt ran.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checks: u32,
    /// How many of them did not pass.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checks_failed: u32,
    /// What its attempts cost that have ended, in millionths of a US dollar.
    #[serde(default)]
    #[schema(value_type = u64)]
    pub cost_micro_usd: MicroUsd,
    /// The outcome a worker reported after the task had been cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OutcomeName>)]
    pub late_outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub materialization_id: Option<MaterializationId>,
    /// Attempts that ended without ending it, oldest first, without tracebacks and usage. Only in lists and streams:
    /// one task has all of its `attempts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past_attempts: Vec<Attempt>,
    /// The newest event that changed it.
    #[schema(value_type = String)]
    pub row_version: EventId,
}

/// Progress reported by an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// Parts per million.
    pub ppm: u32,
    /// A message about the current step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Details of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskDetail {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The state of each asset in the newest attempt that reported it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
    /// Its attempts, the newest first.
    pub attempts: Vec<Attempt>,
}

impl Task {
    /// The name of a task in addresses.
    pub fn id_of(key: &TaskKey) -> String {
        cloud_task_id('t', key.as_str())
    }

    /// A task as lists and streams show it: without tracebacks.
    pub(crate) fn in_brief(row: TaskRow) -> Self {
        let mut task = Self::from(row);
        if let Some(error) = &mut task.error {
            error.traceback = None;
        }
        task
    }
}

impl From<servo_engine::Progress> for Progress {
    fn from(progress: servo_engine::Progress) -> Self {
        Self { ppm: progress.ppm, message: progress.message }
    }
}

impl From<TaskRow> for Task {
    fn from(row: TaskRow) -> Self {
        let (checks, checks_failed) = checks(&row);
        Self {
            task_id: Self::id_of(&row.task_key),
            run_id: row.run_id,
            partition: row.task_key.partition().map(|partition| partition.to_string()),
            task_key: row.task_key,
            asset_key: row.asset_key,
            partition_key: row.partition_key,
            operation: row.operation,
            state: row.state,
            transition_reason: row.transition_reason,
            transition_at: row.transition_at,
            attempt: row.attempt,
            attempt_id: row.attempt_id,
            failures: row.failures,
            interruptions: row.interruptions,
            deps_total: row.deps_total,
            deps_satisfied_count: row.deps_satisfied_count,
            ready_at: row.ready_at,
            dispatched_at: row.dispatched_at,
            started_at: row.started_at,
            last_heartbeat_at: row.last_heartbeat_at,
            finished_at: row.finished_at,
            retry_at: row.retry_at,
            worker_id: row.worker_id,
            progress: row
                .progress_ppm
                .map(|ppm| Progress { ppm, message: row.progress_message.unwrap_or_default() }),
            caused_by: row.caused_by,
            error: row.error.as_ref().map(|error| Failure::from(&***error)),
            checks,
            checks_failed,
            cost_micro_usd: row.cost_micro_usd.unwrap_or_default(),
            late_outcome: row.late_outcome.map(|outcome| outcome.to_text()),
            materialization_id: row.materialization_id,
            past_attempts: Attempt::past_in_brief(row.past_attempts.as_ref().map_or(&[], |past| past)),
            row_version: row.row_version,
        }
    }
}

/// How many checks there are, and how many of them did not pass.
fn checks(row: &TaskRow) -> (u32, u32) {
    let outputs = || row.outputs.iter().flat_map(|outputs| outputs.iter());
    let checks = || outputs().flat_map(|output| &output.checks);
    (checks().count() as u32, checks().filter(|check| !check.passed).count() as u32)
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl From<TaskRow> for TaskDetail {
    fn from(row: TaskRow) -> Self {
        let outputs = row.outputs.iter().flat_map(|outputs| outputs.iter().cloned());
        let (outputs, attempts) = (outputs.map(Output::from).collect(), Attempt::of(&row));
        Self { outputs, attempts, task: Task { past_attempts: Vec::new(), ..row.into() } }
    }
}
