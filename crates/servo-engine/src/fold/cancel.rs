//! Cancellation (ADR-052): what has not begun is cancelled at once, what a worker holds is cancelled through the
//! worker, and what a silent worker holds can be forced.

use super::{Applied, At, Ignored, costs, outputs, propagate};
use crate::event::RunCancelRequested;
use crate::lifecycle::{OutboxStatus, RunState, TaskState, TransitionReason};
use crate::principal::Principal;
use crate::state::{Cancel, CancelCause, Rest, State, Task};
use servo_core::{RunId, Timestamp};

pub(super) fn requested(state: &mut State, at: At, by: &Principal, payload: &RunCancelRequested) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    if run.state.is_terminal() {
        return Applied::No(Ignored::NotInThatState);
    }
    if run.cancel.is_some() && !payload.force {
        return Applied::No(Ignored::Duplicate);
    }
    let cause = if payload.by_system { CancelCause::System } else { CancelCause::User };
    let cancel = Cancel { at: at.time, principal: by.clone(), reason: payload.reason.clone(), cause };
    // How patient the writer was is its own affair: the log must mean the same to a reader with other settings (P1).
    let old = || at.time.saturating_sub(state.settings.force_cancel_after);
    let silent_since = payload.force.then(|| payload.silent_since.unwrap_or_else(old));
    stop(state, at, payload.run_id, cancel, silent_since);
    Applied::Yes
}

/// Stops a run; used for requests and for run timeouts. What has been silent for so long is not waited for.
pub(super) fn stop(state: &mut State, at: At, run: RunId, cancel: Cancel, silent_since: Option<Timestamp>) {
    let reason = cancel.cause.reason_of_tasks();
    state.change_run(run, at.id, |run| {
        run.state = RunState::Cancelling;
        if run.cancel.is_none() {
            run.reason = cancel.cause.reason();
            run.cancel = Some(cancel);
        }
    });
    let count = state.runs.get(&run).map_or(0, |r| r.tasks.len() as u32);
    if count == 0 {
        propagate::end_run(state, at, run);
        return;
    }
    // Every task that can end now ends before any edge is resolved, so each is counted once and by its own reason.
    let mut ended = Vec::new();
    for task in 0..count {
        let Some(subject) = state.runs.get(&run).map(|r| &r.tasks[task as usize]) else { return };
        let Some(reason) = ends_now(subject, reason, silent_since) else { continue };
        let abandoned = subject.attempt_id.filter(|_| subject.state == TaskState::Running);
        let attempt = subject.attempt;
        let charge = abandoned.and_then(|_| costs::charge(state, at, subject));
        state.change_task(run, task, at.id, |task| {
            if task.outbox_status() == Some(OutboxStatus::Pending) {
                task.set_outbox(OutboxStatus::Failed);
            }
            task.cancel_timer();
            if let Some(charge) = charge {
                charge.add_to(task);
            }
            task.enter(Rest::Cancelled, reason, at.time);
        });
        if let Some(charge) = charge {
            charge.record(state, at, run, task);
        }
        if let Some(attempt_id) = abandoned {
            outputs::discard(state, run, task, attempt, attempt_id);
        }
        ended.push(task);
    }
    for task in ended {
        propagate::task_ended(state, at, run, task);
    }
}

fn ends_now(
    task: &Task,
    reason: TransitionReason,
    silent_since: Option<Timestamp>,
) -> Option<TransitionReason> {
    match task.state {
        TaskState::Planned | TaskState::Blocked | TaskState::Ready | TaskState::RetryWait => Some(reason),
        TaskState::Dispatched => silent_since.map(|_| TransitionReason::ForceCancelled),
        TaskState::Running => {
            silent_since.filter(|since| is_silent(task, *since)).map(|_| TransitionReason::ForceCancelled)
        }
        TaskState::Skipped | TaskState::Cancelled | TaskState::Failed | TaskState::Succeeded => None,
    }
}

/// Whether a running task sent no heartbeat after that.
pub(crate) fn is_silent(task: &Task, since: Timestamp) -> bool {
    task.execution.as_ref().is_none_or(|execution| execution.heartbeat_at <= since)
}
