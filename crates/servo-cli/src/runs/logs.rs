//! `servo run logs`: prints the logs of tasks, and follows them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use servo_api::client::{Client, ListOptions, LogEvent, all_pages};
use servo_api::views::{Failure, LogLine, Task, TaskErrorLine, TaskLogLine};
use servo_api::{Code, Problem};
use servo_core::{AssetKey, PartitionKey, RunId, TaskKey};
use servo_engine::TaskState;
use servo_worker::LogStream;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::style::{Paint, Style, harmless};
use crate::which::Which;

/// Options of `servo run logs`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The run: its id, the beginning of it, or latest.
    run: Which<RunId>,
    /// The asset; all tasks of the run without one.
    asset: Option<String>,
    /// The partition.
    #[arg(value_name = "PARTITION")]
    key: Option<String>,
    /// The partition, as an option.
    #[arg(long, short, requires = "asset", conflicts_with = "key")]
    partition: Option<String>,
    /// The attempt [default: the newest].
    #[arg(long)]
    attempt: Option<u32>,
    /// Go on until the task has ended, where somebody runs it.
    #[arg(long, short)]
    follow: bool,
    /// Only lines with this text, whatever the case.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    grep: Option<String>,
}

pub(super) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let need = if options.follow { Need::Follow } else { Need::Read };
    let printed = Printed::default();
    through(location, need, async |client| print(client, options, format, &printed).await).await?;
    if printed.borrow().is_empty() && format == Format::Table {
        eprintln!("nothing was printed");
    }
    Ok(Exit::Done)
}

/// How many lines of each task were printed: whoever begins again goes on after them.
type Printed = RefCell<BTreeMap<TaskKey, usize>>;

/// Prints what is wanted.
async fn print(client: &Client, options: &Options, format: Format, printed: &Printed) -> anyhow::Result<()> {
    let run = options.run.find(client).await?;
    let tasks = all_pages(async |page: &ListOptions| client.tasks(run, page).await).await?;
    let partition = options.partition(client).await;
    let is_wanted = |task: &Task| options.means(&task.task_key, partition.as_ref());
    let wanted: Vec<Task> = tasks.into_iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        let which = [options.asset.as_deref(), options.typed()].into_iter().flatten().collect::<Vec<_>>();
        let detail =
            format!("run {run} has no task {}; `servo run show {run}` shows its tasks", which.join(" "));
        return Err(Problem::new(Code::UnknownTask, detail).into());
    }
    let is_named = wanted.len() > 1;
    for task in wanted {
        let attempt = options.attempt.unwrap_or(task.attempt);
        let skip = printed.borrow().get(&task.task_key).copied().unwrap_or_default();
        let paint = Paint::for_stdout();
        let grep = options.grep.as_deref();
        let mut printer = Printer { task: task.task_key, skip, grep, printed, is_named, format, paint };
        if options.follow {
            follow(client, run, &task.task_id, attempt, &mut printer).await?;
        } else {
            page(client, run, &task.task_id, attempt, &mut printer).await?;
        }
        if task.state == TaskState::Failed || options.follow {
            error(client, run, &task.task_id, attempt, &printer).await?;
        }
    }
    Ok(())
}

impl Options {
    /// The partition, as it was typed.
    fn typed(&self) -> Option<&str> {
        self.partition.as_deref().or(self.key.as_deref())
    }

    /// The partition, as the asset reads what was typed: of hours, `2013-01-15T06:00` is one in its time zone.
    async fn partition(&self, client: &Client) -> Option<PartitionKey> {
        let asset = AssetKey::parse(self.asset.as_deref()?).ok()?;
        let typed = self.typed()?;
        // Of an asset that is gone, keys are known only as they are written.
        let detail = client.asset(&asset).await.ok()?;
        detail.asset.partitioning?.validate().ok()?.parse_key(typed).ok()?.key()
    }

