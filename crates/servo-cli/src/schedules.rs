//! `servo schedule`: what is requested by the clock, and what came of it.

use std::collections::BTreeMap;

use clap::ValueEnum;
use servo_api::Page;
use servo_api::client::{ListOptions, all_pages, first_pages};
use servo_api::views::{PartitionsBody, Schedule, ScheduleBody, Tick, TriggerScheduleBody, VersionBody};
use servo_engine::definitions::IfRunning;

use crate::backend::{Need, note_without_server, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::plan::ConfigArgs;
use crate::target::confirm;

/// Look at schedules, pause, resume and trigger them; create those that no code declares.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List schedules with their next ticks.
    #[command(after_help = "Example:\n  servo schedule list")]
    List,
    /// Show one schedule.
    #[command(after_help = "Example:\n  servo schedule show morning")]
    Show {
        /// Its name or its id.
        schedule: String,
    },
    /// Show the ticks of a schedule, newest first: what each did, and why.
    #[command(after_help = "Example:\n  servo schedule ticks morning --status failed,skipped")]
    Ticks {
        /// Its name or its id.
        schedule: String,
        /// How many.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Where to go on; the last line of a page says it.
        #[arg(long)]
        cursor: Option<String>,
        /// Only ticks with one of these outcomes: triggered, skipped, failed.
        #[arg(long)]
        status: Option<String>,
    },
    /// Make a tick now, beside those by the clock.
    #[command(
        after_help = "Examples:\n  servo schedule trigger morning\n  servo schedule trigger morning --partition 2013-01-15 --config least=20"
    )]
    Trigger {
        /// Its name or its id.
        schedule: String,
        /// A partition, instead of the newest complete one, or of what its function chooses.
        #[arg(long = "partition", value_name = "KEY")]
        partitions: Vec<String>,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Pause a schedule: its ticks are recorded as skipped.
    #[command(after_help = "Example:\n  servo schedule pause morning")]
    Pause(Which),
    /// Resume a schedule.
    #[command(after_help = "Example:\n  servo schedule resume morning")]
    Resume(Which),
    /// Show the next ticks of a schedule.
    #[command(after_help = "Example:\n  servo schedule preview morning --count 5")]
    Preview {
        /// Its name or its id.
        schedule: String,
        /// How many.
        #[arg(long, short = 'n', default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
        count: u16,
    },
    /// Create a schedule that no code declares.
    #[command(
        after_help = "Example:\n  servo schedule create nightly --cron '0 2 * * *' --timezone Europe/Amsterdam --select 'raw.*'"
    )]
    Create(Box<Create>),
    /// Delete a schedule that was created with `servo schedule create`. Its ticks stay.
    #[command(after_help = "Example:\n  servo schedule delete nightly")]
    Delete(Which),
}

/// Which schedule, as its caller knows it.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// Its name or its id.
    schedule: String,
    /// Only if its state has this version; `servo schedule show` says it.
    #[arg(long, value_name = "VERSION")]
    expected_state_version: Option<u64>,
}

/// A new schedule.
#[derive(clap::Args)]
pub(crate) struct Create {
    /// Letters, digits, `_` and `-`.
    name: String,
    /// When: minute, hour, day, month, weekday, or six fields with the second first.
    #[arg(long)]
    cron: String,
    /// IANA name of the time zone.
    #[arg(long)]
    timezone: Option<String>,
    /// The selection that a tick requests.
    #[arg(long = "select", value_name = "SELECTION")]
    selection: String,
    /// For people.
    #[arg(long)]
    description: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    /// A tag of its runs.
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
    tags: Vec<(String, String)>,
    /// Higher runs first.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Ticks that are older when they are noticed are left out [default: 1440].
    #[arg(long, value_name = "MINUTES")]
    catchup_window_minutes: Option<u32>,
    /// The most ticks that are made up for at once [default: 3].
    #[arg(long, value_name = "N")]
    max_catchup_ticks: Option<u32>,
    /// Make up for ticks that were missed while it was paused.
    #[arg(long)]
    catch_up_on_resume: bool,
    /// The effect of a tick while a run of an earlier one is active.
    #[arg(long, value_enum, default_value_t = Overlap::Allow)]
    if_running: Overlap,
    /// Begin paused.
    #[arg(long)]
    paused: bool,
}

