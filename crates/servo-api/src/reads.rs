//! Reads runs and tasks: from memory first, then from the tables.

use servo_core::{RunId, TaskKey};
use servo_engine::Run;
use servo_engine::rows::{RunRow, TaskRow};

use crate::app::App;
use crate::problem::{Code, Problem};
use crate::views::Task;

impl App {
    pub(crate) async fn run_row(&self, id: RunId) -> Result<RunRow, Problem> {
        let hot = self.workspace().read(move |state| state.run(id).map(Run::row)).await?;
        match hot {
            Some(row) => Ok(row),
            None => Ok(self.workspace().run(id).await?.ok_or_else(|| unknown_run(id))?.run),
        }
    }

    /// The task with this name in addresses.
    pub(crate) async fn task_row(&self, id: RunId, task: &str) -> Result<TaskRow, Problem> {
        let is_wanted = |key: &TaskKey| Task::id_of(key) == task;
        let unknown = || Problem::new(Code::UnknownTask, format!("run {id} has no task {task}"));
        // Names are hashes of keys: they are computed here, not where everybody else waits.
        let keys = self.workspace().read(move |state| state.run(id).map(keys_of)).await?;
        if let Some(keys) = keys {
            let key = keys.into_iter().find(is_wanted).ok_or_else(unknown)?;
            let row = self.workspace().read(move |state| {
                let run = state.run(id)?;
                run.position(&key).map(|position| run.task_row(position))
            });
            if let Some(row) = row.await? {
                return Ok(row);
            }
        }
        let detail = self.workspace().run(id).await?.ok_or_else(|| unknown_run(id))?;
        detail.tasks.into_iter().find(|row| is_wanted(&row.task_key)).ok_or_else(unknown)
    }
}

pub(crate) fn keys_of(run: &Run) -> Vec<TaskKey> {
    run.tasks.iter().map(|task| task.key.clone()).collect()
}

pub(crate) fn unknown_run(id: RunId) -> Problem {
    Problem::new(Code::UnknownRun, format!("there is no run {id}"))
}