    fn means(&self, task: &TaskKey, partition: Option<&PartitionKey>) -> bool {
        let Some(asset) = &self.asset else { return true };
        let is_asset =
            task.asset().to_string() == *asset || task.asset_str() == asset || task.as_str() == asset;
        let is_partition = self.typed().is_none_or(|typed| {
            let is_it = |key: PartitionKey| {
                Some(&key) == partition || key.to_string() == typed || key.canonical() == typed
            };
            task.partition().is_some_and(is_it)
        });
        is_asset && is_partition
    }
}

/// Prints the stored part of a log.
async fn page(
    client: &Client,
    run: RunId,
    task: &str,
    attempt: u32,
    printer: &mut Printer<'_>,
) -> anyhow::Result<()> {
    // A task that was never begun has no log.
    if attempt == 0 {
        return Ok(());
    }
    let mut offset = 0;
    loop {
        let page = match printer.grep {
            Some(text) => client.search_log(run, task, attempt, offset, text).await?,
            None => client.log(run, task, attempt, offset, None).await?,
        };
        let is_last = page.next_offset == offset;
        page.lines.into_iter().try_for_each(|line| printer.print(line))?;
        if is_last {
            return Ok(());
        }
        offset = page.next_offset;
    }
}

/// The same, and what comes until the attempt has ended.
async fn follow(
    client: &Client,
    run: RunId,
    task: &str,
    attempt: u32,
    printer: &mut Printer<'_>,
) -> anyhow::Result<()> {
    let mut lines = client.follow_log(run, task, attempt.max(1), 0);
    while let Some(LogEvent::Line(line)) = lines.next().await? {
        printer.print(*line)?;
    }
    Ok(())
}

/// Prints why an attempt failed, if it did.
async fn error(
    client: &Client,
    run: RunId,
    task: &str,
    attempt: u32,
    printer: &Printer<'_>,
) -> anyhow::Result<()> {
    let detail = client.task(run, task).await?;
    let failed = detail.attempts.into_iter().find(|known| known.attempt == attempt);
    match failed.and_then(|failed| failed.error) {
        Some(error) => printer.error(error),
        None => Ok(()),
    }
}

struct Printer<'p> {
    task: TaskKey,
    /// Lines that were printed before.
    skip: usize,
    /// Text that lines have to have.
    grep: Option<&'p str>,
    printed: &'p Printed,
    /// Whether the task is told with every line: there are several.
    is_named: bool,
    format: Format,
    paint: Paint,
}

impl Printer<'_> {
    fn error(&self, error: Failure) -> anyhow::Result<()> {
        self.printed.borrow_mut().entry(self.task.clone()).or_default();
        if self.format == Format::Json {
            return output::json(&TaskErrorLine { task_key: self.task.clone(), error });
        }
        let task = if self.is_named { format!("{}: ", self.task.subject()) } else { String::new() };
        let kind = error.error_type.as_deref().map(|kind| format!(" {kind}")).unwrap_or_default();
        let head = format!("{task}{}{kind}: {}", error.code.name(), harmless(&error.message));
        output::line(self.paint.with(Style::Bad, &head));
        if let Some(traceback) = &error.traceback {
            output::line(harmless(traceback.trim_end()));
        }
        if let Some(action) = &error.suggested_action {
            output::line(format_args!("what helps: {}", harmless(action)));
        }
        Ok(())
    }

    fn print(&mut self, line: LogLine) -> anyhow::Result<()> {
        let has = |wanted: &str| line.text.to_lowercase().contains(&wanted.to_lowercase());
        if self.grep.is_some_and(|wanted| !has(wanted)) {
            return Ok(());
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        *self.printed.borrow_mut().entry(self.task.clone()).or_default() += 1;
        if self.format == Format::Json {
            return output::json(&TaskLogLine { task_key: self.task.clone(), line });
        }
        let task = if self.is_named { format!("{} ", self.task.subject()) } else { String::new() };
        let mark = match line.stream {
            LogStream::Stdout => "│",
            LogStream::Stderr => "2│",
            LogStream::Log => "·│",
            LogStream::Servo => "s│",
        };
        let head = format!("{} {task}{mark}", line.at);
        output::line(format_args!("{} {}", self.paint.with(Style::Dim, &head), harmless(&line.text)));
        Ok(())
    }
}
