//! Changes of settings, each folded once by its number. Deadlines follow at once, and so does what memory keeps.

use std::sync::Arc;

use super::{Applied, At, Ignored, retention};
use crate::event::SettingsChanged;
use crate::principal::Principal;
use crate::state::State;

pub(super) fn changed(state: &mut State, at: At, by: &Principal, payload: &SettingsChanged) -> Applied {
    if payload.number <= state.changed_settings.number() {
        return Applied::No(Ignored::Duplicate);
    }
    Arc::make_mut(&mut state.changed_settings).change(by, at.time, at.id, payload);
    state.settings = Arc::new(state.changed_settings.settings());
    state.changes.settings.extend(payload.changes.keys().cloned());
    state.rebuild_index();
    retention::evict_runs(state);
    retention::evict_requests(state);
    state.run_keys.evict(state.settings.recent_run_keys);
    Applied::Yes
}
