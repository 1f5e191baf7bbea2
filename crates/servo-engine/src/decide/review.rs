//! Reviews: what a check had blocked is approved or rejected, once (ADR-062).

use super::Decision;
use crate::command::{Review, Verdict};
use crate::event::{EventData, MaterializationApproved, MaterializationRejected};
use crate::refusal::Refusal;
use crate::state::State;

pub(super) fn review(state: &State, command: &Review) -> Decision {
    let Review { asset, materialization_id, verdict, caller, reason } = command.clone();
    if state.quarantine.get(&asset, materialization_id).is_none() {
        return Decision::refuse(Refusal::NotInQuarantine { asset, materialization_id });
    }
    let event = match verdict {
        Verdict::Approve => EventData::MaterializationApproved(MaterializationApproved {
            asset_key: asset,
            materialization_id,
            reason,
        }),
        Verdict::Reject => EventData::MaterializationRejected(MaterializationRejected {
            asset_key: asset,
            materialization_id,
            reason,
        }),
    };
    Decision::change(event, caller.principal)
}
