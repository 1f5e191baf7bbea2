//! Messages between supervisor and runner (`docs/runner.md`). Unknown fields are ignored.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use servo_core::{AssetKey, MaterializationId, Timestamp};
use servo_engine::definitions::{CheckDef, Compute, Isolation, SecretDef};
use servo_engine::evaluation::{Evaluation, EvaluationResult};
use servo_engine::outputs::{OutputReport, Usage};
use servo_engine::{DataFormat, ErrorCode, OutputState, Progress};

use super::ending::Exit;
use super::frames::FrameError;
use crate::logs::LogLevel;
use crate::project::{Answer, BrokenModule};

/// The version that this build speaks.
pub(super) const PROTOCOL: u32 = 1;

/// A message of the supervisor.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Request<'a> {
    /// Import a project.
    Load { project: &'a str },
    /// Scan the project.
    Scan,
    /// Run a task.
    Run {
        #[serde(flatten)]
        task: &'a RunTask,
        /// Write a mark to both streams at the end.
        mark: bool,
    },
    /// Run a task whose request is in a file, since it is too long for a frame.
    #[serde(rename = "run")]
    RunFile {
        /// The file, with the JSON of `run`.
        request: &'a Path,
        attempt_id: &'a str,
        mark: bool,
    },
    /// Call the function of a schedule or a sensor.
    Evaluate {
        #[serde(flatten)]
        evaluation: &'a Evaluation,
        /// Write a mark to both streams at the end.
        mark: bool,
    },
    /// Exit.
    Exit,
}

/// A task, ready to run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RunTask {
    pub(crate) run_id: String,
    pub(crate) task_key: String,
    pub(crate) attempt: u32,
    pub(crate) attempt_id: String,
    /// `module:qualname`.
    pub(crate) function: String,
    pub(crate) partition: Option<Partition>,
    /// The partitions that a function with `single_call` makes, of which the first is also above; empty for others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) call: Vec<CallPart>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) config: BTreeMap<String, Value>,
    pub(crate) secrets: Vec<SecretDef>,
    pub(crate) isolation: Isolation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compute: Option<Compute>,
}

/// One partition of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CallPart {
    pub(crate) task_key: String,
    pub(crate) attempt: u32,
    pub(crate) attempt_id: String,
    pub(crate) partition: Option<Partition>,
    pub(crate) outputs: Vec<Output>,
}

/// The partition of a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Partition {
    pub(crate) key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<(Timestamp, Timestamp)>,
}

/// The input of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Input {
    pub(crate) parameter: String,
    pub(crate) asset: AssetKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) io: Option<String>,
    /// Whether exactly one piece is expected.
    pub(crate) single: bool,
    pub(crate) pieces: Vec<Piece>,
    /// How many partitions were left out because they were never made.
    pub(crate) missing: u64,
}

/// The data of one partition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Piece {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) partition: Option<String>,
    pub(crate) uri: String,
    /// Absent if it must be detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<DataFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) materialization_id: Option<MaterializationId>,
}

/// An asset to make, and its location.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Output {
    pub(crate) asset: AssetKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) io: Option<String>,
    pub(crate) materialization_id: MaterializationId,
    pub(crate) staging: String,
    pub(crate) r#final: String,
    pub(crate) quarantine_to: String,
    pub(crate) quarantine: bool,
    pub(crate) checks: Arc<[CheckDef]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<Previous>,
    /// The stored data to check, if nothing is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checked: Option<Piece>,
}

/// The previous good materialization.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Previous {
    pub(crate) uri: String,
}

/// A message of a runner.
#[derive(Debug)]
pub(super) enum Reply {
    /// The runner has started.
    Hello(Hello),
    /// The runner has imported the project, as far as it could.
    Loaded(Loaded),
    /// The declarations of the project, or the errors of the scan.
    Scanned(Answer),
    /// Secrets to replace in captured output.
    Mask(MaskValues),
    /// Progress of a task.
    Progress(Progress),
    /// A log record of the task.
    Log(LogMessage),
    /// The end of one partition of a call.
    Part(Finished),
    /// The end of a task.
    Finished(Finished),
    /// The end of an evaluation.
    Evaluated(EvaluatedReply),
    /// The runner should run no other task.
    Worn(Worn),
    /// A message of a newer runner.
    Unknown,
}

