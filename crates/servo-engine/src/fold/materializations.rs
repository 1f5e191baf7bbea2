//! The end of a task says something about data: a materialization there is, or an attempt that failed (ADR-056).
//!
//! Called once for each task that ended, with results that count. Late, stale and repeated ones never get here, and
//! neither do cancelled tasks, which say nothing about data.

use servo_core::{AssetKey, Operation, RunId};

use super::At;
use crate::lifecycle::{AttemptOutcome, TaskState};
use crate::rows::MaterializationRow;
use crate::state::{LastAttempt, Materialized, State};

pub(super) fn task_ended(state: &mut State, at: At, run: RunId, position: u32) {
    let Some(task) = state.runs.get(&run).map(|owner| &owner.tasks[position as usize]) else { return };
    let outcome = match task.state {
        TaskState::Succeeded => AttemptOutcome::Succeeded,
        TaskState::Failed => AttemptOutcome::Failed,
        TaskState::Planned
        | TaskState::Blocked
        | TaskState::Ready
        | TaskState::Dispatched
        | TaskState::Running
        | TaskState::RetryWait
        | TaskState::Skipped
        | TaskState::Cancelled => return,
    };
    match task.key.operation() {
        Operation::Materialize | Operation::Backfill => {}
        Operation::Check => return,
    }
    let last = LastAttempt { outcome, run_id: run, at: at.time, event_id: at.id };
    let latest = task
        .materialization
        .filter(|_| outcome == AttemptOutcome::Succeeded)
        .map(|id| Materialized::new(id, run, at.time, at.id));
    let (own, partition) = (task.key.asset(), task.key.partition());
    let assets: Vec<AssetKey> = std::iter::once(own).chain(task.options.outputs.iter().cloned()).collect();
    for asset in assets {
        if let (Some(latest), Some(attempt_id)) = (&latest, task.attempt_id) {
            state.changes.materializations.push(MaterializationRow {
                materialization_id: latest.id(),
                asset_key: asset.clone(),
                partition_key: partition.clone(),
                run_id: run,
                task_key: task.key.clone(),
                attempt: task.attempt,
                attempt_id,
                materialized_at: at.time,
                row_version: at.id,
            });
        }
        if state.statuses.record(&asset, partition.as_ref(), latest, last) {
            state.changes.statuses.insert((asset, partition.clone()));
        }
    }
}
