//! Logs of attempts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servo_core::{TaskKey, Timestamp};
use servo_worker::{LogLevel, LogStream};
use utoipa::ToSchema;

use super::Failure;

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// When it was read.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// `stdout`, `stderr`, `log` or `servo`.
    #[schema(value_type = String)]
    pub stream: LogStream,
    /// Its level, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub level: Option<LogLevel>,
    /// The line.
    pub text: String,
    /// Structured fields of the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub fields: Option<Map<String, Value>>,
}

/// One line of the log of a task, as commands print it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLogLine {
    /// Whose.
    pub task_key: TaskKey,
    /// The line.
    #[serde(flatten)]
    pub line: LogLine,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogPage {
    /// Its lines.
    pub lines: Vec<LogLine>,
    /// Offset of the next part.
    pub next_offset: u64,
    /// Whether the attempt has ended, and this is the end of its log.
    pub ended: bool,
}

/// Lines for a log, from the worker of the attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogBody {
    /// Lines to append.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LogLine>,
    /// Offset of the lines, as in the response before: lines that are there already were these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Whether no more lines will come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end: bool,
}

/// Why a task failed, after its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskErrorLine {
    /// The task.
    pub task_key: TaskKey,
    /// The error of the attempt.
    pub error: Failure,
}

/// The lines are in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogAnswer {
    /// Offset of the next lines.
    pub next_offset: u64,
}

/// The last message of a stream of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogEnd {
    /// Length of the log.
    pub offset: u64,
}

impl From<servo_worker::LogLine> for LogLine {
    fn from(line: servo_worker::LogLine) -> Self {
        let servo_worker::LogLine { at, stream, level, text, fields } = line;
        Self { at, stream, level, text, fields }
    }
}

impl From<LogLine> for servo_worker::LogLine {
    fn from(line: LogLine) -> Self {
        let LogLine { at, stream, level, text, fields } = line;
        Self { at, stream, level, text, fields }
    }
}
