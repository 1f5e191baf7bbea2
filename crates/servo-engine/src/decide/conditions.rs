//! Requests about automation conditions: pause and resume.

use super::Decision;
use crate::command::PauseCondition;
use crate::event::{ConditionPauseChanged, EventData};
use crate::refusal::Refusal;
use crate::state::State;

pub(super) fn pause(state: &State, command: &PauseCondition) -> Decision {
    let Some(condition) = state.condition(&command.asset) else {
        return Decision::refuse(Refusal::UnknownCondition { asset: command.asset.clone() });
    };
    if let Some(expected) = command.expected_state_version.filter(|it| *it != condition.state_version) {
        return Decision::refuse(Refusal::StateVersion {
            what: "automation of",
            name: command.asset.to_string(),
            expected,
            found: condition.state_version,
        });
    }
    if condition.paused == command.paused {
        return Decision::unchanged();
    }
    let event = ConditionPauseChanged {
        asset: command.asset.clone(),
        state_version: condition.state_version + 1,
        paused: command.paused,
        reason: command.reason.clone(),
    };
    Decision::change(EventData::ConditionPauseChanged(event), command.caller.principal.clone())
}
