//! Backfills: created once by request, each chunk planned once by its number, each state made once by its version.
//!
//! A chunk holds its place from the event that planned it until its run has ended, whatever becomes of the backfill.

use std::collections::BTreeMap;

use servo_core::planted::{self, Mistake};
use servo_core::{BackfillId, RunId};

use super::{Applied, At, Ignored};
use crate::event::{BackfillChunkPlanned, BackfillCreated, BackfillStateChanged, Payload as _, RunSource};
use crate::lifecycle::{BackfillState, ChunkState, RunState, TaskState};
use crate::principal::Principal;
use crate::rows::{BackfillChunkRow, Json};
use crate::state::{Backfill, Cursor, Fared, Run, State};

/// Chunks that have ended and are kept in memory, of all backfills together.
const RECENT_CHUNKS: usize = 10_000;

pub(super) fn created(
    state: &mut State,
    at: At,
    principal: &Principal,
    payload: &BackfillCreated,
) -> Applied {
    let id = payload.backfill_id;
    if state.backfills.get(id).is_some() || state.backfills.requested(&payload.idempotency_key()).is_some() {
        return Applied::No(Ignored::Duplicate);
    }
    state.backfills.insert(Backfill {
        id,
        definition: payload.clone().into(),
        created: at.id,
        created_at: at.time,
        created_by: principal.clone(),
        state: BackfillState::Pending,
        state_version: 1,
        reason: None,
        started_at: None,
        completed_at: None,
        planned_chunks: 0,
        completed_chunks: 0,
        failed_chunks: 0,
        planned: 0,
        fared: Fared::default(),
        cursor: None,
        active: BTreeMap::new(),
        version: at.id,
    });
    state.change_backfill(id, at.id, |_| {});
    Applied::Yes
}

pub(super) fn chunk_planned(state: &mut State, at: At, payload: &BackfillChunkPlanned) -> Applied {
    let id = payload.backfill_id;
    let Some(backfill) = state.backfills.get(id) else { return Applied::No(Ignored::UnknownBackfill) };
    if payload.chunk_index < backfill.planned_chunks {
        return Applied::No(Ignored::Duplicate);
    }
    if backfill.state != BackfillState::Running || payload.chunk_index > backfill.planned_chunks {
        return Applied::No(Ignored::NotInThatState);
    }
    state.change_backfill(id, at.id, |backfill| {
        backfill.planned_chunks += 1;
        backfill.planned += payload.partitions;
        let (asset, partition) = (payload.asset.clone(), payload.through.clone());
        if !planted::has(Mistake::ChunkPlannedTwice) || payload.chunk_index > 0 {
            backfill.cursor = Some(Cursor { asset, partition });
        }
        backfill.active.insert(payload.run_id, payload.chunk_index);
    });
    state.put_chunk(BackfillChunkRow {
        chunk_id: payload.chunk_id(),
        backfill_id: id,
        chunk_index: payload.chunk_index,
        asset_key: payload.asset.clone(),
        partition_keys: Json(payload.partition_keys.clone()),
        partitions: payload.partitions,
        run_key: payload.run_key.to_string(),
        run_id: payload.run_id,
        state: ChunkState::Planned,
        completed_partitions: 0,
        failed_partitions: 0,
        skipped_partitions: 0,
        cancelled_partitions: 0,
        failed_tasks: Json(Vec::new()),
        planned_at: at.time,
        completed_at: None,
        planned_event_id: at.id,
        row_version: at.id,
    });
    Applied::Yes
}

