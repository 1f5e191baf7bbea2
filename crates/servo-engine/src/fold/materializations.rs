//! The end of a task says something about data: a materialization there is, or an attempt that failed (ADR-056).
//!
//! Only results that count make a materialization. Cancelled tasks say nothing about data.

use servo_core::{AttemptId, MaterializationId, Operation, RunId, TaskKey};

use super::At;
use super::outputs::output_of;
use crate::event::TaskFinished;
use crate::lifecycle::{AttemptOutcome, OutputState, TaskState};
use crate::outputs::{OutputReport, materialization_of};
use crate::rows::{Json, MaterializationRow};
use crate::state::{LastAttempt, Materialized, State, Task};

/// A task ended for good.
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
    let partition = task.key.partition();
    let made = task.materialization.zip(task.attempt_id).map(|(materialization_id, attempt_id)| Made {
        run_id: run,
        task_key: task.key.clone(),
        attempt: task.attempt,
        attempt_id,
        materialization_id,
    });
    let outputs = task.outputs.clone();
    let assets: Vec<_> = task.assets().collect();
    for asset in assets {
        let unknown = OutputReport::new(asset.clone(), OutputState::Committed);
        let output = if outputs.is_empty() { Some(&unknown) } else { output_of(&outputs, &asset) };
        let committed = output.filter(|output| output.state == OutputState::Committed);
        let latest = made.clone().zip(committed).map(|(made, output)| promote(state, at, made, output));
        if state.statuses.record(&asset, partition.as_ref(), latest, last) {
            state.changes.statuses.insert((asset, partition.clone()));
        }
    }
}

/// What a successful attempt is to be known by. Where outputs are reported, it is named after the attempt; a worker
/// without a word about them knows only that it is done, and perhaps what it made.
pub(super) fn named(task: &Task, payload: &TaskFinished) -> Option<MaterializationId> {
    if payload.outputs.is_empty() {
        return payload.materialization_id;
    }
    let is_committed = |output: &OutputReport| output.state == OutputState::Committed;
    let counts = task.assets().any(|asset| output_of(&payload.outputs, &asset).is_some_and(is_committed));
    counts.then(|| materialization_of(payload.attempt_id))
}

/// Which attempt made something.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) run_id: RunId,
    pub(super) task_key: TaskKey,
    pub(super) attempt: u32,
    pub(super) attempt_id: AttemptId,
    pub(super) materialization_id: MaterializationId,
}

/// Writes a materialization that counts from now on.
pub(super) fn promote(state: &mut State, at: At, made: Made, output: &OutputReport) -> Materialized {
    let definition = state.definitions.get(&output.asset);
    let code_version = definition.and_then(|definition| definition.code_version.clone());
    let latest = Materialized::new(made.materialization_id, output.format, made.run_id, at.time, at.id);
    state.changes.materializations.push(MaterializationRow {
        materialization_id: made.materialization_id,
        asset_key: output.asset.clone(),
        partition_key: made.task_key.partition(),
        run_id: made.run_id,
        task_key: made.task_key,
        attempt: made.attempt,
        attempt_id: made.attempt_id,
        materialized_at: at.time,
        format: output.format,
        uri: output.uri.clone(),
        row_count: output.row_count,
        byte_size: output.byte_size,
        content_hash: output.content_hash.clone(),
        schema_hash: output.schema_hash.clone(),
        schema: output.schema.clone().map(Json),
        metadata: (!output.metadata.is_empty()).then(|| Json(output.metadata.clone())),
        code_version,
        row_version: at.id,
    });
    latest
}
