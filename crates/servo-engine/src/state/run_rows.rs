//! A run as rows of `runs`, `tasks`, `dep_satisfaction`, `dispatch_outbox` and `timers`, and back.

use std::sync::Arc;

use servo_core::{Fingerprint, MicroUsd, Operation, cloud_task_id, dispatch_id, timer_id};

use super::changes::ChangedRun;
use super::shared::{SharedItems, SharedVec};
use super::{Cancel, CancelCause, Counts, Execution, LastFound, RestoreError, Run, RunSet, Task, TaskPhase};
use crate::dep_sets::DepSet;
use crate::event::{Progress, TimerKind};
use crate::failure::ErrorCategory;
use crate::lifecycle::Resolution;
use crate::provenance::Provenance;
use crate::rows::{Delta, DepSetRow, EdgeRow, Json, Name, OutboxRow, RunRow, TaskRow, TimerRow};

/// Name of the queue a task goes to unless it names another.
pub(crate) const DEFAULT_QUEUE: &str = "default";

/// A cost as rows have it: most that is not at work has none.
fn stored(cost: MicroUsd) -> Option<MicroUsd> {
    (!cost.is_zero()).then_some(cost)
}

pub(super) fn run_row(run: &Run) -> RunRow {
    RunRow {
        run_id: run.id,
        requested_event_id: run.requested,
        run_key: run.key.to_string(),
        request_fingerprint: run.fingerprint.to_string(),
        plan_id: run.plan,
        plan_fingerprint: run.plan_fingerprint.as_ref().map(ToString::to_string),
        deployment_number: run.deployment,
        code_changed: run.code_changed,
        checks_failed: run.checks_failed,
        cost_micro_usd: stored(run.cost),
        state: run.state,
        transition_reason: run.reason,
        source_type: run.source.kind().to_owned(),
        source: Json(run.source.clone()),
        requested_by: run.requested_by.clone(),
        request_id: run.request_id.as_ref().map(ToString::to_string),
        selection: run.selection.clone(),
        operation: Some(run.operation.to_string()),
        partitions: Json(run.partitions.clone()),
        config: Json(run.config.clone()),
        labels: Json(run.labels.clone()),
        priority: run.priority,
        tasks_total: run.tasks.len() as u32,
        tasks_succeeded: run.counts.succeeded,
        tasks_failed: run.counts.failed,
        tasks_skipped: run.counts.skipped,
        tasks_cancelled: run.counts.cancelled,
        timeout: run.timeout,
        created_at: run.created_at,
        started_at: run.started_at,
        finished_at: run.finished_at,
        cancel_requested_at: run.cancel.as_ref().map(|c| c.at),
        cancelled_by: run.cancel.as_ref().map(|c| c.principal.clone()),
        cancel_reason: run.cancel.as_ref().map(|c| c.reason.clone()),
        finished_event_id: run.finished_event,
        row_version: run.version,
    }
}

pub(super) fn task_row(run: &Run, position: u32) -> TaskRow {
    let task = &run.tasks[position as usize];
    let execution = task.execution.as_ref();
    let progress = execution.and_then(|it| it.progress.as_ref());
    let category = task.error.as_ref().map(|error| error.code.category());
    TaskRow {
        run_id: run.id,
        requested_event_id: run.requested,
        task_key: task.key.clone(),
        asset_key: task.key.asset_str().to_owned(),
        partition_key: task.key.partition_str().map(str::to_owned),
        operation: task.key.operation().to_string(),
        state: task.state,
        transition_reason: task.reason,
        transition_at: task.transition_at,
        attempt: task.attempt,
        attempt_id: task.attempt_id,
        failures: task.failures,
        interruptions: task.interruptions,
        deps_total: task.deps_total,
        deps_satisfied_count: task.deps_satisfied,
        deps_satisfied_at: task.deps_satisfied_at,
        options: Json(task.options.clone()),
        ready_at: task.ready_at,
        provenance: (*task.provenance != Provenance::default()).then(|| Json(task.provenance.clone())),
        inputs_as_of: task.inputs_as_of,
        voided: (!task.voided.is_empty()).then(|| Json(task.voided.clone())),
        dispatched_at: task.dispatched_at,
        started_at: task.started_at(),
        last_heartbeat_at: execution.map(|it| it.heartbeat_at),
        finished_at: task.finished_at,
        finished_event_id: task.finished_event,
        retry_at: task.retry_at,
        worker_id: task.worker().map(ToString::to_string),
        progress_ppm: progress.map(|p| p.ppm),
        progress_message: progress.map(|p| p.message.clone()),
        caused_by: task.caused_by.map(|i| run.tasks[i as usize].key.clone()),
        error: task.error.clone().map(Json),
        error_code: task.error.as_ref().map(|error| Name(error.code)),
        error_category: category.map(Name),
        error_retriable: category.map(ErrorCategory::retried_by_default),
        late_outcome: task.late_outcome.map(Name),
        materialization_id: task.materialization,
        outputs: (!task.outputs.is_empty()).then(|| Json(task.outputs.clone())),
        usage: task.usage.map(Json),
        cost_micro_usd: stored(task.cost),
        past_attempts: (!task.past_attempts.is_empty()).then(|| Json(task.past_attempts.clone())),
        row_version: task.row_version(),
    }
}

