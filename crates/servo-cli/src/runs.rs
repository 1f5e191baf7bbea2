//! `servo run …`: runs are listed, shown, followed, stopped and tried again.

mod logs;

use servo_api::Page;
use servo_api::client::{ListOptions, first_pages};
use servo_api::views::{CancelBody, RetryBody, Run, RunWithTasks};
use servo_core::RunId;
use servo_engine::RunState;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::follow;
use crate::location::Location;
use crate::materialize::default_slots;
use crate::output::{self, Format};

/// List, follow, cancel and retry runs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Runs, newest first.
    #[command(after_help = "Examples:\n  servo run list --state FAILED\n  servo run list --limit 100 --json")]
    List {
        /// How many.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
        /// Where to go on; the last line of a page says it.
        #[arg(long)]
        cursor: Option<String>,
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
    /// Follow a run until it has ended. An abandoned one continues in this process.
    #[command(after_help = "Example:\n  servo run watch run_abcdefghijklmnopqrstuvwxyz")]
    Watch {
        /// The run.
        run: RunId,
    },
    /// Print the logs of a run's tasks.
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
        /// The reason, for the log.
        #[arg(long, default_value = "")]
        reason: String,
        /// Do not wait for workers that have fallen silent.
        #[arg(long)]
        force: bool,
    },
    /// Retry a run that has ended.
    #[command(after_help = "Example:\n  servo run retry run_abcdefghijklmnopqrstuvwxyz --from-failure")]
    Retry {
        /// The run.
        run: RunId,
        /// Only tasks that did not succeed.
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

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List { limit, cursor, state } => {
            let states: Vec<&str> = state.iter().map(|state| state.name()).collect();
            let states = (!states.is_empty()).then(|| states.join(","));
            let page = through(location, Need::Read, async |client| {
                let runs = async |options: &ListOptions| client.runs(options).await;
                Ok(first_pages(usize::from(*limit), cursor.clone(), states.clone(), runs).await?)
            });
            list(&page.await?, format)?;
            Ok(Exit::Done)
        }
        Command::Show { run } => {
            let found = through(location, Need::Read, async |client| follow::whole(client, *run).await);
            show(&found.await?, format)?;
            Ok(Exit::Done)
        }
        Command::Watch { run } => watch(location, *run, format).await,
        Command::Logs(options) => logs::run(location, options, format).await,
        Command::Cancel { run, reason, force } => {
            let body = CancelBody { reason: reason.clone(), force: *force, ..CancelBody::default() };
            let asked = async |client: &servo_api::client::Client| Ok(client.cancel(*run, &body).await?);
            let accepted = through(location, Need::Change, asked).await?;
            match format {
                Format::Json => output::json(&accepted)?,
                Format::Table => output::line(format_args!("{run} is being cancelled")),
            }
            Ok(Exit::Done)
        }
        Command::Retry { run, from_failure } => {
            let body = RetryBody { from_failure: *from_failure, ..RetryBody::default() };
            through(location, Need::Run { slots: default_slots() }, async |client| {
                let asked = client.retry(*run, &body).await?;
                follow::until_end(client, asked.run_id, format).await
            })
            .await
        }
    }
}

/// One that has ended is told of; one that is at work is followed where it is, or else goes on in this process.
async fn watch(location: &Location, run: RunId, format: Format) -> anyhow::Result<Exit> {
    let ended = through(location, Need::Read, async |client| {
        let has_ended = client.run(run).await?.state.is_terminal();
        if has_ended { follow::until_end(client, run, format).await.map(Some) } else { Ok(None) }
    });
    if let Some(exit) = ended.await? {
        return Ok(exit);
    }
    through(location, Need::Resume { slots: default_slots() }, async |client| {
        follow::until_end(client, run, format).await
    })
    .await
}

fn list(page: &Page<Run>, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(page);
    }
    if page.items.is_empty() {
        output::line(format_args!("no runs"));
        return Ok(());
    }
    output::table(
        &["run", "state", "tasks", "ok", "failed", "created", "took", "key"],
        &[2, 3, 4, 6],
        page.items
            .iter()
            .map(|run| {
                vec![
                    run.run_id.to_string(),
                    run.state.to_string(),
                    run.tasks_total.to_string(),
                    run.tasks_succeeded.to_string(),
                    run.tasks_failed.to_string(),
                    run.created_at.to_string(),
                    output::span(run.started_at, run.finished_at),
                    run.run_key.clone(),
                ]
            })
            .collect(),
    );
    if let Some(next) = &page.next_cursor {
        output::line(format_args!("\nmore: servo run list --cursor {next}"));
    }
    Ok(())
}

/// Prints a run and its tasks.
pub(crate) fn show(found: &RunWithTasks, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(found);
    }
    let run = &found.run;
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
        found
            .tasks
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
                    task.error.as_ref().map(|error| error.message.clone()).unwrap_or_default(),
                ]
            })
            .collect(),
    );
    Ok(())
}
