//! Deployments, each folded once by its number (ADR-057). What they change is kept (ADR-170).

use std::sync::Arc;

use serde::Serialize;
use servo_core::AssetKey;

use super::{Applied, At, Ignored, conditions};
use crate::event::AssetsDeployed;
use crate::principal::Principal;
use crate::rows::{DefinitionChange, DefinitionKind, DefinitionVersionRow, Json, Name};
use crate::state::State;

pub(super) fn deployed(state: &mut State, at: At, by: &Principal, payload: &AssetsDeployed) -> Applied {
    if payload.number <= state.definitions.number() {
        return Applied::No(Ignored::Duplicate);
    }
    state.changes.deployment = true;
    state.changes.ended_deployments.extend(state.definitions.deployment_row());
    for asset in &payload.upsert {
        let was_there = state.definitions.get(asset.key()).is_some();
        let change = if was_there { DefinitionChange::Changed } else { DefinitionChange::Added };
        let (name, definition) = (asset.key().canonical(), asset.definition());
        let mut row = version(at, payload.number, DefinitionKind::Asset, name, change);
        row.code_version.clone_from(&definition.code_version);
        row.definition = Some(json(definition));
        state.changes.appended.definition_versions.push(row);
    }
    let removed = payload.removed.iter().filter(|key| state.definitions.get(key).is_some());
    let removed = removed.map(|key| {
        version(at, payload.number, DefinitionKind::Asset, key.canonical(), DefinitionChange::Removed)
    });
    state.changes.appended.definition_versions.extend(removed);
    let keeps = |state: &State, key: &AssetKey| state.expires_after(key);
    let keys = payload.upsert.iter().map(|asset| asset.key()).chain(&payload.removed);
    let kept: Vec<_> = keys.map(|key| (key.clone(), keeps(state, key))).collect();
    Arc::make_mut(&mut state.definitions).deploy(payload, at.time, at.id, by);
    for (key, before) in kept {
        if keeps(state, &key) == before {
            continue;
        }
        if before.is_some() {
            state.index.expiring.retain(|(_, asset, _)| *asset != key);
        }
        let expiring: Vec<_> = state.expiring(&key).collect();
        state.index.expiring.extend(expiring);
    }
    super::freshness::deployed(state, at, payload);
    let keys = payload.upsert.iter().map(|asset| asset.key()).chain(&payload.removed);
    state.changes.definitions.extend(keys.cloned());
    conditions::deployed(state, at, payload);
    Applied::Yes
}

/// Keeps the definition of a schedule or a sensor that code declares; none if it was removed.
pub(super) fn keep_version<T: Serialize>(
    state: &mut State,
    at: At,
    kind: DefinitionKind,
    name: &str,
    change: DefinitionChange,
    definition: Option<&T>,
) {
    let mut row = version(at, state.definitions.number(), kind, name, change);
    row.definition = definition.map(json);
    state.changes.appended.definition_versions.push(row);
}

fn version(
    at: At,
    number: u64,
    kind: DefinitionKind,
    name: &str,
    change: DefinitionChange,
) -> DefinitionVersionRow {
    DefinitionVersionRow {
        deployment_number: number,
        kind: Name(kind),
        name: name.to_owned(),
        change: Name(change),
        code_version: None,
        definition: None,
        deployed_at: at.time,
        row_version: at.id,
    }
}

fn json<T: Serialize>(definition: &T) -> Json<serde_json::Value> {
    Json(serde_json::to_value(definition).expect("plain data serializes to JSON"))
}
