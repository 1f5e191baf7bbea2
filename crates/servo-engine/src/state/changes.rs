//! What changed since the compactor last asked. Bookkeeping beside the state: it takes no part in comparisons.

use std::collections::BTreeSet;

use servo_core::{AssetKey, MaterializationId, PartitionKey, RunId, TaskKey, dispatch_id, timer_id};

use super::task::SideRows;
use super::{Run, State, snapshot};
use crate::event::TimerKind;
use crate::rows::{
    CheckResultRow, Delta, DeploymentRow, Discard, EndedRows, GoneKeys, IdempotencyRow,
    MaterializationInputRow, MaterializationRow, RunKeyConflictRow, RunKeyRow,
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    /// Runs with a dirty row of any kind, each once.
    runs: Vec<RunId>,
    outbox_gone: Vec<String>,
    timers_gone: Vec<String>,
    /// Assets whose definition changed or was removed.
    pub(crate) definitions: BTreeSet<AssetKey>,
    /// Whether there is a new deployment.
    pub(crate) deployment: bool,
    /// Deployments that others have followed.
    pub(crate) ended_deployments: Vec<DeploymentRow>,
    /// Dynamic partitions that were added or removed: name, key.
    pub(crate) partitions: BTreeSet<(String, String)>,
    /// Their names.
    pub(crate) partition_sets: BTreeSet<String>,
    /// Partitions whose status changed.
    pub(crate) statuses: BTreeSet<(AssetKey, Option<PartitionKey>)>,
    pub(crate) materializations: Vec<MaterializationRow>,
    pub(crate) materialization_inputs: Vec<MaterializationInputRow>,
    pub(crate) check_results: Vec<CheckResultRow>,
    /// What came to wait for review, or was reviewed.
    pub(crate) quarantine: BTreeSet<(AssetKey, MaterializationId)>,
    pub(crate) discards: Vec<Discard>,
    /// Ended runs that left memory.
    pub(crate) ended: Vec<Run>,
    pub(crate) run_keys: Vec<RunKeyRow>,
    pub(crate) conflicts: Vec<RunKeyConflictRow>,
    pub(crate) idempotency: Vec<IdempotencyRow>,
    /// Runs that ended since a step last asked.
    just_ended: Vec<RunId>,
}

impl Changes {
    fn touch(&mut self, run: &Run) {
        if !run.dirty && run.dirty_tasks.is_empty() && run.dirty_edges.is_empty() {
            self.runs.push(run.id);
        }
    }

    pub(crate) fn run(&mut self, run: &mut Run) {
        self.touch(run);
        run.dirty = true;
    }

    pub(crate) fn task(&mut self, run: &mut Run, task: u32) {
        self.touch(run);
        let subject = &mut run.tasks[task as usize];
        if !std::mem::replace(&mut subject.dirty, true) {
            run.dirty_tasks.push(task);
        }
    }

    pub(crate) fn edge(&mut self, run: &mut Run, edge: u32) {
        self.touch(run);
        let subject = &mut run.edges[edge as usize];
        if !std::mem::replace(&mut subject.dirty, true) {
            run.dirty_edges.push(edge);
        }
    }

    pub(crate) fn run_ended(&mut self, run: RunId) {
        self.just_ended.push(run);
    }

    pub(crate) fn take_just_ended(&mut self) -> Vec<RunId> {
        std::mem::take(&mut self.just_ended)
    }

    /// Notes the outbox and timer rows that a task no longer has.
    pub(crate) fn replaced(&mut self, run: RunId, key: &TaskKey, old: SideRows, new: SideRows) {
        if let Some(attempt) = old.outbox.filter(|_| old.outbox != new.outbox) {
            self.outbox_gone.push(dispatch_id(run, key, attempt));
        }
        if let Some((attempt, fire_at)) = old.timer.filter(|_| old.timer != new.timer) {
            self.timers_gone.push(timer_id(
                TimerKind::Retry.id_part(),
                Some(run),
                Some(key),
                attempt,
                fire_at,
            ));
        }
    }
}

