//! `servo schedule`: what is requested by the clock, and what came of it.

use clap::ValueEnum;
use servo_api::client::{Client, ListOptions};
use servo_api::views::{PartitionsBody, Schedule, ScheduleBody, Tick, TriggerScheduleBody, VersionBody};
use servo_engine::definitions::IfRunning;

use crate::backend::{Need, note_without_server, through};
use crate::exit::Exit;
use crate::lists::{PageArgs, fetch_all, print_all, print_page};
use crate::location::Location;
use crate::named::{self, Requested, Turn, Which, set};
use crate::output::{self, Format, words};
use crate::plan::{ConfigArgs, PartitionArgs};
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
        #[command(flatten)]
        page: PageArgs,
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
        #[arg(short = 'p', long = "partition", value_name = "KEY")]
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
        after_help = "Examples:\n  servo schedule create nightly --cron '0 2 * * *' --timezone Europe/Amsterdam --select 'raw.*'\n  servo schedule create gaps --cron '0 * * * *' --select raw.flights --missing"
    )]
    Create(Box<Create>),
    /// Change a schedule that was created with `servo schedule create`. Options that are left out stay as they are.
    #[command(after_help = "Example:\n  servo schedule update nightly --cron '30 2 * * *' --if-running skip")]
    Update(Box<Update>),
    /// Delete a schedule that was created with `servo schedule create`. Its ticks stay.
    #[command(after_help = "Example:\n  servo schedule delete nightly")]
    Delete(Which),
}

/// A new schedule.
#[derive(clap::Args)]
pub(crate) struct Create {
    #[command(flatten)]
    named: named::Definition,
    /// When: minute, hour, day, month, weekday, or six fields with the second first.
    #[arg(long)]
    cron: String,
    /// IANA name of the time zone.
    #[arg(long)]
    timezone: Option<String>,
    #[command(flatten)]
    partitions: PartitionArgs,
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
}

/// Changes of a schedule.
#[derive(clap::Args)]
pub(crate) struct Update {
    #[command(flatten)]
    named: named::Redefinition,
    /// When: minute, hour, day, month, weekday, or six fields with the second first. Ticks count from now on then.
    #[arg(long)]
    cron: Option<String>,
    /// IANA name of the time zone.
    #[arg(long)]
    timezone: Option<String>,
    #[command(flatten)]
    partitions: PartitionArgs,
    /// Ticks that are older when they are noticed are left out.
    #[arg(long, value_name = "MINUTES")]
    catchup_window_minutes: Option<u32>,
    /// The most ticks that are made up for at once.
    #[arg(long, value_name = "N")]
    max_catchup_ticks: Option<u32>,
    /// Whether to make up for ticks that were missed while it was paused.
    #[arg(long, value_name = "BOOL")]
    catch_up_on_resume: Option<bool>,
    /// The effect of a tick while a run of an earlier one is active.
    #[arg(long, value_enum)]
    if_running: Option<Overlap>,
}

impl Update {
    /// The definition of a schedule with these changes.
    fn applied_to(&self, schedule: &Schedule) -> anyhow::Result<ScheduleBody> {
        let mut body = schedule.to_body();
        self.named.apply(Requested {
            selection: &mut body.selection,
            description: &mut body.description,
            config: &mut body.config,
            tags: &mut body.tags,
            priority: &mut body.priority,
            expected_state_version: &mut body.expected_state_version,
        })?;
        set(&mut body.cron, &self.cron);
        set(&mut body.catch_up_on_resume, &self.catch_up_on_resume);
        body.timezone = self.timezone.clone().or(body.timezone);
        body.catchup_window_minutes = self.catchup_window_minutes.or(body.catchup_window_minutes);
        body.max_catchup_ticks = self.max_catchup_ticks.or(body.max_catchup_ticks);
        set(&mut body.if_running, &self.if_running.map(IfRunning::from));
        let partitions = self.partitions.body();
        if partitions != PartitionsBody::default() {
            body.partitions = partitions;
        }
        Ok(body)
    }
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

impl From<Overlap> for IfRunning {
    fn from(overlap: Overlap) -> Self {
        match overlap {
            Overlap::Allow => IfRunning::Allow,
            Overlap::Skip => IfRunning::Skip,
            Overlap::Queue => IfRunning::Queue,
        }
    }
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List => list(location, format).await?,
        Command::Show { schedule } => show(location, schedule, format).await?,
        Command::Ticks { schedule, page, status } => {
            ticks(location, schedule, page, status.as_deref(), format).await?;
        }
        Command::Trigger { schedule, partitions, config } => {
            let partitions = PartitionsBody { keys: partitions.clone(), ..PartitionsBody::default() };
            let body =
                TriggerScheduleBody { partitions, config: config.body()?, ..TriggerScheduleBody::default() };
            trigger(location, schedule, &body, format).await?;
        }
        Command::Pause(which) => change(location, which, Turn::Pause, format).await?,
        Command::Resume(which) => change(location, which, Turn::Resume, format).await?,
        Command::Delete(which) => change(location, which, Turn::Remove, format).await?,
        Command::Preview { schedule, count } => {
            preview(location, schedule, usize::from(*count), format).await?;
        }
        Command::Create(new) => create(location, new, format).await?,
        Command::Update(changes) => update(location, changes, format).await?,
    }
    Ok(Exit::Done)
}

