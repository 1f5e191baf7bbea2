//! State to rows and back, and what changed since. The first two are inverse; a test folds the same history through
//! both.
//!
//! Each function names every table: one that is forgotten does not compile.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::planted::{self, Mistake};
use servo_core::{RunId, TaskKey, TenantId, WorkspaceId};

use super::run_rows::{
    edge_row, outbox_row, restore_run, restore_set, restore_task, run_row, set_rows, task_row, timer_row,
};
use super::task::Outbox;
use super::{
    AnswerIndex, AssetStates, Backfills, ChangedSettings, ConditionStates, Deployed, DynamicPartitions, Edge,
    Freshnesses, IdempotencyIndex, Notifications, Pauses, Quarantine, Renames, RestoredStatuses, RetryTimer,
    Run, RunKeyIndex, Schedules, Sensors, State, Task, Workers, run_rows,
};
use crate::dep_sets::DepSet;
use crate::event::RunSource;
use crate::rows::{AppendedRows, Delta, DepSetRow, EndedRows, HotRows, KeyRetention, RemovedKeys, Row as _};

/// Why rows are not a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("table {table} has a row that does not fit: {problem} (key {key})")]
pub struct RestoreError {
    /// The table.
    pub table: &'static str,
    /// Primary key of the row.
    pub key: String,
    /// The inconsistency.
    pub problem: String,
}

impl State {
    /// The whole state as rows.
    pub fn rows(&self) -> HotRows {
        let mut rows = HotRows {
            head: self.head,
            runs: Vec::with_capacity(self.runs.len()),
            tasks: Vec::new(),
            edges: Vec::new(),
            dep_sets: Vec::new(),
            timers: Vec::new(),
            outbox: Vec::new(),
            asset_definitions: self.definitions.rows(),
            deployments: self.definitions.deployment_row().into_iter().collect(),
            dynamic_partitions: self.dynamic.rows(),
            partition_sets: self.dynamic.set_rows(),
            asset_states: self.asset_states.rows(),
            partition_status: self.statuses.rows(),
            partition_undo: self.statuses.undo_rows(),
            asset_renames: self.renames.rows(),
            quarantine: self.quarantine.rows().cloned().collect(),
            settings: self.changed_settings.rows().cloned().collect(),
            pauses: self.pauses.rows().cloned().collect(),
            schedule_definitions: self.schedules.definition_rows(),
            schedule_state: self.schedules.state_rows(),
            schedule_ticks: self.schedules.tick_rows(),
            sensor_definitions: self.sensors.definition_rows(),
            sensor_state: self.sensors.state_rows(),
            sensor_messages: self.sensors.message_rows(),
            sensor_evals: self.sensors.eval_rows(),
            backfills: self.backfills.rows(),
            backfill_chunks: self.backfills.chunk_rows(),
            condition_state: self.conditions.state_rows(),
            condition_requests: self.conditions.request_rows(),
            condition_evaluations: self.conditions.evaluation_rows(),
            notification_rules: self.notifications.rule_rows(),
            notifications: self.notifications.notification_rows(),
            workers: self.workers.rows().cloned().collect(),
            freshness_status: self.freshness.rows(),
            run_keys: self.run_keys.entries(),
            run_keys_evicted: self.run_keys.evicted(),
            idempotency: self.idempotency.entries(),
            answers: self.answers.entries(),
        };
        for run in self.runs.values() {
            rows.runs.push(run_row(run));
            for position in 0..run.tasks.len() as u32 {
                rows.tasks.push(task_row(run, position));
                rows.outbox.extend(outbox_row(run, position));
                rows.timers.extend(timer_row(run, position));
            }
            rows.dep_sets.extend(set_rows(run));
            rows.edges.extend((0..run.edges.len()).map(|position| edge_row(run, position)));
        }
        rows.outbox.sort_by(|a, b| a.dispatch_id.cmp(&b.dispatch_id));
        rows.timers.sort_by(|a, b| a.timer_id.cmp(&b.timer_id));
        rows
    }

    /// Restores the state that [`State::rows`] was taken from.
    pub fn from_rows(tenant: TenantId, workspace: WorkspaceId, rows: HotRows) -> Result<State, RestoreError> {
        Self::from_rows_and(tenant, workspace, rows, RestoredStatuses::default())
    }

