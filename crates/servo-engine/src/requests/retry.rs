//! Decides what another try of a run does: all of its tasks, or those that did not succeed.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{RunId, TaskKey};

use super::{PlanBasis, RequestError, RunRequest};
use crate::command::{RunPlan, TriggerRun};
use crate::dep_sets::{DepSet, Positions};
use crate::event::RunSource;
use crate::lifecycle::TaskState;
use crate::plan::{Plan, TaskOptions, TaskRequest};
use crate::planner::PlanningError;
use crate::principal::Caller;
use crate::rows::{DepSetRow, EdgeRow, RunRow, TaskRow};
use crate::state::State;

/// A request for another try of a run that has ended.
#[derive(Debug, Clone)]
pub struct Retry {
    /// The run.
    pub of: RunId,
    /// Only what did not succeed.
    pub from_failure: bool,
    /// Stable name of the new run: the same key is the same run.
    pub run_key: Arc<str>,
    /// Who asks.
    pub caller: Caller,
}

/// A run with its tasks and edges, as the tables have them.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct EndedRun<'a> {
    pub run: &'a RunRow,
    pub tasks: &'a [TaskRow],
    pub edges: &'a [EdgeRow],
    pub sets: &'a [DepSetRow],
}

/// The command that tries a run again: its tasks under the options that they had, with the same priority, labels and
/// timeout. A task waits for those that are tried again with it.
pub fn retry(state: &State, ended: EndedRun<'_>, retry: Retry) -> Result<TriggerRun, RequestError> {
    let EndedRun { run, tasks, edges, sets } = ended;
    let run_id = run.run_id;
    let Retry { of, from_failure, run_key, caller } = retry;
    if !run.state.is_terminal() {
        return Err(RequestError::StillRunning { run_id });
    }
    let mut requests: BTreeMap<&TaskKey, TaskRequest> = BTreeMap::new();
    for task in tasks.iter().filter(|task| !from_failure || task.state != TaskState::Succeeded) {
        let options = TaskOptions::clone(&task.options);
        let request = TaskRequest { key: task.task_key.clone(), upstream: Vec::new(), options };
        requests.insert(&task.task_key, request);
    }
    if requests.is_empty() {
        return Err(RequestError::NothingToRetry { run_id });
    }
    for edge in edges {
        if requests.contains_key(&edge.upstream_task_key)
            && let Some(request) = requests.get_mut(&edge.downstream_task_key)
        {
            request.upstream.push(edge.upstream_task_key.clone());
        }
    }
    let sets = sets_again(tasks, sets, &requests);
    // The engine holds it to the limit of tasks when it decides about the command.
    let requests = requests.into_values().collect();
    let plan = Plan::build_with_sets(state.tenant(), state.workspace(), requests, sets, u32::MAX)
        .map_err(PlanningError::from)?;
    let request = RunRequest {
        priority: run.priority,
        labels: run.labels.0.clone(),
        timeout: run.timeout,
        source: RunSource::Retry { of, from_failure },
        caller,
        ..RunRequest::default()
    };
    Ok(TriggerRun::planned(run_key, request, Some(RunPlan { plan, basis: PlanBasis::default() })))
}

/// The sets of a run among those of its tasks that are tried again.
fn sets_again(
    tasks: &[TaskRow],
    sets: &[DepSetRow],
    requests: &BTreeMap<&TaskKey, TaskRequest>,
) -> Vec<DepSet> {
    if sets.is_empty() {
        return Vec::new();
    }
    let mut keys: Vec<&TaskKey> = tasks.iter().map(|task| &task.task_key).collect();
    keys.sort();
    let again: BTreeMap<&TaskKey, u32> = requests.keys().copied().zip(0u32..).collect();
    let moved = |positions: &Positions| {
        let now = |position: u32| again.get(*keys.get(position as usize)?).copied();
        Positions::of(positions.iter().filter_map(now))
    };
    let sets =
        sets.iter().map(|row| DepSet { upstream: moved(&row.upstream), downstream: moved(&row.downstream) });
    sets.filter(|set| !set.upstream.is_empty() && !set.downstream.is_empty()).collect()
}
