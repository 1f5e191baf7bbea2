//! Facts that workers report about attempts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AttemptId, MaterializationId, RunId, TaskKey, Timestamp};

use super::Payload;
use crate::failure::TaskError;
use crate::outputs::{OutputReport, Usage};
use crate::principal::Principal;

/// How an attempt ended, in the worker's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    /// The work is done.
    Succeeded,
    /// The work failed.
    Failed,
    /// The worker stopped on request.
    Cancelled,
    /// The worker stopped it because it took too long.
    TimedOut,
    /// The worker went away; the task itself is not to blame.
    Interrupted,
}

/// Progress reported by an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Parts per million.
    pub ppm: u32,
    /// A message about the current step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A worker began an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStarted {
    /// The run.
    pub run_id: RunId,
    /// The task.
    pub task_key: TaskKey,
    /// Number of the attempt.
    pub attempt: u32,
    /// Token of the attempt.
    pub attempt_id: AttemptId,
    /// The worker that runs it.
    pub worker_id: Arc<str>,
}

/// A heartbeat of a running attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskHeartbeat {
    /// The run.
    pub run_id: RunId,
    /// The task.
    pub task_key: TaskKey,
    /// Number of the attempt.
    pub attempt: u32,
    /// Token of the attempt.
    pub attempt_id: AttemptId,
    /// The worker's clock, which also distinguishes heartbeats.
    pub heartbeat_at: Timestamp,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// A worker ended an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFinished {
    /// The run.
    pub run_id: RunId,
    /// The task.
    pub task_key: TaskKey,
    /// Number of the attempt.
    pub attempt: u32,
    /// Token of the attempt.
    pub attempt_id: AttemptId,
    /// How it ended.
    pub outcome: Outcome,
    /// The error of a failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<TaskError>>,
    /// The materialization that a successful attempt produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialization_id: Option<MaterializationId>,
    /// The reported state of each asset; empty if the worker reports only success or failure.
    #[serde(default, skip_serializing_if = "no_outputs")]
    pub outputs: Arc<[OutputReport]>,
    /// Resource usage of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

fn no_outputs(outputs: &Arc<[OutputReport]>) -> bool {
    outputs.is_empty()
}

impl Payload for TaskStarted {
    /// `started:{run}:{task}:{attempt}`.
    fn idempotency_key(&self) -> String {
        format!("started:{}:{}:{}", self.run_id, self.task_key.as_str(), self.attempt)
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn task_key(&self) -> Option<&TaskKey> {
        Some(&self.task_key)
    }

    fn usual_principal(&self) -> Principal {
        Principal::worker(self.worker_id.clone())
    }
}

impl Payload for TaskHeartbeat {
    /// `heartbeat:{run}:{task}:{attempt}:{worker time}`.
    fn idempotency_key(&self) -> String {
        let at = self.heartbeat_at.as_millis();
        format!("heartbeat:{}:{}:{}:{at}", self.run_id, self.task_key.as_str(), self.attempt)
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn task_key(&self) -> Option<&TaskKey> {
        Some(&self.task_key)
    }
}

impl Payload for TaskFinished {
    /// `finished:{run}:{task}:{attempt}`.
    fn idempotency_key(&self) -> String {
        format!("finished:{}:{}:{}", self.run_id, self.task_key.as_str(), self.attempt)
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn task_key(&self) -> Option<&TaskKey> {
        Some(&self.task_key)
    }
}
