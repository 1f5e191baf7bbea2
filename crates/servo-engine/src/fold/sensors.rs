//! Sensors: each change of one is folded once by its version, each message once by its id, each call and each evaluation
//! once by its place in the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use servo_core::planted::{self, Mistake};
use servo_core::{AssetKey, MaterializationId, PartitionKey, RunId, SensorId, Timestamp};

use super::named::{self, Folded};
use super::{Applied, At, Ignored, retention};
use crate::event::{
    RunSource, SensorCursorReset, SensorDefined, SensorEvaluated, SensorEvaluationRequested,
    SensorMessageReceived, SensorPaused, SensorRemoved, SensorResumed,
};
use crate::lifecycle::{SensorKind, SensorStatus};
use crate::rows::{DefinitionKind, Json, SensorEvalRow, SensorMessageRow};
use crate::state::{Defined, MAX_WAITING, Messages, PendingEvaluation, Sensor, State};

/// Evaluations of all sensors that are kept in memory.
const RECENT_EVALS: usize = 10_000;

/// Partitions of which a sensor remembers what it has seen.
const MAX_SEEN: usize = 10_000;

impl Folded for Sensor {
    const KIND: DefinitionKind = DefinitionKind::Sensor;
    const UNKNOWN: Ignored = Ignored::UnknownSensor;

    fn add(state: &mut State, new: Self) {
        state.add_sensor(new);
    }

    fn change(state: &mut State, id: SensorId, at: At, change: impl FnOnce(&mut Self)) {
        state.change_sensor(id, at, change);
    }
}

pub(super) fn defined(state: &mut State, at: At, payload: &SensorDefined) -> Applied {
    let definition = &payload.definition;
    let new = Defined::new(payload.sensor_id, payload.origin, definition, payload.state_version, at);
    let polls = definition.kind() == SensorKind::Poll;
    let create = |defined| Sensor {
        defined,
        cursor: None,
        last_evaluation_at: None,
        last_eval_id: None,
        last_run_id: None,
        next_evaluation_at: polls.then_some(at.time),
        evaluating: None,
        seen: Arc::default(),
        messages: Messages::default(),
        messages_dropped: 0,
        changed_at: at.time,
    };
    named::defined(state, at, new, create, |sensor, before| {
        if before.definition.on != definition.on || before.definition.all_of != definition.all_of {
            sensor.seen = Arc::default();
        }
        sensor.next_evaluation_at = polls.then(|| soonest(sensor, at.time));
    })
}

pub(super) fn paused(state: &mut State, at: At, payload: &SensorPaused) -> Applied {
    let version = payload.state_version;
    named::changed(state, at, payload.sensor_id, version, |sensor: &mut Sensor| sensor.paused = true)
}

pub(super) fn resumed(state: &mut State, at: At, payload: &SensorResumed) -> Applied {
    let resumed =
        named::changed(state, at, payload.sensor_id, payload.state_version, |sensor: &mut Sensor| {
            sensor.paused = false;
            begin_anew(sensor, at.time);
        });
    if resumed == Applied::Yes {
        retry_messages(state, at, payload.sensor_id);
    }
    resumed
}

pub(super) fn removed(state: &mut State, at: At, payload: &SensorRemoved) -> Applied {
    let id = payload.sensor_id;
    let removed = named::removed(state, at, id, payload.state_version, |sensor: &mut Sensor| {
        sensor.evaluating = None;
    });
    if let (Applied::Yes, Some(sensor)) = (removed, state.sensors.get(id)) {
        // Nobody will ever ask for them again.
        let waiting = sensor.messages.keys();
        waiting.into_iter().for_each(|key| remove_message(state, at, id, &key.1));
    }
    removed
}

pub(super) fn reset(state: &mut State, at: At, payload: &SensorCursorReset) -> Applied {
    let reset = named::changed(state, at, payload.sensor_id, payload.state_version, |sensor: &mut Sensor| {
        sensor.cursor.clone_from(&payload.cursor);
        sensor.seen = Arc::default();
        begin_anew(sensor, at.time);
    });
    if reset == Applied::Yes {
        retry_messages(state, at, payload.sensor_id);
    }
    reset
}

