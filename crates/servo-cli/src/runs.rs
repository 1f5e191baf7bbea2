//! `servo run …`: a server is asked if there is one; else runs are listed and shown from the tables alone.

mod follow;
mod logs;

pub(crate) use follow::{code, end_of};

use std::process::ExitCode;

use anyhow::{Context, bail};
use servo_api::client::ListOptions;
use servo_api::views;
use servo_core::{EventId, RunId};
use servo_engine::RunState;
use servo_engine::rows::{RunRow, TaskRow};
use servo_projections::{Projection, RunFilter, merge_page};

use crate::location::Location;
use crate::output::{self, Format};
use crate::{remote, server};

/// Look at runs, follow them, stop them, try them again.
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
    /// Follow a run until it has ended. One that nobody works on goes on in this process.
    #[command(after_help = "Example:\n  servo run watch run_abcdefghijklmnopqrstuvwxyz")]
    Watch {
        /// The run.
        run: RunId,
    },
    /// What the tasks of a run have printed.
    #[command(
        after_help = "Examples:\n  servo run logs run_abcdefghijklmnopqrstuvwxyz\n  servo run logs run_abcdefghijklmnopqrstuvwxyz analytics.delays --partition 2013-01-15 --follow"
    )]
    Logs(logs::Options),
    /// Stop a run.
    #[command(
        after_help = "Example:\n  servo run cancel run_abcdefghijklmnopqrstuvwxyz --reason 'wrong day'"
    )]
    Cancel {
        /// The run.
        run: RunId,
        /// Why, for the log.
        #[arg(long, default_value = "")]
        reason: String,
        /// Do not wait for workers that have fallen silent.
        #[arg(long)]
        force: bool,
    },
    /// Run again what a run that has ended did.
    #[command(after_help = "Example:\n  servo run retry run_abcdefghijklmnopqrstuvwxyz --from-failure")]
    Retry {
        /// The run.
        run: RunId,
        /// Only what did not succeed.
        #[arg(long)]
        from_failure: bool,
    },
}

fn parse_state(name: &str) -> Result<RunState, String> {
    RunState::from_name(&name.to_ascii_uppercase()).ok_or_else(|| {
        let known: Vec<&str> = RunState::ALL.iter().map(|state| state.name()).collect();
        format!("there is no such state; the states are {}", known.join(", "))
    })
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { .. } | Command::Show { .. } => {}
        Command::Watch { run } => return follow::watch(location, *run, format).await,
        Command::Logs(options) => return logs::run(location, options, format).await,
        Command::Cancel { run, reason, force } => {
            return follow::cancel(location, *run, reason, *force, format).await;
        }
        Command::Retry { run, from_failure } => {
            return follow::retry(location, *run, *from_failure, format).await;
        }
    }
    if let Some(client) = server::find(location).await? {
        // The tables are up to a second behind.
        match command {
            Command::List { limit, before: None, state } => {
                let states: Vec<&str> = state.iter().map(|state| state.name()).collect();
                let options = ListOptions {
                    limit: Some(usize::from(*limit)),
                    state: (!states.is_empty()).then(|| states.join(",")),
                    ..ListOptions::default()
                };
                list(&client.runs(&options).await?.items, usize::from(*limit), format);
                return Ok(ExitCode::SUCCESS);
            }
            Command::Show { run } => {
                remote::show(&client, *run, format).await?;
                return Ok(ExitCode::SUCCESS);
            }
            Command::List { .. }
            | Command::Watch { .. }
            | Command::Logs(_)
            | Command::Cancel { .. }
            | Command::Retry { .. } => {}
        }
    }
    let stores = location.look()?;
    let projection = Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await?;
    match command {
        Command::List { limit, before, state } => {
            let limit = usize::from(*limit);
            let rows = match &projection {
                Some(projection) => page(projection, *before, limit, state).await?,
                None => Vec::new(),
            };
            let rows: Vec<views::Run> = rows.into_iter().map(Into::into).collect();
            list(&rows, limit, format);
        }
        Command::Show { run } => {
            let Some((row, tasks)) = find(projection.as_ref(), *run).await? else {
                bail!("there is no run {run} in the tables; `servo run list` shows what there is");
            };
            show(&row, &tasks, format);
        }
        Command::Watch { .. } | Command::Logs(_) | Command::Cancel { .. } | Command::Retry { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn page(
    projection: &Projection,
    before: Option<EventId>,
    limit: usize,
    states: &[RunState],
) -> anyhow::Result<Vec<RunRow>> {
    let filter = RunFilter { states: states.to_vec(), ..RunFilter::default() };
    let mut hot = projection.hot_rows().await.context("reading the hot tables")?.runs;
    hot.retain(|run| before.is_none_or(|before| run.requested_event_id < before));
    hot.retain(|run| states.is_empty() || states.contains(&run.state));
    let history = projection.runs_after(before, limit, &filter).await?;
    Ok(merge_page(hot, history, limit, filter.order))
}

pub(crate) async fn find(
    projection: Option<&Projection>,
    id: RunId,
) -> anyhow::Result<Option<(RunRow, Vec<TaskRow>)>> {
    let Some(projection) = projection else { return Ok(None) };
    let hot = projection.hot_rows().await.context("reading the hot tables")?;
    if let Some(run) = hot.runs.into_iter().find(|run| run.run_id == id) {
        return Ok(Some((run, hot.tasks.into_iter().filter(|task| task.run_id == id).collect())));
    }
    let Some(run) = projection.run(id).await? else { return Ok(None) };
    let tasks = projection.tasks_of(&run).await?;
    Ok(Some((run, tasks)))
}

fn list(rows: &[views::Run], limit: usize, format: Format) {
    let next = (rows.len() == limit).then(|| rows.last().map(|row| row.requested_event_id)).flatten();
    if format == Format::Json {
        output::json(&serde_json::json!({ "runs": rows, "next_before": next.map(|id| id.to_string()) }));
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
    let run = views::Run::from(run.clone());
    let tasks: Vec<views::TaskDetail> = tasks.iter().cloned().map(Into::into).collect();
    if format == Format::Json {
        output::json(&serde_json::json!({ "run": run, "tasks": tasks }));
        return;
    }
    table(&run, tasks.iter().map(|detail| &detail.task));
}

/// Prints a run and its tasks for people.
pub(crate) fn table<'a>(run: &views::Run, tasks: impl Iterator<Item = &'a views::Task>) {
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
                    task.error.as_ref().map(|error| error.message.clone()).unwrap_or_default(),
                ]
            })
            .collect(),
    );
}
