//! Runs on a server, as this command follows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use servo_api::client::{Client, ListOptions, RunEvent};
use servo_api::views;
use servo_core::{RunId, TaskKey};
use servo_engine::TaskState;
use servo_runtime::SystemClock;
use servo_worker::LogLine;

use crate::interrupts::Interrupts;
use crate::live::{Live, Shape};
use crate::output::{self, Format};
use crate::runs;
use crate::summary::{Tails, told_in_full};
use crate::view::RunView;

/// Lines of output that are shown of a task that failed.
const TAIL: usize = 20;
/// Tasks whose checks are asked for, of those that have some that did not pass.
const CHECKED: usize = 20;

/// A run and its tasks as a server told them.
pub(crate) struct Told {
    pub(crate) run: views::Run,
    pub(crate) tasks: BTreeMap<TaskKey, views::Task>,
}

impl Told {
    pub(crate) fn view(&self) -> RunView {
        RunView::told(&self.run, self.tasks.values())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::json!({ "run": self.run, "tasks": self.tasks.values().collect::<Vec<_>>() })
    }
}

/// Shows a run as it is now.
pub(crate) async fn show(client: &Client, run: RunId, format: Format) -> anyhow::Result<()> {
    let mut told = Told { run: client.run(run).await?, tasks: BTreeMap::new() };
    let mut options = ListOptions { limit: Some(100), ..ListOptions::default() };
    loop {
        let page = client.tasks(run, &options).await?;
        told.tasks.extend(page.items.into_iter().map(|task| (task.task_key.clone(), task)));
        options.cursor = page.next_cursor;
        if options.cursor.is_none() {
            break;
        }
    }
    match format {
        Format::Json => output::json(&told.json()),
        Format::Table => runs::table(&told.run, told.tasks.values()),
    }
    Ok(())
}

/// Follows a run until it has ended. The first Ctrl-C cancels it, the second ends this command alone.
pub(crate) async fn follow(client: &Client, run: RunId, shows: bool) -> anyhow::Result<Told> {
    let mut told = Told { run: client.run(run).await?, tasks: BTreeMap::new() };
    let mut events = client.follow(run, None);
    let mut interrupts = Interrupts::default();
    let mut live: Option<Live> = None;
    loop {
        let event = tokio::select! {
            event = events.next() => event?,
            pressed = interrupts.next() => {
                pressed?;
                let body = views::CancelBody { reason: "Ctrl-C".to_owned(), ..views::CancelBody::default() };
                client.cancel(run, &body).await?;
                continue;
            }
        };
        match event {
            Some(RunEvent::Run(row)) => told.run = *row,
            Some(RunEvent::Task(row)) => {
                told.tasks.insert(row.task_key.clone(), *row);
            }
            Some(RunEvent::End(_)) | None => break,
        }
        if shows && told.tasks.len() >= told.run.tasks_total as usize {
            draw(&mut live, &told, false);
        }
    }
    if shows {
        draw(&mut live, &told, true);
    }
    Ok(told)
}

fn draw(live: &mut Option<Live>, told: &Told, is_last: bool) {
    let now = servo_core::Clock::now(&SystemClock);
    let live = live.get_or_insert_with(|| Live::new(Shape::new(told.tasks.keys(), &BTreeMap::new())));
    if is_last { live.finish(&told.view(), now) } else { live.show(&told.view(), now) }
}

/// The run with what its tasks say of checks and errors, and what those that failed have printed last.
pub(crate) async fn in_full(client: &Client, told: &Told) -> anyhow::Result<(RunView, Tails)> {
    let mut view = told.view();
    let run = told.run.run_id;
    let is_telling = |task: &views::Task| task.state == TaskState::Failed || task.checks_failed > 0;
    for task in told.tasks.values().filter(|task| is_telling(task)).take(CHECKED) {
        let detail = client.task(run, &task.task_id).await?;
        let Some(shown) = view.tasks.iter_mut().find(|shown| shown.key == task.task_key) else { continue };
        let outputs = serde_json::to_value(&detail.outputs).and_then(serde_json::from_value);
        shown.outputs = outputs.unwrap_or_default();
        if let (Some(error), Some(newest)) = (&mut shown.error, detail.attempts.first()) {
            Arc::make_mut(error).traceback = newest.error.as_ref().and_then(|error| error.traceback.clone());
        }
    }
    let mut tails = Tails::new();
    for task in told_in_full(&view) {
        let id = views::Task::id_of(&task.key);
        let lines = tail(client, run, &id, task.attempt).await.context("reading the log")?;
        tails.insert(task.key.clone(), lines);
    }
    Ok((view, tails))
}

async fn tail(client: &Client, run: RunId, task: &str, attempt: u32) -> anyhow::Result<Vec<LogLine>> {
    let mut lines: Vec<LogLine> = Vec::new();
    let mut offset = 0;
    loop {
        let page = client.log(run, task, attempt, offset, None).await?;
        let is_last = page.lines.is_empty() || page.next_offset == offset;
        lines.extend(page.lines.into_iter().map(LogLine::from));
        lines.drain(..lines.len().saturating_sub(TAIL));
        if is_last {
            return Ok(lines);
        }
        offset = page.next_offset;
    }
}
