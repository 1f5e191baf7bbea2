//! What supervisor and runner say to each other (`docs/runner.md`). Fields that are not known are not read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use servo_core::{AssetKey, MaterializationId, PartitionKey, Timestamp};
use servo_engine::Progress;
use servo_engine::definitions::{CheckDef, Isolation, SecretDef};

use crate::logs::LogLevel;
use crate::project::{Answer, BrokenModule};

/// The version that this build speaks.
pub(super) const PROTOCOL: u32 = 1;

/// What the supervisor says.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Request<'a> {
    /// Import a project.
    Load { project: &'a str },
    /// Say what it declares.
    Scan,
    /// Run a task.
    Run {
        #[serde(flatten)]
        task: &'a RunTask,
        /// Write a mark to both streams at the end.
        mark: bool,
    },
    /// End.
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
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) config: BTreeMap<String, Value>,
    pub(crate) secrets: Vec<SecretDef>,
    pub(crate) isolation: Isolation,
}

/// The partition of a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Partition {
    pub(crate) key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<(Timestamp, Timestamp)>,
}

/// What a parameter receives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Input {
    pub(crate) parameter: String,
    pub(crate) asset: AssetKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) io: Option<String>,
    /// Exactly one piece is wanted.
    pub(crate) single: bool,
    pub(crate) pieces: Vec<Piece>,
}
