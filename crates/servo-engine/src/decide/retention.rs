//! Applying retention: the rules are looked at once more with the state as it is now, and what is needed stays.

use std::collections::BTreeSet;

use servo_core::Timestamp;

use super::{Answer, Decision};
use crate::command::ApplyRetention;
use crate::event::{EventData, ExpiredData, MaterializationRejected, RetentionApplied};
use crate::retention::{expired_quarantine, is_needed, logs_before};
use crate::state::State;

pub(super) fn apply(state: &State, command: &ApplyRetention, now: Timestamp) -> Decision {
    let rejected = expired_quarantine(state, now).map(|row| {
        EventData::MaterializationRejected(MaterializationRejected {
            asset_key: row.asset_key.clone(),
            materialization_id: row.materialization_id,
            reason: "it has waited for review longer than keep_quarantined".to_owned(),
        })
    });
    let mut events: Vec<EventData> = rejected.collect();
    let in_use = crate::retention::InUse::of(state);
    // The tables that were surveyed may not have what went since.
    let gone: BTreeSet<_> =
        state.changes.appended.removals.iter().map(|row| (&row.asset_key, row.materialization_id)).collect();
    let goes = |data: &&ExpiredData| {
        !is_needed(state, &in_use, data) && !gone.contains(&(&data.asset_key, data.materialization_id))
    };
    let superseded: Vec<_> = command.superseded.iter().filter(goes).cloned().collect();
    let logs_before = logs_before(state, now).filter(|_| command.logs);
    if !superseded.is_empty() || logs_before.is_some() {
        events.push(EventData::RetentionApplied(RetentionApplied { superseded, logs_before }));
    }
    if events.is_empty() {
        return Decision::unchanged();
    }
    Decision { events, principal: command.caller.principal.clone(), answer: Answer::Change }
}
