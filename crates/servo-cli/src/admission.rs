//! `servo admin pause|resume|drain|status` and `servo run why`: what may run, and why something does not.

use std::time::Duration;

use servo_api::client::Client;
use servo_api::views::{Accepted, Admission, Pause, PauseBody, Wait, Why};
use servo_core::{AssetKey, RunId};
use servo_engine::event::PauseScope;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

/// How often `drain` looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The scope of a pause: everything, unless a queue or an asset is named.
#[derive(clap::Args)]
pub(crate) struct Scope {
    /// Only tasks of this queue.
    #[arg(long, conflicts_with = "asset")]
    queue: Option<String>,
    /// Only tasks that make this asset.
    #[arg(long, value_parser = AssetKey::parse)]
    asset: Option<AssetKey>,
}

impl Scope {
    fn text(&self) -> String {
        match (&self.queue, &self.asset) {
            (Some(queue), _) => PauseScope::Queue(queue.as_str().into()).to_string(),
            (None, Some(asset)) => PauseScope::Asset(asset.clone()).to_string(),
            (None, None) => PauseScope::All.to_string(),
        }
    }
}

/// Options of `servo admin pause`.
#[derive(clap::Args)]
pub(crate) struct PauseOptions {
    #[command(flatten)]
    scope: Scope,
    /// Why, for those who ask what is going on.
    #[arg(long, default_value = "")]
    reason: String,
}

/// Options of `servo admin drain`.
#[derive(clap::Args)]
pub(crate) struct DrainOptions {
    /// Why, for those who ask what is going on.
    #[arg(long, default_value = "draining")]
    reason: String,
    /// Seconds to wait for tasks to end.
    #[arg(long, default_value_t = 3_600)]
    timeout: u64,
}

pub(crate) async fn pause(
    location: &Location,
    options: &PauseOptions,
    format: Format,
) -> anyhow::Result<Exit> {
    let body =
        PauseBody { scope: options.scope.text(), reason: options.reason.clone(), ..PauseBody::default() };
    let accepted = through(location, Need::Change, async |client| Ok(client.pause(&body).await?)).await?;
    say(accepted, format, &format!("{} is paused; what workers are at goes on", body.scope), &body.scope)
}

pub(crate) async fn resume(location: &Location, scope: &Scope, format: Format) -> anyhow::Result<Exit> {
    let body = PauseBody { scope: scope.text(), ..PauseBody::default() };
    let accepted = through(location, Need::Change, async |client| Ok(client.resume(&body).await?)).await?;
    say(accepted, format, &format!("{} is resumed", body.scope), &body.scope)
}

fn say(accepted: Accepted, format: Format, done: &str, scope: &str) -> anyhow::Result<Exit> {
    match (format, accepted.accepted_event_id) {
        (Format::Json, _) => output::json(&accepted)?,
        (Format::Table, Some(_)) => output::line(done),
        (Format::Table, None) => {
            output::line(format_args!("nothing to change: {scope} is like that already"))
        }
    }
    Ok(Exit::Done)
}

/// Pauses everything and waits until no worker is at anything.
pub(crate) async fn drain(
    location: &Location,
    options: &DrainOptions,
    format: Format,
) -> anyhow::Result<Exit> {
    let body = PauseBody {
        scope: PauseScope::All.to_string(),
        reason: options.reason.clone(),
        ..PauseBody::default()
    };
    let drained = through(location, Need::Change, async |client| {
        client.pause(&body).await?;
        until_idle(client, Duration::from_secs(options.timeout)).await
    })
    .await?;
    if format == Format::Json {
        output::json(&drained)?;
    }
    let left = drained.tasks_running + drained.tasks_dispatched;
    if left > 0 {
        anyhow::bail!(
            "{left} tasks are still at work after {} s; everything stays paused: servo admin resume",
            options.timeout
        );
    }
    if format == Format::Table {
        output::line("nothing is at work, and everything is paused; go on with: servo admin resume");
    }
    Ok(Exit::Done)
}

async fn until_idle(client: &Client, longest: Duration) -> anyhow::Result<Admission> {
    let started = std::time::Instant::now();
    loop {
        let now = client.admission().await?;
        if now.tasks_running + now.tasks_dispatched == 0 || started.elapsed() >= longest {
            return Ok(now);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Shows what is paused and how full the workspace is.
pub(crate) async fn status(location: &Location, format: Format) -> anyhow::Result<Exit> {
    let now = through(location, Need::Read, async |client| Ok(client.admission().await?)).await?;
    if format == Format::Json {
        output::json(&now)?;
        return Ok(Exit::Done);
    }
    let today = now
        .max_daily_runs
        .map_or_else(String::new, |most| format!(", {} of {most} asked for today", now.runs_today));
    output::line(format_args!(
        "runs   {} of {} at work, {} of {} queued{today}",
        now.runs_at_work, now.max_concurrent_runs, now.runs_queued, now.max_queued_runs
    ));
    output::line(format_args!(
        "tasks  {} running and {} dispatched of {}, {} wait",
        now.tasks_running, now.tasks_dispatched, now.max_concurrent_tasks, now.tasks_waiting
    ));
    for pool in &now.pools {
        let limit = pool.limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
        output::line(format_args!("pool   {}: {} of {limit} at work", pool.name, pool.tasks_at_work));
    }
    let row = |pause: &Pause| {
        vec![pause.scope.clone(), pause.paused_by.clone(), pause.paused_at.to_string(), pause.reason.clone()]
    };
    output::section("paused", &now.paused.iter().map(row).collect::<Vec<_>>());
    Ok(Exit::Done)
}

/// Shows why a run does not go on.
pub(crate) async fn why(location: &Location, run: RunId, format: Format) -> anyhow::Result<Exit> {
    let why = through(location, Need::Read, async |client| Ok(client.why(run).await?)).await?;
    match format {
        Format::Json => output::json(&why)?,
        Format::Table => show(&why),
    }
    Ok(Exit::Done)
}

fn show(why: &Why) {
    let Why { run_id, state, tasks_running, tasks_waiting, .. } = why;
    if state.is_terminal() {
        output::line(format_args!("{run_id} has ended, as {state}: servo run show {run_id}"));
        return;
    }
    output::line(format_args!("{run_id} is {state}: {tasks_running} running, {tasks_waiting} waiting"));
    for wait in &why.waits {
        reason("  ", wait);
    }
    if !why.waits.is_empty() {
        // Its tasks wait for the same.
        return;
    }
    for task in &why.tasks {
        output::line(format_args!("  {} {}", task.task_key.subject(), task.state));
        for wait in &task.waits {
            reason("    ", wait);
        }
    }
    let more = why.tasks_waiting - why.tasks.len() as u64;
    if more > 0 {
        output::line(format_args!("  and {more} more"));
    }
}

fn reason(indent: &str, wait: &Wait) {
    output::line(format_args!("{indent}{}: {}, since {}", wait.reason, wait.detail, wait.since));
    output::line(format_args!("{indent}  would change it: {}", wait.remedy));
}