pub(super) fn edge_row(run: &Run, position: usize) -> EdgeRow {
    let edge = &run.edges[position];
    EdgeRow {
        run_id: run.id,
        requested_event_id: run.requested,
        upstream_task_key: run.tasks[edge.upstream as usize].key.clone(),
        downstream_task_key: run.tasks[edge.downstream as usize].key.clone(),
        satisfied: matches!(edge.resolution, Some(Resolution::Success | Resolution::Previous)),
        resolution: edge.resolution,
        satisfied_at: edge.at,
        satisfying_attempt: edge.attempt,
        row_version: edge.version,
    }
}

pub(super) fn set_rows(run: &Run) -> impl Iterator<Item = DepSetRow> + '_ {
    (0u32..).zip(&run.sets).map(|(set_number, set)| DepSetRow {
        run_id: run.id,
        requested_event_id: run.requested,
        set_number,
        upstream: Json(set.set.upstream.clone()),
        downstream: Json(set.set.downstream.clone()),
        row_version: set.version,
    })
}

pub(super) fn restore_set(row: DepSetRow) -> RunSet {
    let DepSetRow { upstream: Json(upstream), downstream: Json(downstream), row_version, .. } = row;
    RunSet::new(Arc::new(DepSet { upstream, downstream }), row_version)
}

pub(super) fn outbox_row(run: &Run, position: u32) -> Option<OutboxRow> {
    let task = &run.tasks[position as usize];
    let (outbox, attempt_id) = (task.outbox?, task.attempt_id?);
    let id = dispatch_id(run.id, &task.key, task.attempt);
    Some(OutboxRow {
        cloud_task_id: cloud_task_id('d', &id),
        dispatch_id: id,
        run_id: run.id,
        task_key: task.key.clone(),
        attempt: task.attempt,
        attempt_id,
        status: outbox.status,
        worker_queue: task.options.worker_queue.as_deref().unwrap_or(DEFAULT_QUEUE).to_owned(),
        created_at: outbox.created_at,
        row_version: task.version,
    })
}

pub(super) fn timer_row(run: &Run, position: u32) -> Option<TimerRow> {
    let task = &run.tasks[position as usize];
    let timer = task.timer?;
    let id = timer_id(TimerKind::Retry.id_part(), Some(run.id), Some(&task.key), task.attempt, timer.fire_at);
    Some(TimerRow {
        cloud_task_id: cloud_task_id('t', &id),
        timer_id: id,
        timer_type: Name(TimerKind::Retry),
        run_id: run.id,
        task_key: task.key.clone(),
        attempt: task.attempt,
        fire_at: timer.fire_at,
        state: timer.state,
        row_version: task.version,
    })
}

impl Run {
    /// Its row of `runs`.
    pub fn row(&self) -> RunRow {
        run_row(self)
    }

    /// The row of one of its tasks.
    ///
    /// # Panics
    /// If there is no task at that position.
    pub fn task_row(&self, position: u32) -> TaskRow {
        task_row(self, position)
    }

    /// Its rows of `tasks`.
    pub fn task_rows(&self) -> Vec<TaskRow> {
        (0..self.tasks.len() as u32).map(|position| task_row(self, position)).collect()
    }

    /// Its rows of `dep_satisfaction`.
    pub fn edge_rows(&self) -> Vec<EdgeRow> {
        (0..self.edges.len()).map(|position| edge_row(self, position)).collect()
    }

    /// Its rows of `dep_sets`.
    pub fn set_rows(&self) -> Vec<DepSetRow> {
        set_rows(self).collect()
    }
}

/// The rows of a run that changed.
pub(super) fn add_changed(delta: &mut Delta, run: &Run, mut changed: ChangedRun) {
    if changed.row {
        delta.runs.push(run_row(run));
    }
    changed.tasks.sort_unstable();
    changed.tasks.dedup();
    for position in changed.tasks {
        delta.tasks.push(task_row(run, position));
        delta.outbox.extend(outbox_row(run, position));
        delta.timers.extend(timer_row(run, position));
    }
    if changed.sets {
        delta.dep_sets.extend(set_rows(run));
    }
    changed.edges.sort_unstable();
    changed.edges.dedup();
    for position in changed.edges {
        delta.edges.push(edge_row(run, position as usize));
    }
}

