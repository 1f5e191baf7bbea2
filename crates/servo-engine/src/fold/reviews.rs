//! Reviews: what a check had blocked counts after all, or is thrown away (ADR-062). What does not wait was reviewed before.

use servo_core::{AssetKey, AttemptId, MaterializationId};

use super::materializations::{Made, promote};
use super::{Applied, At, Ignored, outputs};
use crate::event::{MaterializationApproved, MaterializationRejected};
use crate::lifecycle::AttemptOutcome;
use crate::rows::QuarantineRow;
use crate::state::{LastAttempt, State};

pub(super) fn approved(state: &mut State, at: At, payload: &MaterializationApproved) -> Applied {
    let Some(waiting) = take(state, &payload.asset_key, payload.materialization_id) else {
        return Applied::No(Ignored::Duplicate);
    };
    let QuarantineRow {
        asset_key,
        partition_key,
        run_id,
        task_key,
        attempt,
        output,
        provenance,
        inputs_as_of,
        ..
    } = waiting;
    let made = Made {
        run_id,
        task_key,
        attempt,
        attempt_id: AttemptId::from_u128(payload.materialization_id.to_u128()),
        materialization_id: payload.materialization_id,
        provenance: provenance.0,
        inputs_as_of,
    };
    let latest = promote(state, at, &made, 0, &output.0);
    let last = LastAttempt { outcome: AttemptOutcome::Succeeded, run_id, at: at.time, event_id: at.id };
    if state.statuses.record(&asset_key, partition_key.as_ref(), Some(&latest), last) {
        state.changes.statuses.insert((asset_key, partition_key));
    }
    Applied::Yes
}

pub(super) fn rejected(state: &mut State, payload: &MaterializationRejected) -> Applied {
    let Some(waiting) = take(state, &payload.asset_key, payload.materialization_id) else {
        return Applied::No(Ignored::Duplicate);
    };
    outputs::throw_away(state, waiting);
    Applied::Yes
}

fn take(state: &mut State, asset: &AssetKey, id: MaterializationId) -> Option<QuarantineRow> {
    let found = state.quarantine.take(asset, id)?;
    state.changes.quarantine.insert((asset.clone(), id));
    Some(found)
}
