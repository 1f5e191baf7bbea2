//! What supervisor and runner say to each other. Fields that are not known are not read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_engine::TaskError;
use servo_engine::definitions::{CheckDef, Isolation, SecretDef};

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
        /// Write a line to both streams at the end.
        mark: bool,
    },
    /// End.
    Exit,
}

/// A task, ready to run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct RunTask {
    pub run_id: String,
    pub task_key: String,
    pub attempt: u32,
    pub attempt_id: String,
    /// `module:qualname`.
    pub function: String,
    pub partition: Option<Partition>,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub config: BTreeMap<String, serde_json::Value>,
    pub resources: Vec<String>,
    pub secrets: Vec<SecretDef>,
    pub isolation: Isolation,
}

/// The partition of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Partition {
    pub key: String,
    pub dims: BTreeMap<String, serde_json::Value>,
    /// From when to when, where it is of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<(String, String)>,
}

/// What a parameter receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Input {
    pub parameter: String,
    pub asset: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<String>,
    /// Exactly one piece is wanted.
    pub single: bool,
    pub pieces: Vec<Piece>,
}

/// The data of one partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Piece {
    pub partition: Option<String>,
    pub uri: String,
    pub format: String,
    pub materialization_id: String,
}

/// An asset to make, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Output {
    pub asset: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<String>,
    pub materialization_id: String,
    pub staging: String,
    pub r#final: String,
    pub quarantine_to: String,
    pub quarantine: bool,
    pub checks: Vec<CheckDef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<serde_json::Value>,
}

/// What a runner says.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Reply {
    /// It started.
    Hello { protocol: u32 },
    /// It imported the project, or could not.
    Loaded {
        #[serde(default)]
        errors: Vec<BrokenModule>,
    },
    /// What the project declares, or why that is not known.
    Scanned(Answer),
    /// What to replace in everything that is captured.
    Mask { values: Vec<String> },
    /// How far a task is.
    Progress {
        ppm: u32,
        #[serde(default)]
        message: String,
    },
    /// What a task has to say.
    Log {
        level: String,
        message: String,
        #[serde(default)]
        fields: BTreeMap<String, serde_json::Value>,
    },
    /// The end of a task.
    Finished(Box<Finished>),
    /// Something that a newer runner says.
    #[serde(other)]
    Unknown,
}

/// How a task ended, in the words of its runner.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[allow(missing_docs)]
pub struct Finished {
    pub outcome: WorkOutcome,
    #[serde(default)]
    pub error: Option<TaskError>,
    #[serde(default)]
    pub outputs: Vec<serde_json::Value>,
    #[serde(default)]
    pub usage: Usage,
}

/// Whether the function did its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)]
pub enum WorkOutcome {
    Succeeded,
    Failed,
}

/// What a task used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Usage {
    pub cpu_ms: u64,
    pub max_rss_bytes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}
