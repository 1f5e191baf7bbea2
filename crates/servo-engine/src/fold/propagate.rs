//! Propagates the end of a task to its downstream tasks (INV-6, INV-10) and to its run.
//!
//! Each edge is resolved once. Work per completion is O(out-degree), and over a whole run O(edges): a task is skipped for
//! the first failure before it, and failures that come later change nothing. A set of dependencies costs as much as it
//! has tasks, not pairs (ADR-118). Two failures that race leave the same state in either order: the first is that with
//! the smaller event.
//!
//! A task that was blocked by a check keeps back those behind it, unless they read what was there before (ADR-094).

use std::sync::Arc;

use servo_core::{AssetKey, EventId, RunId, Timestamp};

use super::{At, retention};
use crate::failure::{ErrorCode, TaskError};
use crate::lifecycle::{Resolution, RunState, RunTransitionReason, TaskState, TransitionReason};
use crate::state::{CancelCause, Rest, State, Task};

/// Counts a task that has just ended, resolves the edges that leave it, and ends the run if it was the last.
pub(super) fn task_ended(state: &mut State, at: At, run: RunId, task: u32) {
    let mut ended = vec![task];
    let mut behind = Vec::new();
    while let Some(upstream) = ended.pop() {
        let State { runs, changes, .. } = &mut *state;
        let Some(owner) = runs.get_mut(&run).map(Arc::make_mut) else { return };
        let changed = changes.of(run);
        let subject = &owner.tasks[upstream as usize];
        let Some(resolution) = resolution_of(subject.state) else { continue };
        let cause = subject.caused_by.unwrap_or(upstream);
        let attempt = subject.attempt;
        let blocked: Vec<AssetKey> =
            if is_blocked(subject) { subject.assets().collect() } else { Vec::new() };
        owner.counts.add(subject.state);
        for position in owner.edges_out(upstream) {
            let edge = &mut owner.edges[position];
            if edge.resolution.is_some() {
                continue;
            }
            // Nothing but the two tasks decides, so that it does not matter what else happens meanwhile (INV-1).
            let waiting = &owner.tasks[edge.downstream as usize];
            let resolution = match blocked.iter().any(|asset| waiting.options.previous.contains(asset)) {
                true => Resolution::Previous,
                false => resolution,
            };
            edge.resolution = Some(resolution);
            edge.at = Some(at.time);
            edge.attempt = (attempt > 0).then_some(attempt);
            edge.version = edge.version.max(at.id);
            let downstream = edge.downstream;
            changed.edge(position as u32);
            if resolution.is_good() && waiting.waits_for_more_than(1) {
                let waiting = &mut owner.tasks[downstream as usize];
                count_satisfied(waiting, 1, at.time);
                waiting.version = waiting.version.max(at.id);
                changed.task(downstream);
            } else {
                behind.push((downstream, resolution));
            }
        }
        for (downstream, resolution) in behind.drain(..) {
            resolved(state, at, run, downstream, resolution, cause, &mut ended);
        }
        resolve_sets(state, at, run, upstream, &mut ended);
    }
    state.touch_run(run, at.id);
    end_run(state, at, run);
}

/// Applies the resolution of an edge to the task that waits; it is noted if it ended now.
fn resolved(
    state: &mut State,
    at: At,
    run: RunId,
    downstream: u32,
    resolution: Resolution,
    cause: u32,
    ended: &mut Vec<u32>,
) {
    let ended_now = match resolution {
        Resolution::Success | Resolution::Previous => {
            satisfied(state, run, downstream, 1, at.time, at.id);
            false
        }
        Resolution::Failed | Resolution::Skipped => skipped(state, at, run, downstream, cause),
        Resolution::Cancelled => cancelled(state, at, run, downstream),
    };
    if ended_now {
        ended.push(downstream);
    }
}

/// Counts a task that has just ended in the sets that wait for it. Those behind a set hear of it when all of it ended
/// well, and when the first of it did not.
fn resolve_sets(state: &mut State, at: At, run: RunId, upstream: u32, ended: &mut Vec<u32>) {
    let count = state.runs.get(&run).map_or(0, |owner| owner.sets.len());
    for number in 0..count {
        let Some(owner) = state.runs.get_mut(&run).map(Arc::make_mut) else { return };
        let set = &mut owner.sets[number];
        let members = Arc::clone(&set.set);
        let Some(first) = members.downstream.iter().next() else { continue };
        if !members.upstream.contains(upstream) {
            continue;
        }
        let subject = &owner.tasks[upstream as usize];
        let cause = subject.caused_by.unwrap_or(upstream);
        let Some(resolution) = Resolution::of(subject, &owner.tasks[first as usize].options.previous) else {
            continue;
        };
        match resolution {
            Resolution::Success | Resolution::Previous => {
                if set.satisfy(Some(at.time), at.id) {
                    let (time, by) = (set.satisfied_at.unwrap_or(at.time), set.satisfied_by);
                    let edges = members.upstream.len() as u32;
                    for downstream in members.downstream.iter() {
                        satisfied(state, run, downstream, edges, time, by);
                    }
                }
            }
            Resolution::Failed | Resolution::Skipped => {
                // Whoever waits was skipped by the first; only an earlier one is news.
                if set.broken_by.is_none_or(|known| at.id < known) {
                    set.broken_by = Some(at.id);
                    for downstream in members.downstream.iter() {
                        if skipped(state, at, run, downstream, cause) {
                            ended.push(downstream);
                        }
                    }
                }
            }
            Resolution::Cancelled => {
                if !std::mem::replace(&mut set.is_cancelled, true) {
                    for downstream in members.downstream.iter() {
                        if cancelled(state, at, run, downstream) {
                            ended.push(downstream);
                        }
                    }
                }
            }
        }
    }
}

