//! Facts of workers. Only reports about the newest, still open attempt change anything (INV-8); what comes late is
//! recorded and never promoted.

use std::sync::Arc;

use servo_core::planted::{self, Mistake};
use servo_core::{MaterializationId, RunId};

use super::{Applied, At, Ignored, costs, incidents, materializations, outputs, propagate, retention};
use crate::derive::idempotency_hash;
use crate::event::{Outcome, TaskFinished, TaskHeartbeat, TaskStarted};
use crate::failure::{ErrorCategory, ErrorCode, TaskError};
use crate::gate;
use crate::lifecycle::{OutboxStatus, TaskState, TransitionReason};
use crate::retry::next_delay;
use crate::state::{Rest, State};

pub(super) fn started(state: &mut State, at: At, payload: &TaskStarted) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    let Some(position) = run.position(&payload.task_key) else { return Applied::No(Ignored::UnknownTask) };
    let task = &run.tasks[position as usize];
    if !task.is_attempt(payload.attempt, payload.attempt_id) {
        return Applied::No(Ignored::StaleAttempt);
    }
    if task.execution.is_some() {
        return Applied::No(Ignored::Duplicate);
    }
    if !task.has_open_attempt() {
        return Applied::No(Ignored::NotInThatState);
    }
    state.change_task(payload.run_id, position, at.id, |task| {
        task.start(payload.worker_id.clone(), at.time);
    });
    Applied::Yes
}

pub(super) fn heartbeat(state: &mut State, at: At, payload: &TaskHeartbeat) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    let Some(position) = run.position(&payload.task_key) else { return Applied::No(Ignored::UnknownTask) };
    let task = &run.tasks[position as usize];
    if !task.is_attempt(payload.attempt, payload.attempt_id) {
        return Applied::No(Ignored::StaleAttempt);
    }
    let Some(execution) = task.execution.as_ref().filter(|_| task.state == TaskState::Running) else {
        return Applied::No(Ignored::NotInThatState);
    };
    if execution.heartbeat_at >= at.time {
        return Applied::No(Ignored::Duplicate);
    }
    state.change_task(payload.run_id, position, at.id, |task| {
        task.heard(at.time, payload.progress.as_ref());
    });
    Applied::Yes
}

pub(super) fn finished(state: &mut State, at: At, payload: &TaskFinished, key: &str) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    let Some(position) = run.position(&payload.task_key) else { return Applied::No(Ignored::UnknownTask) };
    let task = &run.tasks[position as usize];
    if !task.is_attempt(payload.attempt, payload.attempt_id) {
        let is_superseded = payload.attempt < task.attempt;
        // Nothing changes, but the second report of it is refused by its key (ADR-034).
        let is_news = retention::remember(state, at, key);
        if is_superseded && is_news {
            outputs::discard(state, payload.run_id, position, payload.attempt, payload.attempt_id);
        }
        return Applied::No(Ignored::StaleAttempt);
    }
    if !task.has_open_attempt() {
        let late = task.state == TaskState::Cancelled
            && task.late_outcome.is_none()
            && payload.outcome != Outcome::Cancelled
            && !state.idempotency.contains(idempotency_hash(key));
        if !late {
            return Applied::No(Ignored::Duplicate);
        }
        state.change_task(payload.run_id, position, at.id, |task| task.late_outcome = Some(payload.outcome));
        outputs::discard(state, payload.run_id, position, payload.attempt, payload.attempt_id);
        return Applied::Yes;
    }
    let (outputs, refused) = gate::enforce(task, &payload.outputs);
    let end = match payload.outcome {
        Outcome::Succeeded => match refused {
            None => End::Succeeded(materializations::named(
                task,
                payload.attempt_id,
                &outputs,
                payload.materialization_id,
            )),
            // Its worker should have said so.
            Some(error) => End::Failed(Some(Arc::new(error)), TransitionReason::ExecutionFailed),
        },
        Outcome::Failed => End::Failed(payload.error.clone(), TransitionReason::ExecutionFailed),
        Outcome::TimedOut => {
            let error = payload.error.clone().unwrap_or_else(|| {
                Arc::new(TaskError::new(ErrorCode::Timeout, "the attempt took longer than its timeout"))
            });
            End::Failed(Some(error), TransitionReason::TimedOut)
        }
        Outcome::Interrupted => End::Lost(TransitionReason::Interrupted),
        Outcome::Cancelled => {
            let error = TaskError::new(ErrorCode::Cancelled, "the worker stopped it without being asked to");
            End::Failed(Some(Arc::new(error)), TransitionReason::ExecutionFailed)
        }
    };
    let cancelling = run.cancel.is_some();
    if planted::has(Mistake::ReadinessByCounter) && payload.outcome != Outcome::Succeeded {
        propagate::counted(state, at, payload.run_id, position);
    }
    state.touch_task(payload.run_id, position, at.id, |task| {
        task.usage = payload.usage;
        if !cancelling {
            task.outputs = outputs.clone();
        } else if payload.outcome != Outcome::Cancelled {
            task.late_outcome = Some(payload.outcome);
        }
    });
    if !cancelling {
        outputs::reported(state, at, payload, &outputs);
    }
    end_attempt(state, at, payload.run_id, position, end);
    let owner = state.runs.get(&payload.run_id);
    if owner.is_some_and(|run| !run.tasks[position as usize].state.is_terminal()) {
        // The row of the next attempt, or of a cancellation, would not recognize a second copy of this (INV-2).
        retention::remember(state, at, key);
    }
    Applied::Yes
}

