//! Expiry: partitions whose time has come are missing from then on. What has not expired costs nothing until it does.

use servo_core::{PartitionKey, Timestamp};

use crate::event::{EventData, KeyList, PartitionsExpired};
use crate::state::State;

/// Partitions that one event names.
const MAX_AT_ONCE: usize = 10_000;

/// The event for the partitions of the asset that is due first; none if nothing is.
pub fn reconcile(state: &State, now: Timestamp) -> Option<EventData> {
    let mut due = state.index.expiring.iter().take_while(|(at, ..)| *at <= now);
    let (_, asset, first) = due.next()?;
    let others = due.take(MAX_AT_ONCE - 1).filter(|(_, other, _)| other == asset).map(|(_, _, key)| key);
    let keys: Vec<PartitionKey> = [first].into_iter().chain(others).flatten().cloned().collect();
    let after = state.expires_after(asset)?;
    Some(EventData::PartitionsExpired(PartitionsExpired {
        asset_key: asset.clone(),
        after: state.head().last_event,
        made_by: now.saturating_sub(after),
        partitions: KeyList::new(keys),
    }))
}
