//! Runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_core::{EventId, Millis, PlanId, RunId, Timestamp};
use servo_engine::rows::RunRow;
use servo_engine::{RunState, RunTransitionReason, Trigger};
use utoipa::ToSchema;

use super::names::RunStateName;
use super::tasks::Task;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Run {
    #[schema(value_type = String)]
    pub run_id: RunId,
    /// Stable name of the request that it answers.
    pub run_key: String,
    #[schema(value_type = RunStateName)]
    pub state: RunState,
    /// Why it is in that state.
    #[schema(value_type = String)]
    pub transition_reason: RunTransitionReason,
    /// What started it; none if this version does not know that kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub trigger: Option<Trigger>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub priority: i32,
    pub tasks_total: u32,
    pub tasks_succeeded: u32,
    pub tasks_failed: u32,
    pub tasks_skipped: u32,
    pub tasks_cancelled: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub timeout_ms: Option<Millis>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub cancel_requested_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_actor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub plan_id: Option<PlanId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_fingerprint: Option<String>,
    /// The event that asked for it: its place in every list of runs.
    #[schema(value_type = String)]
    pub requested_event_id: EventId,
    /// The newest event that changed it.
    #[schema(value_type = String)]
    pub row_version: EventId,
}

impl From<RunRow> for Run {
    fn from(row: RunRow) -> Self {
        Self {
            run_id: row.run_id,
            run_key: row.run_key,
            state: row.state,
            transition_reason: row.transition_reason,
            trigger: Some(row.trigger.0),
            labels: row.labels.0,
            priority: row.priority,
            tasks_total: row.tasks_total,
            tasks_succeeded: row.tasks_succeeded,
            tasks_failed: row.tasks_failed,
            tasks_skipped: row.tasks_skipped,
            tasks_cancelled: row.tasks_cancelled,
            timeout_ms: row.timeout,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            cancel_requested_at: row.cancel_requested_at,
            cancel_actor: row.cancel_actor,
            cancel_reason: row.cancel_reason,
            plan_id: row.plan_id,
            plan_fingerprint: row.plan_fingerprint,
            requested_event_id: row.requested_event_id,
            row_version: row.row_version,
        }
    }
}

/// A run and its tasks, as commands print it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunWithTasks {
    /// The run.
    pub run: Run,
    /// Its tasks, by key.
    pub tasks: Vec<Task>,
}

/// The last message of a stream about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct RunEnd {
    #[schema(value_type = String)]
    pub run_id: RunId,
    #[schema(value_type = RunStateName)]
    pub state: RunState,
}
