//! Commands about runs and what they made.

use std::sync::Arc;

use servo_core::{AssetKey, EventId, Fingerprint, MaterializationId, RunId};

use crate::plan::Plan;
use crate::principal::Caller;
use crate::requests::{PlanBasis, RunRequest};

/// Start a run.
#[derive(Debug, Clone)]
pub struct TriggerRun {
    /// Stable name of the request: the same key is the same run.
    pub run_key: Arc<str>,
    /// The request, as it was made.
    pub request: RunRequest,
    /// The tasks to run; none if the request seemed to be a repeat when it was to be planned.
    pub plan: Option<Box<RunPlan>>,
    /// The run key's row in the tables.
    pub stored_key: StoredRunKey,
    fingerprint: Fingerprint,
}

/// A run key's row in the tables. Memory holds the keys that are newer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRunKey {
    /// Hash of the request that the run was asked for with; none if the tables do not have the key.
    pub fingerprint: Option<Fingerprint>,
    /// The newest event that the tables have.
    pub through: EventId,
}

impl Default for StoredRunKey {
    /// There are no tables yet.
    fn default() -> Self {
        Self { fingerprint: None, through: EventId::NIL }
    }
}

/// A plan of a run, and what it was made from.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// The plan.
    pub plan: Plan,
    /// The parts of the state that it was made from.
    pub basis: PlanBasis,
}

impl TriggerRun {
    /// A request of a user for a run of tasks that are given one by one.
    pub fn new(run_key: impl Into<Arc<str>>, plan: Plan, user: impl Into<Arc<str>>) -> Self {
        let request = RunRequest { caller: Caller::user(user), ..RunRequest::default() };
        Self::of_tasks(run_key, plan, request)
    }

    /// A request for a run of tasks that are given one by one, with everything said.
    pub fn of_tasks(run_key: impl Into<Arc<str>>, plan: Plan, request: RunRequest) -> Self {
        let fingerprint = request.fingerprint(Some(&plan));
        let plan = Some(Box::new(RunPlan { plan, basis: PlanBasis::default() }));
        Self { run_key: run_key.into(), request, plan, stored_key: StoredRunKey::default(), fingerprint }
    }

    /// A request for a run that was planned from the words of the request.
    pub(crate) fn planned(run_key: Arc<str>, request: RunRequest, plan: Option<RunPlan>) -> Self {
        let fingerprint = request.fingerprint(None);
        Self { run_key, request, plan: plan.map(Box::new), stored_key: StoredRunKey::default(), fingerprint }
    }

    /// Hash of what was asked for: it does not depend on the order of anything, on the process, nor on what is
    /// deployed.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
}

/// Stop a run.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct CancelRun {
    pub run_id: RunId,
    pub caller: Caller,
    pub reason: String,
    /// Do not wait for workers that have fallen silent.
    pub force: bool,
}

/// Try at once the tasks of a run that wait to be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RetryNow {
    pub run_id: RunId,
    pub caller: Caller,
}

/// Decide about what a check had blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Review {
    pub asset: AssetKey,
    pub materialization_id: MaterializationId,
    pub verdict: Verdict,
    pub caller: Caller,
    pub reason: String,
}

/// The outcome of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts after all.
    Approve,
    /// It is thrown away.
    Reject,
}
