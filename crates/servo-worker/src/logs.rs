//! Logs of attempts: lines, their sinks, and the files that keep them.

mod excerpt;
mod expiry;
mod files;
mod writer;

use std::io;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servo_core::{RunId, TaskKey, Timestamp};

pub use files::{LogChunk, LogFiles, LogState};
pub(crate) use writer::{LogWriter, room};

/// One line of the log of an attempt.
///
/// ```
/// use servo_worker::{LogLine, LogStream};
/// let line = LogLine::new(servo_core::Timestamp::from_millis(5), LogStream::Stdout, "hello");
/// assert_eq!(serde_json::to_string(&line)?, r#"{"at":5,"stream":"stdout","text":"hello"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was read; stored in milliseconds since the epoch.
    #[serde(with = "millis")]
    pub at: Timestamp,
    /// The stream it was written to.
    pub stream: LogStream,
    /// Its level, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<LogLevel>,
    /// The line, without its end and without secrets.
    pub text: String,
    /// Structured fields of the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Map<String, Value>>,
}

impl LogLine {
    /// A line without a level.
    pub fn new(at: Timestamp, stream: LogStream, text: impl Into<String>) -> Self {
        Self { at, stream, level: None, text: text.into(), fields: None }
    }
}

/// The bytes that a line takes, in memory and about as many on the disk.
fn bytes_of(line: &LogLine) -> usize {
    line.text.len() + std::mem::size_of::<LogLine>()
}

/// The stream of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    /// Printed by user code.
    Stdout,
    /// Printed by user code, or by Python about it.
    Stderr,
    /// Logged through `ctx.log`.
    Log,
    /// Logged by Servo.
    Servo,
}

/// The level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum LogLevel {
    Debug,
    Info,
    Warning,
    Error,
    Critical,
}

/// The name of a log: there is one per attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct LogName {
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
}

/// The target of the lines of a running attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogTarget {
    /// The log.
    pub name: LogName,
    /// Credential of the attempt, for sinks on another machine.
    pub task_token: String,
}

/// Takes the lines of attempts.
#[async_trait]
pub trait LogSink: Send + Sync {
    /// Appends lines, all or none. Calls for one attempt come one after another; an error means that these are lost.
    async fn write(&self, target: &LogTarget, lines: Vec<LogLine>) -> io::Result<()>;

    /// No more lines come; what was written is to be found by readers.
    async fn end(&self, target: &LogTarget);
}

mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use servo_core::Timestamp;

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(at.as_millis())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp::from_millis)
    }
}
