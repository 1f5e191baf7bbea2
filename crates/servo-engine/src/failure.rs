//! Failures of tasks, and which of them are retryable.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Machine-readable code of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// A connection failed.
    NetworkError,
    /// A service asked to slow down.
    RateLimited,
    /// A service was not there.
    ServiceUnavailable,
    /// The attempt took longer than it may.
    Timeout,
    /// The process ran out of memory.
    OutOfMemory,
    /// No space left to write to.
    DiskFull,
    /// The process that ran it died.
    WorkerCrash,
    /// The heartbeat timeout passed.
    HeartbeatLost,
    /// The attempt was lost too often without anybody to blame.
    Interrupted,
    /// The user's function raised.
    UserCodeException,
    /// The user's module could not be loaded.
    ImportError,
    /// A blocking check did not pass.
    CheckFailed,
    /// An input is not there.
    MissingInput,
    /// An input or output has the wrong shape.
    SchemaViolation,
    /// Data does not match its checksum.
    DataCorruption,
    /// Data that was reported as stored is missing.
    OutputMissing,
    /// A definition is wrong.
    InvalidDefinition,
    /// The worker stopped on its own.
    Cancelled,
    /// Servo's own mistake.
    InternalError,
}

/// The groups that decide about retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCategory {
    /// Passes by itself.
    Transient,
    /// The machine's fault.
    Infrastructure,
    /// The user's code.
    UserCode,
    /// The input data.
    Input,
    /// The definition.
    Configuration,
    /// Too slow.
    Timeout,
    /// Stopped on purpose.
    Cancelled,
}

impl ErrorCode {
    /// The group it belongs to.
    pub const fn category(self) -> ErrorCategory {
        match self {
            ErrorCode::NetworkError | ErrorCode::RateLimited | ErrorCode::ServiceUnavailable => {
                ErrorCategory::Transient
            }
            ErrorCode::OutOfMemory
            | ErrorCode::DiskFull
            | ErrorCode::WorkerCrash
            | ErrorCode::HeartbeatLost
            | ErrorCode::Interrupted
            | ErrorCode::OutputMissing
            | ErrorCode::InternalError => ErrorCategory::Infrastructure,
            ErrorCode::UserCodeException | ErrorCode::ImportError | ErrorCode::CheckFailed => {
                ErrorCategory::UserCode
            }
            ErrorCode::MissingInput | ErrorCode::SchemaViolation | ErrorCode::DataCorruption => {
                ErrorCategory::Input
            }
            ErrorCode::InvalidDefinition => ErrorCategory::Configuration,
            ErrorCode::Timeout => ErrorCategory::Timeout,
            ErrorCode::Cancelled => ErrorCategory::Cancelled,
        }
    }

    /// The suggested action; none where only the message can tell.
    pub const fn suggested_action(self) -> Option<&'static str> {
        match self {
            ErrorCode::NetworkError | ErrorCode::RateLimited | ErrorCode::ServiceUnavailable => {
                Some("try it again later: servo run retry RUN --from-failure")
            }
            ErrorCode::Timeout => Some("give it more time with timeout=, or less to do at once"),
            ErrorCode::OutOfMemory => Some("read less at once, or give the worker more memory"),
            ErrorCode::DiskFull => Some("free space where the worker writes, and try it again"),
            ErrorCode::WorkerCrash => Some("look at what it printed last: servo run logs RUN ASSET"),
            ErrorCode::HeartbeatLost | ErrorCode::Interrupted => {
                Some("see whether the machine of the worker is well, and try it again")
            }
            ErrorCode::ImportError => Some("install what is missing where workers run, or mend the module"),
            ErrorCode::CheckFailed => {
                Some("mend the data or the check; quarantine=True keeps such data for review")
            }
            ErrorCode::MissingInput => Some("make what it reads first: servo materialize +ASSET"),
            ErrorCode::OutputMissing => Some("let workers and server write to the same storage"),
            ErrorCode::InvalidDefinition => Some("mend the definition, and deploy it: servo deploy"),
            ErrorCode::UserCodeException
            | ErrorCode::SchemaViolation
            | ErrorCode::DataCorruption
            | ErrorCode::Cancelled
            | ErrorCode::InternalError => None,
        }
    }

    /// The name on the wire and in tables.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

impl ErrorCategory {
    /// Whether a task without a retry policy of its own is tried again.
    pub const fn retried_by_default(self) -> bool {
        match self {
            ErrorCategory::Transient | ErrorCategory::Infrastructure | ErrorCategory::Timeout => true,
            ErrorCategory::UserCode
            | ErrorCategory::Input
            | ErrorCategory::Configuration
            | ErrorCategory::Cancelled => false,
        }
    }
}

/// Describes a failure for people and for retry rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    /// For programs.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
    /// Type of the exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// Types that the exception is one of besides its own, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub error_bases: Vec<String>,
    /// Where it was raised, as Python writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
    /// A way out, if the worker knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_action: Option<Box<str>>,
    /// More about it, for programs: JSON texts by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

impl TaskError {
    /// Whether the exception is one of the types, as `except` would have it.
    pub fn is_one_of(&self, types: &[String]) -> bool {
        self.error_type.iter().chain(&self.error_bases).any(|name| types.contains(name))
    }

    /// An error without an exception type.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            error_type: None,
            error_bases: Vec::new(),
            traceback: None,
            suggested_action: None,
            details: BTreeMap::new(),
        }
    }

    /// A way out: the worker's, or what usually helps with errors of its code.
    pub fn suggested_action(&self) -> Option<&str> {
        self.suggested_action.as_deref().or_else(|| self.code.suggested_action())
    }
}
