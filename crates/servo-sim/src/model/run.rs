//! Runs and tasks as the model sees them.

use std::collections::BTreeMap;

use serde_json::Value;
use servo_core::{EventId, Millis, TaskKey, Timestamp};

use super::Rules;
use super::log::{text, texts};

macro_rules! states {
    ($(#[$doc:meta])* $name:ident { $($state:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum $name { $($state,)* }

        impl $name {
            /// As tables write it.
            pub fn name(self) -> &'static str {
                match self { $($name::$state => $text,)* }
            }
        }
    };
}

states! {
    /// Where a run is.
    RunIs {
        Pending = "PENDING",
        Running = "RUNNING",
        Cancelling = "CANCELLING",
        Cancelled = "CANCELLED",
        TimedOut = "TIMED_OUT",
        Failed = "FAILED",
        Succeeded = "SUCCEEDED",
    }
}

states! {
    /// Where a task is.
    TaskIs {
        Planned = "PLANNED",
        Blocked = "BLOCKED",
        Ready = "READY",
        Dispatched = "DISPATCHED",
        Running = "RUNNING",
        RetryWait = "RETRY_WAIT",
        Skipped = "SKIPPED",
        Cancelled = "CANCELLED",
        Failed = "FAILED",
        Succeeded = "SUCCEEDED",
    }
}

impl RunIs {
    /// Whether it stays so.
    pub fn has_ended(self) -> bool {
        matches!(self, RunIs::Cancelled | RunIs::TimedOut | RunIs::Failed | RunIs::Succeeded)
    }
}

impl TaskIs {
    /// Whether it stays so.
    pub fn has_ended(self) -> bool {
        matches!(self, TaskIs::Skipped | TaskIs::Cancelled | TaskIs::Failed | TaskIs::Succeeded)
    }

    /// Whether it has not begun and waits for others.
    pub fn waits(self) -> bool {
        matches!(self, TaskIs::Planned | TaskIs::Blocked)
    }
}

/// A run.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Run {
    pub id: String,
    pub key: String,
    pub fingerprint: String,
    /// The request, as the log has it.
    pub asked: Value,
    pub asked_by: String,
    pub requested: EventId,
    pub plan: Option<String>,
    pub is: RunIs,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub ended_by: Option<EventId>,
    pub timeout: Option<Millis>,
    /// The event that told it to stop, and whether that was its own time limit.
    pub stopped: Option<(EventId, bool)>,
    pub tasks: Vec<Task>,
    /// Whether an engine still holds it.
    pub is_in_memory: bool,
}

/// A task of a run.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Task {
    pub key: TaskKey,
    /// Positions of the tasks it waits for.
    pub upstream: Vec<usize>,
    pub retry: Option<Value>,
    pub heartbeat_timeout: Option<Millis>,
    /// The assets it makes, that of its key first.
    pub assets: Vec<String>,
    pub is: TaskIs,
    /// Since when it is there.
    pub since: Timestamp,
    pub attempt: u64,
    pub attempt_id: String,
    pub failures: u64,
    pub interruptions: u64,
    /// Since when the newest attempt is on its way to a queue.
    pub pending_since: Option<Timestamp>,
    pub dispatched_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub heard_at: Option<Timestamp>,
    pub retry_at: Option<Timestamp>,
    /// Whether the wait has a timer, and whether that was handed to somebody.
    pub timer: Option<bool>,
    /// Position of the smallest failed task before it.
    pub caused_by: Option<usize>,
    pub finished_at: Option<Timestamp>,
    /// The outcome of a report that came too late.
    pub late: Option<String>,
    pub materialization: Option<String>,
    /// What the newest attempt was dispatched with.
    pub dispatched: Dispatched,
}

/// The code and the data of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Dispatched {
    pub event: Option<EventId>,
    /// Code versions of the assets that it makes, by key.
    pub code: BTreeMap<String, String>,
    /// Checks that block if they fail or are not reported, by asset.
    pub blocking: BTreeMap<String, Vec<String>>,
}

