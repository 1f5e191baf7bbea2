//! Tasks and attempts that end change what is known of data: a materialization, or an attempt that failed (ADR-056).
//!
//! Only results that count make a materialization. Cancelled tasks say nothing about data.

use std::sync::Arc;

use servo_core::planted::{self, Mistake};
use servo_core::{
    AssetKey, AttemptId, EventId, MaterializationId, MicroUsd, Operation, PartitionKey, RunId, TaskKey,
};

use super::outputs::output_of;
use super::{At, conditions, incidents, sensors};
use crate::effect::{Effect, Promotion};
use crate::gate::verdicts;
use crate::lifecycle::{AttemptOutcome, OutputState, TaskState};
use crate::outputs::{OutputReport, materialization_of};
use crate::provenance::{PiecesRead, Provenance};
use crate::rows::{Json, JsonTexts, MaterializationInputRow, MaterializationRow};
use crate::state::{
    ContentDigest, Effort, FailedTask, LastAttempt, Materialization, Materialized, State, Success, Task,
};

/// A task ended for good.
pub(super) fn task_ended(state: &mut State, at: At, run: RunId, position: u32) {
    let Some(task) = state.runs.get(&run).map(|owner| &owner.tasks[position as usize]) else { return };
    if task.key.operation() == Operation::Check {
        return;
    }
    if task.state == TaskState::Failed {
        let assets: Vec<_> = task.assets().collect();
        for asset in assets {
            state.asset_states.failed(&asset, FailedTask { event_id: at.id, at: at.time, run_id: run });
            state.changes.asset_states.insert(asset);
        }
    }
    if task.state != TaskState::Succeeded {
        return;
    }
    let last = LastAttempt { outcome: AttemptOutcome::Succeeded, run_id: run, at: at.time, event_id: at.id };
    let partition = task.key.partition();
    let voided = task.voided.clone();
    let took = task.started_at().map(|started| at.time.since(started));
    let cost = task.cost;
    let made = task.materialization.zip(task.attempt_id).map(|(materialization_id, attempt_id)| Made {
        run_id: run,
        task_key: task.key.clone(),
        attempt: task.attempt,
        attempt_id,
        materialization_id,
        provenance: task.provenance.clone(),
        inputs_as_of: task.inputs_as_of,
    });
    let outputs = task.outputs.clone();
    let assets: Vec<_> = task.assets().collect();
    for (position, asset) in assets.into_iter().enumerate() {
        if voided.contains(&asset) {
            continue;
        }
        let unknown = outputs.is_empty().then(|| OutputReport::new(asset.clone(), OutputState::Committed));
        let output = unknown.as_ref().or_else(|| output_of(&outputs, &asset));
        let committed = output.filter(|output| output.state == OutputState::Committed);
        let latest =
            made.as_ref().zip(committed).map(|(made, output)| materialize(state, at, made, position, output));
        if let Some(took) = took {
            // What a task costs is counted with the asset of its key, which is the first.
            let cost = if position == 0 { cost } else { MicroUsd::ZERO };
            state.asset_states.took(&asset, at.id, Effort { took, cost });
        }
        record(state, asset, partition.clone(), latest.as_ref(), last);
    }
}

/// Notes the end of an attempt, and promotes what has become the latest by it.
pub(super) fn record(
    state: &mut State,
    asset: AssetKey,
    partition: Option<PartitionKey>,
    latest: Option<&Materialization>,
    last: LastAttempt,
) {
    if last.outcome == AttemptOutcome::Succeeded {
        let success = Success {
            event_id: last.event_id,
            at: last.at,
            run_id: last.run_id,
            partition: partition.clone(),
            materialization_id: latest.map(|latest| latest.id),
        };
        state.asset_states.succeeded(&asset, success);
        state.changes.asset_states.insert(asset.clone());
    }
    let place = partition.as_ref();
    let recorded = state.change_status(&asset, place, |all| all.record(&asset, place, latest, last));
    if recorded.is_news {
        state.changes.statuses.insert((asset.clone(), partition.clone()));
    }
    if recorded.is_past_undoing {
        state.changes.undo.insert((asset.clone(), partition.clone()));
    }
    let read = latest.map(|made| made.inputs_as_of.unwrap_or(made.event_id));
    conditions::recorded(state, &asset, partition.as_ref(), read, last.event_id);
    if let Some(made) = latest.filter(|_| last.outcome == AttemptOutcome::Succeeded) {
        let at = At { id: last.event_id, time: last.at };
        sensors::materialized(state, at, &asset, partition.as_ref(), made.id, last.run_id);
        super::freshness::materialized(state, at, &asset);
    }
    if last.outcome == AttemptOutcome::Succeeded {
        let at = At { id: last.event_id, time: last.at };
        incidents::materialized(state, at, &asset, partition.as_ref(), last.run_id);
    }
    let Some(made) = latest.filter(|made| made.format.is_some()) else { return };
    let is_new = |known: &Materialized| made.event_id == known.event_id();
    let promoted = state.latest(&asset, partition.as_ref()).filter(is_new);
    if let Some(materialized) = promoted.filter(|promoted| promoted.has_data()) {
        let promotion = Promotion {
            asset,
            partition,
            materialization_id: materialized.id(),
            run_id: materialized.run_id(),
            at: materialized.at(),
            event_id: materialized.event_id(),
        };
        state.changes.effect(Effect::Promote(promotion));
    }
}

