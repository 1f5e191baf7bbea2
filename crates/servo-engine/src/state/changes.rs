//! Changes since the compactor last took them. Bookkeeping beside the state: it takes no part in comparisons.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_core::{
    AssetKey, BackfillId, EventId, MaterializationId, PartitionKey, RuleId, RunId, ScheduleId, SensorId,
    TaskKey, dispatch_id, timer_id,
};

use super::shared::{SharedMap, SharedVec};
use super::task::SideRows;
use super::{ChangedFacts, Run};
use crate::effect::Effect;
use crate::event::TimerKind;
use crate::rows::{
    AppendedRows, AuditRow, BackfillChunkRow, BackfillRow, CheckResultRow, ConditionEvaluationRow,
    DeploymentRow, MaterializationInputRow, NotificationRow, RunKeyConflictRow, ScheduleTickRow,
    SensorEvalRow, TaskCostRow,
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    /// Runs with a changed row of any kind.
    pub(super) runs: SharedMap<RunId, ChangedRun>,
    pub(super) outbox_gone: Vec<String>,
    pub(super) timers_gone: Vec<String>,
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
    /// Assets that fare otherwise.
    pub(crate) asset_states: BTreeSet<AssetKey>,
    /// Partitions whose status changed.
    pub(crate) statuses: BTreeSet<(AssetKey, Option<PartitionKey>)>,
    /// Partitions whose wipe or mark can be undone, or no longer.
    pub(crate) undo: BTreeSet<(AssetKey, Option<PartitionKey>)>,
    /// Assets that were renamed: the name before and the event.
    pub(crate) renames: BTreeSet<(AssetKey, EventId)>,
    /// Quarantined or reviewed materializations.
    pub(crate) quarantine: BTreeSet<(AssetKey, MaterializationId)>,
    /// Scopes that were paused or resumed.
    pub(crate) pauses: BTreeSet<String>,
    /// Workers that came, changed or went.
    pub(crate) workers: BTreeSet<String>,
    /// Settings that changed.
    pub(crate) settings: BTreeSet<String>,
    /// Schedules whose state changed.
    pub(crate) schedules: BTreeSet<ScheduleId>,
    /// Schedules whose definition changed.
    pub(crate) schedule_definitions: BTreeSet<ScheduleId>,
    /// New ticks of schedules.
    pub(crate) ticks: Vec<EventId>,
    /// Ticks that left memory.
    pub(crate) ended_ticks: SharedVec<Arc<ScheduleTickRow>>,
    /// Sensors whose state changed.
    pub(crate) sensors: BTreeSet<SensorId>,
    /// Sensors whose definition changed.
    pub(crate) sensor_definitions: BTreeSet<SensorId>,
    /// Messages to sensors that came or went.
    pub(crate) messages: BTreeSet<(SensorId, EventId, Arc<str>)>,
    /// New evaluations of sensors.
    pub(crate) evals: Vec<EventId>,
    /// Evaluations that left memory.
    pub(crate) ended_evals: SharedVec<Arc<SensorEvalRow>>,
    /// Assets whose freshness changed.
    pub(crate) freshness: BTreeSet<AssetKey>,
    /// Backfills that changed.
    pub(crate) backfills: BTreeSet<BackfillId>,
    /// Backfills that left memory.
    pub(crate) ended_backfills: SharedVec<Arc<BackfillRow>>,
    /// Chunks of backfills that changed.
    pub(crate) chunks: BTreeSet<(BackfillId, u32)>,
    /// Chunks that left memory.
    pub(crate) ended_chunks: SharedVec<Arc<BackfillChunkRow>>,
    /// Conditions that came, changed or went.
    pub(crate) condition_states: BTreeSet<AssetKey>,
    /// Partitions whose requests by conditions changed.
    pub(crate) condition_requests: BTreeSet<(AssetKey, Option<PartitionKey>)>,
    /// New evaluations of conditions.
    pub(crate) evaluations: Vec<(EventId, AssetKey)>,
    /// Evaluations that left memory.
    pub(crate) ended_evaluations: SharedVec<Arc<ConditionEvaluationRow>>,
    /// Notification rules that changed.
    pub(crate) rules: BTreeSet<RuleId>,
    /// Notifications that changed.
    pub(crate) notifications: BTreeSet<Arc<str>>,
    /// Notifications that left memory.
    pub(crate) ended_notifications: SharedVec<Arc<NotificationRow>>,
    /// Ended runs that left memory.
    pub(crate) ended: SharedVec<Arc<Run>>,
    /// New conflicts of run keys.
    pub(crate) conflicts: SharedVec<RunKeyConflictRow>,
    /// New rows of other tables whose rows are written once.
    pub(crate) appended: AppendedRows,
    /// Those of table `audit`, which readers are shown before they are written.
    pub(crate) audit: SharedVec<AuditRow>,
    /// Those of table `materialization_inputs`, as above.
    pub(crate) inputs: SharedVec<MaterializationInputRow>,
    /// Those of table `check_results`, as above.
    pub(crate) checks: SharedVec<CheckResultRow>,
    /// Those of table `task_costs`, as above.
    pub(crate) costs: SharedVec<TaskCostRow>,
    /// Runs that ended since a step last asked.
    pub(super) just_ended: Vec<RunId>,
    /// Facts that conditions have not been evaluated with.
    pub(crate) facts: ChangedFacts,
    /// Effects without an acknowledgement that followed from what was folded since a step last asked.
    pub(super) effects: Vec<Effect>,
}

