//! What changed since the compactor last asked. Bookkeeping beside the state: it takes no part in comparisons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::{AssetKey, MaterializationId, PartitionKey, RunId, TaskKey, dispatch_id, timer_id};

use super::shared::SharedVec;
use super::task::SideRows;
use super::{Run, State, snapshot};
use crate::effect::Effect;
use crate::event::TimerKind;
use crate::rows::{
    CheckResultRow, Delta, DeploymentRow, EndedRows, GoneKeys, IdempotencyRow, MaterializationInputRow,
    MaterializationRow, RunKeyConflictRow, RunKeyRow,
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    /// Runs with a changed row of any kind.
    runs: BTreeMap<RunId, ChangedRun>,
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
    /// Ended runs that left memory.
    pub(crate) ended: SharedVec<Arc<Run>>,
    pub(crate) run_keys: Vec<RunKeyRow>,
    pub(crate) conflicts: Vec<RunKeyConflictRow>,
    pub(crate) idempotency: Vec<IdempotencyRow>,
    /// Runs that ended since a step last asked.
    just_ended: Vec<RunId>,
    /// Effects without an acknowledgement that followed from what was folded since a step last asked.
    effects: Vec<Effect>,
}

/// What changed of a run; positions may be there more than once.
#[derive(Debug, Clone, Default)]
struct ChangedRun {
    row: bool,
    tasks: Vec<u32>,
    edges: Vec<u32>,
}

impl Changes {
    pub(crate) fn run(&mut self, run: RunId) {
        self.runs.entry(run).or_default().row = true;
    }

    pub(crate) fn task(&mut self, run: RunId, task: u32) {
        self.runs.entry(run).or_default().tasks.push(task);
    }

    pub(crate) fn edge(&mut self, run: RunId, edge: u32) {
        self.runs.entry(run).or_default().edges.push(edge);
    }

    pub(crate) fn run_ended(&mut self, run: RunId) {
        self.just_ended.push(run);
    }

    pub(crate) fn take_just_ended(&mut self) -> Vec<RunId> {
        std::mem::take(&mut self.just_ended)
    }

    /// What readers find here: ended runs that left memory and are not in the tables yet.
    pub(crate) fn for_readers(&self) -> Self {
        Self { ended: self.ended.clone(), ..Self::default() }
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
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
    state.changes.effects = changes.take_effects();
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
    for (id, changed) in changes.runs {
        if let Some(run) = state.runs.get(&id) {
            add_changed(&mut delta, run, changed);
        }
    }
    for run in &changes.ended {
        add_ended(&mut delta, run);
    }
    delta
}

/// The rows of a run that changed.
fn add_changed(delta: &mut Delta, run: &Run, mut changed: ChangedRun) {
    if changed.row {
        delta.runs.push(snapshot::run_row(run));
    }
    changed.tasks.sort_unstable();
    changed.tasks.dedup();
    for position in changed.tasks {
        delta.tasks.push(snapshot::task_row(run, position));
        delta.outbox.extend(snapshot::outbox_row(run, position));
        delta.timers.extend(snapshot::timer_row(run, position));
    }
    changed.edges.sort_unstable();
    changed.edges.dedup();
    for position in changed.edges {
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
