//! Events of runs: requested, planned, triggered, cancelled.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{Fingerprint, Millis, Operation, PlanId, RunId, Timestamp, sha256_hex};

use super::Payload;
use super::RunSource;
use crate::audit::Act;
use crate::dep_sets::DepSet;
use crate::plan::TaskSpec;
use crate::planner::PartitionChoice;

/// Somebody or something asked for a run: the request, as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRequested {
    /// Stable name of the request: the same key is the same run.
    pub run_key: Arc<str>,
    /// Derived from the run key (ADR-013).
    pub run_id: RunId,
    /// Hash of the request; the same key with another fingerprint is a conflict.
    pub request_fingerprint: Fingerprint,
    /// Origin of the run.
    pub source: RunSource,
    /// Which assets, as a selection; empty if the tasks were given one by one, or are those of another run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selection: String,
    /// The operation on the assets.
    #[serde(default, skip_serializing_if = "Operation::is_default")]
    pub operation: Operation,
    /// Which of their partitions, as they were asked for.
    #[serde(default, skip_serializing_if = "PartitionChoice::is_empty")]
    pub partitions: PartitionChoice,
    /// Values of configuration fields as JSON texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Higher runs first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Longest the run may take, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// Free labels of the caller.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The caller's own id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Arc<str>>,
}

/// The tasks and edges of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedPlan")]
pub struct PlanCreated {
    /// The run it belongs to.
    pub run_id: RunId,
    /// The plan's own id.
    pub plan_id: PlanId,
    /// Hash of the normalized plan.
    pub fingerprint: Fingerprint,
    /// Number of the deployment that it was planned with; 0 if nothing was deployed.
    #[serde(skip_serializing_if = "is_unknown")]
    pub deployment: u64,
    /// Sorted by task key; edges are indexes into this list.
    pub tasks: Arc<[TaskSpec]>,
    /// Tasks that all wait for the same tasks, beside the edges of each.
    #[serde(skip_serializing_if = "<[DepSet]>::is_empty")]
    pub sets: Arc<[DepSet]>,
}

/// A plan as it was read.
#[derive(Deserialize)]
struct UncheckedPlan {
    run_id: RunId,
    plan_id: PlanId,
    fingerprint: Fingerprint,
    #[serde(default)]
    deployment: u64,
    #[serde(deserialize_with = "normalized_tasks")]
    tasks: Arc<[TaskSpec]>,
    #[serde(default)]
    sets: Arc<[DepSet]>,
}

impl TryFrom<UncheckedPlan> for PlanCreated {
    type Error = String;

    /// The fold relies on positions that lead somewhere.
    fn try_from(read: UncheckedPlan) -> Result<Self, String> {
        let UncheckedPlan { run_id, plan_id, fingerprint, deployment, tasks, sets } = read;
        match sets.iter().find_map(|set| set.problem(tasks.len())) {
            Some(problem) => Err(format!("a set of dependencies does not fit: {problem}")),
            None => Ok(Self { run_id, plan_id, fingerprint, deployment, tasks, sets }),
        }
    }
}

/// The run starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTriggered {
    /// The run.
    pub run_id: RunId,
    /// The plan it follows.
    pub plan_id: PlanId,
    /// Longest it may take, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
}

/// The run must stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCancelRequested {
    /// The run.
    pub run_id: RunId,
    /// The reason that the caller gave.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Running tasks that have stopped reporting are cancelled without waiting for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The cut-off of silence: workers last heard of then, or before. Absent if it is not forced, and in old logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_since: Option<Timestamp>,
    /// Whether nobody asked for this of the run itself: it is cancelled with what it belongs to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_system: bool,
}

/// The fold relies on the order of tasks and on edges that lead somewhere, so a plan without them is not read.
fn normalized_tasks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Arc<[TaskSpec]>, D::Error> {
    let tasks = Arc::<[TaskSpec]>::deserialize(deserializer)?;
    if let Some(pair) = tasks.windows(2).find(|pair| pair[0].task_key >= pair[1].task_key) {
        let problem = format!("task {} is not in order after {}", pair[1].task_key, pair[0].task_key);
        return Err(serde::de::Error::custom(problem));
    }
    for task in tasks.iter() {
        if let Some(position) = task.upstream.iter().find(|position| **position as usize >= tasks.len()) {
            let problem = format!("task {} waits for position {position} of {}", task.task_key, tasks.len());
            return Err(serde::de::Error::custom(problem));
        }
    }
    Ok(tasks)
}

fn is_unknown(deployment: &u64) -> bool {
    *deployment == 0
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

impl Payload for RunRequested {
    /// `runreq:{run_key}:{sha256(fingerprint)}`: a conflicting request is another event.
    fn idempotency_key(&self) -> String {
        format!("runreq:{}:{}", self.run_key, sha256_hex(self.request_fingerprint.as_str().as_bytes()))
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::run_action(&self.source), self.run_id, self.selection.as_str()))
    }
}

impl Payload for PlanCreated {
    /// One plan per run.
    fn idempotency_key(&self) -> String {
        format!("plan:{}", self.run_id)
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }
}

impl Payload for RunTriggered {
    /// A run starts once.
    fn idempotency_key(&self) -> String {
        format!("run:{}", self.run_id)
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }
}

impl Payload for RunCancelRequested {
    /// A run is cancelled once, and forced once per cut-off of silence.
    fn idempotency_key(&self) -> String {
        match (self.force, self.silent_since) {
            (false, _) => format!("cancel:{}", self.run_id),
            (true, None) => format!("force_cancel:{}", self.run_id),
            (true, Some(since)) => format!("force_cancel:{}:{}", self.run_id, since.as_millis()),
        }
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::cancel_action(self.force), self.run_id, self.reason.as_str()))
    }
}
