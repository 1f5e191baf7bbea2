//! The plan that a run follows: its assets in stages, and the chain of tasks that decided when it ended.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use servo_core::{RunId, TaskKey, Timestamp};
use servo_engine::{Positions, Run};
use servo_runtime::RunDetail;

use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::{NoQuery, Path, Query};
use crate::problem::Problem;
use crate::reads::unknown_run;
use crate::views::{PlanStep, RunPlan, Task};

/// Number of assets that are listed.
const MAX_STEPS: usize = 1_000;

/// The plan of a run: its assets by stage, what they wait for, and its critical path.
#[utoipa::path(
    get, path = "/runs/{run_id}/plan", operation_id = "get_run_plan", tag = "runs",
    params(("run_id" = String, Path), Wait), responses((status = 200, body = RunPlan), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path(id): Path<RunId>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<RunPlan>, Problem> {
    let now = app.workspace().now();
    let hot = app.workspace().read(move |state| state.run(id).map(Shape::of_run)).await?;
    let shape = match hot {
        Some(shape) => shape,
        None => Shape::of_rows(app.workspace().run(id).await?.ok_or_else(|| unknown_run(id))?),
    };
    Ok(Answer(shape.plan(now)))
}

/// A task as far as the plan is concerned.
struct Node {
    key: TaskKey,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

/// Tasks of a run by key, and what waits for what, by position.
struct Shape {
    fingerprint: Option<String>,
    tasks: Vec<Node>,
    edges: Vec<(u32, u32)>,
    sets: Vec<(Positions, Positions)>,
}

impl Shape {
    fn of_run(run: &Run) -> Self {
        let tasks = run.tasks.iter().map(|task| Node {
            key: task.key.clone(),
            started_at: task.started_at(),
            finished_at: task.finished_at,
        });
        let sets = run.sets.iter().map(|set| (set.set.upstream.clone(), set.set.downstream.clone()));
        Self {
            fingerprint: run.row().plan_fingerprint,
            tasks: tasks.collect(),
            edges: run.edges.iter().map(|edge| (edge.upstream, edge.downstream)).collect(),
            sets: sets.collect(),
        }
    }

    fn of_rows(detail: RunDetail) -> Self {
        let tasks: Vec<Node> = detail
            .tasks
            .into_iter()
            .map(|row| Node { key: row.task_key, started_at: row.started_at, finished_at: row.finished_at })
            .collect();
        let place = |key: &TaskKey| tasks.binary_search_by(|task| task.key.cmp(key)).ok();
        let edges = detail.edges.iter().filter_map(|row| {
            Some((place(&row.upstream_task_key)? as u32, place(&row.downstream_task_key)? as u32))
        });
        Self {
            fingerprint: detail.run.plan_fingerprint,
            edges: edges.collect(),
            sets: detail.sets.into_iter().map(|row| (row.upstream.0, row.downstream.0)).collect(),
            tasks,
        }
    }

    fn plan(self, now: Timestamp) -> RunPlan {
        let graph = self.graph();
        let stages = graph.stages();
        let mut steps: BTreeMap<&str, PlanStep> = BTreeMap::new();
        for (task, stage) in self.tasks.iter().zip(&stages) {
            let asset = task.key.asset_str();
            let step = steps.entry(asset).or_insert_with(|| PlanStep {
                asset_key: asset.to_owned(),
                tasks: 0,
                first_stage: *stage,
                last_stage: *stage,
                upstream: Vec::new(),
            });
            step.tasks += 1;
            step.first_stage = step.first_stage.min(*stage);
            step.last_stage = step.last_stage.max(*stage);
        }
        for (upstream, downstream) in self.assets_between() {
            if let Some(step) = steps.get_mut(downstream) {
                step.upstream.push(upstream.to_owned());
            }
        }
        let critical_path = self.critical_path(&graph, now);
        let mut steps: Vec<PlanStep> = steps.into_values().collect();
        steps.sort_by(|a, b| (a.first_stage, &a.asset_key).cmp(&(b.first_stage, &b.asset_key)));
        let more_steps = steps.len().saturating_sub(MAX_STEPS) as u32;
        steps.truncate(MAX_STEPS);
        RunPlan {
            stages: stages.iter().copied().max().unwrap_or_default(),
            tasks: self.tasks.len() as u32,
            steps,
            more_steps,
            critical_path,
            fingerprint: self.fingerprint,
        }
    }

    /// Pairs of different assets of which a task of the second waits for one of the first.
    fn assets_between(&self) -> BTreeSet<(&str, &str)> {
        let asset = |position: u32| self.tasks.get(position as usize).map(|task| task.key.asset_str());
        let single = self.edges.iter().filter_map(|(from, to)| Some((asset(*from)?, asset(*to)?)));
        let mut found: BTreeSet<(&str, &str)> = single.collect();
        for (upstream, downstream) in &self.sets {
            let from: BTreeSet<&str> = upstream.iter().filter_map(asset).collect();
            let to: BTreeSet<&str> = downstream.iter().filter_map(asset).collect();
            found.extend(from.iter().flat_map(|from| to.iter().map(|to| (*from, *to))));
        }
        found.retain(|(from, to)| from != to);
        found
    }

    /// Tasks first, then a node for every set, so that a set costs the sum of its lists and not their product.
    fn graph(&self) -> Graph {
        let tasks = self.tasks.len();
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); tasks + self.sets.len()];
        let mut after = before.clone();
        let mut join = |from: u32, to: u32| {
            if let (Some(next), Some(last)) = (after.get_mut(from as usize), before.get_mut(to as usize)) {
                next.push(to);
                last.push(from);
            }
        };
        for (from, to) in &self.edges {
            join(*from, *to);
        }
        for (node, (upstream, downstream)) in (tasks as u32..).zip(&self.sets) {
            upstream.iter().for_each(|from| join(from, node));
            downstream.iter().for_each(|to| join(node, to));
        }
        Graph { tasks, before, after }
    }

    /// From the task that ended last, back over the one that each waited for the longest.
    fn critical_path(&self, graph: &Graph, now: Timestamp) -> Vec<String> {
        let end = |position: u32| {
            let task = self.tasks.get(position as usize)?;
            task.started_at.map(|_| task.finished_at.unwrap_or(now))
        };
        let last_of = |nodes: &mut dyn Iterator<Item = u32>| {
            nodes.filter_map(|node| Some((end(node)?, node))).max().map(|(_, node)| node)
        };
        let mut path = Vec::new();
        let mut at = last_of(&mut (0..graph.tasks as u32));
        while let Some(position) = at {
            path.push(Task::id_of(&self.tasks[position as usize].key));
            at = last_of(&mut graph.waited_for(position));
        }
        path.reverse();
        path
    }
}

