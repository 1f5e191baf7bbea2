//! Reports about attempts, and commands of workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AttemptId, MaterializationId, RunId, TaskKey};

use crate::event::Outcome;
use crate::failure::TaskError;
use crate::outputs::{OutputReport, Usage};

/// One attempt of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Attempt {
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub attempt_id: AttemptId,
}

/// How an attempt ended, from the worker to the engine: also on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Report {
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<TaskError>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialization_id: Option<MaterializationId>,
    #[serde(default, skip_serializing_if = "<[OutputReport]>::is_empty")]
    pub outputs: Arc<[OutputReport]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Keys that the attempt adds to dynamic partitions, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added_partitions: BTreeMap<String, Vec<String>>,
}

impl Report {
    /// An end of which nothing more is known.
    pub fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            error: None,
            materialization_id: None,
            outputs: Arc::default(),
            usage: None,
            added_partitions: BTreeMap::new(),
        }
    }

    /// A plain success.
    pub fn succeeded() -> Self {
        Self::new(Outcome::Succeeded)
    }

    /// A failure.
    pub fn failed(error: TaskError) -> Self {
        Self { error: Some(Arc::new(error)), ..Self::new(Outcome::Failed) }
    }
}

/// Give tasks to a worker from now on. Whoever asks has seen that it shares the storage of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterWorker {
    /// Its id: a name, and a nonce of the process.
    pub worker_id: Arc<str>,
    /// The name that somebody gave it.
    pub name: String,
    /// The queues that it serves.
    pub queues: Vec<Arc<str>>,
    /// Functions that it runs at once.
    pub slots: u32,
    /// Digest of its code.
    pub digest: Arc<str>,
    /// Its storage, as it calls it.
    pub storage: String,
    /// The machine that it runs on.
    pub host: String,
    /// Version of Servo.
    pub version: String,
}

/// Give no more tasks to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerLeaves {
    /// The worker.
    pub worker_id: Arc<str>,
    /// Whether it is still at work, and ends what it has begun.
    pub draining: bool,
}