/// The effect of a tick while a run of an earlier one is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Overlap {
    /// Request its run at once.
    Allow,
    /// Be skipped.
    Skip,
    /// Wait until that run has ended.
    Queue,
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List => list(location, format).await?,
        Command::Show { schedule } => show(location, schedule, format).await?,
        Command::Ticks { schedule, limit, cursor, status } => {
            let (limit, cursor) = (usize::from(*limit), cursor.clone());
            ticks(location, schedule, limit, cursor, status.clone(), format).await?;
        }
        Command::Trigger { schedule, partitions, config } => {
            let partitions = PartitionsBody { keys: partitions.clone(), ..PartitionsBody::default() };
            let body =
                TriggerScheduleBody { partitions, config: config.body()?, ..TriggerScheduleBody::default() };
            trigger(location, schedule, &body, format).await?;
        }
        Command::Pause(which) => change(location, which, Change::Pause, format).await?,
        Command::Resume(which) => change(location, which, Change::Resume, format).await?,
        Command::Delete(which) => change(location, which, Change::Delete, format).await?,
        Command::Preview { schedule, count } => {
            preview(location, schedule, usize::from(*count), format).await?;
        }
        Command::Create(new) => create(location, new, format).await?,
    }
    Ok(Exit::Done)
}

async fn list(location: &Location, format: Format) -> anyhow::Result<()> {
    let found = through(location, Need::ReadProject, async |client| {
        Ok(all_pages(async |options: &ListOptions| client.schedules(options).await).await?)
    })
    .await?;
    if format == Format::Json {
        return output::json(&Page { items: found, next_cursor: None });
    }
    if found.is_empty() {
        output::line(
            "there are no schedules; declare one with servo.schedule, or `servo schedule create` one",
        );
        return Ok(());
    }
    let row = |schedule: &Schedule| {
        vec![
            schedule.name.clone(),
            schedule.status.to_lowercase(),
            schedule.cron.clone(),
            schedule.timezone.clone(),
            schedule.selection.clone().or_else(|| schedule.function.clone()).unwrap_or_default(),
            schedule.next_tick_at.map(|at| at.to_string()).unwrap_or_default(),
        ]
    };
    output::table(
        &["schedule", "status", "cron", "timezone", "requests", "next tick"],
        &[],
        found.iter().map(row).collect(),
    );
    note_without_server(location, "no schedule ticks").await
}

async fn show(location: &Location, schedule: &str, format: Format) -> anyhow::Result<()> {
    let found =
        through(location, Need::ReadProject, async |client| Ok(client.schedule(schedule).await?)).await?;
    if format == Format::Json {
        return output::json(&found);
    }
    let time =
        |at: Option<servo_core::Timestamp>| at.map(|at| at.to_string()).unwrap_or_else(|| "–".to_owned());
    let mut rows = vec![
        ("status", found.status.to_lowercase()),
        ("cron", format!("{} ({})", found.cron, found.timezone)),
        ("defined by", found.origin.clone()),
        ("id", found.schedule_id.to_string()),
        ("state version", found.state_version.to_string()),
        ("next tick", time(found.next_tick_at)),
        ("last tick", time(found.last_scheduled_for)),
        ("last run", found.last_run_id.map(|run| run.to_string()).unwrap_or_else(|| "–".to_owned())),
        (
            "catch-up",
            format!(
                "at most {} ticks within {} minutes{}",
                found.max_catchup_ticks,
                found.catchup_window_minutes,
                if found.catch_up_on_resume { ", also on resume" } else { "" }
            ),
        ),
        ("if running", found.if_running.clone()),
    ];
    let mut add = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    add("requests", found.selection.clone());
    add("function", found.function.clone());
    add("description", found.description.clone());
    add("last error", found.last_error.clone());
    output::line(&found.name);
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in rows {
        output::line(format_args!("  {name:<width$}  {value}"));
    }
    Ok(())
}