    /// The same, where statuses of partitions were restored before: those that `rows` has are added to them.
    pub fn from_rows_and(
        tenant: TenantId,
        workspace: WorkspaceId,
        rows: HotRows,
        mut statuses: RestoredStatuses,
    ) -> Result<State, RestoreError> {
        let HotRows {
            head,
            runs: run_rows,
            tasks,
            edges,
            dep_sets,
            deployments,
            timers,
            outbox,
            asset_definitions,
            asset_states,
            partition_status,
            partition_undo,
            asset_renames,
            quarantine,
            dynamic_partitions,
            partition_sets,
            settings,
            pauses,
            schedule_definitions,
            schedule_state,
            schedule_ticks,
            sensor_definitions,
            sensor_state,
            sensor_messages,
            sensor_evals,
            backfills,
            backfill_chunks,
            condition_state,
            condition_requests,
            condition_evaluations,
            notification_rules,
            notifications,
            workers,
            freshness_status,
            run_keys,
            run_keys_evicted,
            idempotency,
            answers,
        } = rows;
        let mut state = State::new(tenant, workspace);
        state.changed_settings = Arc::new(ChangedSettings::restore(settings));
        state.settings = Arc::new(state.changed_settings.settings());
        state.pauses = Arc::new(Pauses::restore(pauses));
        state.workers = Arc::new(Workers::restore(workers));
        state.head = head;
        state.definitions = Arc::new(Deployed::restore(deployments, asset_definitions));
        state.dynamic = Arc::new(DynamicPartitions::restore(partition_sets, dynamic_partitions)?);
        state.run_keys = RunKeyIndex::restore(run_keys, run_keys_evicted);
        state.idempotency = IdempotencyIndex::restore(idempotency);
        if !planted::has(Mistake::AnswerLostAtRestart) {
            state.answers = AnswerIndex::restore(answers);
        }
        state.asset_states = AssetStates::restore(asset_states);
        partition_status.iter().for_each(|row| statuses.add(row));
        state.statuses = statuses.finish()?;
        state.statuses.restore_undo(partition_undo)?;
        state.renames = Renames::restore(asset_renames);
        state.quarantine = Quarantine::restore(quarantine);
        state.schedules = Schedules::restore(schedule_definitions, schedule_state, schedule_ticks)?;
        state.sensors = Sensors::restore(sensor_definitions, sensor_state, sensor_messages, sensor_evals)?;
        state.backfills = Backfills::restore(backfills, backfill_chunks)?;
        state.freshness = Freshnesses::restore(freshness_status);
        state.conditions =
            ConditionStates::restore(condition_state, condition_requests, condition_evaluations);
        state.notifications = Notifications::restore(notification_rules, notifications);
        let mut runs: BTreeMap<RunId, Run> = BTreeMap::new();
        for row in run_rows {
            let run = restore_run(row)?;
            runs.insert(run.id, run);
        }
        let mut causes: Vec<(RunId, TaskKey, TaskKey)> = Vec::new();
        let mut run_tasks: BTreeMap<RunId, Vec<Task>> = BTreeMap::new();
        let mut run_edges: BTreeMap<RunId, Vec<Edge>> = BTreeMap::new();
        for row in tasks {
            if let Some(cause) = &row.caused_by {
                causes.push((row.run_id, row.task_key.clone(), cause.clone()));
            }
            let run = owner(&mut runs, "tasks", row.run_id, row.task_key.as_str())?.id;
            run_tasks.entry(run).or_default().push(restore_task(row)?);
        }
        for (run, mut tasks) in run_tasks {
            tasks.sort_by(|a, b| a.key.cmp(&b.key));
            owner(&mut runs, "tasks", run, "")?.tasks = tasks.into_iter().collect();
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
            };
            run_edges.entry(run.id).or_default().push(edge);
        }
        let mut run_sets: BTreeMap<RunId, Vec<DepSetRow>> = BTreeMap::new();
        for row in dep_sets {
            let run = owner(&mut runs, "dep_sets", row.run_id, &row.set_number.to_string())?;
            let set = DepSet { upstream: row.upstream.0.clone(), downstream: row.downstream.0.clone() };
            if let Some(problem) = set.problem(run.tasks.len()) {
                let key = format!("{}, {}", row.run_id, row.set_number);
                return Err(RestoreError { table: "dep_sets", key, problem: problem.to_owned() });
            }
            run_sets.entry(row.run_id).or_default().push(row);
        }
        for (id, mut run) in runs {
            let mut sets = run_sets.remove(&id).unwrap_or_default();
            sets.sort_by_key(|row| row.set_number);
            run.sets = sets.into_iter().map(restore_set).collect();
            run.recount_sets();
            run.set_edges(run_edges.remove(&id).unwrap_or_default());
            if let Some(ended) = run.finished_event {
                state.recent.insert((ended, id), ());
                state.recent_tasks += run.tasks.len();
            }
            if let (RunSource::Schedule { id: schedule, .. }, false) = (&run.source, run.state.is_terminal())
                && let Some(schedule) = schedule.parse().ok().and_then(|id| state.schedules.get_mut(id))
            {
                schedule.active.insert(id);
            }
            state.runs.insert(id, Arc::new(run));
        }
        state.rebuild_index();
        state.follow_making();
        Ok(state)
    }
}

