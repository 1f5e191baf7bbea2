//! Pauses, each folded once by its number. What waits changes its lane.

use std::sync::Arc;

use super::{Applied, At, Ignored};
use crate::event::PauseChanged;
use crate::principal::Principal;
use crate::state::State;

pub(super) fn changed(state: &mut State, at: At, by: &Principal, payload: &PauseChanged) -> Applied {
    if payload.number <= state.pauses.number(&payload.scope) {
        return Applied::No(Ignored::Duplicate);
    }
    Arc::make_mut(&mut state.pauses).change(by, at.time, at.id, payload);
    state.changes.pauses.insert(payload.scope.to_string());
    state.rebuild_index();
    Applied::Yes
}
