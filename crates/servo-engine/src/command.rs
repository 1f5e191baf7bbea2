//! What can be asked of an engine, and what it answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{
    AssetKey, AttemptId, EventId, Fingerprint, MaterializationId, Millis, RunId, TaskKey, Timestamp,
    fingerprint,
};

use crate::definitions::AssetDef;
use crate::event::{Outcome, Progress, Trigger};
use crate::failure::TaskError;
use crate::outputs::{OutputReport, Usage};
use crate::plan::Plan;

/// Something for the engine to decide about.
#[derive(Debug, Clone)]
pub enum Input {
    /// Start a run.
    Trigger(TriggerRun),
    /// Stop a run.
    Cancel(CancelRun),
    /// Work with these definitions from now on.
    Deploy(Deploy),
    /// Add and remove keys of dynamic partitions.
    ChangePartitions(ChangePartitions),
    /// Decide about what a check had blocked.
    Review(Review),
    /// The queue took an attempt.
    Enqueued(Attempt),
    /// A worker is about to begin an attempt.
    Started(Attempt, Arc<str>),
    /// A worker is still at it.
    Heartbeat(Attempt, Timestamp, Option<Progress>),
    /// A worker ended an attempt.
    Finished(Attempt, Report),
    /// Workers whose id starts with this are gone, and what they ran with them.
    WorkersLost(Arc<str>),
    /// Look at everything, not only at what the indexes say (anti-entropy).
    Sweep,
}

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
}

impl Report {
    /// An end of which nothing more is known.
    pub fn new(outcome: Outcome) -> Self {
        Self { outcome, error: None, materialization_id: None, outputs: Arc::default(), usage: None }
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

/// Start a run of a plan.
#[derive(Debug, Clone)]
pub struct TriggerRun {
    /// Stable name of the request: the same key is the same run.
    pub run_key: Arc<str>,
    /// What to run.
    pub plan: Plan,
    /// What started it.
    pub trigger: Trigger,
    /// Higher runs first.
    pub priority: i32,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// Longest it may take.
    pub timeout: Option<Millis>,
    /// Hash of all of the above but the trigger.
    fingerprint: Fingerprint,
}

#[derive(Serialize)]
struct NormalizedRequest<'a> {
    plan: &'a Fingerprint,
    priority: i32,
    labels: &'a BTreeMap<String, String>,
    timeout_ms: Option<Millis>,
}

impl TriggerRun {
    /// A request for a run of `plan`.
    pub fn new(run_key: impl Into<Arc<str>>, plan: Plan, actor: impl Into<String>) -> Self {
        Self::with(run_key.into(), plan, Trigger::Manual { actor: actor.into() }, 0, BTreeMap::new(), None)
    }

    /// A request with everything said.
    ///
    /// # Panics
    /// Never: integers and strings always have a canonical form.
    pub fn with(
        run_key: Arc<str>,
        plan: Plan,
        trigger: Trigger,
        priority: i32,
        labels: BTreeMap<String, String>,
        timeout: Option<Millis>,
    ) -> Self {
        let fingerprint = fingerprint(&NormalizedRequest {
            plan: plan.fingerprint(),
            priority,
            labels: &labels,
            timeout_ms: timeout,
        })
        .expect("integers and strings have a canonical form");
        Self { run_key, plan, trigger, priority, labels, timeout, fingerprint }
    }

    /// What was asked for, hashed: it does not depend on the order of anything nor on the process.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
}

/// Stop a run.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct CancelRun {
    pub run_id: RunId,
    pub actor: String,
    pub reason: String,
    /// Do not wait for workers that have fallen silent.
    pub force: bool,
}

/// Work with these definitions from now on.
#[derive(Debug, Clone)]
pub struct Deploy {
    /// Digest of the manifest: the same as the deployed one is no deployment.
    pub digest: Arc<str>,
    /// Name of the project.
    pub project: String,
    /// All its assets, checked before, in any order.
    pub assets: Vec<Arc<AssetDef>>,
    /// Who asks.
    pub actor: String,
}

/// Add and remove keys of dynamic partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangePartitions {
    /// The name that definitions use.
    pub name: String,
    /// Keys to add, in any order; those that are there already do not matter.
    pub add: Vec<String>,
    /// Keys to remove, in any order; those that are not there do not matter.
    pub remove: Vec<String>,
    /// Who asks.
    pub actor: String,
}

/// Decide about what a check had blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Review {
    pub asset: AssetKey,
    pub materialization_id: MaterializationId,
    pub verdict: Verdict,
    pub actor: String,
    pub reason: String,
}

/// What a review comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts after all.
    Approve,
    /// It is thrown away.
    Reject,
}

/// What the engine answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The run, and the event that asked for it if it is new.
    Run {
        /// The run.
        run_id: RunId,
        /// None when the very same request was made before.
        accepted: Option<EventId>,
    },
    /// Taken into the log.
    Accepted {
        /// The event.
        event_id: EventId,
    },
    /// Known already; nothing changed.
    Duplicate,
    /// The worker goes on, unless told to cancel.
    Heartbeat {
        /// Stop as soon as possible.
        should_cancel: bool,
    },
    /// Recorded, but too late to count.
    Late,
    /// Done; nothing to say.
    Done,
}
