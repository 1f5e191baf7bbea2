//! Requests for runs in the words of people: which assets, which partitions. Planned against the state of the moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::partitions::Moment;
use servo_core::selection::Selection;
use servo_core::{AssetKey, EventId, MaterializationId, Millis, PartitionKey, RunId, Timestamp};
use servo_engine::definitions::Definitions;
use servo_engine::event::Trigger;
use servo_engine::planner::{self, Materializations, PartitionChoice, PlanContext, PlanRequest, Planned};
use servo_engine::{Plan, State, TaskOptions, TaskRequest, TaskState, TriggerRun};

use crate::error::{Error, RequestError};
use crate::workspace::Workspace;

/// What to run.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// Which assets, as a selection.
    pub selection: String,
    /// Which of their partitions.
    pub partitions: PartitionChoice,
    /// Values of configuration fields as JSON texts, by field or by `namespace.name:field`.
    pub config: BTreeMap<String, String>,
    /// Stable name of the request: the same key is the same run. Made up if absent.
    pub run_key: Option<String>,
    /// Higher runs first.
    pub priority: i32,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// Longest it may take.
    pub timeout: Option<Millis>,
    /// Who asks.
    pub actor: String,
}

/// A plan, and what it was made of.
#[derive(Debug, Clone)]
pub struct PlannedRun {
    /// The plan.
    pub planned: Planned,
    /// The definitions that it speaks of.
    pub definitions: Arc<Definitions>,
    /// Keys of dynamic partitions when it was made.
    pub dynamic: BTreeMap<String, Vec<String>>,
    /// When it was made.
    pub at: Timestamp,
}

/// A run that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// The run.
    pub run_id: RunId,
    /// The event that asked for it; none if the same request was made before.
    pub accepted: Option<EventId>,
    /// How many tasks it has.
    pub tasks: usize,
}

impl Workspace {
    /// What a request would run. Changes nothing.
    pub async fn plan(&self, request: &RunRequest) -> Result<PlannedRun, Error> {
        let selection = Selection::parse(&request.selection).map_err(RequestError::Selection)?;
        let wanted =
            PlanRequest { selection, partitions: request.partitions.clone(), config: request.config.clone() };
        let at = self.now();
        self.read(move |state| plan(state, &wanted, at)).await?
    }

    /// Plans and starts a run; answers when the request is durable.
    pub async fn launch(&self, request: RunRequest) -> Result<Launched, Error> {
        let plan = self.plan(&request).await?.planned.plan;
        let run_key = request.run_key.unwrap_or_else(|| format!("manual:{}", self.new_id()));
        let trigger = Trigger::Manual { actor: request.actor };
        self.start(run_key, plan, trigger, request.priority, request.labels, request.timeout).await
    }

    /// Runs again what a run that has ended did, or only what did not succeed.
    pub async fn retry(&self, run: RunId, from_failure: bool, actor: String) -> Result<Launched, Error> {
        let detail = self.run(run).await?.ok_or(servo_engine::Refusal::UnknownRun { run_id: run })?;
        if !detail.run.state.is_terminal() {
            return Err(RequestError::StillRunning { run_id: run }.into());
        }
        let mut requests: BTreeMap<_, _> = BTreeMap::new();
        for task in &detail.tasks {
            if from_failure && task.state == TaskState::Succeeded {
                continue;
            }
            let options = TaskOptions::clone(&task.options);
            let request = TaskRequest { key: task.task_key.clone(), upstream: Vec::new(), options };
            requests.insert(task.task_key.clone(), request);
        }
        if requests.is_empty() {
            return Err(RequestError::NothingToRetry { run_id: run }.into());
        }
        for edge in &detail.edges {
            if requests.contains_key(&edge.upstream_task_key)
                && let Some(request) = requests.get_mut(&edge.downstream_task_key)
            {
                request.upstream.push(edge.upstream_task_key.clone());
            }
        }
        let layout = &self.inner.stores.layout;
        let requests = requests.into_values().collect();
        let plan = Plan::build(layout.tenant(), layout.workspace(), requests, u32::MAX)
            .map_err(|error| RequestError::Planning(error.into()))?;
        let labels = detail.run.labels.0.clone();
        let trigger = Trigger::Retry { actor, of: run, from_failure };
        let run_key = format!("retry:{run}:{}", self.new_id());
        self.start(run_key, plan, trigger, detail.run.priority, labels, detail.run.timeout).await
    }

    async fn start(
        &self,
        run_key: String,
        plan: Plan,
        trigger: Trigger,
        priority: i32,
        labels: BTreeMap<String, String>,
        timeout: Option<Millis>,
    ) -> Result<Launched, Error> {
        let tasks = plan.tasks().len();
        let request = TriggerRun::with(run_key.into(), plan, trigger, priority, labels, timeout);
        let (run_id, accepted) = self.trigger(request).await?;
        Ok(Launched { run_id, accepted, tasks })
    }
}

fn plan(state: &State, request: &PlanRequest, at: Timestamp) -> Result<PlannedRun, Error> {
    let definitions = state.checked_definitions().ok_or(RequestError::NothingDeployed)?;
    if state.deployment().is_none() {
        return Err(RequestError::NothingDeployed.into());
    }
    let dynamic = state.dynamic_partitions();
    let context = PlanContext {
        tenant: state.tenant(),
        workspace: state.workspace(),
        at: Moment::new(at, dynamic),
        materializations: &Materialized(state),
        max_tasks: state.settings().max_tasks_per_run,
    };
    let planned = planner::plan(&definitions, request, &context).map_err(RequestError::Planning)?;
    Ok(PlannedRun { planned, definitions, dynamic: dynamic.clone(), at })
}

struct Materialized<'a>(&'a State);

impl Materializations for Materialized<'_> {
    fn of<'s>(
        &'s self,
        asset: &AssetKey,
    ) -> Box<dyn Iterator<Item = (Option<PartitionKey>, MaterializationId)> + 's> {
        let found: Vec<_> = self
            .0
            .partition_statuses(asset)
            .filter_map(|(key, status)| {
                let key = key.map(PartitionKey::parse).transpose().ok()?;
                Some((key, status.latest()?.id()))
            })
            .collect();
        Box::new(found.into_iter())
    }
}
