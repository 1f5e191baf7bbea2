//! Sensors and their evaluations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use servo_core::{Millis, RunId, SensorId, Timestamp};
use servo_engine::definitions::{Location, SecretDef, SensorDef, VerifyDef, VerifyScheme};
use servo_engine::evaluation::{EvaluationResult, RequestSpec};
use servo_engine::rows::SensorEvalRow;
use servo_engine::{RunState, SensorKind};
use utoipa::ToSchema;

use super::schedules::{TickRun, is_zero, texts, values};

/// A sensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Sensor {
    #[schema(value_type = String)]
    pub sensor_id: SensorId,
    pub name: String,
    /// The trigger of its evaluations: `poll`, `push`, `asset` or `run`.
    pub kind: String,
    /// Who defines it: `code` or `api`.
    pub origin: String,
    /// `ACTIVE`, `PAUSED`, or `ERROR` if it has failed several times in a row.
    pub status: String,
    /// Counts definitions, pauses, resumptions and cursors.
    pub state_version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<String>,
    /// `module:qualname` of its function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub config: BTreeMap<String, Value>,
    pub priority: i32,
    /// How long after one evaluation the next one starts; of those that poll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ms: Option<u64>,
    /// Assets that it watches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_of: bool,
    /// Ends of runs that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_status: Vec<String>,
    /// Whether senders of messages have to prove who they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifies: bool,
    /// How they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<SensorVerify>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub defined_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_evaluation_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_eval_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub last_run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_evaluation_at: Option<Timestamp>,
    /// Whether a worker is asked for a call now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evaluating: bool,
    /// Messages that wait for it.
    pub messages_waiting: u64,
    /// Messages that were left out because too many waited.
    #[serde(default)]
    pub messages_dropped: u64,
    /// Evaluations that failed in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// An evaluation of a sensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct SensorEval {
    pub eval_id: String,
    #[schema(value_type = String)]
    pub sensor_id: SensorId,
    pub sensor: String,
    /// Why it was evaluated: `poll`, `push`, `asset` or `run`.
    pub trigger: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// How many tries there were, with this one.
    pub attempt: u32,
    /// Somebody asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
    #[schema(value_type = String, format = DateTime)]
    pub evaluated_at: Timestamp,
    /// `TRIGGERED`, `NO_NEW_DATA`, `FAILED` or `STALE`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_after: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<TickRun>,
    /// When a failed one is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub retry_at: Option<Timestamp>,
    /// The end of what the function printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// How senders of messages to a sensor prove who they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SensorVerify {
    /// `token`: they show the secret; `github`, `stripe`: they sign with it as these do. `token` unless given.
    #[serde(default = "token")]
    #[schema(value_type = String)]
    pub scheme: VerifyScheme,
    /// Where the server finds the secret.
    pub secret: SecretReference,
}

/// Where the server finds a secret; never its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretReference {
    /// `env`, or `file` where code declares it.
    pub provider: String,
    /// The environment variable, which begins with `SERVO_SENSOR_` unless code declares it; or the file.
    pub path: String,
}

fn token() -> VerifyScheme {
    VerifyScheme::Token
}

/// A sensor to create: one that is told something, and has no function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SensorBody {
    /// Letters, digits, `_` and `-`; unique in the workspace.
    pub name: String,
    /// The selection that it requests.
    pub selection: String,
    /// Whether messages can be sent to it.
    #[serde(default)]
    pub push: bool,
    /// Assets whose materializations it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
    /// Whether all of these must have been materialized, or one is enough.
    #[serde(default)]
    pub all_of: bool,
    /// States in which runs end that it is about: `SUCCEEDED`, `FAILED`, `CANCELLED`, `TIMED_OUT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub run_status: Vec<RunState>,
    /// How senders of messages prove who they are; without it they show a key of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<SensorVerify>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Labels of the runs that it requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Values of configuration fields, by field or by `namespace.name:field`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub config: BTreeMap<String, Value>,
    /// Higher runs first.
    #[serde(default)]
    pub priority: i32,
    /// Whether it starts running when it is created; true unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The version that the caller knows, where the sensor is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_state_version: Option<u64>,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// The id of a message: a text, or a whole number, which is the same as its digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[allow(missing_docs)]
pub enum MessageId {
    Text(String),
    Number(i64),
}

/// A message for a sensor, in the plainest of the forms that are taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PushBody {
    /// The id that the sender gave it: a message counts once.
    #[schema(value_type = MessageId)]
    pub message_id: String,
    /// The payload, as JSON.
    #[serde(default)]
    pub data: Value,
    /// Attributes beside the payload.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// A request to set the cursor of a sensor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetCursorBody {
    /// The new cursor; without one the sensor begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The version that the caller knows; refused if there is another by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_state_version: Option<u64>,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// A request to evaluate a sensor now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluateBody {
    /// The data of a message to evaluate it with; for sensors that are told something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// A cursor instead of the one that the sensor has; for a look only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Whether to show only what would happen.
    #[serde(default)]
    pub dry_run: bool,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// The result of an evaluation by hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct SensorEvaluation {
    pub sensor: String,
    /// Whether only what would happen is shown.
    pub dry_run: bool,
    /// `TRIGGERED`, `NO_NEW_DATA` or `FAILED`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_after: Option<String>,
    /// The runs that it requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestedView>,
    /// Keys of dynamic partitions that it adds, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub add_partitions: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// A run that an evaluation requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct RequestedView {
    pub selection: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub run_id: Option<RunId>,
    /// Tasks that it would have; of a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// Why it cannot be planned; of a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RequestedView {
    pub(crate) fn of(spec: &RequestSpec, default: Option<&str>) -> Self {
        Self {
            selection: spec.selection.clone().or_else(|| default.map(str::to_owned)).unwrap_or_default(),
            partition: spec.partition.clone(),
            run_key: spec.run_key.clone(),
            run_id: None,
            tasks: None,
            problem: None,
        }
    }
}