/// How an open attempt ends.
pub(super) enum End {
    /// Done.
    Succeeded(Option<MaterializationId>),
    /// Failed; counts against `max_attempts`.
    Failed(Option<Arc<TaskError>>, TransitionReason),
    /// A worker lost it without blame; tried again at once, a bounded number of times (ADR-037).
    Lost(TransitionReason),
    /// No worker took it from the queue; dispatched again without counting a failure.
    Untaken(TransitionReason),
}

/// Ends the open attempt of a task. In a run that is being cancelled every end is a cancellation.
pub(super) fn end_attempt(state: &mut State, at: At, run: RunId, position: u32, end: End) {
    let Some(owner) = state.runs.get(&run) else { return };
    let is_promoted_late = planted::has(Mistake::LateResultPromoted) && matches!(end, End::Succeeded(_));
    let cancel_reason =
        owner.cancel.as_ref().filter(|_| !is_promoted_late).map(|cancel| cancel.cause.reason_of_tasks());
    let max_interruptions = state.settings.max_interruptions;
    let charge = costs::charge(state, at, &owner.tasks[position as usize]);
    let mut ended = false;
    let mut wasted = None;
    let mut counted = None;
    let mut failed = false;
    let mut end_reason = None;
    state.change_task(run, position, at.id, |task| {
        if let Some(charge) = charge {
            charge.add_to(task);
        }
        // What nobody began has stored nothing.
        let is_wasted = match &end {
            End::Succeeded(_) => cancel_reason.is_some(),
            End::Failed(..) | End::Lost(_) => true,
            End::Untaken(_) => false,
        };
        counted = Some(!is_wasted);
        wasted = task.attempt_id.filter(|_| is_wasted).map(|id| (task.attempt, id));
        if task.outbox_status().is_some_and(|s| s != OutboxStatus::Acked) {
            task.set_outbox(match &end {
                End::Lost(_) | End::Untaken(_) => OutboxStatus::Failed,
                End::Succeeded(_) | End::Failed(..) => OutboxStatus::Acked,
            });
        }
        if let Some(reason) = cancel_reason {
            task.enter(Rest::Cancelled, reason, at.time);
            ended = true;
            return;
        }
        match end {
            End::Succeeded(materialization) => {
                let is_void =
                    !task.voided.is_empty() && task.assets().all(|asset| task.voided.contains(&asset));
                task.materialization = materialization.filter(|_| !is_void);
                task.enter(Rest::Succeeded, TransitionReason::ExecutionSucceeded, at.time);
            }
            End::Failed(error, reason) => {
                failed = true;
                task.failures += 1;
                task.interruptions = 0;
                let attempt = task.attempt_id.unwrap_or(servo_core::AttemptId::NIL);
                let delay = next_delay(
                    task.options.retry.as_ref(),
                    error.as_deref(),
                    ErrorCategory::UserCode,
                    task.failures,
                    attempt,
                );
                task.error = error;
                match delay {
                    Some(delay) => {
                        task.enter(Rest::RetryWait, TransitionReason::RetryScheduled, at.time);
                        end_reason = Some(reason);
                        task.retry_at = Some(at.time.saturating_add(delay));
                    }
                    None => task.enter(Rest::Failed, reason, at.time),
                }
            }
            End::Untaken(reason) => task.enter(Rest::Ready, reason, at.time),
            End::Lost(reason) => {
                task.interruptions += 1;
                if task.interruptions > max_interruptions {
                    failed = true;
                    let text = format!("lost {} times in a row before it could end", task.interruptions);
                    task.error = Some(Arc::new(TaskError::new(ErrorCode::Interrupted, text)));
                    task.enter(Rest::Failed, reason, at.time);
                } else {
                    task.enter(Rest::Ready, reason, at.time);
                }
            }
        }
        ended = task.state.is_terminal();
        if !ended {
            task.remember_attempt(at.time, end_reason.unwrap_or(task.reason));
        }
    });
    if let Some(charge) = charge {
        charge.record(state, at, run, position);
    }
    if failed {
        materializations::attempt_failed(state, at, run, position);
    }
    if let Some((attempt, attempt_id)) = wasted {
        outputs::discard(state, run, position, attempt, attempt_id);
    }
    if matches!(counted, Some(true)) {
        outputs::discard_voided(state, run, position);
    }
    if ended {
        incidents::task_failed(state, at, run, position);
        materializations::task_ended(state, at, run, position);
        propagate::task_ended(state, at, run, position);
    }
}