impl Resolution {
    /// Whether whoever waits may go on.
    fn is_good(self) -> bool {
        match self {
            Self::Success | Self::Previous => true,
            Self::Failed | Self::Skipped | Self::Cancelled => false,
        }
    }

    /// The resolution of an edge from a task to one that reads these as they were before, if they are blocked.
    pub(crate) fn of(upstream: &Task, previous: &[AssetKey]) -> Option<Self> {
        let resolution = resolution_of(upstream.state)?;
        let reads_before = is_blocked(upstream) && upstream.assets().any(|asset| previous.contains(&asset));
        Some(if reads_before { Self::Previous } else { resolution })
    }
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

/// So many more edges into a task are satisfied, the newest at this time and by this event.
fn satisfied(state: &mut State, run: RunId, task: u32, edges: u32, at: Timestamp, by: EventId) {
    state.change_task(run, task, by, |task| {
        count_satisfied(task, edges, at);
        if task.state == TaskState::Blocked && task.deps_satisfied == task.deps_total {
            let since = task.deps_satisfied_at.unwrap_or(at);
            task.enter(Rest::Ready, TransitionReason::DependenciesSatisfied, since);
        }
    });
}

fn count_satisfied(task: &mut Task, edges: u32, at: Timestamp) {
    task.deps_satisfied += edges;
    task.deps_satisfied_at = task.deps_satisfied_at.max(Some(at));
}

/// A planted mistake: every end of an attempt counts, whatever its outcome.
pub(super) fn counted(state: &mut State, at: At, run: RunId, task: u32) {
    let Some(owner) = state.runs.get(&run) else { return };
    let after: Vec<u32> = owner.edges_out(task).map(|position| owner.edges[position].downstream).collect();
    for downstream in after {
        satisfied(state, run, downstream, 1, at.time, at.id);
    }
}

/// Skips a waiting task; returns whether it ended now.
fn skipped(state: &mut State, at: At, run: RunId, task: u32, cause: u32) -> bool {
    let Some(subject) = state.runs.get(&run).map(|owner| &owner.tasks[task as usize]) else { return false };
    if matches!(subject.state, TaskState::Planned | TaskState::Blocked) {
        blame(state, at, run, task, cause);
        return true;
    }
    if subject.state == TaskState::Skipped && subject.finished_event.is_some_and(|known| at.id < known) {
        skipped_earlier(state, at, run, task, cause);
    }
    false
}

/// Skips a task for a failure. The event is not among those that make its version: an earlier failure replaces it.
fn blame(state: &mut State, at: At, run: RunId, task: u32, cause: u32) {
    state.change_task(run, task, EventId::NIL, |task| {
        task.enter(Rest::Skipped, TransitionReason::UpstreamFailed, at.time);
        task.caused_by = Some(cause);
        task.finished_event = Some(at.id);
    });
}

/// A failure that is folded after another one and was before it: everything that was skipped for the other is skipped
/// for this one. Events of a log come in order, so that this is for those who fold them otherwise (INV-1).
fn skipped_earlier(state: &mut State, at: At, run: RunId, task: u32, cause: u32) {
    let mut todo = vec![task];
    while let Some(next) = todo.pop() {
        blame(state, at, run, next, cause);
        let Some(owner) = state.runs.get_mut(&run).map(Arc::make_mut) else { return };
        let mut behind = Vec::new();
        for position in owner.edges_out(next) {
            let edge = &mut owner.edges[position];
            if edge.resolution == Some(Resolution::Skipped) {
                edge.at = Some(at.time);
                edge.version = at.id;
                behind.push(edge.downstream);
                state.changes.of(run).edge(position as u32);
            }
        }
        for set in owner.sets.iter_mut().filter(|set| set.set.upstream.contains(next)) {
            if set.broken_by.is_some_and(|known| at.id < known) {
                set.broken_by = Some(at.id);
                behind.extend(set.set.downstream.iter());
            }
        }
        let is_later = |task: &&u32| {
            let task = &owner.tasks[**task as usize];
            task.state == TaskState::Skipped && task.finished_event.is_some_and(|known| at.id < known)
        };
        todo.extend(behind.iter().filter(is_later));
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
            Some(cancel) => {
                let ended = match cancel.cause {
                    CancelCause::Timeout => RunState::TimedOut,
                    CancelCause::User | CancelCause::System => RunState::Cancelled,
                };
                (ended, cancel.cause.reason())
            }
            None if run.counts.succeeded as usize == run.tasks.len() => {
                (RunState::Succeeded, RunTransitionReason::AllTasksSucceeded)
            }
            None => (RunState::Failed, RunTransitionReason::TasksFailed),
        };
        run.finished_at = Some(finished_at);
    });
    retention::run_ended(state, run);
}
