//! Events of timers: requested, handed to an external service, fired.

use serde::{Deserialize, Serialize};
use servo_core::{RunId, TaskKey, Timestamp, timer_id};

/// What a timer or deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TimerKind {
    /// The wait before the next attempt is over.
    Retry,
    /// A running task has not been heard of.
    HeartbeatCheck,
    /// A dispatched task was not started.
    DispatchAck,
    /// A run takes too long.
    RunTimeout,
}

impl TimerKind {
    /// Lower-case name used in timer ids.
    pub const fn id_part(self) -> &'static str {
        match self {
            TimerKind::Retry => "retry",
            TimerKind::HeartbeatCheck => "heartbeat",
            TimerKind::DispatchAck => "dispatch_ack",
            TimerKind::RunTimeout => "run_timeout",
        }
    }
}

/// Intent: wake this task at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerRequested {
    /// What for.
    pub timer_type: TimerKind,
    /// The run.
    pub run_id: RunId,
    /// The task.
    pub task_key: TaskKey,
    /// The attempt that ended.
    pub attempt: u32,
    /// When to fire.
    pub fire_at: Timestamp,
}

/// Acknowledgement: an external timer service has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerEnqueued {
    /// What for.
    pub timer_type: TimerKind,
    /// The run.
    pub run_id: RunId,
    /// The task.
    pub task_key: TaskKey,
    /// The attempt that ended.
    pub attempt: u32,
    /// When it will fire.
    pub fire_at: Timestamp,
}

/// A timer or deadline came due. The fold judges it against the row it is about: one that is older than the row
/// changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerFired {
    /// What for.
    pub timer_type: TimerKind,
    /// The run.
    pub run_id: RunId,
    /// The task; none for a deadline of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_key: Option<TaskKey>,
    /// The attempt it was set for; 0 for a run.
    pub attempt: u32,
    /// When it was due.
    pub fire_at: Timestamp,
    /// What the time until then was counted from, such as a last sign of life. A retry is due at a moment of its own,
    /// and logs of before do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl TimerRequested {
    /// The timer id itself.
    pub fn idempotency_key(&self) -> String {
        timer_id(
            self.timer_type.id_part(),
            Some(self.run_id),
            Some(&self.task_key),
            self.attempt,
            self.fire_at,
        )
    }
}

impl TimerEnqueued {
    /// `armed:{timer id}`.
    pub fn idempotency_key(&self) -> String {
        let id = timer_id(
            self.timer_type.id_part(),
            Some(self.run_id),
            Some(&self.task_key),
            self.attempt,
            self.fire_at,
        );
        format!("armed:{id}")
    }
}

impl TimerFired {
    /// `fired:{timer id}`.
    pub fn idempotency_key(&self) -> String {
        let id = timer_id(
            self.timer_type.id_part(),
            Some(self.run_id),
            self.task_key.as_ref(),
            self.attempt,
            self.fire_at,
        );
        format!("fired:{id}")
    }
}
