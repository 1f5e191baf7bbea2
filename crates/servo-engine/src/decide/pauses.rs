//! Requests to pause and to resume: only what makes a difference goes into the log.

use super::Decision;
use crate::command::Pause;
use crate::event::{EventData, PauseChanged};
use crate::refusal::Refusal;
use crate::state::State;

/// Characters in a reason.
pub(super) const LONGEST: usize = 4_096;

pub(super) fn change(state: &State, command: &Pause) -> Decision {
    let Pause { scope, paused, reason, caller } = command;
    if reason.chars().count() > LONGEST {
        return Decision::refuse(Refusal::LongReason { limit: LONGEST });
    }
    let is_paused = state.pauses.paused(scope).is_some();
    if is_paused == *paused {
        return Decision::unchanged();
    }
    let number = state.pauses.number(scope) + 1;
    let event = PauseChanged { scope: scope.clone(), number, paused: *paused, reason: reason.clone() };
    Decision::change(EventData::PauseChanged(event), caller.principal.clone())
}
