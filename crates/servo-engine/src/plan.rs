//! Plans: the tasks of a run and what each waits for, normalized so that equal plans have equal fingerprints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, Fingerprint, Millis, TaskKey, TenantId, WorkspaceId, fingerprint};

use crate::definitions::Compute;
use crate::dep_sets::DepSet;
use crate::retry::RetryPolicy;

/// One task as a caller describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRequest {
    /// Identity of the task: asset, partition, operation.
    pub key: TaskKey,
    /// The tasks of the same plan it waits for, in any order.
    pub upstream: Vec<TaskKey>,
    /// How it runs.
    pub options: TaskOptions,
}

/// How a task runs. Absent means the default of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOptions {
    /// Higher runs first within its run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Retry rules; without them only failures of the infrastructure are retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// Longest an attempt may run; enforced by the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// Longest silence of a running attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_ms: Option<Millis>,
    /// Queue other than the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_queue: Option<Arc<str>>,
    /// Pool whose limit it counts against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Arc<str>>,
    /// The machine resources it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Compute>,
    /// Further assets that the same task materializes, beside that of its key and for the same partition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<AssetKey>,
    /// Whether one call of the function makes this and all other partitions of the asset in the run (ADR-210).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single_call: bool,
    /// Assets that it reads as they were before, if a check blocks them in the same run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<AssetKey>,
    /// Values of its configuration that differ from the declared ones, as JSON texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
}

/// One task of a normalized plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Identity of the task: asset, partition, operation.
    pub task_key: TaskKey,
    /// Positions in the plan of the tasks it waits for, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstream: Vec<u32>,
    /// How it runs.
    #[serde(flatten)]
    pub options: TaskOptions,
}

/// A checked plan: sorted by task key, no duplicates, no cycles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    tasks: Arc<[TaskSpec]>,
    sets: Arc<[DepSet]>,
    fingerprint: Fingerprint,
}

/// Edges between pairs of tasks that a run may have.
pub const MAX_EDGES: u64 = 2_000_000;

/// Why a list of tasks is not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The plan has no tasks.
    #[error("the plan has no tasks; select at least one")]
    Empty,
    /// More tasks than a run may have.
    #[error(
        "the plan has {count} tasks and a run may have {limit}; narrow the selection or raise max_tasks_per_run"
    )]
    TooManyTasks {
        /// Tasks asked for.
        count: usize,
        /// Tasks allowed.
        limit: u32,
    },
    /// More edges than a run may have.
    #[error(
        "the plan has {count} edges between pairs of tasks and a run may have {limit} (MAX_EDGES); ask for fewer \
         partitions at once. Tasks that all wait for the same tasks, as with the mapping `all`, do not count",
        limit = MAX_EDGES
    )]
    TooManyEdges {
        /// Edges asked for.
        count: u64,
    },
    /// A set of dependencies that is none.
    #[error("a set of dependencies is not one of the plan: {problem}")]
    WrongSet {
        /// The problem.
        problem: &'static str,
    },
    /// Twice the same key.
    #[error("task {task} is in the plan twice")]
    Duplicate {
        /// The key.
        task: TaskKey,
    },
    /// An edge from nowhere.
    #[error("task {task} waits for {upstream}, which is not in the plan")]
    UnknownUpstream {
        /// The waiting task.
        task: TaskKey,
        /// The upstream task.
        upstream: TaskKey,
    },
    /// Tasks that wait for each other.
    #[error("tasks wait for each other: {}", path(.cycle))]
    Cycle {
        /// The whole way round, first and last the same.
        cycle: Vec<TaskKey>,
    },
    /// The plan cannot be hashed.
    #[error("the plan cannot be fingerprinted: {0}")]
    Fingerprint(String),
}

fn path(cycle: &[TaskKey]) -> String {
    cycle.iter().map(TaskKey::as_str).collect::<Vec<_>>().join(" → ")
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

#[derive(Serialize)]
struct NormalizedPlan<'a> {
    spec_version: u8,
    tenant_id: &'a TenantId,
    workspace_id: &'a WorkspaceId,
    tasks: Vec<NormalizedTask<'a>>,
    #[serde(skip_serializing_if = "<[DepSet]>::is_empty")]
    sets: &'a [DepSet],
}

#[derive(Serialize)]
struct NormalizedTask<'a> {
    task_key: &'a TaskKey,
    upstream_keys: Vec<&'a TaskKey>,
    options: &'a TaskOptions,
}

impl Plan {
    /// Checks and normalizes. The order of `requests` and of their upstreams does not matter.
    pub fn build(
        tenant: &TenantId,
        workspace: &WorkspaceId,
        requests: Vec<TaskRequest>,
        max_tasks: u32,
    ) -> Result<Plan, PlanError> {
        Self::build_with_sets(tenant, workspace, requests, Vec::new(), max_tasks)
    }

