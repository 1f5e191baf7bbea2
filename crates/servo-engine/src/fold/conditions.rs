//! Automation conditions come with deployments. What an evaluation requests is handled from then on; so is what an
//! attempt reads before it fails, and a partition that is made needs no request any more.

use std::sync::Arc;

use servo_core::planted::{self, Mistake};
use servo_core::{AssetKey, EventId, PartitionKey};

use super::{Applied, At, Ignored, retention};
use crate::event::{AssetsDeployed, ConditionPauseChanged, ConditionRequested, ConditionsEvaluated};
use crate::lifecycle::TickStatus;
use crate::rows::{ConditionEvaluationRow, Json};
use crate::state::{ConditionRequest, ConditionState, State};

/// Evaluations in memory, of all assets together.
const RECENT_EVALUATIONS: usize = 1_000;
/// Partitions that the row of an evaluation names.
const NAMED_PARTITIONS: usize = 100;

/// Conditions of a deployment: a new one, and one that has changed, is in force from now on.
pub(super) fn deployed(state: &mut State, at: At, payload: &AssetsDeployed) {
    let had_none = state.conditions.is_empty();
    for asset in &payload.upsert {
        let (key, automation) = (asset.key(), &asset.definition().automation);
        let known = state.conditions.get(key).cloned();
        match (automation, known) {
            (Some(condition), Some(known)) if known.condition == *condition => {}
            (Some(condition), known) => {
                let (paused, state_version) =
                    known.map_or((false, 0), |known| (known.paused, known.state_version));
                state.conditions.insert(ConditionState {
                    asset: key.clone(),
                    condition: condition.clone(),
                    in_force: at.id,
                    deployed_at: at.time,
                    paused,
                    state_version: state_version + 1,
                    last_evaluation: None,
                    last_requested_at: None,
                    last_run_id: None,
                    failures: 0,
                    last_error: None,
                    version: at.id,
                });
                state.changes.condition_states.insert(key.clone());
                forget_counts(state, at, key);
            }
            (None, Some(_)) => remove(state, key),
            (None, None) => {}
        }
    }
    for key in &payload.removed {
        remove(state, key);
    }
    if had_none != state.conditions.is_empty() {
        state.follow_making();
    }
    if !state.conditions.is_empty() {
        let keys = payload.upsert.iter().map(|asset| asset.key()).chain(&payload.removed);
        state.changes.facts.assets.extend(keys.cloned());
    }
}

/// Limits of a new condition count its own requests. Those that were only kept to be counted go.
fn forget_counts(state: &mut State, at: At, asset: &AssetKey) {
    for partition in state.conditions.requested(asset) {
        let known = state.conditions.request(asset, partition.as_ref());
        let Some(known) = known.filter(|known| !known.recent.is_empty()).cloned() else { continue };
        if !known.is_open() {
            forget(state, asset, partition.as_ref());
            continue;
        }
        let request = ConditionRequest { recent: Vec::new(), version: known.version.max(at.id), ..known };
        state.put_condition_request(asset, partition.as_ref(), request);
    }
}

fn remove(state: &mut State, asset: &AssetKey) {
    if state.conditions.get(asset).is_none() {
        return;
    }
    for partition in state.conditions.remove(asset) {
        state.changes.condition_requests.insert((asset.clone(), partition));
    }
    state.changes.condition_states.insert(asset.clone());
}

pub(super) fn evaluated(state: &mut State, at: At, payload: &ConditionsEvaluated, key: &str) -> Applied {
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    for requested in &payload.requested {
        note(state, at, payload, requested);
        if requested.partitions.is_empty() {
            request(state, at, payload, &requested.asset, None);
        }
        for partition in &requested.partitions {
            request(state, at, payload, &requested.asset, Some(partition));
        }
    }
    Applied::Yes
}

fn request(
    state: &mut State,
    at: At,
    payload: &ConditionsEvaluated,
    asset: &AssetKey,
    partition: Option<&PartitionKey>,
) {
    let Some(condition) = state.conditions.get(asset) else { return };
    let remembered = condition.condition.remembered_requests();
    let known = state.conditions.request(asset, partition);
    let mut recent = known.map(|known| known.recent.clone()).unwrap_or_default();
    recent.push(at.time);
    recent.drain(..recent.len().saturating_sub(remembered));
    if planted::has(Mistake::ConditionFiresTwice) {
        return;
    }
    let handled = known.map_or(at.id, |known| known.handled.max(at.id));
    let run_id = payload.run.as_ref().map(|run| run.run_id);
    let request = ConditionRequest { handled, at: at.time, run_id, recent, version: at.id };
    state.put_condition_request(asset, partition, request);
}