impl Task {
    /// A task as a plan describes it.
    pub(super) fn planned(spec: &Value, at: Timestamp) -> Result<Self, String> {
        let key = TaskKey::parse(text(spec, "task_key")?).map_err(|error| error.to_string())?;
        let upstream = super::log::list(spec, "upstream").iter().filter_map(Value::as_u64);
        let others = texts(spec, "outputs").map(str::to_owned);
        Ok(Self {
            upstream: upstream.filter_map(|position| usize::try_from(position).ok()).collect(),
            retry: spec.get("retry").cloned(),
            heartbeat_timeout: spec.get("heartbeat_timeout_ms").and_then(Value::as_u64).map(Millis::new),
            assets: std::iter::once(key.asset_str().to_owned()).chain(others).collect(),
            key,
            is: TaskIs::Planned,
            since: at,
            attempt: 0,
            attempt_id: String::new(),
            failures: 0,
            interruptions: 0,
            pending_since: None,
            dispatched_at: None,
            started_at: None,
            heard_at: None,
            retry_at: None,
            timer: None,
            caused_by: None,
            finished_at: None,
            late: None,
            materialization: None,
            dispatched: Dispatched::default(),
        })
    }

    /// Whether an attempt is under way.
    pub fn is_open(&self) -> bool {
        match self.is {
            TaskIs::Ready => self.pending_since.is_some(),
            TaskIs::Dispatched | TaskIs::Running => true,
            TaskIs::Planned
            | TaskIs::Blocked
            | TaskIs::RetryWait
            | TaskIs::Skipped
            | TaskIs::Cancelled
            | TaskIs::Failed
            | TaskIs::Succeeded => false,
        }
    }

    /// Whether this is its newest attempt.
    pub fn is_newest(&self, attempt: u64, id: &str) -> bool {
        self.attempt == attempt && self.attempt_id == id && attempt > 0
    }

    /// What comes due when, if nothing is heard before.
    pub(super) fn due(&self, rules: &Rules) -> Option<(Timestamp, &'static str)> {
        let (patience, timer) = match self.is {
            TaskIs::Ready => (rules.outbox_retry_after, "DISPATCH_ACK"),
            TaskIs::Dispatched => (rules.dispatch_ack_timeout, "DISPATCH_ACK"),
            TaskIs::Running => {
                let silence = self.heartbeat_timeout.unwrap_or(rules.heartbeat_timeout);
                (silence.saturating_add(rules.heartbeat_grace), "HEARTBEAT_CHECK")
            }
            TaskIs::RetryWait => return self.retry_at.map(|at| (at, "RETRY")),
            TaskIs::Planned
            | TaskIs::Blocked
            | TaskIs::Skipped
            | TaskIs::Cancelled
            | TaskIs::Failed
            | TaskIs::Succeeded => return None,
        };
        self.waits_since().map(|since| (since.saturating_add(patience), timer))
    }

    /// What the patience with an open attempt is counted from.
    pub(super) fn waits_since(&self) -> Option<Timestamp> {
        match self.is {
            TaskIs::Ready => self.pending_since,
            TaskIs::Dispatched => Some(self.dispatched_at.unwrap_or(self.since)),
            TaskIs::Running => Some(self.heard()),
            TaskIs::Planned
            | TaskIs::Blocked
            | TaskIs::RetryWait
            | TaskIs::Skipped
            | TaskIs::Cancelled
            | TaskIs::Failed
            | TaskIs::Succeeded => None,
        }
    }

    /// When its worker was last heard of.
    pub(super) fn heard(&self) -> Timestamp {
        self.heard_at.or(self.started_at).unwrap_or(self.since)
    }

    pub(super) fn becomes(&mut self, is: TaskIs, at: Timestamp) {
        self.is = is;
        self.since = at;
        self.pending_since = None;
        self.retry_at = None;
        if is.has_ended() {
            self.finished_at = Some(at);
        }
    }
}
