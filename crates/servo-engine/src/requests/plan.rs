//! Plans a request against a state, and remembers what the plan was made from.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::partitions::{PartitionContext, PartitionSet, PartitionsDef};
use servo_core::selection::Selection;
use servo_core::{AssetKey, MaterializationId, PartitionKey, RunId, Timestamp};

use super::{RequestError, RunRequest};
use crate::command::{RunPlan, TriggerRun};
use crate::definitions::Definitions;
use crate::lifecycle::AttemptOutcome;
use crate::planner::{self, Materializations, PlanContext, PlanRequest, Planned};
use crate::staleness::{self, Needed};
use crate::state::State;

/// A plan of a request, and what it was made from.
#[derive(Debug, Clone)]
pub struct PlannedRun {
    /// The plan.
    pub planned: Planned,
    /// The definitions it refers to.
    pub definitions: Arc<Definitions>,
    /// The parts of the state that it was made from.
    pub basis: PlanBasis,
}

/// The parts of a state that a plan was made from. It may be followed for as long as they are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanBasis {
    /// Number of the deployment; none for tasks that were not planned from definitions.
    pub deployment: Option<u64>,
    /// Dynamic partitions that the plan depends on, with the number of their last change.
    pub dynamic: BTreeMap<String, u64>,
}

/// The state that a plan was made from has changed: the request must be planned again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum StalePlan {
    #[error("it was planned with deployment {planned}, and {deployed} is deployed")]
    Deployment { planned: u64, deployed: u64 },
    #[error("dynamic partitions {name:?} have changed since it was planned")]
    DynamicPartitions { name: String },
    #[error("it was taken for a repeat of a known request and was not planned")]
    Unplanned,
}

impl PlanBasis {
    /// Whether a plan made from this may be followed in a state.
    pub fn check(&self, state: &State) -> Result<(), StalePlan> {
        let deployed = state.definitions.number();
        if let Some(planned) = self.deployment.filter(|planned| *planned != deployed) {
            return Err(StalePlan::Deployment { planned, deployed });
        }
        match self.dynamic.iter().find(|(name, number)| state.dynamic.number(name) != **number) {
            Some((name, _)) => Err(StalePlan::DynamicPartitions { name: name.clone() }),
            None => Ok(()),
        }
    }
}

/// Plans a request with what is deployed.
pub fn plan(state: &State, request: &RunRequest, at: Timestamp) -> Result<PlannedRun, RequestError> {
    let deployed = state.deployment().and_then(|_| state.checked_definitions());
    let definitions = deployed.ok_or(RequestError::NothingDeployed)?;
    let mut planned = plan_with(state, definitions, request, at)?;
    planned.basis.deployment = Some(state.definitions.number());
    Ok(planned)
}

/// Plans a request with definitions that may not be deployed.
pub fn plan_with(
    state: &State,
    definitions: Arc<Definitions>,
    request: &RunRequest,
    at: Timestamp,
) -> Result<PlannedRun, RequestError> {
    let selection = Selection::parse(&request.selection).map_err(RequestError::Selection)?;
    let wanted = PlanRequest {
        selection,
        operation: request.operation,
        partitions: request.partitions.clone(),
        config: request.config.clone(),
        no_retry: request.no_retry,
    };
    let context = PlanContext {
        tenant: state.tenant(),
        workspace: state.workspace(),
        at: PartitionContext::new(at, state.dynamic_partitions()),
        materializations: state,
        max_tasks: state.settings().max_tasks_per_run,
    };
    let planned = planner::plan(&definitions, &wanted, &context)?;
    let dynamic = dynamic_partitions(&definitions, planned.assets.iter().map(|asset| asset.asset), state);
    Ok(PlannedRun { planned, definitions, basis: PlanBasis { deployment: None, dynamic } })
}

/// The command for a request that is not planned: it is answered with the run of the same request made before, or
/// refused.
pub fn unplanned(run_key: Arc<str>, request: RunRequest) -> TriggerRun {
    TriggerRun::planned(run_key, request, None)
}

/// The command that starts a run of a request. A run that the state holds under its run key is not planned again.
pub fn prepare(
    state: &State,
    secret: &[u8],
    run_key: Arc<str>,
    request: RunRequest,
    at: Timestamp,
) -> Result<TriggerRun, RequestError> {
    let run_id = RunId::derive(secret, state.tenant(), state.workspace(), &run_key);
    if state.requested_with(run_id).is_some() {
        return Ok(unplanned(run_key, request));
    }
    let PlannedRun { planned, basis, .. } = plan(state, &request, at)?;
    Ok(TriggerRun::planned(run_key, request, Some(RunPlan { plan: planned.plan, basis })))
}

/// Dynamic partitions of everything that is planned or read.
pub(super) fn dynamic_partitions(
    definitions: &Definitions,
    made: impl Iterator<Item = u32> + Clone,
    state: &State,
) -> BTreeMap<String, u64> {
    let read = made.clone().flat_map(|asset| &definitions.asset(asset).deps).map(|dep| dep.asset);
    let mut names = BTreeMap::new();
    for asset in made.chain(read) {
        if let Some(partitions) = &definitions.asset(asset).partitions {
            add_names(partitions.def(), state, &mut names);
        }
    }
    names
}

fn add_names(def: &PartitionsDef, state: &State, names: &mut BTreeMap<String, u64>) {
    match def {
        PartitionsDef::Dynamic { name } => {
            names.insert(name.clone(), state.dynamic.number(name));
        }
        PartitionsDef::Multi { dims } => dims.values().for_each(|def| add_names(def, state, names)),
        PartitionsDef::Hourly { .. }
        | PartitionsDef::Daily { .. }
        | PartitionsDef::Weekly { .. }
        | PartitionsDef::Monthly { .. }
        | PartitionsDef::Cron { .. }
        | PartitionsDef::Static { .. } => {}
    }
}

impl Materializations for State {
    fn of<'s>(
        &'s self,
        asset: &AssetKey,
    ) -> Box<dyn Iterator<Item = (Option<PartitionKey>, MaterializationId)> + 's> {
        let found: Vec<_> = self
            .partition_statuses(asset)
            .filter_map(|(key, status)| {
                let key = key.as_deref().map(PartitionKey::parse).transpose().ok()?;
                Some((key, status.latest()?.id()))
            })
            .collect();
        Box::new(found.into_iter())
    }

    fn get(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> Option<MaterializationId> {
        Some(self.latest(asset, partition)?.id())
    }

    fn has_failed(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> bool {
        let status = self.partition_status(asset, partition);
        status.is_some_and(|status| status.last_attempt().outcome == AttemptOutcome::Failed)
    }

    fn needed(
        &self,
        definitions: &Definitions,
        asked: &BTreeMap<u32, PartitionSet>,
        now: Timestamp,
    ) -> Needed {
        staleness::needed(self, definitions, asked, now)
    }
}
