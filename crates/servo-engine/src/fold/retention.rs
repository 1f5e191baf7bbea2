//! Evicts from memory: ended runs beyond the newest few, and request keys beyond the window (ADR-039).
//!
//! A pure function of the log, so every replay forgets the same things at the same event.

use std::sync::Arc;

use servo_core::{Millis, RunId};

use super::{At, backfills, incidents, schedules, sensors};
use crate::derive::idempotency_hash;
use crate::effect::Effect;
use crate::rows::{IdempotencyEntry, IdempotencyRow};
use crate::state::State;

pub(super) fn run_ended(state: &mut State, id: RunId) {
    let Some(run) = state.runs.get_mut(&id).map(Arc::make_mut) else { return };
    run.finished_event = Some(run.version);
    state.recent.insert((run.version, id), ());
    state.changes.run_ended(id);
    state.changes.effect(Effect::ClearStaging(id));
    state.recent_tasks += run.tasks.len();
    let source = run.source.clone();
    schedules::run_changed(state, &source, id, false);
    sensors::run_ended(state, id);
    incidents::run_ended(state, id);
    backfills::run_ended(state, &source, id);
    evict_runs(state);
}

/// Ended runs beyond the newest few leave memory. The newest stays, unless it is too large by itself.
pub(super) fn evict_runs(state: &mut State) {
    while state.recent_tasks > state.settings.recent_tasks
        || state.recent.len() > state.settings.recent_runs.max(1)
    {
        let Some(oldest) = state.recent.keys().next().copied() else { return };
        state.recent.remove(&oldest);
        if let Some(run) = state.runs.remove(&oldest.1) {
            state.recent_tasks -= run.tasks.len();
            state.changes.run_left(run);
        }
    }
}

pub(super) fn evict_requests(state: &mut State) {
    let elapsed = state.head.elapsed;
    let before = Millis::new(elapsed.get().saturating_sub(state.settings.dedup_window.get()));
    state.idempotency.evict(before, state.settings.dedup_entries);
    state.answers.evict(elapsed, state.settings.dedup_entries);
}

/// Remembers the key of an event that nothing else in the state would recognize. False if it was known.
pub(super) fn remember(state: &mut State, at: At, key: &str) -> bool {
    let hash = idempotency_hash(key);
    if state.idempotency.contains(hash) {
        return false;
    }
    let elapsed = state.head.elapsed;
    state.idempotency.insert(IdempotencyEntry { key_hash: hash, elapsed });
    state.changes.appended.idempotency.push(IdempotencyRow {
        key_hash: hash,
        elapsed_ms: elapsed,
        idempotency_key: key.to_owned(),
        event_id: at.id,
        created_at: at.time,
        row_version: at.id,
    });
    evict_requests(state);
    true
}
