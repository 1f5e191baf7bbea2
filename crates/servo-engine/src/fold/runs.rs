//! Runs are asked for once per key, planned once, started once.

use std::sync::Arc;

use servo_core::MicroUsd;

use super::{Applied, At, Ignored, backfills, requests, schedules};
use crate::event::{Event, PlanCreated, RunRequested, RunTriggered};
use crate::lifecycle::{RunState, RunTransitionReason, TransitionReason};
use crate::plan::TaskOptions;
use crate::rows::{JsonTexts, RunKeyEntry, RunKeyRow};
use crate::state::{Counts, Edge, LastFound, Rest, Run, RunSet, SharedItems, SharedVec, State, Task, index};

pub(super) fn requested(state: &mut State, at: At, event: &Event, payload: &RunRequested) -> Applied {
    if let Some(existing) = state.requested_with(payload.run_id) {
        return requests::requested_again(state, at, event, payload, existing);
    }
    let entry = RunKeyEntry {
        run_id: payload.run_id,
        fingerprint: payload.request_fingerprint.digest(),
        requested: at.id,
    };
    state.run_keys.insert(entry, state.settings.recent_run_keys);
    state.head.daily_runs.count(at.time);
    state.changes.appended.run_keys.push(RunKeyRow {
        run_id: payload.run_id,
        run_key: payload.run_key.to_string(),
        request_fingerprint: payload.request_fingerprint.clone(),
        created_at: at.time,
        row_version: at.id,
    });
    state.runs.insert(
        payload.run_id,
        Arc::new(Run {
            id: payload.run_id,
            requested: at.id,
            key: payload.run_key.clone(),
            fingerprint: payload.request_fingerprint.clone(),
            plan: None,
            plan_fingerprint: None,
            deployment: 0,
            code_changed: false,
            checks_failed: 0,
            cost: MicroUsd::ZERO,
            state: RunState::Pending,
            reason: RunTransitionReason::Created,
            source: payload.source.clone(),
            requested_by: event.principal.clone(),
            request_id: payload.request_id.clone(),
            selection: payload.selection.clone(),
            operation: payload.operation,
            partitions: payload.partitions.clone(),
            config: JsonTexts::new(payload.config.clone()),
            labels: payload.labels.clone(),
            priority: payload.priority,
            counts: Counts::default(),
            timeout: payload.timeout_ms,
            created_at: at.time,
            started_at: None,
            finished_at: None,
            finished_event: None,
            cancel: None,
            version: at.id,
            tasks: SharedItems::default(),
            edges: SharedVec::default(),
            sets: Vec::new(),
            out_start: [0].into(),
            last_found: LastFound::default(),
        }),
    );
    state.change_run(payload.run_id, at.id, |_| {});
    schedules::run_changed(state, &payload.source, payload.run_id, true);
    Applied::Yes
}

pub(super) fn planned(state: &mut State, at: At, payload: &PlanCreated) -> Applied {
    let Some(run) = state.runs.get_mut(&payload.run_id).map(Arc::make_mut) else {
        return Applied::No(Ignored::UnknownRun);
    };
    if run.plan == Some(payload.plan_id) {
        return Applied::No(Ignored::Duplicate);
    }
    if run.plan.is_some() || run.state != RunState::Pending {
        return Applied::No(Ignored::NotInThatState);
    }
    // A run that is not started by the next event waits for its turn.
    run.state = RunState::Queued;
    run.reason = RunTransitionReason::Queued;
    run.plan = Some(payload.plan_id);
    run.plan_fingerprint = Some(payload.fingerprint.clone());
    run.deployment = payload.deployment;
    // Most tasks of a plan run under the same options: share them.
    let mut shared: Option<Arc<TaskOptions>> = None;
    let mut in_sets = vec![0u32; payload.tasks.len()];
    for set in payload.sets.iter() {
        let edges = set.upstream.len() as u32;
        set.downstream.iter().for_each(|task| in_sets[task as usize] += edges);
    }
    run.sets = payload.sets.iter().map(|set| RunSet::new(Arc::new(set.clone()), at.id)).collect();
    let (mut tasks, mut edges) = (Vec::with_capacity(payload.tasks.len()), Vec::new());
    for (position, spec) in (0u32..).zip(payload.tasks.iter()) {
        let options = match &shared {
            Some(options) if **options == spec.options => options.clone(),
            _ => shared.insert(Arc::new(spec.options.clone())).clone(),
        };
        let deps = spec.upstream.len() as u32 + in_sets[position as usize];
        tasks.push(Task::planned(spec.task_key.clone(), options, deps, at.time, at.id));
        edges.extend(spec.upstream.iter().map(|upstream| Edge {
            upstream: *upstream,
            downstream: position,
            resolution: None,
            at: None,
            attempt: None,
            version: at.id,
        }));
    }
    run.tasks = tasks.into_iter().collect();
    run.set_edges(edges);
    state.changes.of(run.id).all_of(run);
    let requested = run.requested;
    if !state.conditions.is_empty() {
        for task in run.tasks.iter().filter(|task| task.makes_data()) {
            for asset in task.assets() {
                state.conditions.begin(&asset, task.key.partition_str(), requested);
                state.changes.facts.partitions.insert((asset, task.key.partition()));
            }
        }
    }
    let queued = index::run_keys_of(run, &state.settings);
    state.index.replace_run(payload.run_id, index::NO_RUN_KEYS, queued);
    state.change_run(payload.run_id, at.id, |_| {});
    Applied::Yes
}

pub(super) fn triggered(state: &mut State, at: At, payload: &RunTriggered) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    if run.started_at.is_some() {
        return Applied::No(Ignored::Duplicate);
    }
    if run.state != RunState::Queued || run.plan != Some(payload.plan_id) {
        return Applied::No(Ignored::NotInThatState);
    }
    let count = run.tasks.len() as u32;
    state.change_run(payload.run_id, at.id, |run| {
        run.state = RunState::Running;
        run.reason = RunTransitionReason::Started;
        run.started_at = Some(at.time);
        run.timeout = payload.timeout_ms;
    });
    backfills::run_started(state, at, payload.run_id);
    for task in 0..count {
        state.change_task(payload.run_id, task, at.id, |task| {
            let next = if task.deps_total == 0 { Rest::Ready } else { Rest::Blocked };
            task.enter(next, TransitionReason::RunStarted, at.time);
        });
    }
    Applied::Yes
}