#[derive(Debug, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct Loaded {
    #[serde(default)]
    pub(super) errors: Vec<BrokenModule>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MaskValues {
    pub(super) values: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LogMessage {
    pub(super) level: LogLevel,
    pub(super) message: String,
    #[serde(default)]
    pub(super) fields: Map<String, Value>,
}

/// Leftovers of a task in its runner that cannot be undone.
#[derive(Debug, Deserialize)]
pub(super) struct Worn {
    pub(super) reason: String,
}

/// How an evaluation ended, as its runner reports it.
#[derive(Debug, Deserialize)]
pub(super) struct EvaluatedReply {
    #[serde(default)]
    pub(super) result: Option<EvaluationResult>,
    #[serde(default)]
    pub(super) error: Option<Failure>,
}

/// How a task ended, as its runner reports it.
#[derive(Debug, Deserialize)]
pub(crate) struct Finished {
    /// The attempt, if it is one of several of a call.
    #[serde(default)]
    pub(crate) attempt_id: Option<String>,
    pub(crate) outcome: WorkOutcome,
    #[serde(default)]
    pub(crate) error: Option<Failure>,
    #[serde(default, deserialize_with = "outputs")]
    pub(crate) outputs: Vec<FinishedOutput>,
    #[serde(default)]
    pub(crate) usage: Option<Usage>,
    /// How each partition of a call ended; each came in a frame of its own.
    #[serde(skip)]
    pub(crate) parts: Vec<Finished>,
    /// Keys that it adds to dynamic partitions, by name.
    #[serde(default)]
    pub(crate) added_partitions: BTreeMap<String, Vec<String>>,
}

/// One output, as a runner hands it over.
#[derive(Debug)]
pub(crate) struct FinishedOutput {
    pub(crate) report: OutputReport,
    pub(crate) delivery: Delivery,
}

/// The files of an output that are to be committed.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delivery {
    /// Their names, without those in directories.
    #[serde(default)]
    pub(crate) files: Vec<String>,
    #[serde(default)]
    pub(crate) data: Option<DeliveredData>,
    /// The first rows of a table, and how many values its columns lack.
    #[serde(default)]
    pub(crate) preview: Option<Value>,
}

/// Where the data of an output is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliveredData {
    /// Here: the text of its only file.
    Text(String),
    /// Here: the bytes of its only file, one character each.
    Latin1(String),
    /// In the staging directory.
    Staged,
    /// Where it belongs.
    InPlace,
}

/// Whether the function succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum WorkOutcome {
    Succeeded,
    Failed,
}

/// The failure of a function.
#[derive(Debug, Deserialize)]
pub(crate) struct Failure {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    #[serde(default, rename = "type")]
    pub(crate) error_type: Option<String>,
    #[serde(default, rename = "bases")]
    pub(crate) error_bases: Vec<String>,
    #[serde(default)]
    pub(crate) traceback: Option<String>,
    #[serde(default)]
    pub(crate) suggested_action: Option<Box<str>>,
    #[serde(default)]
    pub(crate) details: Map<String, Value>,
    /// How the process of the task ended, if it had one of its own and left no result.
    #[serde(default)]
    pub(crate) exit: Option<Exit>,
}

/// Drops outputs that the task did not get to: they have no state.
fn outputs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<FinishedOutput>, D::Error> {
    let outputs = Vec::<Map<String, Value>>::deserialize(deserializer)?.into_iter();
    let read = |mut output: Map<String, Value>| -> Result<FinishedOutput, serde_json::Error> {
        if output.get("state").is_none_or(Value::is_null) {
            output.insert("state".to_owned(), Value::from(OutputState::Discarded.name()));
        }
        let delivered = ["files", "data", "preview"].into_iter().filter_map(|name| output.remove_entry(name));
        let delivery = serde_json::from_value(Value::Object(delivered.collect()))?;
        Ok(FinishedOutput { report: serde_json::from_value(Value::Object(output))?, delivery })
    };
    outputs.map(|output| read(output).map_err(D::Error::custom)).collect()
}

impl Reply {
    /// Reads a frame. Its type comes first: what follows may be kept as it was written.
    pub(super) fn read(frame: &[u8]) -> Result<Self, FrameError> {
        #[derive(Deserialize)]
        struct Typed<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
        }
        fn body<T: DeserializeOwned>(frame: &[u8]) -> Result<T, FrameError> {
            Ok(serde_json::from_slice(frame)?)
        }
        let typed: Typed<'_> = serde_json::from_slice(frame)?;
        Ok(match &*typed.kind {
            "hello" => Self::Hello(body(frame)?),
            "loaded" => Self::Loaded(body(frame)?),
            "scanned" => Self::Scanned(body(frame)?),
            "mask" => Self::Mask(body(frame)?),
            "progress" => Self::Progress(body(frame)?),
            "log" => Self::Log(body(frame)?),
            "part" => Self::Part(body(frame)?),
            "finished" => Self::Finished(body(frame)?),
            "evaluated" => Self::Evaluated(body(frame)?),
            "worn" => Self::Worn(body(frame)?),
            _ => Self::Unknown,
        })
    }
}
