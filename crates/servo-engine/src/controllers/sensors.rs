//! Sensors: one that is due is evaluated, one message at a time. If it has a function, a worker is asked to call it, and
//! what follows is decided when it has answered; otherwise its selection is requested in the same batch.
//!
//! A call that is not answered by its deadline has failed. A failed message steps aside, so that others are evaluated
//! meanwhile (ADR-167); it is tried again, later each time, and given up after a few tries. A poll is tried for ever. No
//! evaluation waits for another sensor's.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{EvaluationId, SensorId, Timestamp};

use crate::decide::{SensorOutcome, evaluate};
use crate::derive::evaluation_id;
use crate::evaluation::{DEFAULT_TIMEOUT, EvaluationResult, PATIENCE, RequestSpec};
use crate::event::{EventData, SensorEvaluationRequested, SensorTrigger};
use crate::lifecycle::SensorKind;
use crate::rows::SensorMessageRow;
use crate::state::{PendingEvaluation, Sensor, State};

/// The events of the next evaluation of a sensor that is due.
pub fn reconcile(state: &State, secret: &[u8], id: SensorId, now: Timestamp) -> Vec<EventData> {
    let Some(sensor) = state.sensors.get(id) else { return Vec::new() };
    if sensor.due_at().is_none_or(|due| due > now) {
        return Vec::new();
    }
    if let Some(pending) = &sensor.evaluating {
        return lost(state, secret, sensor, pending, now);
    }
    match sensor.definition.kind() {
        SensorKind::Poll => {
            let trigger = SensorTrigger::Poll { poll_epoch: now.as_millis().div_euclid(1_000) };
            vec![request(state, sensor, trigger, 1, now)]
        }
        SensorKind::Push | SensorKind::Asset | SensorKind::Run => {
            let Some(message) = sensor.messages.next(now) else { return Vec::new() };
            let (trigger, attempt) = (sensor.trigger_of(message), message.attempts + 1);
            match &sensor.definition.function {
                Some(_) => vec![request(state, sensor, trigger, attempt, now)],
                None => declared(state, secret, sensor, message, attempt, now),
            }
        }
    }
}

/// Asks a worker for a call.
fn request(
    state: &State,
    sensor: &Sensor,
    trigger: SensorTrigger,
    attempt: u32,
    now: Timestamp,
) -> EventData {
    let timeout = sensor.definition.timeout_ms.unwrap_or(DEFAULT_TIMEOUT);
    EventData::SensorEvaluationRequested(SensorEvaluationRequested {
        sensor_id: sensor.id,
        evaluation_id: call_id(state, sensor.id, now),
        trigger,
        attempt,
        expected_state_version: sensor.state_version,
        deadline: now.saturating_add(timeout).saturating_add(PATIENCE),
    })
}

/// Ids of calls differ even if they are made in one moment: the last event is another.
fn call_id(state: &State, sensor: SensorId, now: Timestamp) -> EvaluationId {
    evaluation_id(&format!("sensor:{sensor}:{}", state.head.last_event), now)
}

/// No worker has answered.
fn lost(
    state: &State,
    secret: &[u8],
    sensor: &Sensor,
    pending: &PendingEvaluation,
    now: Timestamp,
) -> Vec<EventData> {
    let waited = pending.deadline.since(pending.requested_at);
    let error = format!("no worker has evaluated it within {waited}; is one running that has the project?");
    evaluate(state, secret, sensor, SensorOutcome::answer(pending, Err(error), None), now)
}

/// A sensor without a function requests its selection; of assets, in the partition that was made.
fn declared(
    state: &State,
    secret: &[u8],
    sensor: &Sensor,
    message: &Arc<SensorMessageRow>,
    attempt: u32,
    now: Timestamp,
) -> Vec<EventData> {
    let partition = partition_of(message).filter(|_| takes_partition(state, sensor));
    let request = RequestSpec { partition, ..RequestSpec::default() };
    let result = EvaluationResult { requests: vec![request], ..EvaluationResult::default() };
    let outcome = SensorOutcome {
        evaluation_id: None,
        trigger: sensor.trigger_of(message),
        attempt,
        manual: None,
        expected_state_version: None,
        result: Ok(result),
        output: None,
        stored: BTreeMap::new(),
    };
    evaluate(state, secret, sensor, outcome, now)
}

/// The partition that a message is about.
fn partition_of(message: &SensorMessageRow) -> Option<String> {
    let read: serde_json::Value = serde_json::from_str(&message.message).ok()?;
    let partition = read.get("partition").filter(|_| read.get("kind").is_some_and(|kind| kind == "asset"))?;
    partition.as_str().map(str::to_owned)
}

/// Whether any of the selected assets has partitions.
fn takes_partition(state: &State, sensor: &Sensor) -> bool {
    let Some(definitions) = state.checked_definitions() else { return false };
    let selection = sensor.definition.selection.as_deref().unwrap_or_default();
    let selected = servo_core::selection::Selection::parse(selection)
        .ok()
        .and_then(|selection| selection.evaluate(definitions.graph()).ok());
    let positions: Vec<usize> = selected.iter().flat_map(|set| set.positions()).collect();
    positions.into_iter().any(|position| definitions.asset(position as u32).partitions.is_some())
}