async fn list(location: &Location, format: Format) -> anyhow::Result<()> {
    let found = fetch_all(location, async |client, options| client.schedules(options).await).await?;
    let row = |schedule: &Schedule| {
        vec![
            schedule.name.clone(),
            words(&schedule.status),
            schedule.cron.clone(),
            schedule.timezone.clone(),
            schedule.selection.clone().or_else(|| schedule.function.clone()).unwrap_or_default(),
            schedule.next_tick_at.map(|at| at.to_string()).unwrap_or_default(),
        ]
    };
    let header = ["schedule", "status", "cron", "timezone", "requests", "next tick"];
    let nothing = "there are no schedules; declare one with servo.schedule, or `servo schedule create` one";
    if print_all(found, format, nothing, &header, row)? {
        note_without_server(location, "no schedule ticks").await?;
    }
    Ok(())
}

async fn show(location: &Location, schedule: &str, format: Format) -> anyhow::Result<()> {
    let found =
        through(location, Need::ReadProject, async |client| Ok(client.schedule(schedule).await?)).await?;
    if format == Format::Json {
        return output::json(&found);
    }
    let mut rows = vec![
        ("status", words(&found.status)),
        ("cron", format!("{} ({})", found.cron, found.timezone)),
        ("defined by", found.origin.clone()),
        ("id", found.schedule_id.to_string()),
        ("state version", found.state_version.to_string()),
        ("next tick", output::time(found.next_tick_at)),
        ("last tick", output::time(found.last_scheduled_for)),
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
    add("partitions", partitions(&found.partitions));
    add("function", found.function.clone());
    add("description", found.description.clone());
    add("last error", found.last_error.clone());
    output::facts(&found.name, &rows);
    Ok(())
}

/// The partitions that ticks request, in words; none where they are the newest.
fn partitions(chosen: &PartitionsBody) -> Option<String> {
    let named = chosen.keys.iter().chain(&chosen.ranges).map(String::as_str);
    let rules = [
        (chosen.latest, "the newest"),
        (chosen.missing, "only what is missing"),
        (chosen.failed, "only what failed last"),
        (chosen.stale, "only what is stale"),
    ];
    let rules = rules.into_iter().filter_map(|(applies, words)| applies.then_some(words));
    let words: Vec<&str> = named.chain(rules).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

async fn ticks(
    location: &Location,
    schedule: &str,
    page: &PageArgs,
    status: Option<&str>,
    format: Format,
) -> anyhow::Result<()> {
    let fetch = async |client: &Client, options: &ListOptions| client.schedule_ticks(schedule, options).await;
    let found = page.fetch(location, status, fetch).await?;
    let row = |tick: &Tick| {
        let runs: Vec<String> = tick.runs.iter().map(|run| run.run_id.to_string()).collect();
        let manual = if tick.manual { " (by hand)" } else { "" };
        vec![
            tick.scheduled_for.to_string(),
            format!("{}{manual}", words(&tick.status)),
            tick.reason.clone().unwrap_or_else(|| runs.join(", ")),
        ]
    };
    let header = ["due", "tick", "run or reason"];
    print_page(&found, format, &header, row, format_args!("servo schedule ticks {schedule}"))
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
    let plural = if accepted.tasks == 1 { "" } else { "s" };
    output::line(format_args!(
        "{} with {} task{plural}; servo run watch {0}",
        accepted.run_id, accepted.tasks
    ));
    Ok(())
}

async fn change(location: &Location, which: &Which, turn: Turn, format: Format) -> anyhow::Result<()> {
    let schedule = &which.name;
    if let Turn::Remove = turn {
        confirm(location, &format!("delete schedule {schedule}"))?;
    }
    let ask = async |client: &Client, body: &VersionBody| match turn {
        Turn::Pause => client.pause_schedule(schedule, body).await,
        Turn::Resume => client.resume_schedule(schedule, body).await,
        Turn::Remove => client.delete_schedule(schedule, body).await,
    };
    named::turn(location, which, turn, "is deleted; its ticks stay", format, ask).await
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

async fn create(location: &Location, options: &Create, format: Format) -> anyhow::Result<()> {
    let new = &options.named;
    let body = ScheduleBody {
        name: new.name.clone(),
        cron: options.cron.clone(),
        timezone: options.timezone.clone(),
        selection: new.selection.clone(),
        partitions: options.partitions.body(),
        description: new.description.clone(),
        tags: new.tags(),
        config: new.config.body()?,
        priority: new.priority,
        enabled: Some(!new.paused),
        catch_up_on_resume: options.catch_up_on_resume,
        catchup_window_minutes: options.catchup_window_minutes,
        max_catchup_ticks: options.max_catchup_ticks,
        if_running: options.if_running.into(),
        expected_state_version: None,
        client_request_id: None,
    };
    let next = format!("servo schedule preview {} shows its ticks", new.name);
    named::create(location, &new.name, next, format, async |client| client.create_schedule(&body).await).await
}

async fn update(location: &Location, changes: &Update, format: Format) -> anyhow::Result<()> {
    let name = &changes.named.which.name;
    named::redefine(location, name, format, async |client| {
        let known = client.schedule(name).await?;
        Ok(client.change_schedule(name, &changes.applied_to(&known)?).await?)
    })
    .await
}
