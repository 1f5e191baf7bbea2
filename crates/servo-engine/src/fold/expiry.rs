//! Retention removes data and logs: what went is noted, and the removal follows as an effect (ADR-106).

use super::{Applied, At, Ignored, retention};
use crate::effect::{Effect, Expired};
use crate::event::RetentionApplied;
use crate::rows::RemovalRow;
use crate::state::{Materialized, State};

pub(super) fn applied(state: &mut State, at: At, payload: &RetentionApplied, key: &str) -> Applied {
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    for data in &payload.superseded {
        let latest = state.latest(&data.asset_key, data.partition_key.as_ref()).map(Materialized::id);
        if latest == Some(data.materialization_id) {
            // It counts, whatever somebody has written.
            continue;
        }
        state.changes.appended.removals.push(RemovalRow {
            materialization_id: data.materialization_id,
            asset_key: data.asset_key.clone(),
            partition_key: data.partition_key.clone(),
            byte_size: data.byte_size,
            removed_at: at.time,
            row_version: at.id,
        });
        state.changes.effect(Effect::Expire(Expired {
            asset: data.asset_key.clone(),
            partition: data.partition_key.clone(),
            materialization_id: data.materialization_id,
            was_latest: false,
        }));
    }
    if let Some(before) = payload.logs_before {
        state.changes.effect(Effect::ExpireLogs(before));
    }
    Applied::Yes
}