pub(super) fn message(state: &mut State, at: At, payload: &SensorMessageReceived, key: &str) -> Applied {
    if state.sensors.get(payload.sensor_id).is_none() {
        return Applied::No(Ignored::UnknownSensor);
    }
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    add_message(state, at, payload.sensor_id, &payload.message_id, &payload.message);
    Applied::Yes
}

pub(super) fn evaluation_requested(
    state: &mut State,
    at: At,
    payload: &SensorEvaluationRequested,
) -> Applied {
    let Some(sensor) = state.sensors.get(payload.sensor_id) else {
        return Applied::No(Ignored::UnknownSensor);
    };
    if at.id <= sensor.version {
        return Applied::No(Ignored::Duplicate);
    }
    if sensor.evaluating.is_some() {
        return Applied::No(Ignored::NotInThatState);
    }
    state.change_sensor(payload.sensor_id, at, |sensor| {
        sensor.evaluating = Some(PendingEvaluation {
            evaluation_id: payload.evaluation_id,
            trigger: payload.trigger.clone(),
            attempt: payload.attempt,
            expected_state_version: payload.expected_state_version,
            requested_at: at.time,
            deadline: payload.deadline,
        });
    });
    Applied::Yes
}

pub(super) fn evaluated(state: &mut State, at: At, payload: &SensorEvaluated, key: &str) -> Applied {
    let id = payload.sensor_id;
    let Some(sensor) = state.sensors.get(id) else { return Applied::No(Ignored::UnknownSensor) };
    if at.id <= sensor.version {
        return Applied::No(Ignored::Duplicate);
    }
    let pending = sensor.evaluating.as_ref().map(|pending| pending.evaluation_id);
    let is_answer = payload.evaluation_id.is_some() && payload.evaluation_id == pending;
    let waits =
        |message: &Arc<str>| sensor.messages.find(message).is_some() && payload.evaluation_id.is_none();
    let is_of_message = !payload.manual && payload.trigger.message_id().is_some_and(waits);
    if !is_answer && !is_of_message && !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    match payload.status {
        SensorStatus::Stale => state.change_sensor(id, at, |sensor| {
            if is_answer {
                sensor.evaluating = None;
                begin_anew(sensor, at.time);
            }
        }),
        SensorStatus::Triggered | SensorStatus::NoNewData => succeeded(state, at, payload, is_answer),
        SensorStatus::Failed => failed(state, at, payload, is_answer),
    }
    add_row(state, at, payload);
    Applied::Yes
}

fn succeeded(state: &mut State, at: At, payload: &SensorEvaluated, is_answer: bool) {
    if let Some(message) = payload.trigger.message_id().filter(|_| !payload.manual) {
        remove_message(state, at, payload.sensor_id, message);
    }
    state.change_sensor(payload.sensor_id, at, |sensor| {
        if is_answer {
            sensor.evaluating = None;
        }
        if let Some(cursor) = payload.cursor_after.as_ref().filter(|new| sensor.cursor.as_ref() != Some(*new))
        {
            sensor.cursor = Some(cursor.clone());
            sensor.state_version += 1;
        }
        (sensor.failures, sensor.last_error) = (0, None);
        if !payload.manual && sensor.definition.kind() == SensorKind::Poll {
            sensor.next_evaluation_at = Some(at.time.saturating_add(sensor.definition.interval()));
        }
        noted(sensor, at, payload);
    });
}

fn failed(state: &mut State, at: At, payload: &SensorEvaluated, is_answer: bool) {
    if let Some(message) = payload.trigger.message_id().filter(|_| !payload.manual) {
        match payload.retry_at {
            Some(retry_at) if !planted::has(Mistake::MessageForgotten) => {
                step_aside(state, at, payload, message, retry_at);
            }
            Some(_) | None => remove_message(state, at, payload.sensor_id, message),
        }
    }
    state.change_sensor(payload.sensor_id, at, |sensor| {
        if is_answer {
            sensor.evaluating = None;
        }
        noted(sensor, at, payload);
        if payload.manual {
            return;
        }
        sensor.failures = sensor.failures.saturating_add(1);
        sensor.last_error.clone_from(&payload.reason);
        if sensor.definition.kind() == SensorKind::Poll {
            sensor.next_evaluation_at = payload.retry_at;
        }
    });
}

