//! Attempts of tasks, their usage and their errors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_core::{AttemptId, Timestamp};
use servo_engine::rows::TaskRow;
use servo_engine::{ErrorCategory, ErrorCode, PastAttempt, TaskError, TaskState, TransitionReason};
use utoipa::ToSchema;

use super::runs::values;

/// One attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    #[schema(value_type = String)]
    pub attempt_id: AttemptId,
    /// Reason of its state, or of its end.
    #[schema(value_type = String)]
    pub transition_reason: TransitionReason,
    /// Start time, if a worker began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// The error of a failed task or attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// For programs.
    #[schema(value_type = String)]
    pub code: ErrorCode,
    /// The group of errors that it belongs to.
    #[schema(value_type = String)]
    pub category: ErrorCategory,
    /// Whether errors of its category are tried again unless the asset says otherwise.
    pub retriable: bool,
    /// For people.
    pub message: String,
    /// Type of the exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// Traceback, as Python writes it. Left out of lists and streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
    /// A way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_action: Option<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub details: BTreeMap<String, serde_json::Value>,
}

/// Resource usage of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Usage {
    pub cpu_ms: u64,
    pub max_rss_bytes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Bytes that it sent out of the network of its worker, if somebody counts them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub network_egress_bytes: u64,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl From<&TaskError> for Failure {
    fn from(error: &TaskError) -> Self {
        Self {
            code: error.code,
            category: error.code.category(),
            retriable: error.code.category().retried_by_default(),
            message: error.message.clone(),
            error_type: error.error_type.clone(),
            traceback: error.traceback.clone(),
            suggested_action: error.suggested_action().map(str::to_owned),
            details: values(error.details.clone()),
        }
    }
}

impl From<servo_engine::outputs::Usage> for Usage {
    fn from(usage: servo_engine::outputs::Usage) -> Self {
        Self {
            cpu_ms: usage.cpu_ms,
            max_rss_bytes: usage.max_rss_bytes,
            bytes_read: usage.bytes_read,
            bytes_written: usage.bytes_written,
            network_egress_bytes: usage.network_egress_bytes,
        }
    }
}

impl Attempt {
    /// The attempts of a task, the newest first.
    pub(crate) fn of(row: &TaskRow) -> Vec<Self> {
        let newest = row.attempt_id.map(|attempt_id| Self {
            attempt: row.attempt,
            attempt_id,
            transition_reason: row.transition_reason,
            started_at: row.started_at,
            ended_at: ended_at(row),
            worker_id: row.worker_id.clone(),
            error: row.error.as_ref().filter(|_| failed(row)).map(|error| Failure::from(&***error)),
            usage: row.usage.map(|usage| usage.0.into()),
        });
        let past: &[PastAttempt] = row.past_attempts.as_ref().map_or(&[], |past| past);
        // One that waits to be tried again is among the past ones already, with everything that is known of it.
        let newest = newest.filter(|newest| !past.iter().any(|past| past.attempt == newest.attempt));
        newest.into_iter().chain(past.iter().rev().map(Self::from)).collect()
    }

    /// Attempts that ended without ending their task, oldest first, as lists and streams show them.
    pub(crate) fn past_in_brief(past: &[PastAttempt]) -> Vec<Self> {
        let brief = |past: &PastAttempt| {
            let mut attempt = Self { usage: None, ..Self::from(past) };
            if let Some(error) = &mut attempt.error {
                error.traceback = None;
            }
            attempt
        };
        past.iter().map(brief).collect()
    }
}

impl From<&PastAttempt> for Attempt {
    fn from(past: &PastAttempt) -> Self {
        Self {
            attempt: past.attempt,
            attempt_id: past.attempt_id,
            transition_reason: past.reason,
            started_at: past.started_at,
            ended_at: Some(past.ended_at),
            worker_id: past.worker_id.as_ref().map(ToString::to_string),
            error: past.error.as_deref().map(Failure::from),
            usage: past.usage.map(Usage::from),
        }
    }
}

/// Whether the newest attempt failed: the error of a task may be one of an attempt before.
fn failed(row: &TaskRow) -> bool {
    match row.state {
        TaskState::Failed | TaskState::RetryWait => true,
        TaskState::Planned
        | TaskState::Blocked
        | TaskState::Ready
        | TaskState::Dispatched
        | TaskState::Running
        | TaskState::Skipped
        | TaskState::Cancelled
        | TaskState::Succeeded => false,
    }
}

/// When the newest attempt ended: with its task, or before the wait for the next one.
fn ended_at(row: &TaskRow) -> Option<Timestamp> {
    row.finished_at.or_else(|| row.retry_at.map(|_| row.transition_at))
}