    /// The same with sets of dependencies, given as positions among the keys of all requests in order.
    pub fn build_with_sets(
        tenant: &TenantId,
        workspace: &WorkspaceId,
        mut requests: Vec<TaskRequest>,
        sets: Vec<DepSet>,
        max_tasks: u32,
    ) -> Result<Plan, PlanError> {
        if requests.is_empty() {
            return Err(PlanError::Empty);
        }
        if requests.len() > max_tasks as usize {
            return Err(PlanError::TooManyTasks { count: requests.len(), limit: max_tasks });
        }
        requests.sort_by(|a, b| a.key.cmp(&b.key));
        for TaskRequest { key, options, .. } in &mut requests {
            options.outputs.retain(|asset| asset.canonical() != key.asset_str());
            options.outputs.sort();
            options.outputs.dedup();
        }
        if let Some(pair) = requests.windows(2).find(|pair| pair[0].key == pair[1].key) {
            return Err(PlanError::Duplicate { task: pair[0].key.clone() });
        }
        let positions: BTreeMap<&TaskKey, u32> = (0u32..).zip(&requests).map(|(i, r)| (&r.key, i)).collect();
        let mut specs = Vec::with_capacity(requests.len());
        for request in &requests {
            let mut upstream = BTreeSet::new();
            for key in &request.upstream {
                let position = positions.get(key).ok_or_else(|| PlanError::UnknownUpstream {
                    task: request.key.clone(),
                    upstream: key.clone(),
                })?;
                upstream.insert(*position);
            }
            specs.push(TaskSpec {
                task_key: request.key.clone(),
                upstream: upstream.into_iter().collect(),
                options: request.options.clone(),
            });
        }
        if let Some(problem) = sets.iter().find_map(|set| set.problem(specs.len())) {
            return Err(PlanError::WrongSet { problem });
        }
        Self::assemble(tenant, workspace, specs, sets)
    }

    /// A plan of tasks that are sorted by key, each once, with edges that lead to one another.
    pub(crate) fn assemble(
        tenant: &TenantId,
        workspace: &WorkspaceId,
        specs: Vec<TaskSpec>,
        sets: Vec<DepSet>,
    ) -> Result<Plan, PlanError> {
        let edges: u64 = specs.iter().map(|spec| spec.upstream.len() as u64).sum();
        if edges > MAX_EDGES {
            return Err(PlanError::TooManyEdges { count: edges });
        }
        if let Some(cycle) = find_cycle(&specs, &sets) {
            return Err(PlanError::Cycle {
                cycle: cycle.into_iter().map(|i| specs[i].task_key.clone()).collect(),
            });
        }
        let normalized = NormalizedPlan {
            spec_version: 1,
            tenant_id: tenant,
            workspace_id: workspace,
            tasks: specs
                .iter()
                .map(|spec| NormalizedTask {
                    task_key: &spec.task_key,
                    upstream_keys: spec.upstream.iter().map(|u| &specs[*u as usize].task_key).collect(),
                    options: &spec.options,
                })
                .collect(),
            sets: &sets,
        };
        let fingerprint =
            fingerprint(&normalized).map_err(|error| PlanError::Fingerprint(error.to_string()))?;
        Ok(Plan { tasks: specs.into(), sets: sets.into(), fingerprint })
    }

    /// The tasks, sorted by key.
    pub fn tasks(&self) -> &Arc<[TaskSpec]> {
        &self.tasks
    }

    /// Tasks that all wait for the same tasks, beside the edges of each.
    pub fn sets(&self) -> &Arc<[DepSet]> {
        &self.sets
    }

    /// Hash of the normalized plan: equal plans, equal fingerprints, on any machine.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
}

/// The positions of one cycle, first and last the same, or none. Iterative: a plan may be a chain of thousands. Sets are
/// nodes of their own, behind the tasks: what waits for a set waits for all of it.
fn find_cycle(specs: &[TaskSpec], sets: &[DepSet]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Done,
    }
    let members: Vec<Vec<u32>> = sets.iter().map(|set| set.upstream.iter().collect()).collect();
    let waits_for = sets_of(specs.len(), sets);
    let before = |node: usize, next: usize| -> Option<usize> {
        let Some(spec) = specs.get(node) else {
            return Some(*members[node - specs.len()].get(next)? as usize);
        };
        match spec.upstream.get(next) {
            Some(upstream) => Some(*upstream as usize),
            None => waits_for[node].get(next - spec.upstream.len()).map(|set| specs.len() + *set as usize),
        }
    };
    let mut marks = vec![Mark::New; specs.len() + sets.len()];
    for start in 0..specs.len() {
        if marks[start] != Mark::New {
            continue;
        }
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        marks[start] = Mark::OnPath;
        while let Some((node, next)) = path.last_mut() {
            let Some(upstream) = before(*node, *next) else {
                marks[*node] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match marks[upstream] {
                Mark::New => {
                    marks[upstream] = Mark::OnPath;
                    path.push((upstream, 0));
                }
                Mark::OnPath => {
                    let from = path.iter().position(|(n, _)| *n == upstream).unwrap_or(0);
                    let nodes = path[from..].iter().map(|(n, _)| *n).filter(|node| *node < specs.len());
                    let mut cycle: Vec<usize> = nodes.collect();
                    cycle.extend(cycle.first().copied());
                    cycle.reverse();
                    return Some(cycle);
                }
                Mark::Done => {}
            }
        }
    }
    None
}

/// The sets that each of so many tasks waits for.
pub(crate) fn sets_of(count: usize, sets: &[DepSet]) -> Vec<Vec<u32>> {
    let mut of = vec![Vec::new(); count];
    for (number, set) in (0u32..).zip(sets) {
        set.downstream.iter().for_each(|task| of[task as usize].push(number));
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_with_too_many_edges_says_which_limit_it_meets() {
        let spec = |number: u32| TaskSpec {
            task_key: TaskKey::parse(&format!("t/n{number:05}:materialize")).unwrap(),
            upstream: (0..number).collect(),
            options: TaskOptions::default(),
        };
        let (tenant, workspace) = (TenantId::parse("acme").unwrap(), WorkspaceId::parse("prod").unwrap());
        let specs = (0..2_002).map(spec).collect();
        let refused = Plan::assemble(&tenant, &workspace, specs, Vec::new()).unwrap_err();
        assert_eq!(refused, PlanError::TooManyEdges { count: 2_003_001 });
        assert!(refused.to_string().contains("2000000 (MAX_EDGES)"), "{refused}");
    }
}