fn noted(sensor: &mut Sensor, at: At, payload: &SensorEvaluated) {
    sensor.last_evaluation_at = Some(at.time);
    sensor.last_eval_id = Some(payload.eval_id.clone());
    if let Some(run) = payload.run_requests.last() {
        sensor.last_run_id = Some(run.run_id);
    }
}

/// An asset was materialized: the sensors that watch it are told.
pub(super) fn materialized(
    state: &mut State,
    at: At,
    asset: &AssetKey,
    partition: Option<&PartitionKey>,
    materialization: MaterializationId,
    run: RunId,
) {
    for id in state.sensors.watching(asset) {
        let Some(sensor) = state.sensors.get(id) else { continue };
        let text = partition.map(ToString::to_string);
        let assets = if sensor.definition.all_of {
            let Some(assets) = all_seen(state, at, id, asset, text.as_deref()) else { continue };
            assets
        } else {
            BTreeSet::from([asset.to_string()])
        };
        let message_id: Arc<str> = format!("{materialization}:{asset}").into();
        let message = json!({
            "id": &*message_id,
            "kind": "asset",
            "asset": asset.to_string(),
            "assets": assets,
            "partition": text,
            "materialization_id": materialization.to_string(),
            "run_id": run.to_string(),
            "at": at.time.to_string(),
        });
        add_message(state, at, id, &message_id, &message.to_string().into());
    }
}

/// Notes that a sensor has seen an asset; all of them if none is missing any more, which begins anew then.
fn all_seen(
    state: &mut State,
    at: At,
    id: SensorId,
    asset: &AssetKey,
    partition: Option<&str>,
) -> Option<BTreeSet<String>> {
    let sensor = state.sensors.get(id)?;
    let wanted: BTreeSet<String> = sensor
        .definition
        .on
        .iter()
        .filter_map(|text| Some(AssetKey::parse(text).ok()?.to_string()))
        .collect();
    let mut seen = BTreeMap::clone(&sensor.seen);
    let key = partition.unwrap_or_default();
    let of_partition = seen.entry(key.to_owned()).or_default();
    of_partition.insert(asset.to_string());
    let is_complete = wanted.is_subset(of_partition);
    if is_complete {
        seen.remove(key);
    }
    while seen.len() > MAX_SEEN {
        seen.pop_first();
    }
    state.change_sensor(id, at, |sensor| sensor.seen = Arc::new(seen));
    is_complete.then_some(wanted)
}

/// A run has ended: the sensors that wait for that are told, unless one of them has requested it.
pub(super) fn run_ended(state: &mut State, id: RunId) {
    let watchers = state.sensors.of_runs();
    if watchers.is_empty() {
        return;
    }
    let Some(run) = state.run(id) else { return };
    let at = At { id: run.version, time: run.finished_at.unwrap_or(state.head.last_event_at) };
    let requested_by = match &run.source {
        RunSource::Sensor { id, .. } => id.parse::<SensorId>().ok(),
        RunSource::Manual
        | RunSource::Api
        | RunSource::Retry { .. }
        | RunSource::Schedule { .. }
        | RunSource::Backfill { .. }
        | RunSource::Condition { .. }
        | RunSource::Unknown(_) => None,
    };
    let (ended_as, message_id): (_, Arc<str>) = (run.state, format!("{id}:{}", run.state).into());
    let message = json!({
        "id": &*message_id,
        "kind": "run",
        "run_id": id.to_string(),
        "run_key": &*run.key,
        "status": ended_as.name(),
        "selection": run.selection,
        "source": run.source.kind(),
        "tags": run.labels,
        "at": at.time.to_string(),
    });
    let message: Arc<str> = message.to_string().into();
    for watcher in watchers {
        let waits = |sensor: &Arc<Sensor>| sensor.definition.run_status.contains(&ended_as);
        if requested_by != Some(watcher) && state.sensors.get(watcher).is_some_and(waits) {
            add_message(state, at, watcher, &message_id, &message);
        }
    }
}

