//! Workers, each change folded once by its number. When the last worker of a queue goes, what nobody began there waits
//! for a worker again, and holds nothing meanwhile (ADR-111).

use std::sync::Arc;

use servo_core::planted::{self, Mistake};

use super::tasks::{End, end_attempt};
use super::{Applied, At, Ignored};
use crate::calls;
use crate::event::{WorkerChanged, WorkerLeft, WorkerLost, WorkerRegistered};
use crate::lifecycle::{TaskState, TransitionReason, WorkerState};
use crate::rows::{Json, WorkerRow};
use crate::state::{State, TaskRef};

pub(super) fn registered(state: &mut State, at: At, payload: &WorkerRegistered) -> Applied {
    if payload.number <= state.workers.number(&payload.worker_id) {
        return Applied::No(Ignored::Duplicate);
    }
    let row = WorkerRow {
        worker_id: payload.worker_id.to_string(),
        name: payload.name.clone(),
        state: WorkerState::Active,
        queues: Json(payload.queues.iter().map(ToString::to_string).collect()),
        slots: payload.slots,
        deployment: payload.deployment,
        digest: payload.digest.to_string(),
        storage: payload.storage.clone(),
        host: payload.host.clone(),
        version: payload.version.clone(),
        registered_at: at.time,
        heard_at: at.time,
        changed_at: at.time,
        change_number: payload.number,
        row_version: at.id,
    };
    replace(state, row);
    Applied::Yes
}

pub(super) fn changed(state: &mut State, at: At, payload: &WorkerChanged) -> Applied {
    let row = match next(state, &payload.worker_id, payload.number) {
        Ok(row) => row,
        Err(ignored) => return Applied::No(ignored),
    };
    let is_draining = payload.draining;
    let changed = WorkerRow {
        state: if is_draining { WorkerState::Draining } else { WorkerState::Active },
        deployment: payload.deployment,
        digest: payload.digest.to_string(),
        heard_at: at.time,
        ..at_this(row, at, payload.number)
    };
    replace(state, changed);
    if is_draining {
        withdraw(state, at);
    }
    Applied::Yes
}

pub(super) fn left(state: &mut State, at: At, payload: &WorkerLeft) -> Applied {
    let row = match next(state, &payload.worker_id, payload.number) {
        Ok(row) => row,
        Err(ignored) => return Applied::No(ignored),
    };
    let gone = WorkerRow { state: WorkerState::Left, heard_at: at.time, ..at_this(row, at, payload.number) };
    replace(state, gone);
    withdraw(state, at);
    Applied::Yes
}

pub(super) fn lost(state: &mut State, at: At, payload: &WorkerLost) -> Applied {
    let row = match next(state, &payload.worker_id, payload.number) {
        Ok(row) => row,
        Err(ignored) => return Applied::No(ignored),
    };
    let heard_at = payload.heard_at.unwrap_or(row.heard_at);
    let gone = WorkerRow { state: WorkerState::Lost, heard_at, ..at_this(row, at, payload.number) };
    replace(state, gone);
    if !planted::has(Mistake::SlotLeakedByLostWorker) {
        withdraw(state, at);
    }
    Applied::Yes
}

/// The row that the next change of a worker that is there is about.
fn next(state: &State, worker: &str, number: u64) -> Result<WorkerRow, Ignored> {
    let Some(row) = state.workers.get(worker) else { return Err(Ignored::NotInThatState) };
    if number <= row.change_number {
        return Err(Ignored::Duplicate);
    }
    if row.state.is_gone() {
        return Err(Ignored::NotInThatState);
    }
    Ok(row.clone())
}

fn at_this(row: WorkerRow, at: At, number: u64) -> WorkerRow {
    WorkerRow { changed_at: at.time, change_number: number, row_version: at.id, ..row }
}

fn replace(state: &mut State, row: WorkerRow) {
    state.changes.workers.insert(row.worker_id.clone());
    let forgotten = Arc::make_mut(&mut state.workers).change(row);
    state.changes.workers.extend(forgotten);
}

/// Attempts that nobody began, of queues that nobody serves any more, end; their tasks are ready again.
fn withdraw(state: &mut State, at: At) {
    let is_left = |queue: &str| state.settings.push_limit(queue) == 0 && !state.workers.serve(queue);
    let unstarted = state.index.unstarted.iter().filter(|(queue, _)| is_left(queue));
    let tasks: Vec<TaskRef> = unstarted.flat_map(|(_, tasks)| tasks.iter().copied()).collect();
    let with_followers = |at: &TaskRef| {
        let run = state.runs.get(&at.run);
        let led = run.into_iter().flat_map(|run| calls::followers(run, &run.tasks[at.task as usize]));
        let led = led.filter(|(_, task)| task.state != TaskState::Running);
        led.map(|(task, _)| TaskRef { run: at.run, task }).chain([*at]).collect::<Vec<_>>()
    };
    let tasks: Vec<TaskRef> = tasks.iter().flat_map(with_followers).collect();
    for TaskRef { run, task } in tasks {
        end_attempt(state, at, run, task, End::Untaken(TransitionReason::WorkersGone));
    }
}