/// The final rows of a run that has left memory.
pub(super) fn add_ended(delta: &mut Delta, run: &Run) {
    delta.gone.runs.push(run.id);
    delta.ended.runs.push(run_row(run));
    for position in 0..run.tasks.len() as u32 {
        let task = &run.tasks[position as usize];
        delta.gone.tasks.push((run.id, task.key.clone()));
        delta.gone.outbox.extend(outbox_row(run, position).map(|row| row.dispatch_id));
        delta.gone.timers.extend(timer_row(run, position).map(|row| row.timer_id));
        delta.ended.tasks.push(task_row(run, position));
    }
    for row in set_rows(run) {
        delta.gone.dep_sets.push((run.id, row.set_number));
        delta.ended.dep_sets.push(row);
    }
    for position in 0..run.edges.len() {
        let row = edge_row(run, position);
        delta.gone.edges.push((run.id, row.upstream_task_key.clone(), row.downstream_task_key.clone()));
        delta.ended.edges.push(row);
    }
}

pub(super) fn restore_run(row: RunRow) -> Result<Run, RestoreError> {
    let misfit = |problem: String| RestoreError { table: "runs", key: row.run_id.to_string(), problem };
    let fingerprint = |text: &str| Fingerprint::parse(text).map_err(|e| misfit(e.to_string()));
    Ok(Run {
        id: row.run_id,
        requested: row.requested_event_id,
        key: row.run_key.as_str().into(),
        fingerprint: fingerprint(&row.request_fingerprint)?,
        plan: row.plan_id,
        plan_fingerprint: row.plan_fingerprint.as_deref().map(fingerprint).transpose()?,
        deployment: row.deployment_number,
        code_changed: row.code_changed,
        checks_failed: row.checks_failed,
        cost: row.cost_micro_usd.unwrap_or_default(),
        state: row.state,
        reason: row.transition_reason,
        source: row.source.0,
        requested_by: row.requested_by,
        request_id: row.request_id.map(Into::into),
        operation: match &row.operation {
            None => Operation::default(),
            Some(name) => {
                Operation::from_name(name).ok_or_else(|| misfit(format!("there is no operation {name:?}")))?
            }
        },
        selection: row.selection,
        partitions: row.partitions.0,
        config: row.config.0,
        labels: row.labels.0,
        priority: row.priority,
        counts: Counts {
            succeeded: row.tasks_succeeded,
            failed: row.tasks_failed,
            skipped: row.tasks_skipped,
            cancelled: row.tasks_cancelled,
        },
        timeout: row.timeout,
        created_at: row.created_at,
        started_at: row.started_at,
        finished_at: row.finished_at,
        finished_event: row.finished_event_id,
        cancel: row.cancel_requested_at.map(|at| Cancel {
            at,
            principal: row.cancelled_by.clone().unwrap_or_default(),
            reason: row.cancel_reason.clone().unwrap_or_default(),
            cause: CancelCause::of(row.transition_reason),
        }),
        version: row.row_version,
        tasks: SharedItems::default(),
        edges: SharedVec::default(),
        sets: Vec::new(),
        out_start: [0].into(),
        last_found: LastFound::default(),
    })
}

pub(super) fn restore_task(row: TaskRow) -> Result<Task, RestoreError> {
    let misfit = |problem: &str| RestoreError {
        table: "tasks",
        key: format!("{}, {}", row.run_id, row.task_key),
        problem: problem.to_owned(),
    };
    let execution = match (row.started_at, row.worker_id) {
        (Some(started_at), Some(worker)) => Some(Execution {
            worker: worker.into(),
            started_at,
            heartbeat_at: row.last_heartbeat_at.unwrap_or(started_at),
            progress: row
                .progress_ppm
                .map(|ppm| Progress { ppm, message: row.progress_message.unwrap_or_default() }),
        }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return Err(misfit("it has a worker or a start, not both")),
    };
    let phase = TaskPhase::restore(row.state, row.transition_reason, row.transition_at, execution)
        .ok_or_else(|| misfit("it runs without a worker"))?;
    let mut task = Task::of_phase(row.task_key, row.options.0, phase, row.row_version);
    task.attempt = row.attempt;
    task.attempt_id = row.attempt_id;
    task.failures = row.failures;
    task.interruptions = row.interruptions;
    task.deps_total = row.deps_total;
    task.deps_satisfied = row.deps_satisfied_count;
    task.deps_satisfied_at = row.deps_satisfied_at;
    task.ready_at = row.ready_at;
    task.provenance = row.provenance.map(|json| json.0).unwrap_or_default();
    task.inputs_as_of = row.inputs_as_of;
    task.voided = row.voided.map(|json| json.0).unwrap_or_default();
    task.dispatched_at = row.dispatched_at;
    task.finished_at = row.finished_at;
    task.finished_event = row.finished_event_id;
    task.retry_at = row.retry_at;
    task.error = row.error.map(|error| error.0);
    task.late_outcome = row.late_outcome.map(|outcome| outcome.0);
    task.materialization = row.materialization_id;
    task.outputs = row.outputs.map(|outputs| outputs.0).unwrap_or_default();
    task.usage = row.usage.map(|usage| usage.0);
    task.cost = row.cost_micro_usd.unwrap_or_default();
    task.past_attempts = row.past_attempts.map(|past| past.0).unwrap_or_default();
    Ok(task)
}