async fn ticks(
    location: &Location,
    schedule: &str,
    limit: usize,
    cursor: Option<String>,
    status: Option<String>,
    format: Format,
) -> anyhow::Result<()> {
    let page = through(location, Need::Read, async |client| {
        let newest = async |options: &ListOptions| client.schedule_ticks(schedule, options).await;
        let which = ListOptions { cursor: cursor.clone(), state: status.clone(), ..ListOptions::default() };
        Ok(first_pages(limit, which, newest).await?)
    })
    .await?;
    if format == Format::Json {
        return output::json(&page);
    }
    let row = |tick: &Tick| {
        let runs: Vec<String> = tick.runs.iter().map(|run| run.run_id.to_string()).collect();
        let manual = if tick.manual { " (by hand)" } else { "" };
        vec![
            tick.scheduled_for.to_string(),
            format!("{}{manual}", tick.status.to_lowercase()),
            tick.reason.clone().unwrap_or_else(|| runs.join(", ")),
        ]
    };
    output::table(&["due", "tick", "run or reason"], &[], page.items.iter().map(row).collect());
    if let Some(next) = &page.next_cursor {
        output::line(format_args!("\nmore: servo schedule ticks {schedule} --cursor {next}"));
    }
    Ok(())
}

async fn trigger(
    location: &Location,
    schedule: &str,
    body: &TriggerScheduleBody,
    format: Format,
) -> anyhow::Result<()> {
    // Its function has to be called by somebody who runs the project.
    let found =
        through(location, Need::ReadProject, async |client| Ok(client.schedule(schedule).await?)).await?;
    let need = if found.function.is_some() { Need::Run { slots: 1 } } else { Need::ChangeProject };
    let accepted =
        through(location, need, async |client| Ok(client.trigger_schedule(schedule, body).await?)).await?;
    if format == Format::Json {
        return output::json(&accepted);
    }
    output::line(format_args!("{} with {} tasks; servo run watch {0}", accepted.run_id, accepted.tasks));
    Ok(())
}

#[derive(Clone, Copy)]
enum Change {
    Pause,
    Resume,
    Delete,
}

async fn change(location: &Location, which: &Which, change: Change, format: Format) -> anyhow::Result<()> {
    let schedule = &which.schedule;
    let body = VersionBody { expected_state_version: which.expected_state_version, client_request_id: None };
    let accepted = through(location, Need::ChangeProject, async |client| {
        Ok(match change {
            Change::Pause => client.pause_schedule(schedule, &body).await?,
            Change::Resume => client.resume_schedule(schedule, &body).await?,
            Change::Delete => {
                confirm(location, &format!("delete schedule {schedule}"))?;
                client.delete_schedule(schedule, &body).await?
            }
        })
    })
    .await?;
    if format == Format::Json {
        return output::json(&accepted);
    }
    let done = match (change, accepted.accepted_event_id.is_some()) {
        (Change::Pause, true) => "is paused",
        (Change::Pause, false) => "was paused already",
        (Change::Resume, true) => "is active",
        (Change::Resume, false) => "was active already",
        (Change::Delete, _) => "is deleted; its ticks stay",
    };
    output::line(format_args!("{schedule} {done}"));
    Ok(())
}

async fn preview(location: &Location, schedule: &str, count: usize, format: Format) -> anyhow::Result<()> {
    let next = through(location, Need::ReadProject, async |client| {
        Ok(client.preview_schedule(schedule, count).await?)
    })
    .await?;
    if format == Format::Json {
        return output::json(&next);
    }
    for tick in next.ticks {
        output::line(tick);
    }
    Ok(())
}

async fn create(location: &Location, new: &Create, format: Format) -> anyhow::Result<()> {
    let body = ScheduleBody {
        name: new.name.clone(),
        cron: new.cron.clone(),
        timezone: new.timezone.clone(),
        selection: new.selection.clone(),
        description: new.description.clone(),
        tags: new.tags.iter().cloned().collect::<BTreeMap<_, _>>(),
        config: new.config.body()?,
        priority: new.priority,
        enabled: Some(!new.paused),
        catch_up_on_resume: new.catch_up_on_resume,
        catchup_window_minutes: new.catchup_window_minutes,
        max_catchup_ticks: new.max_catchup_ticks,
        if_running: match new.if_running {
            Overlap::Allow => IfRunning::Allow,
            Overlap::Skip => IfRunning::Skip,
            Overlap::Queue => IfRunning::Queue,
        },
        expected_state_version: None,
        client_request_id: None,
    };
    let accepted =
        through(location, Need::ChangeProject, async |client| Ok(client.create_schedule(&body).await?))
            .await?;
    if format == Format::Json {
        return output::json(&accepted);
    }
    output::line(format_args!("{} is defined; servo schedule preview {0} shows its ticks", new.name));
    Ok(())
}

pub(crate) fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err(format!("{text:?} is not of the form NAME=VALUE")),
    }
}
