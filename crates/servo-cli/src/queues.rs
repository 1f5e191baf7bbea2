//! `servo queue`: what waits for each queue, and who serves it.

use servo_api::views::Queue;
use servo_core::{Clock, Timestamp};
use servo_runtime::SystemClock;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::style::harmless;

/// Commands about queues.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show queues: what waits since when, what workers are at, their slots, and whether it is paused.
    #[command(after_help = "Examples:\n  servo queue list\n  servo queue list --json")]
    List,
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    let Command::List = command;
    let queues = through(location, Need::Read, async |client| Ok(client.queues().await?)).await?;
    if format == Format::Json {
        output::json(&queues)?;
        return Ok(Exit::Done);
    }
    let now = SystemClock.now();
    output::table(
        &["queue", "waiting", "since", "dispatched", "running", "slots", "workers", "paused", "limit"],
        &[1, 3, 4, 5],
        queues.items.iter().map(|queue| row(queue, now)).collect(),
    );
    Ok(Exit::Done)
}

fn row(queue: &Queue, now: Timestamp) -> Vec<String> {
    let workers = match queue.outdated_workers {
        0 => queue.workers.to_string(),
        outdated => format!("{}, {outdated} outdated", queue.workers),
    };
    let since = queue.waiting_since.map(|since| format!("{} ago", now.since(since)));
    let paused = queue.paused.as_ref().map(|pause| match pause.reason.as_str() {
        "" => format!("by {}", pause.paused_by),
        reason => format!("by {}: {reason}", pause.paused_by),
    });
    vec![
        harmless(&queue.name).into_owned(),
        queue.tasks_waiting.to_string(),
        since.unwrap_or_default(),
        queue.tasks_dispatched.to_string(),
        queue.tasks_running.to_string(),
        queue.slots.to_string(),
        workers,
        harmless(&paused.unwrap_or_default()).into_owned(),
        queue.push_limit.map(|limit| limit.to_string()).unwrap_or_default(),
    ]
}
