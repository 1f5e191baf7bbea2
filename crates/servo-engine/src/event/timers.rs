//! Events of timers: requested, handed to an external service, fired.

use serde::{Deserialize, Serialize};
use servo_core::{RunId, TaskKey, Timestamp, timer_id};

use super::Payload;
use crate::principal::Principal;

/// The purpose of a timer or deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TimerKind {
    /// The wait before the next attempt is over.
    Retry,
    /// The heartbeat timeout of a running task.
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
    /// Its purpose.
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
    /// Its purpose.
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

/// A timer or deadline came due. The fold compares it with its row: one that is older than the row changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerFired {
    /// Its purpose.
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
    /// The time the timeout is counted from, such as the last heartbeat. Absent for retries, which are due at a fixed
    /// time, and in older logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Payload for TimerRequested {
    /// The timer id itself.
    fn idempotency_key(&self) -> String {
        timer_id(
            self.timer_type.id_part(),
            Some(self.run_id),
            Some(&self.task_key),
            self.attempt,
            self.fire_at,
        )
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn task_key(&self) -> Option<&TaskKey> {
        Some(&self.task_key)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("timers")
    }
}

impl Payload for TimerEnqueued {
    /// `armed:{timer id}`.
    fn idempotency_key(&self) -> String {
        let id = timer_id(
            self.timer_type.id_part(),
            Some(self.run_id),
            Some(&self.task_key),
            self.attempt,
            self.fire_at,
        );
        format!("armed:{id}")
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn task_key(&self) -> Option<&TaskKey> {
        Some(&self.task_key)
    }
}

impl Payload for TimerFired {
    /// `fired:{timer id}`.
    fn idempotency_key(&self) -> String {
        let id = timer_id(
            self.timer_type.id_part(),
            Some(self.run_id),
            self.task_key.as_ref(),
            self.attempt,
            self.fire_at,
        );
        format!("fired:{id}")
    }

    fn run_id(&self) -> Option<RunId> {
        Some(self.run_id)
    }

    fn task_key(&self) -> Option<&TaskKey> {
        self.task_key.as_ref()
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("timers")
    }
}