/// An attempt failed; whether it is tried again does not matter.
pub(super) fn attempt_failed(state: &mut State, at: At, run: RunId, position: u32) {
    let Some(task) = state.runs.get(&run).map(|owner| &owner.tasks[position as usize]) else { return };
    if task.key.operation() == Operation::Check {
        return;
    }
    let last = LastAttempt { outcome: AttemptOutcome::Failed, run_id: run, at: at.time, event_id: at.id };
    let partition = task.key.partition();
    let assets: Vec<_> = task.assets().filter(|asset| !task.voided.contains(asset)).collect();
    for asset in assets {
        record(state, asset, partition.clone(), None, last);
    }
}

/// The materialization id of a successful attempt. With reported outputs it is derived from the attempt; a worker that
/// reports no outputs may name the materialization itself.
pub(super) fn named(
    task: &Task,
    attempt: AttemptId,
    outputs: &[OutputReport],
    told: Option<MaterializationId>,
) -> Option<MaterializationId> {
    if task.key.operation() == Operation::Check {
        return None;
    }
    if outputs.is_empty() {
        return told;
    }
    let is_committed = |output: &OutputReport| output.state == OutputState::Committed;
    let counts = task.assets().any(|asset| output_of(outputs, &asset).is_some_and(is_committed));
    counts.then(|| materialization_of(attempt))
}

/// The attempt that made something.
pub(super) struct Made {
    pub(super) run_id: RunId,
    pub(super) task_key: TaskKey,
    pub(super) attempt: u32,
    pub(super) attempt_id: AttemptId,
    pub(super) materialization_id: MaterializationId,
    pub(super) provenance: Arc<Provenance>,
    pub(super) inputs_as_of: Option<EventId>,
}

/// Writes a materialization that counts from now on. `position` is that of the asset among those of the task.
pub(super) fn materialize(
    state: &mut State,
    at: At,
    made: &Made,
    position: usize,
    output: &OutputReport,
) -> Materialization {
    let code_version = if planted::has(Mistake::CodeVersionOfAnotherDeployment) {
        state.definitions.get(&output.asset).and_then(|asset| asset.code_version.as_deref().map(Arc::from))
    } else {
        output.code_version.clone().or_else(|| made.provenance.code_version(position).cloned())
    };
    let partition_key = made.task_key.partition();
    let verdicts = verdicts(&output.checks);
    inputs(state, at, made, &output.asset, partition_key.as_ref());
    state.changes.appended.materializations.push(MaterializationRow {
        materialization_id: made.materialization_id,
        asset_key: output.asset.clone(),
        partition_key,
        run_id: made.run_id,
        task_key: made.task_key.clone(),
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
        metadata: (!output.metadata.is_empty()).then(|| Json(JsonTexts::new(output.metadata.clone()))),
        code_version: code_version.as_ref().map(ToString::to_string),
        deployment_number: made.provenance.deployment,
        inputs_as_of: made.inputs_as_of,
        checks_passed: verdicts.passed,
        checks_failed: verdicts.failed,
        gating_decision: verdicts.decision,
        row_version: at.id,
    });
    Materialization {
        id: made.materialization_id,
        format: output.format,
        run_id: made.run_id,
        at: at.time,
        event_id: at.id,
        inputs_as_of: made.inputs_as_of,
        code_version,
        counts_from: at.id,
        content: output.content_hash.as_deref().map(ContentDigest::of),
        data_as_of: made.provenance.data_as_of.unwrap_or(at.time).min(at.time),
    }
}

/// Writes what was read to make something.
fn inputs(state: &mut State, at: At, made: &Made, asset: &AssetKey, partition: Option<&PartitionKey>) {
    let row = |upstream: &AssetKey| MaterializationInputRow {
        materialization_id: made.materialization_id,
        asset_key: asset.clone(),
        partition_key: partition.cloned(),
        upstream_asset_key: upstream.clone(),
        upstream_partition_key: None,
        upstream_materialization_id: None,
        upstream_last_partition_key: None,
        upstream_count: 1,
        inputs_as_of: made.inputs_as_of,
        run_id: made.run_id,
        materialized_at: at.time,
        row_version: at.id,
    };
    for read in &made.provenance.inputs {
        match &read.pieces {
            PiecesRead::Named(pieces) => {
                let rows = pieces.iter().map(|piece| MaterializationInputRow {
                    upstream_partition_key: piece.partition.clone(),
                    upstream_materialization_id: Some(piece.id),
                    ..row(&read.asset)
                });
                rows.for_each(|row| state.changes.inputs.push(row));
            }
            PiecesRead::Counted { count, first, last, .. } => {
                state.changes.inputs.push(MaterializationInputRow {
                    upstream_partition_key: Some(first.clone()),
                    upstream_last_partition_key: Some(last.clone()),
                    upstream_count: *count,
                    ..row(&read.asset)
                });
            }
        }
    }
}
