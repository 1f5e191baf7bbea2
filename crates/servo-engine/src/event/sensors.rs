//! Events of sensors: defined, paused, resumed, removed, told something, evaluated, set back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{EvaluationId, EventId, SensorId, Timestamp};
use sha2::{Digest, Sha256};

use super::{Payload, RequestedRun};
use crate::audit::Act;
use crate::definitions::SensorDef;
use crate::lifecycle::{Origin, SensorStatus};
use crate::principal::Principal;

/// A sensor is new, or its definition has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorDefined {
    /// The sensor.
    pub sensor_id: SensorId,
    /// Who defines it.
    pub origin: Origin,
    /// The version of its state that this makes, from 1.
    pub state_version: u64,
    /// The whole definition.
    pub definition: Arc<SensorDef>,
}

/// A sensor is not evaluated from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorPaused {
    /// The sensor.
    pub sensor_id: SensorId,
    /// The version of its state that this makes.
    pub state_version: u64,
}

/// A sensor is evaluated again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorResumed {
    /// The sensor.
    pub sensor_id: SensorId,
    /// The version of its state that this makes.
    pub state_version: u64,
}

/// A sensor is no longer declared, or was deleted. Its evaluations stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorRemoved {
    /// The sensor.
    pub sensor_id: SensorId,
    /// The version of its state that this makes.
    pub state_version: u64,
}

/// Somebody has set the cursor of a sensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorCursorReset {
    /// The sensor.
    pub sensor_id: SensorId,
    /// The version of its state that this makes.
    pub state_version: u64,
    /// The new cursor; none if it begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Arc<str>>,
}

/// Somebody has told a sensor something. It waits to be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorMessageReceived {
    /// The sensor.
    pub sensor_id: SensorId,
    /// The id that the sender gave the message: the same message counts once.
    pub message_id: Arc<str>,
    /// The message, a JSON object.
    pub message: Arc<str>,
}

/// Intent: a worker calls the function of a sensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorEvaluationRequested {
    /// The sensor.
    pub sensor_id: SensorId,
    /// Names the call.
    pub evaluation_id: EvaluationId,
    /// Why it is evaluated.
    pub trigger: SensorTrigger,
    /// How many calls there were for the same poll or message, with this one.
    pub attempt: u32,
    /// The version of its state that the call knows (L2-INV-12).
    pub expected_state_version: u64,
    /// A result that comes later does not count.
    pub deadline: Timestamp,
}

/// A sensor was evaluated. The requests for its runs are in the same batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorEvaluated {
    /// The sensor.
    pub sensor_id: SensorId,
    /// `{sensor_id}:msg:{message_id}` or `{sensor_id}:poll:{seconds}:{hash of the cursor}`, with the number of the try
    /// from the second on.
    pub eval_id: Arc<str>,
    /// The call; none if the sensor has no function, or somebody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_id: Option<EvaluationId>,
    /// Why it was evaluated.
    pub trigger: SensorTrigger,
    /// How many tries there were, with this one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempt: u32,
    /// Somebody asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
    /// The event that made the definition.
    pub definition_version: EventId,
    /// The version of the state that the call knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_state_version: Option<u64>,
    /// Where the sensor was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_before: Option<Arc<str>>,
    /// Where it is now; none if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_after: Option<Arc<str>>,
    /// The outcome.
    pub status: SensorStatus,
    /// Why there are no runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The runs that it requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_requests: Vec<RequestedRun>,
    /// When a failed one is tried again; none if the message is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The end of what the function printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Why a sensor is evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SensorTrigger {
    /// Its interval has passed.
    Poll {
        /// The second at which it was asked for.
        poll_epoch: i64,
    },
    /// Somebody sent a message.
    Push {
        /// The message.
        message_id: Arc<str>,
    },
    /// An asset was materialized.
    Asset {
        /// The message that says so.
        message_id: Arc<str>,
    },
    /// A run has ended.
    Run {
        /// The message that says so.
        message_id: Arc<str>,
    },
}

