//! Reviews: what a check had blocked is approved or rejected, once (ADR-062).

use super::Decision;
use crate::command::{Review, Verdict};
use crate::effect::Release;
use crate::event::{EventData, MaterializationApproved, MaterializationRejected, MaterializationReleased};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::state::State;

pub(super) fn review(state: &State, command: &Review) -> Decision {
    let Review { asset, materialization_id, verdict, caller, reason } = command.clone();
    if state.quarantine.waiting(&asset, materialization_id).is_none() {
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

/// Data that was approved is where readers look for it: from now on it counts.
pub(super) fn released(state: &State, release: &Release) -> Decision {
    let (asset, id) = (&release.asset, release.materialization_id);
    if state.quarantine.get(asset, id).is_none_or(|row| row.approved_event_id.is_none()) {
        return Decision::unchanged();
    }
    let event = EventData::MaterializationReleased(MaterializationReleased {
        asset_key: asset.clone(),
        materialization_id: id,
    });
    Decision::change(event, Principal::system())
}