/// The rows that changed since this was last asked.
pub(super) fn take(state: &mut State) -> Delta {
    let mut changes = std::mem::take(&mut state.changes);
    state.changes.just_ended = changes.take_just_ended();
    state.changes.effects = changes.take_effects();
    state.changes.facts = changes.take_facts();
    let deployments = state.definitions.deployment_row().filter(|_| changes.deployment);
    let definitions = changes.definitions.iter().filter_map(|key| state.definitions.row(key));
    let sets = changes.partition_sets.iter().filter_map(|name| state.dynamic.set_row(name));
    let settings = changes.settings.iter().filter_map(|name| state.changed_settings.row(name));
    let pauses = changes.pauses.iter().filter_map(|scope| state.pauses.row(scope));
    let schedules = changes.schedules.iter().filter_map(|id| state.schedules.get(*id));
    let defined = changes.schedule_definitions.iter().filter_map(|id| state.schedules.get(*id));
    let ticks = changes.ticks.iter().filter_map(|id| state.schedules.ticks.get(id));
    let ticks = ticks.map(|row| row.as_ref().clone());
    let sensors = changes.sensors.iter().filter_map(|id| state.sensors.get(*id));
    let sensing = changes.sensor_definitions.iter().filter_map(|id| state.sensors.get(*id));
    let evals = changes.evals.iter().filter_map(|id| state.sensors.evals.get(id));
    let evals = evals.map(|row| row.as_ref().clone());
    let backfills = changes.backfills.iter().filter_map(|id| state.backfills.get(*id));
    let chunks = changes.chunks.iter().filter_map(|(id, index)| state.backfills.chunk(*id, *index));
    let evaluations = changes.evaluations.iter().filter_map(|id| state.conditions.evaluations.get(id));
    let evaluations = evaluations.map(|row| row.as_ref().clone());
    // Those that are empty here are filled below.
    let mut delta = Delta {
        head: state.head,
        runs: Vec::new(),
        tasks: Vec::new(),
        edges: Vec::new(),
        dep_sets: Vec::new(),
        deployments: deployments.into_iter().collect(),
        timers: Vec::new(),
        outbox: Vec::new(),
        asset_definitions: definitions.collect(),
        asset_states: Vec::new(),
        partition_status: Vec::new(),
        partition_undo: Vec::new(),
        asset_renames: Vec::new(),
        quarantine: Vec::new(),
        dynamic_partitions: Vec::new(),
        partition_sets: sets.collect(),
        settings: settings.cloned().collect(),
        pauses: pauses.cloned().collect(),
        request_keys: KeyRetention::of(&state.settings, state.run_keys.len()),
        schedule_definitions: defined.map(|schedule| schedule.definition_row()).collect(),
        schedule_state: schedules.map(|schedule| schedule.state_row()).collect(),
        schedule_ticks: ticks.collect(),
        sensor_definitions: sensing.map(|sensor| sensor.definition_row()).collect(),
        sensor_state: sensors.map(|sensor| sensor.state_row()).collect(),
        sensor_messages: Vec::new(),
        sensor_evals: evals.collect(),
        backfills: backfills.map(|backfill| backfill.row()).collect(),
        backfill_chunks: chunks.map(|row| row.as_ref().clone()).collect(),
        condition_state: Vec::new(),
        condition_requests: Vec::new(),
        condition_evaluations: evaluations.collect(),
        notification_rules: changes.rules.iter().filter_map(|id| state.notifications.rule_row(*id)).collect(),
        notifications: changes
            .notifications
            .iter()
            .filter_map(|id| state.notifications.row(id).map(|row| row.as_ref().clone()))
            .collect(),
        workers: Vec::new(),
        freshness_status: Vec::new(),
        gone: RemovedKeys {
            sensor_evals: changes.ended_evals.iter().map(|row| row.eval_id.clone()).collect(),
            schedule_ticks: changes.ended_ticks.iter().map(|row| row.tick_id.clone()).collect(),
            condition_evaluations: changes.ended_evaluations.iter().map(|row| row.key()).collect(),
            backfills: changes.ended_backfills.iter().map(|row| row.backfill_id).collect(),
            backfill_chunks: changes.ended_chunks.iter().map(|row| row.chunk_id.clone()).collect(),
            notifications: changes
                .ended_notifications
                .iter()
                .map(|row| row.notification_id.clone())
                .collect(),
            deployments: changes.ended_deployments.iter().map(|row| row.number).collect(),
            timers: changes.timers_gone,
            outbox: changes.outbox_gone,
            ..RemovedKeys::default()
        },
        ended: EndedRows {
            deployments: changes.ended_deployments,
            schedule_ticks: changes.ended_ticks.iter().map(|row| row.as_ref().clone()).collect(),
            sensor_evals: changes.ended_evals.iter().map(|row| row.as_ref().clone()).collect(),
            condition_evaluations: changes.ended_evaluations.iter().map(|row| row.as_ref().clone()).collect(),
            backfills: changes.ended_backfills.iter().map(|row| row.as_ref().clone()).collect(),
            backfill_chunks: changes.ended_chunks.iter().map(|row| row.as_ref().clone()).collect(),
            notifications: changes.ended_notifications.iter().map(|row| row.as_ref().clone()).collect(),
            ..EndedRows::default()
        },
        appended: AppendedRows {
            run_key_conflicts: changes.conflicts.iter().cloned().collect(),
            audit: changes.audit.into_vec(),
            materialization_inputs: changes.inputs.into_vec(),
            check_results: changes.checks.into_vec(),
            task_costs: changes.costs.into_vec(),
            ..changes.appended
        },
    };
    for (sensor, event, message) in changes.messages {
        match state.sensors.message_row(sensor, event, &message) {
            Some(row) => delta.sensor_messages.push(row),
            None => delta.gone.sensor_messages.push((sensor, message.to_string())),
        }
    }
    for asset in changes.condition_states {
        match state.conditions.state_row(&asset) {
            Some(row) => delta.condition_state.push(row),
            None => delta.gone.condition_state.push(asset),
        }
    }
    for (asset, partition) in changes.condition_requests {
        match state.conditions.request_row(&asset, partition.as_ref()) {
            Some(row) => delta.condition_requests.push(row),
            None => delta.gone.condition_requests.push((asset, partition)),
        }
    }
    for asset in changes.asset_states {
        match state.asset_states.row(&asset) {
            Some(row) => delta.asset_states.push(row),
            None => delta.gone.asset_states.push(asset),
        }
    }
    for (asset, key) in changes.statuses {
        match state.statuses.row(&asset, key.as_ref()) {
            Some(row) => delta.partition_status.push(row),
            None => delta.gone.partition_status.push((asset, key)),
        }
    }
    for (asset, key) in changes.undo {
        match state.statuses.undo_row(&asset, key.as_ref()) {
            Some(row) => delta.partition_undo.push(row),
            None => delta.gone.partition_undo.push((asset, key)),
        }
    }
    for (name, event) in changes.renames {
        delta.asset_renames.extend(state.renames.get(&name, event).cloned());
    }
    for (name, key) in changes.partitions {
        match state.dynamic.row(&name, &key) {
            Some(row) => delta.dynamic_partitions.push(row),
            None => delta.gone.dynamic_partitions.push((name, key)),
        }
    }
    for asset in changes.freshness {
        match state.freshness.row(&asset) {
            Some(row) => delta.freshness_status.push(row),
            None => delta.gone.freshness_status.push(asset),
        }
    }
    for worker in changes.workers {
        match state.workers.get(&worker) {
            Some(row) => delta.workers.push(row.clone()),
            None => delta.gone.workers.push(worker),
        }
    }
    for key in changes.quarantine {
        match state.quarantine.get(&key.0, key.1) {
            Some(row) => delta.quarantine.push(row.clone()),
            None => delta.gone.quarantine.push(key),
        }
    }
    for (id, changed) in changes.runs.into_entries() {
        if let Some(run) = state.runs.get(&id) {
            run_rows::add_changed(&mut delta, run, changed);
        }
    }
    for run in &changes.ended {
        run_rows::add_ended(&mut delta, run);
    }
    delta
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
