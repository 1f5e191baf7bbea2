//! Reviews: what a check had blocked counts after all, or is thrown away (ADR-062). What does not wait was reviewed
//! before.
//!
//! An approved output counts from its release on: until its data is where readers look for it, nothing names it
//! (ADR-075). It takes its place among other materializations by the time of the approval, however long the release
//! took.

use servo_core::{AssetKey, AttemptId, MaterializationId};

use super::materializations::{Made, materialize, record};
use super::{Applied, At, Ignored, outputs};
use crate::event::{MaterializationApproved, MaterializationRejected, MaterializationReleased};
use crate::lifecycle::AttemptOutcome;
use crate::rows::QuarantineRow;
use crate::state::{LastAttempt, Materialization, State};

pub(super) fn approved(state: &mut State, at: At, payload: &MaterializationApproved) -> Applied {
    let (asset, id) = (&payload.asset_key, payload.materialization_id);
    if !state.quarantine.approve(asset, id, at.id, at.time) {
        return Applied::No(Ignored::Duplicate);
    }
    state.changes.quarantine.insert((asset.clone(), id));
    Applied::Yes
}

pub(super) fn released(state: &mut State, at: At, payload: &MaterializationReleased) -> Applied {
    let Some(found) = state.quarantine.get(&payload.asset_key, payload.materialization_id) else {
        return Applied::No(Ignored::Duplicate);
    };
    let Some((id, time)) = found.approved_event_id.zip(found.approved_at) else {
        return Applied::No(Ignored::NotInThatState);
    };
    let Some(row) = take(state, &payload.asset_key, payload.materialization_id) else {
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
    } = row;
    let made = Made {
        run_id,
        task_key,
        attempt,
        attempt_id: AttemptId::from_u128(payload.materialization_id.to_u128()),
        materialization_id: payload.materialization_id,
        provenance: provenance.0,
        inputs_as_of,
    };
    // Whoever was dispatched between the approval and now has read the one before.
    let latest =
        Materialization { counts_from: at.id, ..materialize(state, At { id, time }, &made, 0, &output.0) };
    let last = LastAttempt { outcome: AttemptOutcome::Succeeded, run_id, at: at.time, event_id: at.id };
    record(state, asset_key, partition_key, Some(&latest), last);
    Applied::Yes
}

pub(super) fn rejected(state: &mut State, payload: &MaterializationRejected) -> Applied {
    if state.quarantine.waiting(&payload.asset_key, payload.materialization_id).is_none() {
        return Applied::No(Ignored::Duplicate);
    }
    if let Some(thrown_away) = take(state, &payload.asset_key, payload.materialization_id) {
        outputs::drop_quarantined(state, thrown_away);
    }
    Applied::Yes
}

fn take(state: &mut State, asset: &AssetKey, id: MaterializationId) -> Option<QuarantineRow> {
    let found = state.quarantine.take(asset, id)?;
    state.changes.quarantine.insert((asset.clone(), id));
    Some(found)
}
