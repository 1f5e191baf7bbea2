//! Requests about sensors: define, pause, resume, remove, set the cursor, send a message, evaluate by hand.

use std::sync::Arc;

use servo_core::{SensorId, Timestamp};

use super::evaluations::{SensorOutcome, evaluate, looked_up};
use super::named::{self, Kind};
use super::{Answer, Decision};
use crate::command::{ChangeSensor, EvaluatedByHand, PushMessage, SensorChange};
use crate::definitions::SensorDef;
use crate::derive::{idempotency_hash, sensor_id};
use crate::evaluation::{MAX_CURSOR, MAX_MESSAGE, MAX_MESSAGE_ID, Subject};
use crate::event::{
    EventData, SensorCursorReset, SensorDefined, SensorMessageReceived, SensorPaused, SensorRemoved,
    SensorResumed, SensorTrigger, message_key,
};
use crate::lifecycle::{Origin, SensorKind};
use crate::refusal::Refusal;
use crate::state::{MAX_WAITING, Sensor, State};

const SENSORS: Kind = Kind { name: "sensor", quota: "max_sensors", most: 100_000 };

pub(super) fn change(state: &State, command: &ChangeSensor, now: Timestamp) -> Decision {
    match changed(state, command, now) {
        Ok(Some(event)) => Decision::change(event, command.caller.principal.clone()),
        Ok(None) => Decision::unchanged(),
        Err(refusal) => Decision::refuse(refusal),
    }
}

fn changed(state: &State, command: &ChangeSensor, now: Timestamp) -> Result<Option<EventData>, Refusal> {
    if let SensorChange::Create(definition) = &command.change {
        return create(state, definition, now).map(Some);
    }
    let sensor = find(state, &command.sensor)?;
    SENSORS.expect_version(sensor, command.expected_state_version)?;
    let (sensor_id, state_version) = (sensor.id, sensor.state_version + 1);
    Ok(match &command.change {
        SensorChange::Pause if sensor.paused => None,
        SensorChange::Pause => Some(EventData::SensorPaused(SensorPaused { sensor_id, state_version })),
        SensorChange::Resume if !sensor.paused => None,
        SensorChange::Resume => Some(EventData::SensorResumed(SensorResumed { sensor_id, state_version })),
        SensorChange::Remove => {
            SENSORS.is_changeable(sensor)?;
            Some(EventData::SensorRemoved(SensorRemoved { sensor_id, state_version }))
        }
        SensorChange::ResetCursor(cursor) if sensor.cursor == *cursor => None,
        SensorChange::ResetCursor(cursor) => {
            if let Some(long) = cursor.as_deref().filter(|cursor| cursor.len() > MAX_CURSOR) {
                return Err(Refusal::TooLarge { what: "the cursor", bytes: long.len(), limit: MAX_CURSOR });
            }
            let cursor = cursor.clone();
            Some(EventData::SensorCursorReset(SensorCursorReset { sensor_id, state_version, cursor }))
        }
        SensorChange::Create(definition) | SensorChange::Redefine(definition) => {
            SENSORS.is_changeable(sensor)?;
            check(state, definition)?;
            let is_same = sensor.definition == *definition;
            (!is_same).then(|| defined(sensor_id, Origin::Api, state_version, definition))
        }
    })
}

fn create(state: &State, definition: &Arc<SensorDef>, now: Timestamp) -> Result<EventData, Refusal> {
    check(state, definition)?;
    let known = state.sensors.find(&definition.name).map(|known| &**known);
    SENSORS.may_create(&definition.name, known, state.sensors.len())?;
    let (id, state_version) = identity(state, &definition.name, known, now);
    Ok(defined(id, Origin::Api, state_version, definition))
}

/// The differences between the sensors of a project and those of the state.
pub(super) fn deploy(
    state: &State,
    sensors: &[Arc<SensorDef>],
    now: Timestamp,
) -> Result<Vec<EventData>, Refusal> {
    let declared =
        SENSORS.declared(sensors.iter().map(|definition| (definition.name.as_str(), definition)))?;
    let mut events = Vec::new();
    for (name, definition) in &declared {
        let known = state.sensors.find(name).map(|known| &**known);
        SENSORS.may_deploy(name, known)?;
        if known.is_some_and(|known| known.removed_at.is_none() && known.definition == **definition) {
            continue;
        }
        let (id, state_version) = identity(state, name, known, now);
        events.push(defined(id, Origin::Code, state_version, definition));
    }
    SENSORS.limit(state.sensors.len() + events.len())?;
    let removed = state
        .sensors()
        .filter(|sensor| sensor.origin == Origin::Code && !declared.contains_key(&*sensor.name));
    events.extend(removed.map(|sensor| {
        EventData::SensorRemoved(SensorRemoved {
            sensor_id: sensor.id,
            state_version: sensor.state_version + 1,
        })
    }));
    Ok(events)
}

