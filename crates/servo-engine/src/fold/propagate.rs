//! Propagates the end of a task to its downstream tasks (INV-6, INV-10) and to its run.
//!
//! Each edge is resolved once. Work per completion is O(out-degree); only failures walk further. Two failures that
//! race leave the same state in either order: the cause named is the smallest task key, times are the earliest.
//!
//! A task that was blocked by a check keeps back those behind it, unless they read what was there before (ADR-094).

use std::sync::Arc;

use servo_core::{AssetKey, RunId};

use super::{At, retention};
use crate::failure::{ErrorCode, TaskError};
use crate::lifecycle::{Resolution, RunState, RunTransitionReason, TaskState, TransitionReason};
use crate::state::{Rest, State, Task};

/// Counts a task that has just ended, resolves the edges that leave it, and ends the run if it was the last.
pub(super) fn task_ended(state: &mut State, at: At, run: RunId, task: u32) {
    let mut ended = vec![task];
    while let Some(upstream) = ended.pop() {
        let Some(owner) = state.runs.get_mut(&run).map(Arc::make_mut) else { return };
        let subject = &owner.tasks[upstream as usize];
        let Some(resolution) = resolution_of(subject.state) else { continue };
        let cause = subject.caused_by.unwrap_or(upstream);
        let attempt = subject.attempt;
        let blocked: Vec<AssetKey> =
            if is_blocked(subject) { subject.assets().collect() } else { Vec::new() };
        owner.counts.add(subject.state);
        for position in owner.edges_out(upstream) {
            let Some(owner) = state.runs.get_mut(&run).map(Arc::make_mut) else { return };
            let edge = &mut owner.edges[position];
            if edge.resolution.is_some() {
                continue;
            }
            // Nothing but the two tasks decides, so that it does not matter what else happens meanwhile (INV-1).
            let reads_before = &owner.tasks[edge.downstream as usize].options.previous;
            let resolution = match blocked.iter().any(|asset| reads_before.contains(asset)) {
                true => Resolution::Previous,
                false => resolution,
            };
            edge.resolution = Some(resolution);
            edge.at = Some(at.time);
            edge.attempt = (attempt > 0).then_some(attempt);
            edge.version = edge.version.max(at.id);
            let downstream = edge.downstream;
            state.changes.edge(run, position as u32);
            match resolution {
                Resolution::Success | Resolution::Previous => satisfied(state, at, run, downstream),
                Resolution::Failed | Resolution::Skipped => {
                    if skipped(state, at, run, downstream, cause) {
                        ended.push(downstream);
                    }
                }
                Resolution::Cancelled => {
                    if cancelled(state, at, run, downstream) {
                        ended.push(downstream);
                    }
                }
            }
        }
    }
    state.change_run(run, at.id, |_| {});
    end_run(state, at, run);
}

/// Whether a check kept what a task made from counting.
pub(crate) fn is_blocked(task: &Task) -> bool {
    let is_check = |error: &Arc<TaskError>| error.code == ErrorCode::CheckFailed;
    task.state == TaskState::Failed && task.error.as_ref().is_some_and(is_check)
}

fn resolution_of(state: TaskState) -> Option<Resolution> {
    match state {
        TaskState::Succeeded => Some(Resolution::Success),
        TaskState::Failed => Some(Resolution::Failed),
        TaskState::Skipped => Some(Resolution::Skipped),
        TaskState::Cancelled => Some(Resolution::Cancelled),
        TaskState::Planned
        | TaskState::Blocked
        | TaskState::Ready
        | TaskState::Dispatched
        | TaskState::Running
        | TaskState::RetryWait => None,
    }
}

fn satisfied(state: &mut State, at: At, run: RunId, task: u32) {
    state.change_task(run, task, at.id, |task| {
        task.deps_satisfied += 1;
        task.deps_satisfied_at = task.deps_satisfied_at.max(Some(at.time));
        if task.state == TaskState::Blocked && task.deps_satisfied == task.deps_total {
            let since = task.deps_satisfied_at.unwrap_or(at.time);
            task.enter(Rest::Ready, TransitionReason::DependenciesSatisfied, since);
        }
    });
}

