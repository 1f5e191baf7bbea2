//! Follows a run until it has ended, and tells what became of it.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use servo_api::client::{Client, ListOptions, RunEvent, all_pages};
use servo_api::views::{CancelBody, LogLine, RetryNowBody, RunWithTasks, Task};
use servo_core::{AssetKey, Clock, RunId};
use servo_engine::TaskState;
use servo_runtime::SystemClock;
use tokio::time::{Instant, MissedTickBehavior};

use crate::github;
use crate::interrupts::Interrupts;
use crate::keys::Keys;
use crate::live::{Live, Shape};
use crate::output::{self, Format};
use crate::summary::{self, Detail, Details};

/// How often a picture is drawn again.
const REDRAW: Duration = Duration::from_millis(200);
/// Log lines shown of a failed task.
const TAIL: usize = 20;

/// What is said at the first Ctrl-C.
const CANCELLING: &str = "cancelling; press Ctrl-C again to leave at once";

/// After how long without anything new it is asked what the run waits for, and how often.
const PATIENCE: Duration = Duration::from_secs(3);

/// Follows a run until it has ended, and tells what became of it.
pub(crate) async fn until_end(client: &Client, run: RunId, format: Format) -> anyhow::Result<RunWithTasks> {
    let group = github::Group::begin(run);
    let ended = follow(client, run, format).await?;
    drop(group);
    github::tell(&ended);
    match format {
        Format::Json => output::json(&ended)?,
        Format::Table => summary::print(&ended, &details(client, &ended).await?),
    }
    Ok(ended)
}

/// A run and all of its tasks, as they are now.
pub(crate) async fn whole(client: &Client, run: RunId) -> anyhow::Result<RunWithTasks> {
    let found = client.run(run).await?;
    let tasks = all_pages(async |options: &ListOptions| client.tasks(run, options).await).await?;
    Ok(RunWithTasks { run: found, tasks })
}

/// Shows a run until it has ended. The first Ctrl-C cancels it, the second ends this command alone; Ctrl-R tries at
/// once what waits to be tried again.
async fn follow(client: &Client, run: RunId, format: Format) -> anyhow::Result<RunWithTasks> {
    let mut seen = RunWithTasks { run: client.run(run).await?, tasks: Vec::new() };
    let mut events = client.follow(run, None);
    let mut interrupts = Interrupts::default();
    let mut live: Option<Live> = None;
    let mut keys: Option<Keys> = None;
    let mut ticks = tokio::time::interval(REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // Whatever happens meanwhile does not make it begin anew: it counts how long nobody answers.
        let mut next = pin!(events.next());
        let mut patience = tokio::time::interval_at(Instant::now() + PATIENCE, PATIENCE);
        let event = loop {
            let pressed = async {
                match &mut keys {
                    Some(keys) => keys.retry().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = &mut next => break event?,
                _ = ticks.tick(), if format == Format::Table => {
                    if let Some(live) = &mut live {
                        live.show(&seen, SystemClock.now());
                    }
                    // Nobody else's: what is typed for the shell meanwhile is left to it.
                    let is_wanted = seen.tasks.iter().any(|task| task.state == TaskState::RetryWait);
                    keys = if is_wanted { keys.or_else(Keys::of_terminal) } else { None };
                }
                _ = patience.tick() => {
                    let notices = client.run(run).await?.notices;
                    let live = drawn(client, &mut live, &seen).await?;
                    live.notice(notices);
                    if format == Format::Table {
                        live.show(&seen, SystemClock.now());
                    }
                }
                () = pressed => {
                    client.retry_now(run, &RetryNowBody::default()).await?;
                }
                pressed = interrupts.next() => {
                    pressed?;
                    match (format, &mut live) {
                        (Format::Table, Some(live)) => live.say(CANCELLING, &seen, SystemClock.now()),
                        (Format::Table, None) | (Format::Json, _) => eprintln!("{CANCELLING}"),
                    }
                    let body = CancelBody { reason: "Ctrl-C".to_owned(), ..CancelBody::default() };
                    client.cancel(run, &body).await?;
                }
            }
        };
        match event {
            Some(RunEvent::Run(row)) => seen.run = *row,
            Some(RunEvent::Task(row)) => {
                if let Some(live) = &mut live {
                    live.heard(&row, SystemClock.now());
                }
                put(&mut seen.tasks, *row);
            }
            Some(RunEvent::End(_)) | None => break,
        }
        if format == Format::Table && live.is_none() && seen.tasks.len() >= seen.run.tasks_total as usize {
            drawn(client, &mut live, &seen).await?.show(&seen, SystemClock.now());
        }
    }
    if format == Format::Table {
        drawn(client, &mut live, &seen).await?.finish(&seen, SystemClock.now());
    }
    Ok(seen)
}

/// The picture of a run, begun when its tasks are known.
async fn drawn<'l>(
    client: &Client,
    live: &'l mut Option<Live>,
    seen: &RunWithTasks,
) -> anyhow::Result<&'l mut Live> {
    if live.is_none() {
        let mut upstream: BTreeMap<AssetKey, Vec<AssetKey>> = BTreeMap::new();
        if Live::draws() {
            let assets = all_pages(async |options: &ListOptions| client.assets("*", options).await).await?;
            upstream.extend(assets.into_iter().map(|asset| (asset.asset_key, asset.upstream)));
        }
        let keys: Vec<AssetKey> = seen.tasks.iter().map(|task| task.task_key.asset()).collect();
        let begun = live.insert(Live::new(Shape::new(keys, &upstream), seen.tasks.len()));
        let now = SystemClock.now();
        seen.tasks.iter().for_each(|task| begun.heard(task, now));
    }
    Ok(live.get_or_insert_with(|| Live::new(Shape::default(), 0)))
}

/// Replaces a task, or adds it in the order of keys.
fn put(tasks: &mut Vec<Task>, task: Task) {
    match tasks.binary_search_by(|known| known.task_key.cmp(&task.task_key)) {
        Ok(at) => tasks[at] = task,
        Err(at) => tasks.insert(at, task),
    }
}

/// Checks, errors and last log lines of the tasks that are shown in full.
async fn details(client: &Client, run: &RunWithTasks) -> anyhow::Result<Details> {
    let id = run.run.run_id;
    let mut details = Details::new();
    for task in summary::shown_in_full(&run.tasks) {
        let detail = client.task(id, &task.task_id).await?;
        let printed = tail(client, id, &task.task_id, task.attempt).await?;
        details.insert(task.task_key.clone(), Detail { task: detail, printed });
    }
    for task in summary::warned(&run.tasks) {
        let detail = client.task(id, &task.task_id).await?;
        details.insert(task.task_key.clone(), Detail { task: detail, printed: Vec::new() });
    }
    Ok(details)
}

async fn tail(client: &Client, run: RunId, task: &str, attempt: u32) -> anyhow::Result<Vec<LogLine>> {
    let mut lines: Vec<LogLine> = Vec::new();
    if attempt == 0 {
        return Ok(lines);
    }
    let mut offset = 0;
    loop {
        let page = client.log(run, task, attempt, offset, None).await?;
        let is_last = page.lines.is_empty() || page.next_offset == offset;
        lines.extend(page.lines);
        lines.drain(..lines.len().saturating_sub(TAIL));
        if is_last {
            return Ok(lines);
        }
        offset = page.next_offset;
    }
}
