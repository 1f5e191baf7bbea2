//! Freshness: an asset whose deadline has come, or that was made while it was late, is looked at, and what is found is
//! recorded. An asset that is fresh costs nothing until its deadline.

use servo_core::{AssetKey, Timestamp};

use crate::event::{EventData, FreshnessChanged, FreshnessObserved};
use crate::freshness::evaluate;
use crate::state::State;

/// The event for an asset that is due; none if it is not, or has no policy that can be followed.
pub fn reconcile(state: &State, asset: &AssetKey, now: Timestamp) -> Option<EventData> {
    let known = state.asset_freshness(asset)?;
    known.due_at.filter(|due| *due <= now)?;
    let (asset_key, deployment) = (asset.clone(), known.deployment);
    let Some(found) = evaluate(state, asset, now) else {
        // Definitions that this version cannot read have no deadlines.
        let (data_as_of, due_at) = (known.data_as_of, None);
        let event = FreshnessObserved { asset_key, deployment, data_as_of, due_at };
        return Some(EventData::FreshnessObserved(event));
    };
    let (data_as_of, due_at) = (found.data_as_of, found.due_at);
    if found.status == known.status {
        let event = FreshnessObserved { asset_key, deployment, data_as_of, due_at };
        return Some(EventData::FreshnessObserved(event));
    }
    Some(EventData::FreshnessChanged(FreshnessChanged {
        asset_key,
        deployment,
        old: known.status,
        new: found.status,
        since: found.since,
        data_as_of,
        lag_ms: data_as_of.map(|at| now.since(at)),
        due_at,
    }))
}
