//! Conflicts of run keys are recorded, each once; answers are kept for a day (ADR-089, ADR-090).

use std::sync::Arc;

use servo_core::Fingerprint;

use super::{Applied, At, Ignored, retention};
use crate::derive::request_hash;
use crate::event::{Event, RequestAnswered, RunKeyConflicted, RunRequested};
use crate::rows::{AnswerEntry, AnswerRow, RunKeyConflictRow};
use crate::state::State;

pub(super) fn conflicted(state: &mut State, at: At, event: &Event, payload: &RunKeyConflicted) -> Applied {
    if !retention::remember(state, at, &event.idempotency_key) {
        return Applied::No(Ignored::Duplicate);
    }
    state.changes.conflicts.push(RunKeyConflictRow {
        run_id: payload.run_id,
        run_key: payload.run_key.to_string(),
        existing_fingerprint: payload.existing_fingerprint.clone(),
        conflicting_fingerprint: payload.conflicting_fingerprint.clone(),
        requested_by: event.principal.clone(),
        request_id: payload.request_id.as_deref().map(str::to_owned),
        conflicting_event_id: at.id,
        detected_at: at.time,
        row_version: at.id,
    });
    Applied::No(Ignored::RunKeyConflict)
}

/// A run that was asked for although its key is known: the first request counts, whichever came first.
pub(super) fn requested_again(
    state: &mut State,
    at: At,
    event: &Event,
    payload: &RunRequested,
    existing: Fingerprint,
) -> Applied {
    if existing == payload.request_fingerprint {
        return Applied::No(Ignored::Duplicate);
    }
    let conflict = RunKeyConflicted {
        run_key: Arc::clone(&payload.run_key),
        run_id: payload.run_id,
        existing_fingerprint: existing,
        conflicting_fingerprint: payload.request_fingerprint.clone(),
        request_id: payload.request_id.clone(),
    };
    conflicted(state, at, event, &conflict)
}

pub(super) fn answered(state: &mut State, at: At, event: &Event, payload: &RequestAnswered) -> Applied {
    let (key_hash, elapsed) = (request_hash(&event.principal, &payload.request_id), state.head.elapsed);
    if state.answers.get(key_hash, elapsed).is_some() {
        return Applied::No(Ignored::Duplicate);
    }
    let request_digest = payload.request_fingerprint.digest();
    let RequestAnswered { run_id, event_id, added, removed, .. } = *payload;
    let entry = AnswerEntry { key_hash, request_digest, elapsed, run_id, event_id, added, removed };
    retention::evict_requests(state);
    state.answers.insert(entry, state.settings.dedup_entries);
    state.changes.appended.answers.push(AnswerRow {
        key_hash,
        request_digest,
        elapsed_ms: elapsed,
        run_id,
        event_id,
        added,
        removed,
        principal: event.principal.clone(),
        request_id: payload.request_id.to_string(),
        request_fingerprint: payload.request_fingerprint.clone(),
        answered_at: at.time,
        row_version: at.id,
    });
    Applied::Yes
}