/// The neighbours of each node, before and after it: tasks, then sets.
struct Graph {
    tasks: usize,
    before: Vec<Vec<u32>>,
    after: Vec<Vec<u32>>,
}

impl Graph {
    /// The stage of each task: one more than the last of what it waits for.
    fn stages(&self) -> Vec<u32> {
        let mut stages = vec![0u32; self.before.len()];
        let mut open: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut ready: Vec<u32> = (0..).zip(&open).filter(|(_, open)| **open == 0).map(|it| it.0).collect();
        while let Some(node) = ready.pop() {
            let place = node as usize;
            // A set is no stage of its own.
            stages[place] += u32::from(place < self.tasks);
            for next in &self.after[place] {
                let next_place = *next as usize;
                stages[next_place] = stages[next_place].max(stages[place]);
                open[next_place] -= 1;
                if open[next_place] == 0 {
                    ready.push(*next);
                }
            }
        }
        stages.truncate(self.tasks);
        stages
    }

    /// Tasks that a task waits for, also those of sets.
    fn waited_for(&self, task: u32) -> impl Iterator<Item = u32> {
        self.before[task as usize]
            .iter()
            .flat_map(|node| match (*node as usize) < self.tasks {
                true => std::slice::from_ref(node),
                false => self.before[*node as usize].as_slice(),
            })
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(tasks: &[(&str, i64, i64)], edges: &[(u32, u32)], sets: &[(&[u32], &[u32])]) -> Shape {
        let node = |(key, started, finished): &(&str, i64, i64)| Node {
            key: TaskKey::parse(key).unwrap(),
            started_at: Some(Timestamp::from_millis(*started)),
            finished_at: Some(Timestamp::from_millis(*finished)),
        };
        let positions = |of: &[u32]| Positions::of(of.iter().copied());
        Shape {
            fingerprint: None,
            tasks: tasks.iter().map(node).collect(),
            edges: edges.to_vec(),
            sets: sets.iter().map(|(from, to)| (positions(from), positions(to))).collect(),
        }
    }

    #[test]
    fn tasks_behind_a_set_are_one_stage_later_than_the_last_of_it() {
        let tasks = [
            ("raw/a:materialize", 0, 10),
            ("raw/b:materialize", 10, 40),
            ("raw/c:materialize", 40, 50),
            ("raw/d:materialize", 40, 60),
        ];
        let plan = shape(&tasks, &[(0, 1)], &[(&[0, 1], &[2, 3])]).plan(Timestamp::from_millis(100));
        let stages: Vec<(&str, u32)> =
            plan.steps.iter().map(|step| (step.asset_key.as_str(), step.first_stage)).collect();
        assert_eq!(stages, [("raw/a", 1), ("raw/b", 2), ("raw/c", 3), ("raw/d", 3)]);
        assert_eq!(plan.steps[3].upstream, ["raw/a", "raw/b"]);
        let id = |key: &str| Task::id_of(&TaskKey::parse(key).unwrap());
        let path = ["raw/a:materialize", "raw/b:materialize", "raw/d:materialize"].map(id);
        assert_eq!(plan.critical_path, path);
    }

    #[test]
    fn a_run_without_tasks_has_an_empty_plan() {
        let plan = shape(&[], &[], &[]).plan(Timestamp::from_millis(1));
        assert_eq!((plan.stages, plan.tasks, plan.steps.len(), plan.critical_path.len()), (0, 0, 0, 0));
    }
}
