//! Evaluations: calls of functions of schedules and sensors, which workers make for the engine.
//!
//! The engine asks for one as an effect, after the event that says so is durable; a worker calls the function and
//! reports what it returned, and the engine decides what follows. Evaluations are no tasks: they have no run, no outputs
//! and no lease. One that is lost is noticed by its deadline (ADR-125).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{EvaluationId, Millis, ScheduleId, SensorId, Timestamp};

use crate::command::StoredRunKey;

/// Requests that one evaluation may make.
pub const MAX_REQUESTS: usize = 1_000;
/// Bytes of a cursor.
pub const MAX_CURSOR: usize = 64 << 10;
/// Bytes of a message to a sensor.
pub const MAX_MESSAGE: usize = 256 << 10;
/// Bytes of a message id.
pub const MAX_MESSAGE_ID: usize = 512;
/// Bytes of a run key that a function chooses.
pub const MAX_RUN_KEY: usize = 512;
/// Bytes of what a function printed that are kept: the last.
pub const MAX_OUTPUT: usize = 4 << 10;
/// Bytes of an error that are kept: the first.
pub const MAX_ERROR: usize = 4 << 10;
/// Longest that one call may take, unless its definition says otherwise.
pub const DEFAULT_TIMEOUT: Millis = Millis::from_secs(60);
/// How long a requested evaluation may wait for a worker, beside the time that the call may take.
pub(crate) const PATIENCE: Millis = Millis::from_secs(60);
/// Tries of one tick, or of one message.
pub(crate) const MAX_ATTEMPTS: u32 = 5;
const FIRST_DELAY: Millis = Millis::from_secs(5);
const LONGEST_DELAY: Millis = Millis::from_minutes(5);

/// A call of a function, for a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Names the call; a result of another one is stale.
    pub evaluation_id: EvaluationId,
    /// The schedule or sensor.
    pub subject: Subject,
    /// Its name.
    pub name: Arc<str>,
    /// `module:qualname`.
    pub function: String,
    /// Longest that the call may take.
    pub timeout_ms: Millis,
    /// The arguments.
    pub call: Call,
}

/// The schedule or sensor that is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A schedule.
    Schedule(ScheduleId),
    /// A sensor.
    Sensor(SensorId),
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Call {
    /// A tick of a schedule.
    Tick {
        /// When it was due.
        scheduled_for: Timestamp,
        /// The newest complete partition of assets that have partitions of time, by asset.
        latest: BTreeMap<String, String>,
    },
    /// A poll of a sensor.
    Poll {
        /// Where the sensor has come to.
        cursor: Option<Arc<str>>,
        /// When the evaluation was asked for.
        evaluated_at: Timestamp,
    },
    /// A message to a sensor.
    Message {
        /// The message, a JSON object.
        message: Arc<str>,
        /// Where the sensor has come to.
        cursor: Option<Arc<str>>,
        /// When the evaluation was asked for.
        evaluated_at: Timestamp,
    },
}

/// The result of a call, as a worker reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationReport {
    /// The return value of the function, or its failure.
    pub outcome: EvaluationOutcome,
    /// The end of what it printed and logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationOutcome {
    /// The function returned.
    Returned(EvaluationResult),
    /// It raised, hung, ended its process or returned something else.
    Failed(String),
}

/// The result of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationResult {
    /// Runs to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestSpec>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// Where the sensor has come to; none if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Arc<str>>,
    /// Keys of dynamic partitions to add with the runs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub add_partitions: BTreeMap<String, Vec<String>>,
}

/// A run that a function asks for. What it leaves out is as its schedule or sensor says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct RequestSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Requests of the same schedule or sensor with the same key are one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_key: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Values of configuration fields as JSON texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// A worker has evaluated something.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// The call.
    pub evaluation_id: EvaluationId,
    /// The schedule or sensor.
    pub subject: Subject,
    /// The result.
    pub report: EvaluationReport,
    /// Rows in the tables of run keys that the function has chosen, by whole key.
    pub stored_keys: BTreeMap<Arc<str>, StoredRunKey>,
}

impl EvaluationReport {
    /// A call that failed.
    pub fn failed(error: impl Into<String>) -> Self {
        Self { outcome: EvaluationOutcome::Failed(error.into()), output: None }
    }

    /// The keys of the runs that the function names itself, whole.
    pub fn run_keys(&self, subject: Subject) -> Vec<Arc<str>> {
        match &self.outcome {
            EvaluationOutcome::Returned(result) => result.run_keys(subject),
            EvaluationOutcome::Failed(_) => Vec::new(),
        }
    }
}

impl EvaluationResult {
    /// The keys of the runs that the function names itself, whole.
    pub fn run_keys(&self, subject: Subject) -> Vec<Arc<str>> {
        let chosen = self.requests.iter().filter_map(|request| request.run_key.as_deref());
        chosen.take(MAX_REQUESTS).map(|key| chosen_key(subject, key)).collect()
    }

    /// Refuses a result that is larger than it may be.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.requests.len() > MAX_REQUESTS {
            return Err(format!(
                "it requested {} runs at once, at most {MAX_REQUESTS} are allowed: request the rest at the next \
                 evaluation, or ask for a range of partitions with a backfill",
                self.requests.len()
            ));
        }
        if let Some(cursor) = self.cursor.as_deref().filter(|cursor| cursor.len() > MAX_CURSOR) {
            return Err(format!(
                "its cursor has {} bytes, at most {MAX_CURSOR} are allowed: keep what it has seen elsewhere, and in the \
                 cursor how far it has come",
                cursor.len()
            ));
        }
        let long = |key: &&String| key.len() > MAX_RUN_KEY;
        if let Some(key) = self.requests.iter().filter_map(|request| request.run_key.as_ref()).find(long) {
            return Err(format!("a run key has {} bytes, at most {MAX_RUN_KEY} are allowed", key.len()));
        }
        Ok(())
    }
}

/// The whole key of a run that a function names itself.
pub fn chosen_key(subject: Subject, key: &str) -> Arc<str> {
    match subject {
        Subject::Schedule(id) => format!("sched:{id}:key:{key}").into(),
        Subject::Sensor(id) => format!("sensor:{id}:key:{key}").into(),
    }
}

/// How long to wait after so many failures in a row.
pub(crate) fn delay_after(failures: u32) -> Millis {
    let doubled = FIRST_DELAY.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST_DELAY)
}

/// A text that is no longer than it may be.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}
