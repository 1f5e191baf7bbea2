//! Folds the reported outputs of an attempt: check results, quarantined outputs, and files to be removed (ADR-062).

use servo_core::{AssetKey, AttemptId, Operation, RunId};

use super::{At, incidents};
use crate::effect::{Discard, Effect};
use crate::event::TaskFinished;
use crate::gate::verdicts;
use crate::lifecycle::OutputState;
use crate::outputs::{OutputReport, materialization_of};
use crate::rows::{CheckResultRow, Json, JsonTexts, Name, QuarantineRow};
use crate::state::{Checked, State};

/// An open attempt has ended in a run that goes on; whether it is tried again does not matter. `outputs` have passed
/// the gate.
pub(super) fn reported(state: &mut State, at: At, payload: &TaskFinished, outputs: &[OutputReport]) {
    if outputs.is_empty() {
        return;
    }
    let Some(task) = state.task(payload.run_id, &payload.task_key) else { return };
    let is_check = task.key.operation() == Operation::Check;
    let (provenance, inputs_as_of) = (task.provenance.clone(), task.inputs_as_of);
    // Only what the task makes, each once, whatever a worker says.
    let outputs: Vec<(usize, &OutputReport)> = task
        .assets()
        .enumerate()
        .filter_map(|(position, asset)| Some((position, output_of(outputs, &asset)?)))
        .collect();
    let ran_other_code = outputs.iter().any(|(position, output)| {
        let asked = provenance.code_version(*position);
        output.code_version.as_ref().is_some_and(|ran| asked.is_some_and(|asked| asked != ran))
    });
    let severe = |output: &OutputReport| output.checks.iter().filter(|check| check.flags()).count() as u32;
    let checks_failed: u32 = outputs.iter().map(|(_, output)| severe(output)).sum();
    let code_changed = ran_other_code || provenance.definition_changed;
    if checks_failed > 0 || code_changed {
        state.change_run(payload.run_id, at.id, |run| {
            run.checks_failed = run.checks_failed.saturating_add(checks_failed);
            run.code_changed |= code_changed;
        });
    }
    let materialization_id = materialization_of(payload.attempt_id);
    let partition_key = payload.task_key.partition();
    for (position, output) in outputs {
        if !output.checks.is_empty() {
            let verdicts = verdicts(&output.checks);
            let (passed, decision) = (verdicts.failed == 0, verdicts.decision);
            let checked = Checked { event_id: at.id, at: at.time, passed, decision };
            state.asset_states.checked(&output.asset, checked);
            state.changes.asset_states.insert(output.asset.clone());
            incidents::checked(state, at, payload.run_id, output, partition_key.as_ref());
        }
        // A check that runs alone is about data that was there before.
        let stored = provenance.checked(&output.asset).filter(|_| is_check);
        let checked = stored.unwrap_or(materialization_id);
        let results = output.checks.iter().map(|check| CheckResultRow {
            asset_key: output.asset.clone(),
            partition_key: partition_key.clone(),
            check_name: check.name.clone(),
            check_type: Name(check.kind),
            passed: check.passed,
            severity: Name(check.severity),
            blocking: check.blocking,
            message: check.message.clone(),
            error: check.error.clone(),
            metadata: Json(JsonTexts::new(check.metadata.clone())),
            duration_ms: check.duration_ms,
            materialization_id: checked,
            run_id: payload.run_id,
            task_key: payload.task_key.clone(),
            attempt: payload.attempt,
            checked_at: at.time,
            row_version: at.id,
        });
        results.for_each(|row| state.changes.checks.push(row));
        match output.state {
            OutputState::Quarantined => quarantine(
                state,
                QuarantineRow {
                    asset_key: output.asset.clone(),
                    materialization_id,
                    partition_key: partition_key.clone(),
                    run_id: payload.run_id,
                    task_key: payload.task_key.clone(),
                    attempt: payload.attempt,
                    quarantined_at: at.time,
                    output: Json(OutputReport {
                        code_version: output
                            .code_version
                            .clone()
                            .or_else(|| provenance.code_version(position).cloned()),
                        ..output.clone()
                    }),
                    provenance: Json(provenance.clone()),
                    inputs_as_of,
                    approved_event_id: None,
                    approved_at: None,
                    row_version: at.id,
                },
            ),
            OutputState::Committed | OutputState::Discarded | OutputState::Missing => {}
        }
    }
}

fn quarantine(state: &mut State, row: QuarantineRow) {
    state.changes.quarantine.insert((row.asset_key.clone(), row.materialization_id));
    if let Some(passed_over) = state.quarantine.insert(row) {
        state.changes.quarantine.insert((passed_over.asset_key.clone(), passed_over.materialization_id));
        drop_quarantined(state, passed_over);
    }
}

/// Drops a quarantined materialization for good.
pub(super) fn drop_quarantined(state: &mut State, row: QuarantineRow) {
    state.changes.effect(Effect::Discard(Discard {
        run_id: row.run_id,
        task_key: row.task_key,
        attempt: row.attempt,
        attempt_id: AttemptId::from_u128(row.materialization_id.to_u128()),
        assets: vec![row.asset_key],
    }));
}

/// Marks outputs of the newest attempt for removal that a wipe was faster than.
pub(super) fn discard_voided(state: &mut State, run: RunId, position: u32) {
    let Some(task) = state.runs.get(&run).map(|owner| &owner.tasks[position as usize]) else { return };
    let (Some(attempt_id), false) = (task.attempt_id, task.voided.is_empty()) else { return };
    let id = materialization_of(attempt_id);
    let is_void = |asset: &&AssetKey| state.quarantine.get(asset, id).is_none();
    let assets: Vec<AssetKey> = task.voided.iter().filter(is_void).cloned().collect();
    if assets.is_empty() {
        return;
    }
    let (task_key, attempt) = (task.key.clone(), task.attempt);
    let discard = Discard { run_id: run, task_key, attempt, attempt_id, assets };
    state.changes.effect(Effect::Discard(discard));
}

/// Marks the stored outputs of an attempt for removal, except quarantined ones, which may still be approved.
pub(super) fn discard(state: &mut State, run: RunId, position: u32, attempt: u32, attempt_id: AttemptId) {
    let Some(task) = state.runs.get(&run).map(|owner| &owner.tasks[position as usize]) else { return };
    if task.key.operation() == Operation::Check {
        return;
    }
    let id = materialization_of(attempt_id);
    let assets: Vec<AssetKey> =
        task.assets().filter(|asset| state.quarantine.get(asset, id).is_none()).collect();
    if assets.is_empty() {
        return;
    }
    let task_key = task.key.clone();
    let discard = Discard { run_id: run, task_key, attempt, attempt_id, assets };
    state.changes.effect(Effect::Discard(discard));
}

/// The reported output for an asset.
pub(super) fn output_of<'a>(outputs: &'a [OutputReport], asset: &AssetKey) -> Option<&'a OutputReport> {
    outputs.iter().find(|output| output.asset == *asset)
}
