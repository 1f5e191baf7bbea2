//! A run as a command shows it, whether this process runs it, a server does, or it ended long ago.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_api::views;
use servo_core::{Millis, RunId, TaskKey, Timestamp};
use servo_engine::outputs::{CheckReport, OutputReport};
use servo_engine::rows::{EdgeRow, RunRow, TaskRow};
use servo_engine::{Run, RunState, Task, TaskError, TaskState};

/// A run and its tasks.
#[derive(Debug, Clone)]
pub(crate) struct RunView {
    pub(crate) run_id: RunId,
    pub(crate) state: RunState,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) tasks: Vec<TaskView>,
}

/// A task.
#[derive(Debug, Clone)]
pub(crate) struct TaskView {
    pub(crate) key: TaskKey,
    pub(crate) state: TaskState,
    pub(crate) attempt: u32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) progress: Option<(u32, String)>,
    pub(crate) error: Option<Arc<TaskError>>,
    pub(crate) outputs: Arc<[OutputReport]>,
}

impl RunView {
    /// From the tables.
    pub(crate) fn new(run: &RunRow, tasks: &[TaskRow]) -> Self {
        Self {
            run_id: run.run_id,
            state: run.state,
            started_at: run.started_at,
            finished_at: run.finished_at,
            tasks: tasks.iter().map(TaskView::from_row).collect(),
        }
    }

    /// From the state of an engine.
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            run_id: run.id,
            state: run.state,
            started_at: run.started_at,
            finished_at: run.finished_at,
            tasks: run.tasks.iter().map(TaskView::of).collect(),
        }
    }

    /// From what a server says.
    pub(crate) fn told<'a>(run: &views::Run, tasks: impl Iterator<Item = &'a views::Task>) -> Self {
        Self {
            run_id: run.run_id,
            state: run.state,
            started_at: run.started_at,
            finished_at: run.finished_at,
            tasks: tasks.map(TaskView::told).collect(),
        }
    }

    /// How many tasks are in a state.
    pub(crate) fn count(&self, state: TaskState) -> usize {
        self.tasks.iter().filter(|task| task.state == state).count()
    }

    /// Checks that failed without stopping anything, with the asset and partition that they are about.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = (String, &CheckReport)> {
        let succeeded = self.tasks.iter().filter(|task| task.state == TaskState::Succeeded);
        succeeded.flat_map(|task| {
            task.outputs.iter().flat_map(move |output| {
                let failed = output.checks.iter().filter(|check| !check.passed);
                failed.map(move |check| (place(&output.asset.to_string(), &task.key), check))
            })
        })
    }

    /// How many checks ran, and how many of them passed.
    pub(crate) fn checks(&self) -> (usize, usize) {
        let outputs = || self.tasks.iter().flat_map(|task| task.outputs.iter());
        let checks = || outputs().flat_map(|output| &output.checks);
        (checks().count(), checks().filter(|check| check.passed).count())
    }
}

impl TaskView {
    fn from_row(row: &TaskRow) -> Self {
        Self {
            key: row.task_key.clone(),
            state: row.state,
            attempt: row.attempt,
            started_at: row.started_at,
            finished_at: row.finished_at,
            progress: row.progress_ppm.map(|ppm| (ppm, row.progress_message.clone().unwrap_or_default())),
            error: row.error.clone().map(|error| error.0),
            outputs: row.outputs.clone().map(|outputs| outputs.0).unwrap_or_default(),
        }
    }

    fn of(task: &Task) -> Self {
        Self {
            key: task.key.clone(),
            state: task.state,
            attempt: task.attempt,
            started_at: task.started_at,
            finished_at: task.finished_at,
            progress: task.progress.as_ref().map(|progress| (progress.ppm, progress.message.clone())),
            error: task.error.clone(),
            outputs: task.outputs.clone(),
        }
    }

    fn told(task: &views::Task) -> Self {
        let error = task.error.as_ref().map(|error| TaskError {
            code: error.code,
            message: error.message.clone(),
            error_type: error.error_type.clone(),
            traceback: error.traceback.clone(),
        });
        Self {
            key: task.task_key.clone(),
            state: task.state,
            attempt: task.attempt,
            started_at: task.started_at,
            finished_at: task.finished_at,
            progress: task.progress.as_ref().map(|progress| (progress.ppm, progress.message.clone())),
            error: error.map(Arc::new),
            outputs: Arc::default(),
        }
    }

    /// `namespace.name[partition]`.
    pub(crate) fn name(&self) -> String {
        place(&self.key.asset().to_string(), &self.key)
    }

    /// How long the newest attempt took, or has taken until now.
    pub(crate) fn took(&self, now: Timestamp) -> Option<Millis> {
        let until = if self.state.is_terminal() { self.finished_at? } else { now };
        self.started_at.map(|from| until.since(from))
    }
}

/// What every task waits for, by task.
pub(crate) fn upstream(edges: &[EdgeRow]) -> BTreeMap<TaskKey, Vec<TaskKey>> {
    let mut upstream: BTreeMap<TaskKey, Vec<TaskKey>> = BTreeMap::new();
    for edge in edges {
        upstream.entry(edge.downstream_task_key.clone()).or_default().push(edge.upstream_task_key.clone());
    }
    upstream
}

fn place(asset: &str, key: &TaskKey) -> String {
    match key.partition() {
        Some(partition) => format!("{asset}[{partition}]"),
        None => asset.to_owned(),
    }
}
