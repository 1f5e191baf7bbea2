//! A rename gives everything that is known of an asset to another name, at once; rows of history keep the name of their
//! time (ADR-181). Data follows, and until it has nothing that would read or make it is handed out.

use super::{Applied, At, Ignored, freshness, retention};
use crate::event::{AssetMoved, AssetRenamed};
use crate::principal::Principal;
use crate::rows::AssetRenameRow;
use crate::state::State;

pub(super) fn renamed(
    state: &mut State,
    at: At,
    by: &Principal,
    payload: &AssetRenamed,
    key: &str,
) -> Applied {
    let AssetRenamed { asset_key: from, renamed_to: to, after: _ } = payload;
    if state.has_history(to) {
        // Two histories cannot become one, whatever somebody has written.
        return Applied::No(Ignored::NotInThatState);
    }
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    // Rows of a name that was used before must be newer than what removed them.
    let is_reused = state.renames.has(to);
    state.index.expiring.retain(|(_, asset, _)| asset != from);
    let moved = state.statuses.rename(from, to, is_reused.then_some(at.id));
    for place in moved.statuses {
        state.changes.statuses.extend([(from.clone(), place.clone()), (to.clone(), place)]);
    }
    for place in moved.priors {
        state.changes.undo.extend([(from.clone(), place.clone()), (to.clone(), place)]);
    }
    let expiring: Vec<_> = state.expiring(to).collect();
    state.index.expiring.extend(expiring);
    if state.asset_states.rename(from, to, is_reused.then_some(at.id)) {
        state.changes.asset_states.extend([from.clone(), to.clone()]);
    }
    let waiting: Vec<_> = state.quarantine.rows().filter(|row| row.asset_key == *from).cloned().collect();
    for mut row in waiting {
        state.quarantine.take(from, row.materialization_id);
        state.changes.quarantine.insert((from.clone(), row.materialization_id));
        row.asset_key.clone_from(to);
        // What is approved later is recorded under the name of that time.
        row.output.0.asset.clone_from(to);
        row.row_version = at.id;
        state.changes.quarantine.insert((to.clone(), row.materialization_id));
        state.quarantine.insert(row);
    }
    let row = AssetRenameRow {
        asset_key: from.clone(),
        renamed_to: to.clone(),
        renamed_by: by.clone(),
        renamed_at: at.time,
        renamed_event_id: at.id,
        moved_at: None,
        row_version: at.id,
    };
    state.changes.renames.insert((from.clone(), at.id));
    state.renames.insert(row);
    if !state.conditions.is_empty() {
        state.changes.facts.assets.extend([from.clone(), to.clone()]);
    }
    freshness::replaced(state, at, to);
    Applied::Yes
}

pub(super) fn moved(state: &mut State, at: At, payload: &AssetMoved) -> Applied {
    let AssetMoved { asset_key, renamed_by } = payload;
    if !state.renames.moved(asset_key, *renamed_by, at.time, at.id) {
        return Applied::No(Ignored::Duplicate);
    }
    state.changes.renames.insert((asset_key.clone(), *renamed_by));
    Applied::Yes
}
