//! What changed since the compactor last asked. Bookkeeping beside the state: it takes no part in comparisons.

use std::collections::BTreeSet;

use servo_core::{AssetKey, MaterializationId, PartitionKey, RunId, TaskKey, dispatch_id, timer_id};

use super::Run;
use super::task::SideRows;
use crate::event::TimerKind;
use crate::rows::{AppendedRows, DeploymentRow, Discard};

#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    /// Runs with a dirty row of any kind, each once.
    pub(super) runs: Vec<RunId>,
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
    /// Partitions whose status changed.
    pub(crate) statuses: BTreeSet<(AssetKey, Option<PartitionKey>)>,
    /// What came to wait for review, or was reviewed.
    pub(crate) quarantine: BTreeSet<(AssetKey, MaterializationId)>,
    pub(crate) discards: Vec<Discard>,
    /// Ended runs that left memory.
    pub(crate) ended: Vec<Run>,
    /// New rows of tables whose rows are written once.
    pub(crate) appended: AppendedRows,
    /// Runs that ended since a step last asked.
    pub(super) just_ended: Vec<RunId>,
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
