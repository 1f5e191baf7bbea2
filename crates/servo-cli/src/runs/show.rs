//! `servo run show`.

use servo_api::client::{ListOptions, first_pages};
use servo_api::views::{RunWithTasks, Task};
use servo_core::RunId;
use servo_engine::TaskState;

use super::told;
use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format, words};
use crate::style::harmless;
use crate::which::Which;

/// Options of `servo run show`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The run: its id, the beginning of it, or latest.
    run: Which<RunId>,
    /// Only tasks in this state; may be given several times.
    #[arg(long, short, value_name = "STATE", value_parser = parse_state)]
    state: Vec<TaskState>,
    /// How many tasks [default: all].
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

fn parse_state(name: &str) -> Result<TaskState, String> {
    TaskState::from_name(&name.to_ascii_uppercase()).ok_or_else(|| {
        let known: Vec<&str> = TaskState::ALL.iter().map(|state| state.name()).collect();
        format!("there is no such state; the states are {}", known.join(", "))
    })
}

pub(super) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let limit = options.limit.map_or(usize::MAX, |limit| limit as usize);
    let states: Vec<String> = options.state.iter().map(ToString::to_string).collect();
    let which =
        ListOptions { state: (!states.is_empty()).then(|| states.join(",")), ..ListOptions::default() };
    let found = through(location, Need::Read, async |client| {
        let id = options.run.find(client).await?;
        let run = client.run(id).await?;
        let tasks = async |page: &ListOptions| client.tasks(id, page).await;
        let page = first_pages(limit, which.clone(), tasks).await?;
        Ok((RunWithTasks { run, tasks: page.items }, page.next_cursor.is_some()))
    });
    let (found, has_more) = found.await?;
    print(&found, has_more, format)?;
    Ok(Exit::Done)
}

/// Prints a run and its tasks.
pub(crate) fn print(found: &RunWithTasks, has_more: bool, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(found);
    }
    let run = &found.run;
    output::line(format_args!("{}  {} ({})", run.run_id, told::state(run), words(run.transition_reason)));
    let partitions = match told::partitions(&run.partitions) {
        none if none.is_empty() => none,
        some => format!(" for {some}"),
    };
    output::line(format_args!("asked for {}{partitions}", told::asked(run)));
    let took = match output::span(run.started_at, run.finished_at) {
        _ if run.state.is_terminal() && run.started_at.is_none() => "never began".to_owned(),
        running if running.is_empty() => "has not ended".to_owned(),
        took => format!("took {took}"),
    };
    output::line(format_args!("{}, at {}, {took}, key {}", told::source(run), run.created_at, run.run_key));
    if !run.cost_micro_usd.is_zero() {
        let so_far = if run.state.is_terminal() { "" } else { " so far" };
        output::line(format_args!("cost {}{so_far}", run.cost_micro_usd));
    }
    if run.code_changed {
        output::line("some tasks ran other code than was planned");
    }
    output::line("");
    let rows: Vec<Vec<String>> = found.tasks.iter().map(row).collect();
    let header = ["task", "state", "attempts", "took", "why", "error"];
    // Of a run that went well there is nothing to say in the last ones.
    let is_used = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
    let shown = (0..header.len()).rev().find(is_used).map_or(header.len(), |last| last + 1);
    let rows = rows.into_iter().map(|mut row| row.drain(..shown).collect()).collect();
    output::table(&header[..shown], &[2, 3], rows);
    if has_more {
        output::line("\nthere are more; ask with a higher --limit");
    }
    Ok(())
}

fn row(task: &Task) -> Vec<String> {
    let why = match (&task.caused_by, task.state) {
        (Some(cause), _) => format!("{}: {}", words(task.transition_reason), cause.subject()),
        (None, TaskState::Succeeded) => String::new(),
        (None, _) => words(task.transition_reason),
    };
    let state = match task.checks_failed {
        0 => task.state.to_string(),
        failed => format!("{}, {failed} of {} checks failed", task.state, task.checks),
    };
    vec![
        task.task_key.subject(),
        state,
        task.attempt.to_string(),
        output::span(task.started_at, task.finished_at),
        why,
        task.error.as_ref().map(|error| harmless(&error.message).into_owned()).unwrap_or_default(),
    ]
}
