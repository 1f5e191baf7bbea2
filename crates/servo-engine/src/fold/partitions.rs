//! Changes of dynamic partitions, each folded once by its number (ADR-055).

use std::sync::Arc;

use servo_core::Timestamp;

use super::{Applied, At, Ignored, conditions};
use crate::event::DynamicPartitionsChanged;
use crate::principal::Principal;
use crate::state::State;

pub(super) fn changed(
    state: &mut State,
    at: At,
    by: &Principal,
    payload: &DynamicPartitionsChanged,
) -> Applied {
    if payload.number <= state.dynamic.number(&payload.name) {
        return Applied::No(Ignored::Duplicate);
    }
    Arc::make_mut(&mut state.dynamic).change(payload, at.time, at.id, by);
    let keys = payload.added.iter().chain(&payload.removed);
    state.changes.partitions.extend(keys.map(|key| (payload.name.clone(), key.clone())));
    conditions::partitions_changed(
        state,
        &payload.name,
        payload.added.iter().chain(&payload.removed).cloned(),
    );
    state.changes.partition_sets.insert(payload.name.clone());
    Applied::Yes
}

/// Gives a copy of a state the keys of a change that is not in the log yet, so that runs can be planned with them.
pub(crate) fn change_partitions(state: &mut State, change: &DynamicPartitionsChanged, now: Timestamp) {
    let at = At { id: state.head.last_event, time: now };
    changed(state, at, &Principal::system(), change);
}