/// A message for a sensor. The same message again changes nothing.
pub(super) fn push(state: &State, command: &PushMessage) -> Decision {
    match pushed(state, command) {
        Ok(Some(event)) => Decision::change(event, command.caller.principal.clone()),
        Ok(None) => Decision::unchanged(),
        Err(refusal) => Decision::refuse(refusal),
    }
}

fn pushed(state: &State, command: &PushMessage) -> Result<Option<EventData>, Refusal> {
    let sensor = find(state, &command.sensor)?;
    if sensor.definition.kind() != SensorKind::Push {
        return Err(Refusal::TakesNoMessages {
            name: sensor.name.to_string(),
            kind: sensor.definition.kind(),
        });
    }
    let id = &command.message_id;
    if id.is_empty() || id.len() > MAX_MESSAGE_ID || id.chars().any(char::is_control) {
        return Err(Refusal::BadMessageId { limit: MAX_MESSAGE_ID });
    }
    if command.message.len() > MAX_MESSAGE {
        let (bytes, limit) = (command.message.len(), MAX_MESSAGE);
        return Err(Refusal::TooLarge { what: "the message", bytes, limit });
    }
    if state.idempotency.contains(idempotency_hash(&message_key(sensor.id, id))) {
        return Ok(None);
    }
    if sensor.messages.len() >= MAX_WAITING {
        return Err(Refusal::Quota {
            quota: "messages that wait for a sensor",
            limit: MAX_WAITING as u64,
            used: sensor.messages.len() as u64,
        });
    }
    Ok(Some(EventData::SensorMessageReceived(SensorMessageReceived {
        sensor_id: sensor.id,
        message_id: id.clone(),
        message: command.message.clone(),
    })))
}

/// The result of an evaluation that somebody asked for.
pub(super) fn by_hand(state: &State, secret: &[u8], command: &EvaluatedByHand, now: Timestamp) -> Decision {
    let sensor = match find(state, &command.sensor) {
        Ok(sensor) => sensor,
        Err(refusal) => return Decision::refuse(refusal),
    };
    if let Err(refusal) = SENSORS.expect_version(sensor, Some(command.expected_state_version)) {
        return Decision::refuse(refusal);
    }
    let chosen = command.report.run_keys(Subject::Sensor(sensor.id));
    if let Err(stale) = looked_up(state, secret, &chosen, &command.stored_keys) {
        return Decision::refuse(stale);
    }
    let outcome = SensorOutcome {
        evaluation_id: Some(command.evaluation_id),
        trigger: SensorTrigger::Push { message_id: format!("manual_{}", command.evaluation_id).into() },
        attempt: 1,
        manual: Some(command.caller.clone()),
        expected_state_version: Some(command.expected_state_version),
        result: command.report.result(),
        output: command.report.output.clone(),
        stored: command.stored_keys.clone(),
    };
    let events = evaluate(state, secret, sensor, outcome, now);
    Decision { events, principal: command.caller.principal.clone(), answer: Answer::Change }
}

fn find<'a>(state: &'a State, name: &str) -> Result<&'a Sensor, Refusal> {
    state.sensor(name).ok_or_else(|| Refusal::UnknownSensor { name: name.to_owned() })
}

fn check(state: &State, definition: &SensorDef) -> Result<(), Refusal> {
    let bad = |problem: String| SENSORS.bad(&definition.name, problem);
    if definition.function.is_some() {
        return Err(bad(named::BELONGS_TO_CODE.to_owned()));
    }
    let definitions = state.checked_definitions().ok_or_else(|| bad(named::NOTHING_DEPLOYED.to_owned()))?;
    definitions.check_sensor(definition).map_err(|problems| bad(named::told(&problems)))
}

/// The id that a name keeps, and the next version of its state.
fn identity(state: &State, name: &str, known: Option<&Sensor>, now: Timestamp) -> (SensorId, u64) {
    match known {
        Some(known) => (known.id, known.state_version + 1),
        None => (sensor_id(state.tenant(), state.workspace(), name, now), 1),
    }
}

fn defined(
    sensor_id: SensorId,
    origin: Origin,
    state_version: u64,
    definition: &Arc<SensorDef>,
) -> EventData {
    let definition = definition.clone();
    EventData::SensorDefined(SensorDefined { sensor_id, origin, state_version, definition })
}
