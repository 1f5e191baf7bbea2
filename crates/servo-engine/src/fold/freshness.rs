//! Freshness: assets with a policy are looked at when they are deployed, when a deadline comes, when partitions are
//! wiped or marked, and, unless they are fresh, when something of them is made. What is fresh stays so until its
//! deadline, whatever is made meanwhile.

use servo_core::AssetKey;

use super::{Applied, At, Ignored, incidents};
use crate::event::{AssetsDeployed, FreshnessChanged, FreshnessObserved};
use crate::lifecycle::FreshnessStatus;
use crate::rows::FreshnessHistoryRow;
use crate::state::{AssetFreshness, State};

/// Definitions were deployed: policies that are new or changed are looked at, and those that are gone are forgotten.
pub(super) fn deployed(state: &mut State, at: At, payload: &AssetsDeployed) {
    for asset in &payload.upsert {
        let known = state.freshness.get(asset.key());
        let Some(policy) = &asset.definition().freshness else {
            if known.is_some() {
                state.change_freshness(asset.key(), None);
            }
            continue;
        };
        if known.is_some_and(|known| known.policy == *policy) {
            continue;
        }
        let freshness = AssetFreshness {
            status: known.map_or(FreshnessStatus::Unknown, |known| known.status),
            since: known.map_or(at.time, |known| known.since),
            data_as_of: known.and_then(|known| known.data_as_of),
            due_at: Some(at.time),
            policy: policy.clone(),
            deployment: payload.number,
            version: at.id,
        };
        state.change_freshness(asset.key(), Some(freshness));
    }
    for key in
        payload.removed.iter().filter(|key| state.freshness.get(key).is_some()).cloned().collect::<Vec<_>>()
    {
        state.change_freshness(&key, None);
    }
}

/// Something of an asset was made.
pub(super) fn materialized(state: &mut State, at: At, asset: &AssetKey) {
    if state.freshness.get(asset).is_some_and(|known| known.status != FreshnessStatus::Pass) {
        replaced(state, at, asset);
    }
}

/// Checks freshness again after a wipe, mark or undo: the data that counts may be older than it was.
pub(super) fn replaced(state: &mut State, at: At, asset: &AssetKey) {
    let Some(known) = state.freshness.get(asset) else { return };
    let freshness = AssetFreshness { due_at: Some(at.time), version: at.id, ..known.clone() };
    state.change_freshness(asset, Some(freshness));
}

pub(super) fn changed(state: &mut State, at: At, payload: &FreshnessChanged) -> Applied {
    let Some(known) = state.freshness.get(&payload.asset_key) else {
        return Applied::No(Ignored::UnknownAsset);
    };
    if known.deployment != payload.deployment || known.status != payload.old {
        return Applied::No(Ignored::NotInThatState);
    }
    let freshness = AssetFreshness {
        status: payload.new,
        since: payload.since,
        data_as_of: payload.data_as_of,
        due_at: payload.due_at,
        version: at.id,
        ..known.clone()
    };
    state.change_freshness(&payload.asset_key, Some(freshness));
    state.changes.appended.freshness_history.push(FreshnessHistoryRow {
        asset_key: payload.asset_key.clone(),
        old_status: payload.old,
        status: payload.new,
        since: payload.since,
        data_as_of: payload.data_as_of,
        lag_ms: payload.lag_ms,
        deployment_number: payload.deployment,
        row_version: at.id,
    });
    incidents::freshness_changed(state, at, payload);
    Applied::Yes
}

pub(super) fn observed(state: &mut State, at: At, payload: &FreshnessObserved) -> Applied {
    let Some(known) = state.freshness.get(&payload.asset_key) else {
        return Applied::No(Ignored::UnknownAsset);
    };
    if known.deployment != payload.deployment {
        return Applied::No(Ignored::NotInThatState);
    }
    if (known.data_as_of, known.due_at) == (payload.data_as_of, payload.due_at) {
        return Applied::No(Ignored::Duplicate);
    }
    let freshness = AssetFreshness {
        data_as_of: payload.data_as_of,
        due_at: payload.due_at,
        version: at.id,
        ..known.clone()
    };
    state.change_freshness(&payload.asset_key, Some(freshness));
    Applied::Yes
}
