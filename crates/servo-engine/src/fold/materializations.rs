//! The end of an attempt says something about data: a materialization there is, checks that passed or not, something
//! to review, files that do not count, or an attempt that failed (ADR-056, ADR-062).
//!
//! Only results that count make a materialization. Cancelled tasks say nothing about data.

use servo_core::{AssetKey, AttemptId, Operation, RunId};

use super::{Applied, At, Ignored};
use crate::definitions::{CheckKind, Severity};
use crate::event::{MaterializationApproved, MaterializationRejected, TaskFinished};
use crate::lifecycle::{AttemptOutcome, OutputState, TaskState};
use crate::outputs::{OutputReport, materialization_of};
use crate::rows::{CheckResultRow, Discard, MaterializationRow, QuarantineRow};
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
    for asset in assets(task) {
        let output = task.outputs.iter().find(|output| output.asset == asset);
        let counts = task.outputs.is_empty() || output.is_some_and(|out| out.state == OutputState::Committed);
        let made = task.materialization.filter(|_| outcome == AttemptOutcome::Succeeded && counts);
        let format = output.and_then(|output| output.format);
        let latest = made.map(|id| Materialized::new(id, format, run, at.time, at.id));
        if let (Some(latest), Some(attempt_id)) = (&latest, task.attempt_id) {
            let made = Made { run_id: run, task_key: task.key.clone(), attempt: task.attempt, attempt_id };
            let code = state.definitions.get(&asset).and_then(|definition| definition.code_version.clone());
            let unknown = OutputReport::new(asset.clone(), OutputState::Committed);
            let row = row(at, latest, made, output.unwrap_or(&unknown), code);
            state.changes.materializations.push(row);
        }
        if state.statuses.record(&asset, partition.as_ref(), latest, last) {
            state.changes.statuses.insert((asset, partition.clone()));
        }
    }
}

/// What an attempt says of its outputs, whether it is tried again or not.
pub(super) fn reported(state: &mut State, at: At, payload: &TaskFinished) {
    let materialization_id = materialization_of(payload.attempt_id);
    let partition = payload.task_key.partition();
    for output in payload.outputs.iter() {
        state.changes.check_results.extend(output.checks.iter().map(|check| CheckResultRow {
            asset_key: output.asset.clone(),
            partition_key: partition.clone(),
            check_name: check.name.clone(),
            check_type: kind(check.kind).to_owned(),
            passed: check.passed,
            severity: severity(check.severity).to_owned(),
            blocking: check.blocking,
            message: check.message.clone(),
            metadata: json(&check.metadata),
            duration_ms: check.duration_ms,
            materialization_id,
            run_id: payload.run_id,
            task_key: payload.task_key.clone(),
            attempt: payload.attempt,
            checked_at: at.time,
            row_version: at.id,
        }));
        if output.state == OutputState::Quarantined {
            let key = (output.asset.clone(), materialization_id);
            state.changes.quarantine.insert(key.clone());
            state.quarantine.insert(
                key,
                QuarantineRow {
                    asset_key: output.asset.clone(),
                    materialization_id,
                    partition_key: partition.clone(),
                    run_id: payload.run_id,
                    task_key: payload.task_key.clone(),
                    attempt: payload.attempt,
                    quarantined_at: at.time,
                    output: json(output),
                    row_version: at.id,
                },
            );
        }
    }
}

/// What an attempt has written will never count.
pub(super) fn discard(state: &mut State, run: RunId, position: u32, attempt: u32, attempt_id: AttemptId) {
    let Some(task) = state.runs.get(&run).map(|owner| &owner.tasks[position as usize]) else { return };
    let assets = assets(task);
    let task_key = task.key.clone();
    state.changes.discards.push(Discard {
        run_id: run,
        task_key,
        attempt,
        attempt_id,
        assets,
        reviewed: false,
    });
}

pub(super) fn approved(state: &mut State, at: At, payload: &MaterializationApproved) -> Applied {
    let Some(waiting) = take(state, &payload.asset_key, payload.materialization_id) else {
        return Applied::No(Ignored::Duplicate);
    };
    let unknown = || OutputReport::new(waiting.asset_key.clone(), OutputState::Committed);
    let output: OutputReport = serde_json::from_str(&waiting.output).unwrap_or_else(|_| unknown());
    let id = waiting.materialization_id;
    let latest = Materialized::new(id, output.format, waiting.run_id, at.time, at.id);
    let made = Made {
        run_id: waiting.run_id,
        task_key: waiting.task_key,
        attempt: waiting.attempt,
        attempt_id: AttemptId::from_u128(id.to_u128()),
    };
    let code =
        state.definitions.get(&waiting.asset_key).and_then(|definition| definition.code_version.clone());
    state.changes.materializations.push(row(at, &latest, made, &output, code));
    let last = LastAttempt {
        outcome: AttemptOutcome::Succeeded,
        run_id: waiting.run_id,
        at: at.time,
        event_id: at.id,
    };
    if state.statuses.record(&waiting.asset_key, waiting.partition_key.as_ref(), Some(latest), last) {
        state.changes.statuses.insert((waiting.asset_key, waiting.partition_key));
    }
    Applied::Yes
}

pub(super) fn rejected(state: &mut State, payload: &MaterializationRejected) -> Applied {
    let Some(waiting) = take(state, &payload.asset_key, payload.materialization_id) else {
        return Applied::No(Ignored::Duplicate);
    };
    state.changes.discards.push(Discard {
        run_id: waiting.run_id,
        task_key: waiting.task_key,
        attempt: waiting.attempt,
        attempt_id: AttemptId::from_u128(waiting.materialization_id.to_u128()),
        assets: vec![waiting.asset_key],
        reviewed: true,
    });
    Applied::Yes
}

fn take(state: &mut State, asset: &AssetKey, id: servo_core::MaterializationId) -> Option<QuarantineRow> {
    let key = (asset.clone(), id);
    let found = state.quarantine.remove(&key)?;
    state.changes.quarantine.insert(key);
    Some(found)
}

/// The assets that a task makes, that of its key first.
fn assets(task: &Task) -> Vec<AssetKey> {
    std::iter::once(task.key.asset()).chain(task.options.outputs.iter().cloned()).collect()
}

/// Which attempt made something.
struct Made {
    run_id: RunId,
    task_key: servo_core::TaskKey,
    attempt: u32,
    attempt_id: AttemptId,
}

fn row(
    at: At,
    latest: &Materialized,
    made: Made,
    output: &OutputReport,
    code_version: Option<String>,
) -> MaterializationRow {
    MaterializationRow {
        materialization_id: latest.id(),
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
        schema: output.schema.as_ref().map(json),
        metadata: (!output.metadata.is_empty()).then(|| json(&output.metadata)),
        code_version,
        row_version: at.id,
    }
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data serializes to JSON")
}

const fn kind(kind: CheckKind) -> &'static str {
    match kind {
        CheckKind::RowCount => "row_count",
        CheckKind::NotNull => "not_null",
        CheckKind::Unique => "unique",
        CheckKind::Freshness => "freshness",
        CheckKind::Schema => "schema",
        CheckKind::AcceptedValues => "accepted_values",
        CheckKind::Sql => "sql",
        CheckKind::Python => "python",
    }
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
        Severity::Critical => "critical",
    }
}
