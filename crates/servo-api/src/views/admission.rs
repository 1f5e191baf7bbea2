//! Pauses, the load of a workspace, and the reasons for which a run waits.

use serde::{Deserialize, Serialize};
use servo_core::{RunId, TaskKey, Timestamp};
use servo_engine::rows::PauseRow;
use servo_engine::{RunState, State, TaskState, WhyRun, why};
use utoipa::ToSchema;

use super::names::{RunStateName, TaskStateName};

/// Tasks of a run that are shown; the others are counted.
const SHOWN: usize = 100;

/// A pause of dispatching.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pause {
    /// `all`, `queue:NAME` or `asset:NAMESPACE/NAME`.
    pub scope: String,
    /// Why, in the words of whoever asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Who has paused it.
    pub paused_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub paused_at: Timestamp,
}

/// Pauses in force, and how full the workspace is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Admission {
    /// Pauses in force.
    pub paused: Vec<Pause>,
    /// Runs at work.
    pub runs_at_work: u64,
    /// Setting `max_concurrent_runs`.
    pub max_concurrent_runs: u64,
    /// Runs that wait for a place.
    pub runs_queued: u64,
    /// Setting `max_queued_runs`.
    pub max_queued_runs: u64,
    /// Runs that were asked for today; a day begins at 00:00 UTC.
    pub runs_today: u64,
    /// Setting `max_daily_runs`; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_daily_runs: Option<u64>,
    /// Tasks that workers are at.
    pub tasks_running: u64,
    /// Tasks on their way to a worker.
    pub tasks_dispatched: u64,
    /// Setting `max_queued_tasks`.
    pub max_queued_tasks: u64,
    /// Ready tasks without a slot.
    pub tasks_waiting: u64,
    /// Setting `max_concurrent_tasks`.
    pub max_concurrent_tasks: u64,
    /// Pools that have a limit or tasks at work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Pool>,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Its tasks that are dispatched or running.
    pub tasks_at_work: u32,
    /// How many may be; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A request to pause or to resume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseBody {
    /// `all`, `queue:NAME` or `asset:NAMESPACE.NAME`.
    pub scope: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Idempotency key, if the header has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// Why a run does not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// The run.
    #[schema(value_type = String)]
    pub run_id: RunId,
    /// Its state.
    #[schema(value_type = RunStateName)]
    pub state: RunState,
    /// Reasons why the run itself waits; empty if it is at work or has ended.
    pub waits: Vec<Wait>,
    /// Its first tasks that have not ended and are not running.
    pub tasks: Vec<TaskWaits>,
    /// How many such tasks there are.
    pub tasks_waiting: u64,
    /// How many of its tasks are running.
    pub tasks_running: u64,
}

/// Why a task does not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskWaits {
    /// The task.
    #[schema(value_type = String)]
    pub task_key: TaskKey,
    /// Its state.
    #[schema(value_type = TaskStateName)]
    pub state: TaskState,
    /// Reasons why it waits: all of them must be gone.
    pub waits: Vec<Wait>,
}

/// A reason to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wait {
    /// `dependency`, `queue`, `pool`, `quota`, `pause`, `worker` or `retry_wait`.
    pub reason: String,
    /// The reason in a sentence.
    pub detail: String,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// The change that would end the wait.
    pub remedy: String,
}

impl From<&PauseRow> for Pause {
    fn from(row: &PauseRow) -> Self {
        Self {
            scope: row.scope.clone(),
            reason: row.reason.clone(),
            paused_by: row.changed_by.to_string(),
            paused_at: row.changed_at,
        }
    }
}

impl From<&servo_engine::Wait> for Wait {
    fn from(wait: &servo_engine::Wait) -> Self {
        Self {
            reason: wait.reason.kind().to_owned(),
            detail: wait.reason.text(),
            since: wait.since,
            remedy: wait.reason.remedy(),
        }
    }
}

impl From<WhyRun> for Why {
    fn from(found: WhyRun) -> Self {
        let waits = |waits: &[servo_engine::Wait]| waits.iter().map(Wait::from).collect();
        Self {
            run_id: found.run_id,
            state: found.state,
            waits: waits(&found.waits),
            tasks_waiting: found.tasks.len() as u64,
            tasks_running: found.running as u64,
            tasks: found
                .tasks
                .into_iter()
                .take(SHOWN)
                .map(|task| TaskWaits {
                    task_key: task.task_key,
                    state: task.state,
                    waits: waits(&task.waits),
                })
                .collect(),
        }
    }
}

impl Admission {
    pub(crate) fn of(state: &State, now: Timestamp) -> Self {
        let (load, settings) = (why::load(state), state.settings());
        Self {
            paused: state.pauses().filter(|row| row.paused).map(Pause::from).collect(),
            runs_at_work: u64::from(load.runs_at_work),
            max_concurrent_runs: u64::from(settings.max_concurrent_runs),
            runs_queued: load.runs_queued as u64,
            max_queued_runs: u64::from(settings.max_queued_runs),
            runs_today: state.runs_on_day(now),
            max_daily_runs: settings.max_daily_runs.map(u64::from),
            tasks_running: load.tasks_running as u64,
            tasks_dispatched: load.tasks_dispatched as u64,
            max_queued_tasks: u64::from(settings.max_queued_tasks),
            tasks_waiting: load.tasks_waiting as u64,
            max_concurrent_tasks: u64::from(settings.max_concurrent_tasks),
            pools: load
                .pools
                .into_iter()
                .map(|(name, tasks_at_work, limit)| Pool { name, tasks_at_work, limit })
                .collect(),
        }
    }
}
