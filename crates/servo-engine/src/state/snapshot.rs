//! State to rows and back. The two are inverse; a test folds the same history through both.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{Fingerprint, RunId, TaskKey, TenantId, WorkspaceId, cloud_task_id, dispatch_id, timer_id};

use super::task::Outbox;
use super::{
    Cancel, Counts, Deadline, Deployed, DynamicPartitions, Edge, IdempotencyIndex, Quarantine, RetryTimer,
    Run, RunKeyIndex, State, Statuses, Task, TaskRef, index,
};
use crate::event::{Progress, TimerKind};
use crate::lifecycle::{Resolution, RunTransitionReason};
use crate::provenance::Provenance;
use crate::rows::{EdgeRow, HotRows, Json, Name, OutboxRow, RunRow, TaskRow, TimerRow};
use crate::settings::Settings;

/// Name of the queue a task goes to unless it names another.
pub(crate) const DEFAULT_QUEUE: &str = "default";

/// Why rows are not a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("table {table} has a row that does not fit: {problem} (key {key})")]
pub struct RestoreError {
    /// The table.
    pub table: &'static str,
    /// Primary key of the row.
    pub key: String,
    /// What does not fit.
    pub problem: String,
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
        state: run.state,
        transition_reason: run.reason,
        source_type: run.source.kind().to_owned(),
        source: Json(run.source.clone()),
        requested_by: run.requested_by.clone(),
        request_id: run.request_id.as_ref().map(ToString::to_string),
        selection: run.selection.clone(),
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
        dispatched_at: task.dispatched_at,
        started_at: task.started_at,
        last_heartbeat_at: task.heartbeat_at,
        finished_at: task.finished_at,
        retry_at: task.retry_at,
        worker_id: task.worker.as_ref().map(ToString::to_string),
        progress_ppm: task.progress.as_ref().map(|p| p.ppm),
        progress_message: task.progress.as_ref().map(|p| p.message.clone()),
        caused_by: task.caused_by.map(|i| run.tasks[i as usize].key.clone()),
        error: task.error.clone().map(Json),
        error_code: task.error.as_ref().map(|error| Name(error.code)),
        late_outcome: task.late_outcome.map(Name),
        materialization_id: task.materialization,
        outputs: (!task.outputs.is_empty()).then(|| Json(task.outputs.clone())),
        usage: task.usage.map(Json),
        past_attempts: (!task.past_attempts.is_empty()).then(|| Json(task.past_attempts.clone())),
        row_version: task.version,
    }
}

pub(super) fn edge_row(run: &Run, position: usize) -> EdgeRow {
    let edge = &run.edges[position];
    EdgeRow {
        run_id: run.id,
        requested_event_id: run.requested,
        upstream_task_key: run.tasks[edge.upstream as usize].key.clone(),
        downstream_task_key: run.tasks[edge.downstream as usize].key.clone(),
        satisfied: edge.resolution == Some(Resolution::Success),
        resolution: edge.resolution,
        satisfied_at: edge.at,
        satisfying_attempt: edge.attempt,
        row_version: edge.version,
    }
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
}

impl State {
    /// The whole state as rows.
    pub fn rows(&self) -> HotRows {
        let mut rows = HotRows {
            head: self.head,
            runs: Vec::with_capacity(self.runs.len()),
            tasks: Vec::new(),
            edges: Vec::new(),
            timers: Vec::new(),
            outbox: Vec::new(),
            asset_definitions: self.definitions.rows(),
            deployments: self.definitions.deployment_row().into_iter().collect(),
            dynamic_partitions: self.dynamic.rows(),
            partition_sets: self.dynamic.set_rows(),
            partition_status: self.statuses.rows(),
            quarantine: self.quarantine.rows().cloned().collect(),
            run_keys: self.run_keys.entries(),
            idempotency: self.idempotency.entries(),
        };
        for run in self.runs.values() {
            rows.runs.push(run_row(run));
            for position in 0..run.tasks.len() as u32 {
                rows.tasks.push(task_row(run, position));
                rows.outbox.extend(outbox_row(run, position));
                rows.timers.extend(timer_row(run, position));
            }
            rows.edges.extend((0..run.edges.len()).map(|position| edge_row(run, position)));
        }
        rows.outbox.sort_by(|a, b| a.dispatch_id.cmp(&b.dispatch_id));
        rows.timers.sort_by(|a, b| a.timer_id.cmp(&b.timer_id));
        rows
    }

