//! Deployments, each folded once by its number (ADR-057).

use std::sync::Arc;

use super::{Applied, At, Ignored, conditions};
use crate::event::AssetsDeployed;
use crate::principal::Principal;
use crate::state::State;

pub(super) fn deployed(state: &mut State, at: At, by: &Principal, payload: &AssetsDeployed) -> Applied {
    if payload.number <= state.definitions.number() {
        return Applied::No(Ignored::Duplicate);
    }
    state.changes.deployment = true;
    state.changes.ended_deployments.extend(state.definitions.deployment_row());
    Arc::make_mut(&mut state.definitions).deploy(payload, at.time, at.id, by);
    let keys = payload.upsert.iter().map(|asset| asset.key()).chain(&payload.removed);
    state.changes.definitions.extend(keys.cloned());
    conditions::deployed(state, at, payload);
    Applied::Yes
}
