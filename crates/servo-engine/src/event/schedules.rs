//! Events of schedules: defined, paused, resumed, removed, ticked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{EvaluationId, EventId, Fingerprint, RunId, ScheduleId, Timestamp};

use super::Payload;
use crate::audit::Act;
use crate::definitions::ScheduleDef;
use crate::lifecycle::{Origin, TickStatus};
use crate::planner::PartitionChoice;
use crate::principal::Principal;

/// A schedule is new, or its definition has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleDefined {
    /// The schedule.
    pub schedule_id: ScheduleId,
    /// Who defines it.
    pub origin: Origin,
    /// The version of its state that this makes, from 1.
    pub state_version: u64,
    /// The whole definition.
    pub definition: Arc<ScheduleDef>,
}

/// Ticks of a schedule request nothing from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulePaused {
    /// The schedule.
    pub schedule_id: ScheduleId,
    /// The version of its state that this makes.
    pub state_version: u64,
}

/// Ticks of a schedule request runs again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleResumed {
    /// The schedule.
    pub schedule_id: ScheduleId,
    /// The version of its state that this makes.
    pub state_version: u64,
}

/// A schedule is no longer declared, or was deleted. Its ticks stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRemoved {
    /// The schedule.
    pub schedule_id: ScheduleId,
    /// The version of its state that this makes.
    pub state_version: u64,
}

/// A tick of a schedule, with the part of the definition that it followed. The requests for its runs are in the same
/// batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleTicked {
    /// The schedule.
    pub schedule_id: ScheduleId,
    /// `{schedule_id}:{seconds}`, or `{schedule_id}:manual:{milliseconds}`.
    pub tick_id: Arc<str>,
    /// When it was due; of a manual one, when it was asked for.
    pub scheduled_for: Timestamp,
    /// Somebody asked for it: the ticks by the clock are not affected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
    /// The event that made the definition.
    pub definition_version: EventId,
    /// The selection that was requested.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub asset_selection: String,
    /// The partitions that were requested.
    #[serde(default, skip_serializing_if = "PartitionChoice::is_empty")]
    pub partition_selection: PartitionChoice,
    /// The outcome.
    pub status: TickStatus,
    /// Why there are no runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The runs that it requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RequestedRun>,
    /// The end of what its function printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// A run that a tick or an evaluation requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedRun {
    /// Stable name of the request.
    pub run_key: Arc<str>,
    /// The run, derived from the run key.
    pub run_id: RunId,
    /// Hash of the request.
    pub request_fingerprint: Fingerprint,
}

/// The function of a schedule failed for a tick that will be evaluated again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleEvaluationFailed {
    /// The schedule.
    pub schedule_id: ScheduleId,
    /// The tick.
    pub scheduled_for: Timestamp,
    /// How many evaluations of the tick have failed, with this one.
    pub attempt: u32,
    /// The failure.
    pub error: String,
    /// When the tick is evaluated again.
    pub retry_at: Timestamp,
    /// The end of what the function printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Intent: a worker calls the function of a schedule for a tick that is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleEvaluationRequested {
    /// The schedule.
    pub schedule_id: ScheduleId,
    /// Names the call.
    pub evaluation_id: EvaluationId,
    /// The tick.
    pub scheduled_for: Timestamp,
    /// The event that made the definition which it follows.
    pub definition_version: EventId,
    /// How many calls there were for the tick, with this one.
    pub attempt: u32,
    /// A result that comes later does not count.
    pub deadline: Timestamp,
}

/// The id of the tick that was due at a time.
pub fn tick_id(schedule: ScheduleId, scheduled_for: Timestamp) -> Arc<str> {
    format!("{schedule}:{}", scheduled_for.as_millis().div_euclid(1_000)).into()
}

/// The id of a tick that somebody asked for.
pub fn manual_tick_id(schedule: ScheduleId, at: Timestamp) -> Arc<str> {
    format!("{schedule}:manual:{}", at.as_millis()).into()
}

impl Payload for ScheduleDefined {
    fn idempotency_key(&self) -> String {
        format!("sched_def:{}:{}", self.schedule_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::DEFINE_SCHEDULE, self.schedule_id, &*self.definition.name))
    }
}

impl Payload for SchedulePaused {
    fn idempotency_key(&self) -> String {
        format!("sched_pause:{}:{}", self.schedule_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::PAUSE_SCHEDULE, self.schedule_id, ""))
    }
}

impl Payload for ScheduleResumed {
    fn idempotency_key(&self) -> String {
        format!("sched_resume:{}:{}", self.schedule_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::RESUME_SCHEDULE, self.schedule_id, ""))
    }
}

impl Payload for ScheduleRemoved {
    fn idempotency_key(&self) -> String {
        format!("sched_remove:{}:{}", self.schedule_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::REMOVE_SCHEDULE, self.schedule_id, ""))
    }
}

impl Payload for ScheduleTicked {
    /// `sched_tick:{tick_id}`: a tick happens once (L2-INV-1).
    fn idempotency_key(&self) -> String {
        format!("sched_tick:{}", self.tick_id)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("schedules")
    }
}

impl Payload for ScheduleEvaluationRequested {
    fn idempotency_key(&self) -> String {
        format!("sched_call:{}:{}", tick_id(self.schedule_id, self.scheduled_for), self.attempt)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("schedules")
    }
}

impl Payload for ScheduleEvaluationFailed {
    fn idempotency_key(&self) -> String {
        format!("sched_fail:{}:{}", tick_id(self.schedule_id, self.scheduled_for), self.attempt)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("schedules")
    }
}
