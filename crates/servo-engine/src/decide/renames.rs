//! Requests to give an asset another name, by somebody or by a deployment whose code says so (ADR-181).

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::AssetKey;

use super::{Answer, Decision};
use crate::command::RenameAsset;
use crate::definitions::AssetDef;
use crate::effect::AssetMove;
use crate::event::{AssetMoved, AssetRenamed, EventData};
use crate::refusal::Refusal;
use crate::retention::Readers;
use crate::state::State;

pub(super) fn rename(state: &State, command: &RenameAsset) -> Decision {
    let RenameAsset { from, to, caller } = command;
    match named(state, from, to) {
        Ok(event) => Decision {
            answer: Answer::Change,
            events: vec![EventData::AssetRenamed(event)],
            principal: caller.principal.clone(),
        },
        Err(refusal) => Decision::refuse(refusal),
    }
}

fn named(state: &State, from: &AssetKey, to: &AssetKey) -> Result<AssetRenamed, Refusal> {
    if !state.has_history(from) {
        return Err(match state.definition(from) {
            None => Refusal::UnknownAsset { asset: from.clone() },
            Some(_) => cannot(from, to, "nothing of it was ever made, so there is nothing to rename"),
        });
    }
    if state.definition(from).is_some() {
        let problem = format!(
            "it is declared by the code that is deployed; rename it there, with renamed_from=\"{from}\", and deploy"
        );
        return Err(cannot(from, to, problem));
    }
    event(state, from, to)
}

/// The renames that a deployment of these assets comes with: those that say so, of whatever something was made.
pub(super) fn deployed(
    state: &State,
    assets: &BTreeMap<AssetKey, &Arc<AssetDef>>,
) -> Result<Vec<EventData>, Refusal> {
    let mut events = Vec::new();
    for (to, definition) in assets {
        let Some(text) = &definition.renamed_from else { continue };
        let from = AssetKey::parse(text).map_err(|error| Refusal::BadAsset {
            key: definition.key.clone(),
            problem: format!("renamed_from: {error}"),
        })?;
        // It may stay in the code for ever: once it is done, nothing of the old name is left.
        if state.has_history(&from) && !assets.contains_key(&from) {
            events.push(EventData::AssetRenamed(event(state, &from, to)?));
        }
    }
    Ok(events)
}

fn event(state: &State, from: &AssetKey, to: &AssetKey) -> Result<AssetRenamed, Refusal> {
    if from == to {
        return Err(cannot(from, to, "that is its name already"));
    }
    if state.has_history(to) {
        let problem = format!("something was made of {to} already; wipe that first, or choose another name");
        return Err(cannot(from, to, problem));
    }
    if state.renames.is_moving(from) || state.renames.is_moving(to) {
        return Err(cannot(from, to, "its data is on its way from an earlier name; ask again in a moment"));
    }
    for run in state.runs().filter(|run| !run.state.is_terminal()) {
        let open = run.tasks.iter().filter(|task| !task.state.is_terminal());
        let mut made = open.flat_map(|task| task.assets());
        if let Some(asset) = made.find(|asset| asset == from || asset == to) {
            let problem = format!(
                "run {} makes {asset}; wait for it, or stop it with `servo run cancel {}`",
                run.id, run.id
            );
            return Err(cannot(from, to, problem));
        }
    }
    if let Some(run) = Readers::of(state).of_asset(from) {
        return Err(cannot(from, to, format!("run {run} reads it; wait for it, or stop it")));
    }
    if state.approved().any(|row| row.asset_key == *from) {
        return Err(cannot(
            from,
            to,
            "something of it was approved and is being released; ask again in a moment",
        ));
    }
    Ok(AssetRenamed { asset_key: from.clone(), renamed_to: to.clone(), after: state.head().last_event })
}

/// The data of a renamed asset is where it belongs.
pub(super) fn moved(state: &State, moved: &AssetMove) -> Decision {
    let known = state.renames.get(&moved.from, moved.renamed_by);
    if known.is_none_or(|row| row.moved_at.is_some()) {
        return Decision::unchanged();
    }
    let event = AssetMoved { asset_key: moved.from.clone(), renamed_by: moved.renamed_by };
    Decision {
        answer: Answer::Change,
        events: vec![EventData::AssetMoved(event)],
        principal: crate::principal::Principal::system(),
    }
}

fn cannot(from: &AssetKey, to: &AssetKey, problem: impl Into<String>) -> Refusal {
    Refusal::CannotRename { from: from.clone(), to: to.clone(), problem: problem.into() }
}
