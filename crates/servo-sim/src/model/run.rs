//! Runs and tasks as the model sees them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use servo_core::{EventId, Millis, Operation, TaskKey, Timestamp};

use super::log::{text, texts};
use super::{Event, Rules};

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
    /// The state of a run.
    RunIs {
        Pending = "PENDING",
        Queued = "QUEUED",
        Running = "RUNNING",
        Cancelling = "CANCELLING",
        Cancelled = "CANCELLED",
        TimedOut = "TIMED_OUT",
        Failed = "FAILED",
        Succeeded = "SUCCEEDED",
    }
}

states! {
    /// The state of a task.
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
    /// Whether the state is final.
    pub fn has_ended(self) -> bool {
        matches!(self, RunIs::Cancelled | RunIs::TimedOut | RunIs::Failed | RunIs::Succeeded)
    }
}

impl TaskIs {
    /// Whether the state is final.
    pub fn has_ended(self) -> bool {
        matches!(self, TaskIs::Skipped | TaskIs::Cancelled | TaskIs::Failed | TaskIs::Succeeded)
    }

    /// Whether it has not begun and waits for other tasks.
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
    pub labels: BTreeMap<String, String>,
    /// The event that stopped it, and whether that was its timeout.
    pub stopped: Option<(EventId, bool)>,
    pub tasks: Vec<Task>,
    /// What its attempts cost that have ended.
    pub cost: u64,
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
    /// How many of these, from the front, are edges of its own; the others come from sets, in this many pieces.
    pub paired: usize,
    pub sets: Vec<std::ops::Range<usize>>,
    pub retry: Option<Value>,
    pub heartbeat_timeout: Option<Millis>,
    pub pool: Option<String>,
    /// The assets it makes, that of its key first.
    pub assets: Vec<String>,
    pub is: TaskIs,
    /// When it was created.
    pub since: Timestamp,
    pub attempt: u64,
    pub attempt_id: String,
    pub failures: u64,
    pub interruptions: u64,
    /// The code of its last failure.
    pub failed_with: String,
    /// When the newest attempt was requested, until a queue has it.
    pub pending_since: Option<Timestamp>,
    pub dispatched_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub heard_at: Option<Timestamp>,
    /// The worker that began the newest attempt.
    pub worker: Option<String>,
    pub retry_at: Option<Timestamp>,
    /// Whether the wait has a timer, and whether a queue has it.
    pub timer: Option<bool>,
    /// Position of the smallest failed task before it.
    pub caused_by: Option<usize>,
    pub finished_at: Option<Timestamp>,
    /// The event that ended it.
    pub ended_by: Option<EventId>,
    /// The outcome of a report that came too late.
    pub late: Option<String>,
    pub materialization: Option<String>,
    /// What it declares to need.
    pub compute: Value,
    /// The attempt that leads the call of the newest one, if it is called with others.
    pub led_by: Option<String>,
    /// The provenance of the newest attempt.
    pub dispatched: Dispatched,
    /// Assets that were wiped since the newest attempt was dispatched.
    pub voided: BTreeSet<String>,
}

/// The code and the data of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Dispatched {
    pub event: Option<EventId>,
    /// The time of the oldest of what it reads.
    pub read: Option<Timestamp>,
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
        let upstream: Vec<usize> = upstream.filter_map(|position| usize::try_from(position).ok()).collect();
        Ok(Self {
            paired: upstream.len(),
            sets: Vec::new(),
            upstream,
            retry: spec.get("retry").cloned(),
            heartbeat_timeout: spec.get("heartbeat_timeout_ms").and_then(Value::as_u64).map(Millis::new),
            pool: spec.get("pool").and_then(Value::as_str).map(str::to_owned),
            assets: std::iter::once(key.asset_str().to_owned()).chain(others).collect(),
            key,
            is: TaskIs::Planned,
            since: at,
            attempt: 0,
            attempt_id: String::new(),
            failures: 0,
            interruptions: 0,
            failed_with: String::new(),
            pending_since: None,
            dispatched_at: None,
            started_at: None,
            heard_at: None,
            worker: None,
            retry_at: None,
            timer: None,
            caused_by: None,
            finished_at: None,
            ended_by: None,
            late: None,
            materialization: None,
            compute: spec.get("compute").cloned().unwrap_or_default(),
            led_by: None,
            dispatched: Dispatched::default(),
            voided: BTreeSet::new(),
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

    /// The next timeout, if no report arrives before it.
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

    /// The start of the timeout of an open attempt.
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

    /// The time of its worker's last sign of life.
    pub(super) fn heard(&self) -> Timestamp {
        self.heard_at.or(self.started_at).unwrap_or(self.since)
    }

    /// Whether it makes data, rather than looking at it.
    pub(super) fn makes_data(&self) -> bool {
        self.key.operation() != Operation::Check
    }

    /// Whether it is about an asset without partitions.
    pub(super) fn makes(&self, asset: &str) -> bool {
        self.key.partition_str().is_none() && self.assets.iter().any(|own| own == asset)
    }

    pub(super) fn becomes(&mut self, is: TaskIs, event: &Event) {
        self.is = is;
        self.since = event.at;
        self.pending_since = None;
        self.retry_at = None;
        if is.has_ended() {
            (self.finished_at, self.ended_by) = (Some(event.at), Some(event.id));
        }
    }
}