impl SensorEvaluation {
    pub(crate) fn of(sensor: &servo_engine::Sensor, result: &EvaluationResult, dry_run: bool) -> Self {
        let default = sensor.definition.selection.as_deref();
        Self {
            sensor: sensor.name.to_string(),
            dry_run,
            status: if result.requests.is_empty() { "NO_NEW_DATA" } else { "TRIGGERED" }.to_owned(),
            reason: result.skip.clone(),
            cursor_before: sensor.cursor.as_deref().map(str::to_owned),
            cursor_after: result.cursor.as_deref().map(str::to_owned),
            requests: result.requests.iter().map(|spec| RequestedView::of(spec, default)).collect(),
            add_partitions: result.add_partitions.clone(),
            output: None,
        }
    }
}

impl From<&servo_engine::Sensor> for Sensor {
    fn from(sensor: &servo_engine::Sensor) -> Self {
        let definition = &sensor.definition;
        let polls = definition.kind() == SensorKind::Poll;
        Self {
            sensor_id: sensor.id,
            name: sensor.name.to_string(),
            kind: definition.kind().to_string(),
            origin: sensor.origin.to_string(),
            status: sensor.status().to_string(),
            state_version: sensor.state_version,
            cursor: sensor.cursor.as_deref().map(str::to_owned),
            selection: definition.selection.clone(),
            function: definition.function.clone(),
            description: definition.description.clone(),
            tags: definition.tags.clone(),
            config: values(&definition.config),
            priority: definition.priority,
            interval_ms: polls.then(|| definition.interval().get()),
            on: definition.on.iter().map(|asset| asset.replacen('/', ".", 1)).collect(),
            all_of: definition.all_of,
            run_status: definition.run_status.iter().map(ToString::to_string).collect(),
            verifies: definition.verify.is_some(),
            verify: definition.verify.as_ref().map(SensorVerify::from),
            created_at: sensor.created_at,
            defined_at: sensor.defined_at,
            last_evaluation_at: sensor.last_evaluation_at,
            last_eval_id: sensor.last_eval_id.as_deref().map(str::to_owned),
            last_run_id: sensor.last_run_id,
            next_evaluation_at: sensor.next_evaluation_at,
            evaluating: sensor.evaluating.is_some(),
            messages_waiting: sensor.messages.len() as u64,
            messages_dropped: sensor.messages_dropped,
            failures: sensor.failures,
            last_error: sensor.last_error.clone(),
        }
    }
}

impl From<&VerifyDef> for SensorVerify {
    fn from(verify: &VerifyDef) -> Self {
        let SecretDef { name: _, provider, path } = verify.secret.clone();
        Self { scheme: verify.scheme, secret: SecretReference { provider, path } }
    }
}

impl From<SensorVerify> for VerifyDef {
    fn from(verify: SensorVerify) -> Self {
        let SecretReference { provider, path } = verify.secret;
        Self { scheme: verify.scheme, secret: SecretDef { name: "secret".to_owned(), provider, path } }
    }
}

impl Sensor {
    /// A request for the definition that it has, to be sent with changes.
    pub fn to_body(&self) -> SensorBody {
        SensorBody {
            name: self.name.clone(),
            selection: self.selection.clone().unwrap_or_default(),
            push: self.kind == SensorKind::Push.name(),
            on: self.on.clone(),
            all_of: self.all_of,
            run_status: self.run_status.iter().filter_map(|state| RunState::from_name(state)).collect(),
            verify: self.verify.clone(),
            description: self.description.clone(),
            tags: self.tags.clone(),
            config: self.config.clone(),
            priority: self.priority,
            enabled: None,
            expected_state_version: Some(self.state_version),
            client_request_id: None,
        }
    }
}

impl From<SensorEvalRow> for SensorEval {
    fn from(row: SensorEvalRow) -> Self {
        let run = |run: servo_engine::event::RequestedRun| TickRun {
            run_key: run.run_key.to_string(),
            run_id: run.run_id,
        };
        Self {
            eval_id: row.eval_id,
            sensor_id: row.sensor_id,
            sensor: row.sensor_name,
            trigger: row.trigger_source,
            message_id: row.message_id,
            attempt: row.attempt,
            manual: row.manual,
            evaluated_at: row.evaluated_at,
            status: row.status.to_string(),
            reason: row.reason,
            cursor_before: row.cursor_before,
            cursor_after: row.cursor_after,
            runs: row.runs.0.into_iter().map(run).collect(),
            retry_at: row.retry_at,
            output: row.output,
        }
    }
}

impl From<SensorBody> for SensorDef {
    fn from(body: SensorBody) -> Self {
        Self {
            name: body.name.into(),
            location: Location::default(),
            function: None,
            selection: Some(body.selection),
            description: body.description,
            tags: body.tags,
            enabled: body.enabled.unwrap_or(true),
            interval_ms: None::<Millis>,
            push: body.push,
            timeout_ms: None,
            config: texts(&body.config),
            priority: body.priority,
            on: body.on,
            all_of: body.all_of,
            run_status: body.run_status,
            verify: body.verify.map(VerifyDef::from),
        }
    }
}
