//! `servo run list` and `servo run show`: from the tables alone, beside a running server or without one.

use std::process::ExitCode;

use anyhow::{Context, bail};
use servo_core::{EventId, RunId};
use servo_engine::RunState;
use servo_engine::rows::{RunRow, TaskRow};
use servo_projections::{Projection, RunFilter, merge_page};

use crate::location::Location;
use crate::output::{self, Format};

/// Look at runs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Runs, newest first.
    #[command(
        after_help = "Examples:\n  servo run list --state FAILED\n  servo run list --before 01JB2X… --limit 100"
    )]
    List {
        /// How many.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
        /// Only those asked for before this event; the last line of a page says which.
        #[arg(long, value_name = "EVENT")]
        before: Option<EventId>,
        /// Only those in this state; may be given several times.
        #[arg(long, value_name = "STATE", value_parser = parse_state)]
        state: Vec<RunState>,
    },
    /// One run and its tasks.
    #[command(after_help = "Example:\n  servo run show run_abcdefghijklmnopqrstuvwxyz")]
    Show {
        /// The run.
        run: RunId,
    },
}

fn parse_state(name: &str) -> Result<RunState, String> {
    RunState::from_name(&name.to_ascii_uppercase()).ok_or_else(|| {
        let known: Vec<&str> = RunState::ALL.iter().map(|state| state.name()).collect();
        format!("there is no such state; the states are {}", known.join(", "))
    })
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<ExitCode> {
    let stores = location.look()?;
    let projection = Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await?;
    match command {
        Command::List { limit, before, state } => {
            let limit = usize::from(*limit);
            let rows = match &projection {
                Some(projection) => page(projection, *before, limit, state).await?,
                None => Vec::new(),
            };
            list(&rows, limit, format);
        }
        Command::Show { run } => {
            let Some((row, tasks)) = find(projection.as_ref(), *run).await? else {
                bail!("there is no run {run} in the tables; `servo run list` shows what there is");
            };
            show(&row, &tasks, format);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn page(
    projection: &Projection,
    before: Option<EventId>,
    limit: usize,
    states: &[RunState],
) -> anyhow::Result<Vec<RunRow>> {
    let filter = RunFilter { states: states.to_vec() };
    let mut hot = projection.hot_rows().await.context("reading the hot tables")?.runs;
    hot.retain(|run| before.is_none_or(|before| run.requested_event_id < before));
    hot.retain(|run| states.is_empty() || states.contains(&run.state));
    let history = projection.runs_before(before, limit, &filter).await?;
    Ok(merge_page(hot, history, limit))
}

async fn find(projection: Option<&Projection>, id: RunId) -> anyhow::Result<Option<(RunRow, Vec<TaskRow>)>> {
    let Some(projection) = projection else { return Ok(None) };
    let hot = projection.hot_rows().await.context("reading the hot tables")?;
    if let Some(run) = hot.runs.into_iter().find(|run| run.run_id == id) {
        return Ok(Some((run, hot.tasks.into_iter().filter(|task| task.run_id == id).collect())));
    }
    let Some(run) = projection.run(id).await? else { return Ok(None) };
    let tasks = projection.tasks_of(&run).await?;
    Ok(Some((run, tasks)))
}

fn list(rows: &[RunRow], limit: usize, format: Format) {
    let next = (rows.len() == limit).then(|| rows.last().map(|row| row.requested_event_id)).flatten();
    if format == Format::Json {
        let runs: Vec<_> = rows.iter().map(run_json).collect();
        output::json(&serde_json::json!({ "runs": runs, "next_before": next.map(|id| id.to_string()) }));
        return;
    }
    if rows.is_empty() {
        output::line(format_args!("no runs"));
        return;
    }
    output::table(
        &["run", "state", "tasks", "ok", "failed", "created", "took", "key"],
        &[2, 3, 4, 6],
        rows.iter()
            .map(|row| {
                vec![
                    row.run_id.to_string(),
                    row.state.to_string(),
                    row.tasks_total.to_string(),
                    row.tasks_succeeded.to_string(),
                    row.tasks_failed.to_string(),
                    row.created_at.to_string(),
                    output::span(row.started_at, row.finished_at),
                    row.run_key.clone(),
                ]
            })
            .collect(),
    );
    if let Some(next) = next {
        output::line(format_args!("\nmore: servo run list --before {next}"));
    }
}

/// Prints a run and its tasks.
pub(crate) fn show(run: &RunRow, tasks: &[TaskRow], format: Format) {
    if format == Format::Json {
        let tasks: Vec<_> = tasks.iter().map(task_json).collect();
        output::json(&serde_json::json!({ "run": run_json(run), "tasks": tasks }));
        return;
    }
    output::line(format_args!("{}  {} ({})", run.run_id, run.state, run.transition_reason));
    output::line(format_args!(
        "key {}, asked for at {}, took {}\n",
        run.run_key,
        run.created_at,
        output::span(run.started_at, run.finished_at)
    ));
    output::table(
        &["task", "state", "why", "attempts", "took", "error"],
        &[3, 4],
        tasks
            .iter()
            .map(|task| {
                let why = match &task.caused_by {
                    Some(cause) => format!("{}: {cause}", task.transition_reason),
                    None => task.transition_reason.to_string(),
                };
                vec![
                    task.task_key.to_string(),
                    task.state.to_string(),
                    why,
                    task.attempt.to_string(),
                    output::span(task.started_at, task.finished_at),
                    task.error.as_deref().map(error_message).unwrap_or_default(),
                ]
            })
            .collect(),
    );
}

fn error_message(json: &str) -> String {
    let error: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    error["message"].as_str().unwrap_or(json).to_owned()
}

fn run_json(run: &RunRow) -> serde_json::Value {
    serde_json::json!({
        "run_id": run.run_id.to_string(),
        "run_key": run.run_key,
        "state": run.state.name(),
        "reason": run.transition_reason.name(),
        "requested_event_id": run.requested_event_id.to_string(),
        "tasks_total": run.tasks_total,
        "tasks_succeeded": run.tasks_succeeded,
        "tasks_failed": run.tasks_failed,
        "tasks_skipped": run.tasks_skipped,
        "tasks_cancelled": run.tasks_cancelled,
        "created_at": run.created_at.to_string(),
        "started_at": run.started_at.map(|at| at.to_string()),
        "finished_at": run.finished_at.map(|at| at.to_string()),
        "duration_ms": output::span_ms(run.started_at, run.finished_at),
    })
}

fn task_json(task: &TaskRow) -> serde_json::Value {
    serde_json::json!({
        "task_key": task.task_key.to_string(),
        "state": task.state.name(),
        "reason": task.transition_reason.name(),
        "caused_by": task.caused_by.as_ref().map(ToString::to_string),
        "attempt": task.attempt,
        "failures": task.failures,
        "started_at": task.started_at.map(|at| at.to_string()),
        "finished_at": task.finished_at.map(|at| at.to_string()),
        "duration_ms": output::span_ms(task.started_at, task.finished_at),
        "error": task.error.as_deref().and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok()),
    })
}