pub(super) fn take(state: &mut State) -> Delta {
    let mut changes = std::mem::take(&mut state.changes);
    state.changes.just_ended = changes.take_just_ended();
    let deployments = state.definitions.deployment_row().filter(|_| changes.deployment);
    let definitions = changes.definitions.iter().filter_map(|key| state.definitions.row(key));
    let sets = changes.partition_sets.iter().filter_map(|name| state.dynamic.set_row(name));
    let statuses = changes.statuses.iter();
    let statuses = statuses.filter_map(|(asset, key)| state.statuses.row(asset, key.as_ref()));
    // Every list by its name: one that is forgotten does not compile. Those that are empty here are filled below.
    let mut delta = Delta {
        head: state.head,
        runs: Vec::new(),
        tasks: Vec::new(),
        edges: Vec::new(),
        deployments: deployments.into_iter().collect(),
        timers: Vec::new(),
        outbox: Vec::new(),
        asset_definitions: definitions.collect(),
        partition_status: statuses.collect(),
        quarantine: Vec::new(),
        dynamic_partitions: Vec::new(),
        partition_sets: sets.collect(),
        gone: GoneKeys {
            deployments: changes.ended_deployments.iter().map(|row| row.number).collect(),
            timers: changes.timers_gone,
            outbox: changes.outbox_gone,
            ..GoneKeys::default()
        },
        ended: EndedRows { deployments: changes.ended_deployments, ..EndedRows::default() },
        materializations: changes.materializations,
        materialization_inputs: changes.materialization_inputs,
        check_results: changes.check_results,
        run_keys: changes.run_keys,
        run_key_conflicts: changes.conflicts,
        idempotency: changes.idempotency,
        discards: changes.discards,
    };
    for (name, key) in changes.partitions {
        match state.dynamic.row(&name, &key) {
            Some(row) => delta.dynamic_partitions.push(row),
            None => delta.gone.dynamic_partitions.push((name, key)),
        }
    }
    for key in changes.quarantine {
        match state.quarantine.get(&key.0, key.1) {
            Some(row) => delta.quarantine.push(row.clone()),
            None => delta.gone.quarantine.push(key),
        }
    }
    for id in changes.runs {
        if let Some(run) = state.runs.get_mut(&id) {
            add_changed(&mut delta, run);
        }
    }
    for run in &changes.ended {
        add_ended(&mut delta, run);
    }
    delta
}

/// The rows of a run that changed.
fn add_changed(delta: &mut Delta, run: &mut Run) {
    if std::mem::take(&mut run.dirty) {
        delta.runs.push(snapshot::run_row(run));
    }
    let mut tasks = std::mem::take(&mut run.dirty_tasks);
    tasks.sort_unstable();
    for position in tasks {
        run.tasks[position as usize].dirty = false;
        delta.tasks.push(snapshot::task_row(run, position));
        delta.outbox.extend(snapshot::outbox_row(run, position));
        delta.timers.extend(snapshot::timer_row(run, position));
    }
    let mut edges = std::mem::take(&mut run.dirty_edges);
    edges.sort_unstable();
    for position in edges {
        run.edges[position as usize].dirty = false;
        delta.edges.push(snapshot::edge_row(run, position as usize));
    }
}

/// The final rows of a run that has left memory.
fn add_ended(delta: &mut Delta, run: &Run) {
    delta.gone.runs.push(run.id);
    delta.ended.runs.push(snapshot::run_row(run));
    for position in 0..run.tasks.len() as u32 {
        let task = &run.tasks[position as usize];
        delta.gone.tasks.push((run.id, task.key.clone()));
        delta.gone.outbox.extend(snapshot::outbox_row(run, position).map(|row| row.dispatch_id));
        delta.gone.timers.extend(snapshot::timer_row(run, position).map(|row| row.timer_id));
        delta.ended.tasks.push(snapshot::task_row(run, position));
    }
    for position in 0..run.edges.len() {
        let row = snapshot::edge_row(run, position);
        delta.gone.edges.push((run.id, row.upstream_task_key.clone(), row.downstream_task_key.clone()));
        delta.ended.edges.push(row);
    }
}
