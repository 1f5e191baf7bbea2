//! Lanes: what waits for the same things waits in one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use servo_core::EventId;

use super::TaskRef;
use crate::event::RunSource;
use crate::settings::Settings;
use crate::state::{DEFAULT_QUEUE, Pauses, Run, Task};

/// Sources that share capacity as one: no backfill holds up another one, a schedule or a person.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flow {
    /// People and programs that ask for runs.
    Requests,
    /// Schedules.
    Schedules,
    /// Sensors and conditions of assets.
    Sensors,
    /// One backfill.
    Backfill(Arc<str>),
    /// Sources that this version does not know.
    Unknown,
}

impl Flow {
    pub(crate) fn of(source: &RunSource) -> Self {
        match source {
            RunSource::Manual | RunSource::Api | RunSource::Retry { .. } => Self::Requests,
            RunSource::Schedule { .. } => Self::Schedules,
            RunSource::Sensor { .. } | RunSource::Condition { .. } => Self::Sensors,
            RunSource::Backfill { id, .. } => Self::Backfill(id.clone()),
            RunSource::Unknown(_) => Self::Unknown,
        }
    }
}

/// The constraint that ready tasks wait for, beside a slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskLane {
    /// One of its assets is paused.
    pub(crate) is_paused: bool,
    pub(crate) queue: Arc<str>,
    pub(crate) pool: Option<Arc<str>>,
    pub(crate) flow: Flow,
}

impl TaskLane {
    pub(crate) fn of(run: &Run, task: &Task, pauses: &Pauses) -> Self {
        Self {
            is_paused: pauses.has_assets() && task.assets().any(|asset| pauses.asset(&asset).is_some()),
            queue: queue_of(task).clone(),
            pool: task.options.pool.clone(),
            flow: Flow::of(&run.source),
        }
    }
}

/// The queue that the attempts of a task are handed to.
pub(crate) fn queue_of(task: &Task) -> &Arc<str> {
    static DEFAULT: LazyLock<Arc<str>> = LazyLock::new(|| DEFAULT_QUEUE.into());
    task.options.worker_queue.as_ref().unwrap_or(&DEFAULT)
}

/// Order of ready tasks in a lane: priority of the run, its age, then priority of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadyKey {
    pub(crate) run_priority: Reverse<i32>,
    requested: EventId,
    task_priority: Reverse<i32>,
    pub(crate) task: TaskRef,
}

impl ReadyKey {
    pub(crate) fn of(run: &Run, task: &Task, at: TaskRef) -> Self {
        Self {
            run_priority: Reverse(run.priority),
            requested: run.requested,
            task_priority: Reverse(task.options.priority),
            task: at,
        }
    }
}

/// The constraint that queued runs wait for, beside a run slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunLane {
    pub(crate) flow: Flow,
    /// Labels with a limit on runs at work.
    pub(crate) limited: BTreeMap<String, String>,
}

impl RunLane {
    pub(crate) fn of(run: &Run, settings: &Settings) -> Self {
        let limited = run.labels.iter().filter(|(name, value)| settings.runs_limit(name, value).is_some());
        Self {
            flow: Flow::of(&run.source),
            limited: limited.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}