pub(super) fn state_changed(state: &mut State, at: At, payload: &BackfillStateChanged) -> Applied {
    let id = payload.backfill_id;
    let Some(backfill) = state.backfills.get(id) else { return Applied::No(Ignored::UnknownBackfill) };
    if payload.state_version <= backfill.state_version {
        return Applied::No(Ignored::Duplicate);
    }
    if backfill.state.is_terminal() {
        return Applied::No(Ignored::NotInThatState);
    }
    state.change_backfill(id, at.id, |backfill| {
        backfill.state = payload.to_state;
        backfill.state_version = payload.state_version;
        backfill.reason = Some(payload.reason.clone()).filter(|reason| !reason.is_empty());
        if payload.to_state == BackfillState::Running {
            backfill.started_at.get_or_insert(at.time);
        }
        if payload.to_state.is_terminal() {
            backfill.completed_at = Some(at.time);
        }
    });
    Applied::Yes
}

/// The run of a chunk has started.
pub(super) fn run_started(state: &mut State, at: At, run: RunId) {
    let Some((id, index)) = state.run(run).and_then(|run| chunk_of(state, &run.source, run.id)) else {
        return;
    };
    let Some(mut row) = state.backfills.chunk(id, index).map(|row| BackfillChunkRow::clone(row)) else {
        return;
    };
    row.state = ChunkState::Running;
    row.row_version = at.id;
    state.put_chunk(row);
}

/// The run of a chunk has ended: its place is free, and what it made is counted.
pub(super) fn run_ended(state: &mut State, source: &RunSource, run: RunId) {
    let Some((id, index)) = chunk_of(state, source, run) else { return };
    let Some(ended) = state.runs.get(&run).cloned() else { return };
    let Some(mut row) = state.backfills.chunk(id, index).map(|row| BackfillChunkRow::clone(row)) else {
        return;
    };
    let fared = fared(&ended, &mut row);
    row.state = match ended.state {
        RunState::Succeeded => ChunkState::Succeeded,
        RunState::Cancelled => ChunkState::Cancelled,
        RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::Cancelling
        | RunState::TimedOut
        | RunState::Failed => ChunkState::Failed,
    };
    row.completed_at = ended.finished_at;
    row.row_version = ended.version;
    let succeeded = row.state == ChunkState::Succeeded;
    state.put_chunk(row);
    state.change_backfill(id, ended.version, |backfill| {
        if !planted::has(Mistake::ChunkPlaceKeptAfterCancel) || ended.state != RunState::Cancelled {
            backfill.active.remove(&run);
        }
        *(if succeeded { &mut backfill.completed_chunks } else { &mut backfill.failed_chunks }) += 1;
        backfill.fared.completed += fared.completed;
        backfill.fared.failed += fared.failed;
        backfill.fared.skipped += fared.skipped;
        backfill.fared.cancelled += fared.cancelled;
    });
    while let Some(oldest) = state.backfills.take_oldest(RECENT_CHUNKS) {
        state.changes.ended_chunks.push(oldest);
    }
}

/// Counts the partitions of a run, and notes its tasks that did not succeed.
fn fared(run: &Run, row: &mut BackfillChunkRow) -> Fared {
    let mut fared = Fared::default();
    for task in run.tasks.iter() {
        let made = 1 + task.options.outputs.len() as u64;
        match task.state {
            TaskState::Succeeded => fared.completed += made,
            TaskState::Failed => fared.failed += made,
            TaskState::Skipped => fared.skipped += made,
            TaskState::Planned
            | TaskState::Blocked
            | TaskState::Ready
            | TaskState::Dispatched
            | TaskState::Running
            | TaskState::RetryWait
            | TaskState::Cancelled => fared.cancelled += made,
        }
        if task.state != TaskState::Succeeded {
            row.failed_tasks.0.push(task.key.clone());
        }
    }
    row.completed_partitions = fared.completed;
    row.failed_partitions = fared.failed;
    row.skipped_partitions = fared.skipped;
    row.cancelled_partitions = fared.cancelled;
    fared
}

/// The chunk that a run belongs to and that is still at work.
fn chunk_of(state: &State, source: &RunSource, run: RunId) -> Option<(BackfillId, u32)> {
    let RunSource::Backfill { id, .. } = source else { return None };
    let id = id.parse().ok()?;
    let index = state.backfills.get(id)?.active.get(&run)?;
    Some((id, *index))
}