fn add_message(state: &mut State, at: At, id: SensorId, message_id: &Arc<str>, message: &Arc<str>) {
    let is_full = state.sensors.get(id).is_none_or(|sensor| sensor.messages.len() >= MAX_WAITING);
    state.change_sensor(id, at, |sensor| {
        if is_full {
            sensor.messages_dropped += 1;
            return;
        }
        let row = SensorMessageRow {
            sensor_id: id,
            message_id: message_id.to_string(),
            message: message.to_string(),
            received_at: at.time,
            received_event_id: at.id,
            attempts: 0,
            retry_at: None,
            row_version: at.id,
        };
        sensor.messages.put(row);
    });
    if !is_full {
        state.changes.messages.insert((id, at.id, message_id.clone()));
    }
}

fn remove_message(state: &mut State, at: At, id: SensorId, message_id: &Arc<str>) {
    let Some(sensor) = state.sensors.get(id) else { return };
    let Some(key) = sensor.messages.key(message_id) else { return };
    state.change_sensor(id, at, |sensor| {
        sensor.messages.take(&key);
    });
    state.changes.messages.insert((id, key.0, key.1));
}

/// A message has failed: others are evaluated until it is tried again.
fn step_aside(state: &mut State, at: At, payload: &SensorEvaluated, message_id: &str, retry_at: Timestamp) {
    let id = payload.sensor_id;
    let Some(row) = state.sensors.get(id).and_then(|sensor| sensor.messages.find(message_id)) else { return };
    let mut row = SensorMessageRow::clone(row);
    (row.attempts, row.retry_at, row.row_version) = (payload.attempt, Some(retry_at), at.id);
    put_message(state, at, id, row);
}

/// Changes a message.
pub(super) fn put_message(state: &mut State, at: At, id: SensorId, row: SensorMessageRow) {
    let key = (id, row.received_event_id, row.message_id.as_str().into());
    state.change_sensor(id, at, |sensor| sensor.messages.put(row));
    state.changes.messages.insert(key);
}

/// Messages that have failed are tried as soon as their turn comes. Tries are counted on: each evaluation has a name of its
/// own.
fn retry_messages(state: &mut State, at: At, id: SensorId) {
    let Some(sensor) = state.sensors.get(id).cloned() else { return };
    for key in sensor.messages.failed() {
        let Some(row) = sensor.messages.get(&key) else { continue };
        put_message(
            state,
            at,
            id,
            SensorMessageRow { retry_at: None, row_version: at.id, ..(**row).clone() },
        );
    }
}

/// It is evaluated as soon as its interval allows, whatever failed before.
fn begin_anew(sensor: &mut Sensor, now: Timestamp) {
    if sensor.definition.kind() == SensorKind::Poll {
        sensor.next_evaluation_at = Some(soonest(sensor, now));
    }
}

/// The interval after the last evaluation; now if there was none, or a wrong clock brought it into the future.
fn soonest(sensor: &Sensor, now: Timestamp) -> Timestamp {
    let last = sensor.last_evaluation_at.filter(|last| *last <= now);
    last.map_or(now, |last| last.saturating_add(sensor.definition.interval()).max(now))
}

fn add_row(state: &mut State, at: At, payload: &SensorEvaluated) {
    let Some(sensor) = state.sensors.get(payload.sensor_id) else { return };
    let first = payload.run_requests.first();
    let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
    let row = SensorEvalRow {
        eval_id: payload.eval_id.to_string(),
        sensor_id: payload.sensor_id,
        sensor_name: sensor.name.to_string(),
        trigger_source: payload.trigger.kind().to_owned(),
        message_id: payload.trigger.message_id().map(ToString::to_string),
        evaluation_id: payload.evaluation_id,
        attempt: payload.attempt,
        manual: payload.manual,
        evaluated_at: at.time,
        definition_version: payload.definition_version,
        expected_state_version: payload.expected_state_version,
        cursor_before: text(&payload.cursor_before),
        cursor_after: text(&payload.cursor_after),
        status: payload.status,
        reason: payload.reason.clone(),
        run_key: first.map(|run| run.run_key.to_string()),
        run_id: first.map(|run| run.run_id),
        runs: Json(payload.run_requests.clone()),
        retry_at: payload.retry_at,
        output: payload.output.clone(),
        row_version: at.id,
    };
    state.changes.evals.push(at.id);
    if let Some(oldest) = state.sensors.evals.add(at.id, row, RECENT_EVALS) {
        state.changes.ended_evals.push(oldest);
    }
}