    /// The state that [`State::rows`] came from.
    pub fn from_rows(
        tenant: TenantId,
        workspace: WorkspaceId,
        settings: Settings,
        rows: HotRows,
    ) -> Result<State, RestoreError> {
        // Every list by its name: one that is not read does not compile.
        let HotRows {
            head,
            runs: run_rows,
            tasks,
            edges,
            deployments,
            timers,
            outbox,
            asset_definitions,
            partition_status,
            quarantine,
            dynamic_partitions,
            partition_sets,
            run_keys,
            idempotency,
        } = rows;
        let mut state = State::new(tenant, workspace, settings);
        state.head = head;
        state.definitions = Deployed::restore(deployments, asset_definitions);
        state.dynamic = DynamicPartitions::restore(partition_sets, dynamic_partitions)?;
        state.run_keys = RunKeyIndex::restore(run_keys);
        state.idempotency = IdempotencyIndex::restore(idempotency);
        state.statuses = Statuses::restore(partition_status)?;
        state.quarantine = Quarantine::restore(quarantine);
        let mut runs: BTreeMap<RunId, Run> = BTreeMap::new();
        for row in run_rows {
            let run = restore_run(row)?;
            runs.insert(run.id, run);
        }
        let mut causes: Vec<(RunId, TaskKey, TaskKey)> = Vec::new();
        for row in tasks {
            if let Some(cause) = &row.caused_by {
                causes.push((row.run_id, row.task_key.clone(), cause.clone()));
            }
            let run = owner(&mut runs, "tasks", row.run_id, row.task_key.as_str())?;
            run.tasks.push(restore_task(row));
        }
        for run in runs.values_mut() {
            run.tasks.sort_by(|a, b| a.key.cmp(&b.key));
        }
        for (run, task, cause) in causes {
            let run = owner(&mut runs, "tasks", run, task.as_str())?;
            let (task, cause) = (find(run, "tasks", &task)?, find(run, "tasks", &cause)?);
            run.tasks[task as usize].caused_by = Some(cause);
        }
        for row in outbox {
            let run = owner(&mut runs, "dispatch_outbox", row.run_id, &row.dispatch_id)?;
            let task = find(run, "dispatch_outbox", &row.task_key)?;
            run.tasks[task as usize].outbox = Some(Outbox { status: row.status, created_at: row.created_at });
        }
        for row in timers {
            let run = owner(&mut runs, "timers", row.run_id, &row.timer_id)?;
            let task = find(run, "timers", &row.task_key)?;
            run.tasks[task as usize].timer = Some(RetryTimer { fire_at: row.fire_at, state: row.state });
        }
        for row in edges {
            let run = owner(&mut runs, "dep_satisfaction", row.run_id, row.downstream_task_key.as_str())?;
            let edge = Edge {
                upstream: find(run, "dep_satisfaction", &row.upstream_task_key)?,
                downstream: find(run, "dep_satisfaction", &row.downstream_task_key)?,
                resolution: row.resolution,
                at: row.satisfied_at,
                attempt: row.satisfying_attempt,
                version: row.row_version,
                dirty: false,
            };
            run.edges.push(edge);
        }
        for (id, mut run) in runs {
            run.index_edges();
            if let Some(ended) = run.finished_event {
                state.recent.insert((ended, id));
                state.recent_tasks += run.tasks.len();
            }
            for position in 0..run.tasks.len() as u32 {
                let keys = index::keys_of(&run, position, &state.settings);
                state.index.replace(TaskRef { run: id, task: position }, index::NO_KEYS, keys);
            }
            let due = run.deadline(&state.settings);
            state.index.replace_deadline(Deadline::Run(id), None, due);
            state.runs.insert(id, run);
        }
        Ok(state)
    }
}

fn owner<'a>(
    runs: &'a mut BTreeMap<RunId, Run>,
    table: &'static str,
    run: RunId,
    key: &str,
) -> Result<&'a mut Run, RestoreError> {
    runs.get_mut(&run).ok_or_else(|| RestoreError {
        table,
        key: format!("{run}, {key}"),
        problem: "its run is not in table runs".to_owned(),
    })
}

fn find(run: &Run, table: &'static str, task: &TaskKey) -> Result<u32, RestoreError> {
    run.position(task).ok_or_else(|| RestoreError {
        table,
        key: format!("{}, {task}", run.id),
        problem: "its task is not in table tasks".to_owned(),
    })
}

fn restore_run(row: RunRow) -> Result<Run, RestoreError> {
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
        state: row.state,
        reason: row.transition_reason,
        source: row.source.0,
        requested_by: row.requested_by,
        request_id: row.request_id.map(Into::into),
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
            timed_out: row.transition_reason == RunTransitionReason::TimedOut,
        }),
        version: row.row_version,
        tasks: Vec::with_capacity(row.tasks_total as usize),
        edges: Vec::new(),
        out_start: Vec::new(),
        dirty: false,
        dirty_tasks: Vec::new(),
        dirty_edges: Vec::new(),
    })
}

fn restore_task(row: TaskRow) -> Task {
    Task {
        options: row.options.0,
        state: row.state,
        reason: row.transition_reason,
        transition_at: row.transition_at,
        attempt: row.attempt,
        attempt_id: row.attempt_id,
        failures: row.failures,
        interruptions: row.interruptions,
        deps_total: row.deps_total,
        deps_satisfied: row.deps_satisfied_count,
        deps_satisfied_at: row.deps_satisfied_at,
        ready_at: row.ready_at,
        provenance: row.provenance.map(|json| json.0).unwrap_or_default(),
        inputs_as_of: row.inputs_as_of,
        dispatched_at: row.dispatched_at,
        started_at: row.started_at,
        heartbeat_at: row.last_heartbeat_at,
        finished_at: row.finished_at,
        retry_at: row.retry_at,
        worker: row.worker_id.as_deref().map(Arc::from),
        progress: row
            .progress_ppm
            .map(|ppm| Progress { ppm, message: row.progress_message.unwrap_or_default() }),
        caused_by: None,
        error: row.error.map(|error| error.0),
        late_outcome: row.late_outcome.map(|outcome| outcome.0),
        materialization: row.materialization_id,
        outputs: row.outputs.map(|outputs| outputs.0).unwrap_or_default(),
        usage: row.usage.map(|usage| usage.0),
        past_attempts: row.past_attempts.map(|past| past.0).unwrap_or_default(),
        outbox: None,
        timer: None,
        version: row.row_version,
        dirty: false,
        key: row.task_key,
    }
}