impl SensorTrigger {
    /// The message, if there is one.
    pub fn message_id(&self) -> Option<&Arc<str>> {
        match self {
            SensorTrigger::Poll { .. } => None,
            SensorTrigger::Push { message_id }
            | SensorTrigger::Asset { message_id }
            | SensorTrigger::Run { message_id } => Some(message_id),
        }
    }

    /// The `type` on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            SensorTrigger::Poll { .. } => "poll",
            SensorTrigger::Push { .. } => "push",
            SensorTrigger::Asset { .. } => "asset",
            SensorTrigger::Run { .. } => "run",
        }
    }

    /// The name of an evaluation, without the number of its try.
    pub(crate) fn eval_id(&self, sensor: SensorId, cursor: Option<&str>) -> String {
        match self {
            SensorTrigger::Poll { poll_epoch } => {
                let hash = cursor.map_or_else(|| "none".to_owned(), hash_of);
                format!("{sensor}:poll:{poll_epoch}:{hash}")
            }
            SensorTrigger::Push { message_id }
            | SensorTrigger::Asset { message_id }
            | SensorTrigger::Run { message_id } => format!("{sensor}:msg:{message_id}"),
        }
    }
}

/// The key by which a message is recognized when it comes again.
pub(crate) fn message_key(sensor: SensorId, message_id: &str) -> String {
    format!("sensor_eval:{sensor}:msg:{message_id}")
}

fn hash_of(cursor: &str) -> String {
    Sha256::digest(cursor.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn one() -> u32 {
    1
}

fn is_one(attempt: &u32) -> bool {
    *attempt == 1
}

impl Payload for SensorDefined {
    fn idempotency_key(&self) -> String {
        format!("sensor_def:{}:{}", self.sensor_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::DEFINE_SENSOR, self.sensor_id, &*self.definition.name))
    }
}

impl Payload for SensorPaused {
    fn idempotency_key(&self) -> String {
        format!("sensor_pause:{}:{}", self.sensor_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::PAUSE_SENSOR, self.sensor_id, ""))
    }
}

impl Payload for SensorResumed {
    fn idempotency_key(&self) -> String {
        format!("sensor_resume:{}:{}", self.sensor_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::RESUME_SENSOR, self.sensor_id, ""))
    }
}

impl Payload for SensorRemoved {
    fn idempotency_key(&self) -> String {
        format!("sensor_remove:{}:{}", self.sensor_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::REMOVE_SENSOR, self.sensor_id, ""))
    }
}

impl Payload for SensorCursorReset {
    fn idempotency_key(&self) -> String {
        format!("sensor_reset:{}:{}", self.sensor_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::RESET_SENSOR, self.sensor_id, ""))
    }
}

impl Payload for SensorMessageReceived {
    /// `sensor_eval:{sensor_id}:msg:{message_id}`: a message counts once (L2-INV-2).
    fn idempotency_key(&self) -> String {
        message_key(self.sensor_id, &self.message_id)
    }
}

impl Payload for SensorEvaluationRequested {
    fn idempotency_key(&self) -> String {
        format!("sensor_call:{}:{}", self.sensor_id, self.evaluation_id)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("sensors")
    }
}

impl Payload for SensorEvaluated {
    /// `sensor_eval:{eval_id}`, as the log names the outcome; a stale one has a name of its own.
    fn idempotency_key(&self) -> String {
        match (self.evaluation_id, self.trigger.message_id()) {
            (Some(call), _) if self.status == SensorStatus::Stale => {
                format!("sensor_stale:{}:{call}", self.sensor_id)
            }
            // The message itself has the name without the last part.
            (_, Some(_)) => format!("sensor_eval:{}:evaluated", self.eval_id),
            (_, None) => format!("sensor_eval:{}", self.eval_id),
        }
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("sensors")
    }
}
