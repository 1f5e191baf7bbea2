//! Requests to deploy definitions: the difference to what is deployed goes into the log (ADR-057).

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{AssetKey, Timestamp};

use super::{Answer, Decision, named, renames};
use crate::command::Deploy;
use crate::definitions::{AssetDef, MAX_ASSETS};
use crate::derive::asset_id;
use crate::event::{AssetsDeployed, DeployedAsset, EventData};
use crate::refusal::Refusal;
use crate::state::{Deployment, NotificationRule, Schedule, Sensor, State};

pub(super) fn deploy(state: &State, command: &Deploy, now: Timestamp) -> Decision {
    let is_same = |deployed: &Deployment| {
        deployed.digest == command.digest && deployed.time_zones == command.time_zones
    };
    if state.deployment().is_some_and(is_same) {
        return Decision::unchanged();
    }
    match events(state, command, now) {
        Ok(events) => {
            Decision { events, principal: command.caller.principal.clone(), answer: Answer::Change }
        }
        Err(refusal) => Decision::refuse(refusal),
    }
}

/// Assets first: what schedules and sensors select is there when they are defined.
fn events(state: &State, command: &Deploy, now: Timestamp) -> Result<Vec<EventData>, Refusal> {
    let mut events = vec![EventData::AssetsDeployed(difference(state, command, now)?)];
    events.extend(renames::deployed(state, &by_key(&command.assets)?)?);
    events.extend(named::deploy::<Schedule>(state, &command.schedules, now)?);
    events.extend(named::deploy::<Sensor>(state, &command.sensors, now)?);
    events.extend(named::deploy::<NotificationRule>(state, &command.notifications, now)?);
    Ok(events)
}

fn difference(state: &State, command: &Deploy, now: Timestamp) -> Result<AssetsDeployed, Refusal> {
    let assets = by_key(&command.assets)?;
    let number = state.definitions.number() + 1;
    let mut upsert = Vec::new();
    for (key, definition) in &assets {
        if state.definition(key).is_some_and(|deployed| deployed == *definition) {
            continue;
        }
        // An asset that is renamed keeps its id.
        let before = definition.renamed_from.as_deref().and_then(|name| AssetKey::parse(name).ok());
        let id = before
            .filter(|before| !assets.contains_key(before))
            .and_then(|before| state.definitions.id(&before))
            .or_else(|| state.definitions.id(key))
            .unwrap_or_else(|| asset_id(state.tenant(), state.workspace(), key, number, now));
        upsert.push(DeployedAsset::new(id, (*definition).clone()).map_err(|error| bad(definition, error))?);
    }
    let deployed = state.definitions().map(|(key, ..)| key);
    let removed = deployed.filter(|key| !assets.contains_key(key)).cloned().collect();
    Ok(AssetsDeployed {
        number,
        digest: command.digest.clone(),
        time_zones: command.time_zones.clone(),
        project: command.project.clone(),
        upsert,
        removed,
    })
}

/// Definitions were checked before they came here; what the state relies on is checked again.
fn by_key(assets: &[Arc<AssetDef>]) -> Result<BTreeMap<AssetKey, &Arc<AssetDef>>, Refusal> {
    if assets.len() > MAX_ASSETS {
        return Err(Refusal::TooManyAssets { count: assets.len(), limit: MAX_ASSETS });
    }
    let mut by_key = BTreeMap::new();
    for definition in assets {
        let key = AssetKey::parse(&definition.key).map_err(|error| bad(definition, error))?;
        if by_key.insert(key, definition).is_some() {
            return Err(bad(definition, "it is declared twice"));
        }
    }
    Ok(by_key)
}

fn bad(definition: &AssetDef, problem: impl ToString) -> Refusal {
    Refusal::BadAsset { key: definition.key.clone(), problem: problem.to_string() }
}