/// The row of an evaluation, and what the state says of the last one.
fn note(state: &mut State, at: At, payload: &ConditionsEvaluated, requested: &ConditionRequested) {
    let (evaluation, asset) = (payload.evaluation_id.to_string(), &requested.asset);
    let status = if payload.problem.is_some() { TickStatus::Failed } else { TickStatus::Triggered };
    let row = ConditionEvaluationRow {
        evaluation_id: evaluation.clone(),
        asset_key: asset.clone(),
        evaluated_at: at.time,
        status,
        partitions: requested.partitions.len().max(1) as u64,
        partition_keys: Json(requested.partitions.iter().take(NAMED_PARTITIONS).cloned().collect()),
        run_id: payload.run.as_ref().map(|run| run.run_id),
        run_key: payload.run.as_ref().map(|run| run.run_key.to_string()),
        reason: payload.problem.clone(),
        trace: requested.trace.clone().map(Json),
        row_version: at.id,
    };
    state.changes.evaluations.push((at.id, asset.clone()));
    if let Some(oldest) = state.conditions.evaluations.add((at.id, asset.clone()), row, RECENT_EVALUATIONS) {
        state.changes.ended_evaluations.push(oldest);
    }
    if let Some(condition) = state.conditions.get_mut(asset) {
        condition.last_evaluation = Some(evaluation.into());
        condition.last_requested_at = Some(at.time);
        condition.last_run_id = payload.run.as_ref().map(|run| run.run_id).or(condition.last_run_id);
        condition.failures = if payload.problem.is_some() { condition.failures + 1 } else { 0 };
        condition.last_error.clone_from(&payload.problem);
        condition.version = condition.version.max(at.id);
        state.changes.condition_states.insert(asset.clone());
    }
}

pub(super) fn pause_changed(state: &mut State, at: At, payload: &ConditionPauseChanged) -> Applied {
    let Some(condition) = state.conditions.get_mut(&payload.asset) else {
        return Applied::No(Ignored::UnknownCondition);
    };
    if payload.state_version <= condition.state_version {
        return Applied::No(Ignored::Duplicate);
    }
    condition.paused = payload.paused;
    condition.state_version = payload.state_version;
    condition.version = condition.version.max(at.id);
    state.changes.condition_states.insert(payload.asset.clone());
    state.changes.facts.assets.insert(payload.asset.clone());
    Applied::Yes
}

fn forget(state: &mut State, asset: &AssetKey, partition: Option<&PartitionKey>) {
    if state.conditions.forget_request(asset, partition) {
        state.changes.condition_requests.insert((asset.clone(), partition.cloned()));
    }
}

/// A partition was made, or an attempt at it ended: a fact for conditions.
pub(super) fn recorded(
    state: &mut State,
    asset: &AssetKey,
    partition: Option<&PartitionKey>,
    read: Option<EventId>,
    version: EventId,
) {
    if state.conditions.is_empty() {
        return;
    }
    state.changes.facts.partitions.insert((asset.clone(), partition.cloned()));
    // What was made of data that is newer than the request needs it no longer; a limit counts it still.
    let known = state.conditions.request(asset, partition).cloned();
    let is_over =
        |known: &ConditionRequest| known.is_open() && read.is_some_and(|read| read >= known.handled);
    let Some(known) = known.filter(is_over) else { return };
    if known.recent.is_empty() {
        forget(state, asset, partition);
    } else {
        let version = known.version.max(version);
        let request = ConditionRequest { handled: EventId::NIL, version, ..known };
        state.put_condition_request(asset, partition, request);
    }
}

/// Keys of dynamic partitions came or went.
pub(super) fn partitions_changed(state: &mut State, name: &str, keys: impl Iterator<Item = String>) {
    if !state.conditions.is_empty() {
        state.changes.facts.dynamic.extend(keys.map(|key| (name.to_owned(), key)));
    }
}

/// A task ended for good: its partitions are not being made by it any more, and what its last attempt could read is
/// handled even if it failed, so that a failure is no news to the condition that asked for it.
pub(crate) fn task_over(
    state: &mut State,
    assets: Vec<AssetKey>,
    partition: Option<&Arc<str>>,
    requested: EventId,
    read: Option<EventId>,
    version: EventId,
) {
    let key = partition.map(|text| PartitionKey::parse(text).expect("the partition of a task is a key"));
    for asset in assets {
        state.conditions.end(&asset, partition.map(|text| &**text), requested);
        let known = state.conditions.request(&asset, key.as_ref());
        let is_news = |(known, read): &(&ConditionRequest, EventId)| known.is_open() && *read > known.handled;
        if let Some((known, read)) = known.zip(read).filter(is_news) {
            let request =
                ConditionRequest { handled: read, version: known.version.max(version), ..known.clone() };
            state.put_condition_request(&asset, key.as_ref(), request);
        }
        state.changes.facts.partitions.insert((asset, key.clone()));
    }
}