/// A planted mistake: every end of an attempt counts, whatever its outcome.
pub(super) fn counted(state: &mut State, at: At, run: RunId, task: u32) {
    let Some(owner) = state.runs.get(&run) else { return };
    let after: Vec<u32> = owner.edges_out(task).map(|position| owner.edges[position].downstream).collect();
    for downstream in after {
        satisfied(state, at, run, downstream);
    }
}

/// Skips a waiting task; returns whether it ended now.
fn skipped(state: &mut State, at: At, run: RunId, task: u32, cause: u32) -> bool {
    let mut ended_now = false;
    let mut skipped_before = false;
    state.change_task(run, task, at.id, |task| {
        if matches!(task.state, TaskState::Planned | TaskState::Blocked) {
            task.enter(Rest::Skipped, TransitionReason::UpstreamFailed, at.time);
            task.caused_by = Some(cause);
            ended_now = true;
        } else {
            skipped_before = task.state == TaskState::Skipped;
        }
    });
    if skipped_before {
        skipped_again(state, at, run, task, cause);
    }
    ended_now
}

/// One more failure before a task that was skipped already. Everything skipped behind it is touched as well, so that
/// its cause (the smallest), its times (the earliest) and its version (the newest) are those of all failures before
/// it, whichever was folded first.
fn skipped_again(state: &mut State, at: At, run: RunId, task: u32, cause: u32) {
    let mut todo = vec![task];
    while let Some(next) = todo.pop() {
        state.change_task(run, next, at.id, |task| {
            task.transition_at = task.transition_at.min(at.time);
            task.finished_at = Some(task.transition_at);
            task.caused_by = task.caused_by.map(|known| known.min(cause));
        });
        let Some(owner) = state.runs.get(&run) else { return };
        for position in owner.edges_out(next) {
            let Some(owner) = state.runs.get_mut(&run).map(Arc::make_mut) else { return };
            let edge = &mut owner.edges[position];
            if edge.resolution != Some(Resolution::Skipped) {
                continue;
            }
            let downstream = edge.downstream;
            let news = edge.at > Some(at.time) || edge.version < at.id;
            if news {
                edge.at = edge.at.min(Some(at.time));
                edge.version = edge.version.max(at.id);
                state.changes.edge(run, position as u32);
            }
            let blamed = owner.tasks[downstream as usize].caused_by;
            if news || blamed.is_some_and(|known| cause < known) {
                todo.push(downstream);
            }
        }
    }
}

/// Cancels a waiting task; returns whether it ended now.
fn cancelled(state: &mut State, at: At, run: RunId, task: u32) -> bool {
    let mut ended_now = false;
    state.change_task(run, task, at.id, |task| {
        if matches!(task.state, TaskState::Planned | TaskState::Blocked) {
            task.enter(Rest::Cancelled, TransitionReason::RunCancelled, at.time);
            ended_now = true;
        }
    });
    ended_now
}

/// Ends a run whose tasks have all ended.
pub(super) fn end_run(state: &mut State, at: At, run: RunId) {
    let Some(owner) = state.runs.get(&run) else { return };
    if owner.state.is_terminal() || (owner.counts.ended() as usize) < owner.tasks.len() {
        return;
    }
    let finished_at = owner.tasks.iter().filter_map(|t| t.finished_at).max().unwrap_or(at.time);
    state.change_run(run, at.id, |run| {
        (run.state, run.reason) = match &run.cancel {
            Some(cancel) if cancel.timed_out => (RunState::TimedOut, RunTransitionReason::TimedOut),
            Some(_) => (RunState::Cancelled, RunTransitionReason::UserCancelled),
            None if run.counts.succeeded as usize == run.tasks.len() => {
                (RunState::Succeeded, RunTransitionReason::AllTasksSucceeded)
            }
            None => (RunState::Failed, RunTransitionReason::TasksFailed),
        };
        run.finished_at = Some(finished_at);
    });
    retention::run_ended(state, run);
}
