//! `servo run logs`: what tasks have printed, and still print.

use std::process::ExitCode;

use anyhow::bail;
use servo_api::client::{Client, ListOptions, LogEvent};
use servo_api::views;
use servo_core::{RunId, TaskKey};
use servo_projections::Projection;
use servo_worker::{LogFiles, LogLine, LogName, LogStream};

use crate::location::Location;
use crate::output::{self, Format};
use crate::server;
use crate::style::{Paint, Style};

/// What is read at once.
const CHUNK: usize = 1 << 20;

/// Which logs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The run.
    run: RunId,
    /// The asset; all tasks of the run without one.
    asset: Option<String>,
    /// The partition.
    #[arg(long, requires = "asset")]
    partition: Option<String>,
    /// The attempt [default: the newest].
    #[arg(long)]
    attempt: Option<u32>,
    /// Go on until the task has ended; needs a running server.
    #[arg(long, short)]
    follow: bool,
}

/// A task whose log is wanted.
struct Wanted {
    key: TaskKey,
    attempt: u32,
}

pub(super) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<ExitCode> {
    let client = server::find(location).await?;
    let tasks = match &client {
        Some(client) => told(client, options.run).await?,
        None => known(location, options.run).await?,
    };
    let wanted: Vec<Wanted> = tasks.into_iter().filter(|task| options.means(&task.key)).collect();
    if wanted.is_empty() {
        bail!("run {} has no such task; `servo run show {}` shows its tasks", options.run, options.run);
    }
    let named = wanted.len() > 1;
    let mut count = 0usize;
    for task in &wanted {
        let attempt = options.attempt.unwrap_or(task.attempt);
        let printer = Printer { task: named.then_some(&task.key), format, paint: Paint::for_stdout() };
        count += match &client {
            Some(client) if options.follow => {
                follow(client, options.run, &task.key, attempt, &printer).await?
            }
            Some(client) => page(client, options.run, &task.key, attempt, &printer).await?,
            None => {
                let name = LogName { run_id: options.run, task_key: task.key.clone(), attempt };
                read(&location.logs(), &name, &printer).await?
            }
        };
    }
    if count == 0 && format == Format::Table {
        eprintln!("nothing was printed");
    }
    Ok(ExitCode::SUCCESS)
}

impl Options {
    fn means(&self, task: &TaskKey) -> bool {
        let Some(asset) = &self.asset else { return true };
        let is_asset =
            task.asset().to_string() == *asset || task.asset_str() == asset || task.as_str() == asset;
        let is_partition = self.partition.as_ref().is_none_or(|wanted| {
            task.partition().is_some_and(|key| key.to_string() == *wanted || key.canonical() == wanted)
        });
        is_asset && is_partition
    }
}

async fn told(client: &Client, run: RunId) -> anyhow::Result<Vec<Wanted>> {
    let mut wanted = Vec::new();
    let mut options = ListOptions { limit: Some(100), ..ListOptions::default() };
    loop {
        let page = client.tasks(run, &options).await?;
        wanted
            .extend(page.items.into_iter().map(|task| Wanted { key: task.task_key, attempt: task.attempt }));
        if page.next_cursor.is_none() {
            return Ok(wanted);
        }
        options.cursor = page.next_cursor;
    }
}

async fn known(location: &Location, run: RunId) -> anyhow::Result<Vec<Wanted>> {
    let stores = location.look()?;
    let projection = Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await?;
    let Some((_, tasks)) = super::find(projection.as_ref(), run).await? else {
        bail!("there is no run {run} in the tables; `servo run list` shows what there is");
    };
    Ok(tasks.into_iter().map(|task| Wanted { key: task.task_key, attempt: task.attempt }).collect())
}

async fn read(logs: &LogFiles, name: &LogName, printer: &Printer<'_>) -> anyhow::Result<usize> {
    let (mut offset, mut count) = (0, 0);
    loop {
        let chunk = logs.read(name, offset, CHUNK).await?;
        chunk.lines().for_each(|line| printer.print(&line));
        count += chunk.lines().count();
        if chunk.next == offset {
            return Ok(count);
        }
        offset = chunk.next;
    }
}

async fn page(
    client: &Client,
    run: RunId,
    task: &TaskKey,
    attempt: u32,
    printer: &Printer<'_>,
) -> anyhow::Result<usize> {
    let id = views::Task::id_of(task);
    let (mut offset, mut count) = (0, 0);
    loop {
        let page = client.log(run, &id, attempt, offset, None).await?;
        let is_last = page.next_offset == offset;
        count += page.lines.len();
        page.lines.into_iter().map(LogLine::from).for_each(|line| printer.print(&line));
        if is_last {
            return Ok(count);
        }
        offset = page.next_offset;
    }
}

async fn follow(
    client: &Client,
    run: RunId,
    task: &TaskKey,
    attempt: u32,
    printer: &Printer<'_>,
) -> anyhow::Result<usize> {
    let mut lines = client.follow_log(run, &views::Task::id_of(task), attempt.max(1), 0);
    let mut count = 0;
    while let Some(LogEvent::Line(line)) = lines.next().await? {
        printer.print(&LogLine::from(*line));
        count += 1;
    }
    Ok(count)
}

struct Printer<'a> {
    /// Told with every line, where there are several.
    task: Option<&'a TaskKey>,
    format: Format,
    paint: Paint,
}

impl Printer<'_> {
    fn print(&self, line: &LogLine) {
        if self.format == Format::Json {
            let mut value = serde_json::to_value(line).unwrap_or_default();
            if let (Some(task), Some(object)) = (self.task, value.as_object_mut()) {
                object.insert("task_key".to_owned(), task.as_str().into());
            }
            output::json(&value);
            return;
        }
        let task = self.task.map(|task| format!("{task} ")).unwrap_or_default();
        let mark = match line.stream {
            LogStream::Stdout => "│",
            LogStream::Stderr => "2│",
            LogStream::Log => "·│",
            LogStream::Servo => "s│",
        };
        let head = format!("{} {task}{mark}", line.at);
        output::line(format_args!("{} {}", self.paint.with(Style::Dim, &head), line.text));
    }
}
