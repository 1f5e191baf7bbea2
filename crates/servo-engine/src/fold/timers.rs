//! Timers and deadlines. A firing timer is checked against the current row: later reports win (INV-9).

use std::sync::Arc;

use super::{Applied, At, Ignored, cancel, tasks};
use crate::event::{TimerEnqueued, TimerFired, TimerKind, TimerRequested};
use crate::failure::{ErrorCode, TaskError};
use crate::lifecycle::{TaskState, TimerState, TransitionReason};
use crate::principal::Principal;
use crate::state::{Cancel, CancelCause, Rest, RetryTimer, State};

pub(super) fn requested(state: &mut State, at: At, payload: &TimerRequested) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    let Some(position) = run.position(&payload.task_key) else { return Applied::No(Ignored::UnknownTask) };
    let task = &run.tasks[position as usize];
    if payload.attempt != task.attempt {
        return Applied::No(Ignored::StaleAttempt);
    }
    if task.timer.is_some() {
        return Applied::No(Ignored::Duplicate);
    }
    if task.state != TaskState::RetryWait {
        return Applied::No(Ignored::NotInThatState);
    }
    state.change_task(payload.run_id, position, at.id, |task| {
        task.timer = Some(RetryTimer { fire_at: payload.fire_at, state: TimerState::Scheduled });
    });
    Applied::Yes
}

pub(super) fn enqueued(state: &mut State, at: At, payload: &TimerEnqueued) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    let Some(position) = run.position(&payload.task_key) else { return Applied::No(Ignored::UnknownTask) };
    let task = &run.tasks[position as usize];
    if payload.attempt != task.attempt {
        return Applied::No(Ignored::StaleAttempt);
    }
    match task.timer.map(|t| t.state) {
        Some(TimerState::Scheduled) => {}
        Some(TimerState::Enqueued | TimerState::Fired | TimerState::Cancelled) => {
            return Applied::No(Ignored::Duplicate);
        }
        None => return Applied::No(Ignored::NotInThatState),
    }
    state.change_task(payload.run_id, position, at.id, |task| task.set_timer(TimerState::Enqueued));
    Applied::Yes
}

pub(super) fn fired(state: &mut State, at: At, payload: &TimerFired) -> Applied {
    match (&payload.task_key, payload.timer_type) {
        (None, TimerKind::RunTimeout) => run_timeout(state, at, payload),
        (Some(_), TimerKind::Retry | TimerKind::HeartbeatCheck | TimerKind::DispatchAck) => {
            task_timer(state, at, payload)
        }
        (None, TimerKind::Retry | TimerKind::HeartbeatCheck | TimerKind::DispatchAck)
        | (Some(_), TimerKind::RunTimeout) => Applied::No(Ignored::UnknownTask),
    }
}

fn run_timeout(state: &mut State, at: At, payload: &TimerFired) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    if run.state.is_terminal() || run.cancel.is_some() {
        return Applied::No(Ignored::NotInThatState);
    }
    let Some(due) = run.deadline(&state.settings) else { return Applied::No(Ignored::NotInThatState) };
    let due = if payload.since.is_some() { payload.fire_at } else { due };
    if at.time < due {
        return Applied::No(Ignored::NotDue);
    }
    let limit = due.since(run.started_at.unwrap_or(run.created_at));
    let cancel = Cancel {
        at: at.time,
        principal: Principal::controller("timers"),
        reason: format!("the run took longer than {limit}"),
        cause: CancelCause::Timeout,
    };
    cancel::stop(state, at, payload.run_id, cancel, None);
    Applied::Yes
}

fn task_timer(state: &mut State, at: At, payload: &TimerFired) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    let Some(position) = payload.task_key.as_ref().and_then(|key| run.position(key)) else {
        return Applied::No(Ignored::UnknownTask);
    };
    let task = &run.tasks[position as usize];
    if payload.attempt != task.attempt {
        return Applied::No(Ignored::StaleAttempt);
    }
    let Some((due, kind)) = task.deadline(&state.settings) else {
        return Applied::No(Ignored::NotInThatState);
    };
    if kind != payload.timer_type {
        return Applied::No(Ignored::NotInThatState);
    }
    // How patient the writer was is its own affair: the log must mean the same to a reader with other settings (P1).
    let (due, waits_since) = match payload.since {
        Some(since) => (payload.fire_at, Some(since)),
        None => (due, task.waits_since()),
    };
    if at.time < due || task.waits_since() > waits_since {
        return Applied::No(Ignored::NotDue);
    }
    match payload.timer_type {
        TimerKind::Retry => state.change_task(payload.run_id, position, at.id, |task| {
            task.set_timer(TimerState::Fired);
            task.enter(Rest::Ready, TransitionReason::RetryTimerExpired, at.time);
        }),
        TimerKind::HeartbeatCheck => {
            let worker = task.worker().map_or("unknown", |worker| &**worker);
            let silence = match payload.since {
                Some(since) => payload.fire_at.since(since),
                None => task.heartbeat_timeout(&state.settings),
            };
            let error = TaskError::new(
                ErrorCode::HeartbeatLost,
                format!("no heartbeat from worker {worker} for {silence}"),
            );
            let lost = tasks::End::Failed(Some(Arc::new(error)), TransitionReason::HeartbeatTimeout);
            tasks::end_attempt(state, at, payload.run_id, position, lost);
        }
        TimerKind::DispatchAck => {
            let end = tasks::End::Untaken(TransitionReason::DispatchAckTimeout);
            tasks::end_attempt(state, at, payload.run_id, position, end)
        }
        TimerKind::RunTimeout => return Applied::No(Ignored::UnknownTask),
    }
    Applied::Yes
}
