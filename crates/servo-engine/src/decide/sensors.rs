//! Requests about sensors: define, pause, resume, remove, set the cursor, send a message, evaluate by hand.

use std::sync::Arc;

use servo_core::{SensorId, Timestamp};

use super::evaluations::{SensorOutcome, evaluate, looked_up};
use super::named::{self, Decided, Turn};
use super::{Answer, Decision};
use crate::command::{ChangeSensor, EvaluatedByHand, PushMessage, ResetCursor};
use crate::definitions::{SensorDef, foreign_sensor};
use crate::derive::{idempotency_hash, sensor_id};
use crate::evaluation::{MAX_CURSOR, MAX_MESSAGE, MAX_MESSAGE_ID, Subject};
use crate::event::{
    EventData, SensorCursorReset, SensorDefined, SensorMessageReceived, SensorPaused, SensorRemoved,
    SensorResumed, SensorTrigger, message_key,
};
use crate::lifecycle::{Origin, SensorKind};
use crate::refusal::Refusal;
use crate::state::{MAX_WAITING, Sensor, State};

impl Decided for Sensor {
    const NAME: &'static str = "sensor";
    const QUOTA: &'static str = "max_sensors";
    const MOST: usize = 100_000;

    fn new_id(state: &State, name: &str, now: Timestamp) -> SensorId {
        sensor_id(state.tenant(), state.workspace(), name, now)
    }

    fn check(state: &State, definition: &SensorDef) -> Result<(), String> {
        if definition.function.is_some() {
            return Err(named::BELONGS_TO_CODE.to_owned());
        }
        if let Some(problem) = foreign_sensor(definition) {
            return Err(problem);
        }
        let definitions = state.checked_definitions().ok_or(named::NOTHING_DEPLOYED)?;
        definitions.check_sensor(definition).map_err(|problems| named::told(&problems))
    }

    fn defined(
        sensor_id: SensorId,
        origin: Origin,
        state_version: u64,
        definition: Arc<SensorDef>,
    ) -> EventData {
        EventData::SensorDefined(SensorDefined { sensor_id, origin, state_version, definition })
    }

    fn turned(sensor_id: SensorId, state_version: u64, turn: Turn) -> EventData {
        match turn {
            Turn::Paused => EventData::SensorPaused(SensorPaused { sensor_id, state_version }),
            Turn::Resumed => EventData::SensorResumed(SensorResumed { sensor_id, state_version }),
            Turn::Removed => EventData::SensorRemoved(SensorRemoved { sensor_id, state_version }),
        }
    }
}

pub(super) fn change(state: &State, command: &ChangeSensor, now: Timestamp) -> Decision {
    named::change(state, command, now, reset)
}

fn reset(sensor: &Sensor, ResetCursor(cursor): &ResetCursor) -> Result<Option<EventData>, Refusal> {
    if sensor.cursor == *cursor {
        return Ok(None);
    }
    if let Some(long) = cursor.as_deref().filter(|cursor| cursor.len() > MAX_CURSOR) {
        return Err(Refusal::TooLarge { what: "the cursor", bytes: long.len(), limit: MAX_CURSOR });
    }
    Ok(Some(EventData::SensorCursorReset(SensorCursorReset {
        sensor_id: sensor.id,
        state_version: sensor.state_version + 1,
        cursor: cursor.clone(),
    })))
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
    let sensor: &Sensor = named::find(state, &command.sensor)?;
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
    let sensor: &Sensor = match named::find(state, &command.sensor) {
        Ok(sensor) => sensor,
        Err(refusal) => return Decision::refuse(refusal),
    };
    if let Err(refusal) = named::expect_version(sensor, Some(command.expected_state_version)) {
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
