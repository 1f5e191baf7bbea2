//! Runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_core::{EventId, MicroUsd, Millis, Operation, PlanId, RunId, Timestamp};
use servo_engine::rows::RunRow;
use servo_engine::{RunSource, RunState, RunTransitionReason, State};
use utoipa::ToSchema;

use super::PartitionsBody;
use super::names::RunStateName;
use super::tasks::Task;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Run {
    #[schema(value_type = String)]
    pub run_id: RunId,
    /// Stable name of the request.
    pub run_key: String,
    #[schema(value_type = RunStateName)]
    pub state: RunState,
    /// Reason of its state.
    #[schema(value_type = String)]
    pub transition_reason: RunTransitionReason,
    /// Origin of the run, with its `type`.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub source: RunSource,
    /// Name of the schedule or sensor that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_name: Option<String>,
    /// The caller.
    pub requested_by: String,
    /// The caller's own id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Which assets were asked for; absent if the tasks were given one by one, or are those of another run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selection: String,
    /// The operation on them: `materialize`, `check` or `backfill`.
    pub operation: String,
    /// Which of their partitions, as they were asked for.
    #[serde(default, skip_serializing_if = "PartitionsBody::is_empty")]
    pub partitions: PartitionsBody,
    /// Values of configuration fields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub config: BTreeMap<String, serde_json::Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub priority: i32,
    pub tasks_total: u32,
    pub tasks_succeeded: u32,
    pub tasks_failed: u32,
    pub tasks_skipped: u32,
    pub tasks_cancelled: u32,
    /// Failed checks of severity error and above, and checks that raised, of all its attempts: the run is flagged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checks_failed: u32,
    /// What its attempts cost that have ended, in millionths of a US dollar.
    #[serde(default)]
    #[schema(value_type = u64)]
    pub cost_micro_usd: MicroUsd,
    /// Sentences for people, such as about queues that no worker serves. Only where one run is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Whether some task ran other code than was planned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub code_changed: bool,
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
    pub cancelled_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub plan_id: Option<PlanId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_fingerprint: Option<String>,
    /// The event that requested it: runs are listed in its order.
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
            source: row.source.0,
            source_name: None,
            requested_by: row.requested_by.to_string(),
            request_id: row.request_id,
            selection: row.selection,
            operation: row.operation.unwrap_or_else(|| Operation::default().to_string()),
            partitions: row.partitions.0.into(),
            config: values(row.config.0.into_texts()),
            labels: row.labels.0,
            priority: row.priority,
            tasks_total: row.tasks_total,
            tasks_succeeded: row.tasks_succeeded,
            tasks_failed: row.tasks_failed,
            tasks_skipped: row.tasks_skipped,
            tasks_cancelled: row.tasks_cancelled,
            checks_failed: row.checks_failed,
            cost_micro_usd: row.cost_micro_usd.unwrap_or_default(),
            notices: Vec::new(),
            code_changed: row.code_changed,
            timeout_ms: row.timeout,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            cancel_requested_at: row.cancel_requested_at,
            cancelled_by: row.cancelled_by.map(|by| by.to_string()),
            cancel_reason: row.cancel_reason,
            plan_id: row.plan_id,
            plan_fingerprint: row.plan_fingerprint,
            requested_event_id: row.requested_event_id,
            row_version: row.row_version,
        }
    }
}

impl Run {
    /// A run with the names that a state has for where it comes from.
    pub(crate) fn named(row: RunRow, state: &State) -> Self {
        let source_name = state.source_name(&row.source.0).map(|name| name.to_string());
        Self { source_name, ..row.into() }
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Values that are kept as JSON texts.
pub(super) fn values(texts: BTreeMap<String, String>) -> BTreeMap<String, serde_json::Value> {
    // A text that is no JSON is shown as a text.
    let value = |text: String| serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
    texts.into_iter().map(|(name, text)| (name, value(text))).collect()
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
