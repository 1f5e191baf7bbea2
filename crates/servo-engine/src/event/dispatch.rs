//! Events of dispatch: the intent to hand an attempt to a queue, and the queue's answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AttemptId, RunId, TaskKey, dispatch_id};

use super::Payload;
use crate::principal::Principal;
use crate::provenance::Provenance;

/// Intent: this attempt of this task goes to a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchRequested {
    /// The run.
    pub run_id: RunId,
    /// The task.
    pub task_key: TaskKey,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Token that every report about this attempt must carry (INV-8).
    pub attempt_id: AttemptId,
    /// Queue other than the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_queue: Option<Arc<str>>,
    /// The code that it is asked to run and the data that it reads.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub provenance: Arc<Provenance>,
}

/// Acknowledgement: the queue has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchEnqueued {
    /// The run.
    pub run_id: RunId,
    /// The task.
    pub task_key: TaskKey,
    /// Number of the attempt.
    pub attempt: u32,
    /// Token of the attempt.
    pub attempt_id: AttemptId,
}

fn is_unknown(provenance: &Arc<Provenance>) -> bool {
    **provenance == Provenance::default()
}

impl Payload for DispatchRequested {
    /// The dispatch id itself.
    fn idempotency_key(&self) -> String {
        dispatch_id(self.run_id, &self.task_key, self.attempt)
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn task_key(&self) -> Option<&TaskKey> {
        Some(&self.task_key)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("ready_dispatch")
    }
}

impl Payload for DispatchEnqueued {
    /// `enqueued:{run}:{task}:{attempt}`.
    fn idempotency_key(&self) -> String {
        format!("enqueued:{}:{}:{}", self.run_id, self.task_key.as_str(), self.attempt)
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn task_key(&self) -> Option<&TaskKey> {
        Some(&self.task_key)
    }
}