/// Changed rows of a run; positions may be there more than once.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangedRun {
    pub(super) row: bool,
    pub(super) tasks: Vec<u32>,
    pub(super) edges: Vec<u32>,
    /// Its sets of dependencies, which never change again.
    pub(super) sets: bool,
}

impl ChangedRun {
    pub(crate) fn task(&mut self, task: u32) {
        // Mostly one event changes a task several times.
        if self.tasks.last() != Some(&task) {
            self.tasks.push(task);
        }
    }

    pub(crate) fn edge(&mut self, edge: u32) {
        self.edges.push(edge);
    }

    /// All tasks, edges and sets of a run are new.
    pub(crate) fn all_of(&mut self, run: &Run) {
        self.tasks.extend(0..run.tasks.len() as u32);
        self.edges.extend(0..run.edges.len() as u32);
        self.sets |= !run.sets.is_empty();
    }
}

impl Changes {
    /// The changed rows of a run.
    pub(crate) fn of(&mut self, run: RunId) -> &mut ChangedRun {
        self.runs.get_or_insert_with(&run, ChangedRun::default)
    }

    pub(crate) fn run(&mut self, run: RunId) {
        self.of(run).row = true;
    }

    /// An ended run left memory: all its rows are final. What changed of it must not be looked for in a later run of its id.
    pub(crate) fn run_left(&mut self, run: Arc<Run>) {
        self.runs.remove(&run.id);
        self.ended.push(run);
    }

    pub(crate) fn run_ended(&mut self, run: RunId) {
        self.just_ended.push(run);
    }

    pub(crate) fn take_just_ended(&mut self) -> Vec<RunId> {
        std::mem::take(&mut self.just_ended)
    }

    /// The part that readers need: ended runs, ticks, evaluations and chunks that left memory, conflicts, acts, lineage, results of
    /// checks and costs that are not in the tables yet.
    pub(crate) fn for_readers(&self) -> Self {
        Self {
            ended: self.ended.clone(),
            ended_ticks: self.ended_ticks.clone(),
            ended_evals: self.ended_evals.clone(),
            ended_chunks: self.ended_chunks.clone(),
            ended_backfills: self.ended_backfills.clone(),
            ended_evaluations: self.ended_evaluations.clone(),
            ended_notifications: self.ended_notifications.clone(),
            conflicts: self.conflicts.clone(),
            audit: self.audit.clone(),
            inputs: self.inputs.clone(),
            checks: self.checks.clone(),
            costs: self.costs.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn take_facts(&mut self) -> ChangedFacts {
        std::mem::take(&mut self.facts)
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
