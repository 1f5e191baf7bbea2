//! A ready task is intended for a queue (outbox row), then in it (DISPATCHED).

use std::sync::Arc;

use super::{Applied, At, Ignored};
use crate::event::{DispatchEnqueued, DispatchRequested};
use crate::lifecycle::{OutboxStatus, TaskState, TransitionReason};
use crate::provenance::Provenance;
use crate::state::{Outbox, Rest, State};
use crate::work;

pub(super) fn requested(state: &mut State, at: At, payload: &DispatchRequested) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    let Some(position) = run.position(&payload.task_key) else { return Applied::No(Ignored::UnknownTask) };
    let task = &run.tasks[position as usize];
    if task.is_attempt(payload.attempt, payload.attempt_id) {
        return Applied::No(Ignored::Duplicate);
    }
    if payload.attempt <= task.attempt {
        return Applied::No(Ignored::StaleAttempt);
    }
    if task.state != TaskState::Ready || task.has_open_attempt() {
        return Applied::No(Ignored::NotInThatState);
    }
    let provenance = whole(&payload.provenance, || work::provenance(state, run, task));
    state.change_task(payload.run_id, position, at.id, |task| {
        task.begin_attempt(payload.attempt, payload.attempt_id);
        task.timer = None;
        task.provenance = provenance;
        task.inputs_as_of = Some(at.id);
        task.voided = Arc::default();
        task.outbox = Some(Outbox { status: OutboxStatus::Pending, created_at: at.time });
    });
    Applied::Yes
}

/// The provenance with all inputs named: what the event had no room for is what the state has at that event. If it is
/// not, what is named is all that is known.
fn whole(event: &Arc<Provenance>, of_state: impl FnOnce() -> Provenance) -> Arc<Provenance> {
    if event.unnamed.is_none() {
        return event.clone();
    }
    let found = of_state();
    match found.is_meant_by(event) {
        true => Arc::new(Provenance { inputs: found.inputs, unnamed: None, ..Provenance::clone(event) }),
        false => event.clone(),
    }
}

/// The queue's answer races with the worker's first report: whichever comes first, the outcome is the same (INV-1).
pub(super) fn enqueued(state: &mut State, at: At, payload: &DispatchEnqueued) -> Applied {
    let Some(run) = state.runs.get(&payload.run_id) else { return Applied::No(Ignored::UnknownRun) };
    let Some(position) = run.position(&payload.task_key) else { return Applied::No(Ignored::UnknownTask) };
    let task = &run.tasks[position as usize];
    if !task.is_attempt(payload.attempt, payload.attempt_id) {
        return Applied::No(Ignored::StaleAttempt);
    }
    if task.dispatched_at.is_some() {
        return Applied::No(Ignored::Duplicate);
    }
    state.change_task(payload.run_id, position, at.id, |task| {
        task.dispatched_at = Some(at.time);
        if task.state == TaskState::Ready && task.outbox_status() == Some(OutboxStatus::Pending) {
            task.set_outbox(OutboxStatus::Created);
            task.enter(Rest::Dispatched, TransitionReason::EnqueuedForDispatch, at.time);
        }
    });
    Applied::Yes
}
