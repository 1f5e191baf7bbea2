//! Tasks of a run.

use axum::extract::State;
use serde::Deserialize;
use servo_core::{AssetKey, RunId, TaskKey};
use servo_engine::rows::TaskRow;
use servo_engine::{TaskOptions, TaskState};
use utoipa::IntoParams;

use super::runs::{asset, states};
use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::{NoQuery, Path, Query};
use crate::pages::{List, Page};
use crate::problem::Problem;
use crate::reads::unknown_run;
use crate::views::{Task, TaskDetail, TaskPage};

/// Query of the list of tasks.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TasksQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only tasks in one of these states, with commas between them.
    state: Option<String>,
    /// Only tasks that make or check this asset, `namespace.name`.
    asset: Option<String>,
}

/// The tasks of a run, in the order of their keys.
#[utoipa::path(
    get, path = "/runs/{run_id}/tasks", operation_id = "list_tasks", tag = "runs",
    params(("run_id" = String, Path), TasksQuery, Wait), responses((status = 200, body = TaskPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Path(id): Path<RunId>,
    Query(query): Query<TasksQuery>,
) -> Result<Answer<TaskPage>, Problem> {
    let states = states(query.state.as_deref(), TaskState::from_name)?;
    let asset = query.asset.as_deref().map(asset).transpose()?;
    let name = format!("tasks of {id} {states:?} {asset:?}");
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let after: Option<TaskKey> = list.place()?;
    let wanted = list.wanted();
    let is_wanted = move |key: &TaskKey, options: &TaskOptions, state: TaskState| {
        let is_about =
            |asset: &AssetKey| key.asset_str() == asset.canonical() || options.outputs.contains(asset);
        (states.is_empty() || states.contains(&state)) && asset.as_ref().is_none_or(is_about)
    };
    let hot = {
        let (after, is_wanted) = (after.clone(), is_wanted.clone());
        app.workspace().read(move |state| {
            let run = state.run(id)?;
            let from = after.map_or(0, |after| run.tasks.partition_point(|task| task.key <= after));
            let rest = (0u32..).zip(&run.tasks).skip(from);
            let found = rest.filter(|(_, task)| is_wanted(&task.key, &task.options, task.state));
            Some(found.take(wanted).map(|(position, _)| run.task_row(position)).collect::<Vec<_>>())
        })
    };
    let found: Vec<TaskRow> = match hot.await? {
        Some(found) => found,
        None => {
            let detail = app.workspace().run(id).await?.ok_or_else(|| unknown_run(id))?;
            let rest = detail.tasks.into_iter();
            let rest = rest.filter(|row| after.as_ref().is_none_or(|after| row.task_key > *after));
            rest.filter(|row| is_wanted(&row.task_key, &row.options, row.state)).take(wanted).collect()
        }
    };
    let page = Page::of(found, &list, |row| row.task_key.as_str().to_owned());
    Ok(Answer(page.map(Task::in_brief)))
}

/// One task, with its attempts and what they made.
#[utoipa::path(
    get, path = "/runs/{run_id}/tasks/{task_id}", operation_id = "get_task", tag = "runs",
    params(("run_id" = String, Path), ("task_id" = String, Path), Wait),
    responses((status = 200, body = TaskDetail), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path((run, task)): Path<(RunId, String)>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<TaskDetail>, Problem> {
    Ok(Answer(app.task_row(run, &task).await?.into()))
}
