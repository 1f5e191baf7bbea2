//! `servo backfill`: many partitions, chunk by chunk.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use servo_api::client::{Client, ListOptions, first_pages};
use servo_api::views::{
    AcceptedBackfill, Backfill, BackfillBody, BackfillChunk, BackfillPreview, ChangeBackfillBody,
    PartitionsBody,
};
use servo_core::{BackfillId, TaskKey};
use servo_engine::BackfillChange;
use servo_store::{PutIds, SystemPutIds};

use crate::backend::{Need, other_process, through, through_both};
use crate::exit::Exit;
use crate::lists::more;
use crate::location::Location;
use crate::materialize::default_slots;
use crate::named::tag;
use crate::output::{self, Format, words};
use crate::plan::{ConfigArgs, SelectionArgs, keys_and_ranges};
use crate::which::Which;

/// How often the progress of a backfill is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Characters of the bar.
const BAR: u64 = 30;

/// Make many partitions, chunk by chunk: preview, create, follow, pause, resume, cancel, retry what failed.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show what a backfill would make. Changes nothing.
    #[command(
        after_help = "Example:\n  servo backfill preview raw.flights --partitions 2013-01-01..2013-12-31"
    )]
    Preview(What),
    /// Create a backfill. It is accepted at once and planned chunk by chunk.
    #[command(
        after_help = "Examples:\n  servo backfill create raw.flights --start 2013-01-01 --end 2013-12-31 --wait\n  servo backfill create 'raw.flights+' --missing --chunk-size 50 --concurrency 4\n  servo backfill create raw.flights --failed --failure-threshold 10%"
    )]
    Create {
        #[command(flatten)]
        what: Box<What>,
        /// Stable name of the request: the same name again is the same backfill.
        #[arg(long, value_name = "KEY")]
        request_id: Option<String>,
        #[command(flatten)]
        wait: Waiting,
    },
    /// List backfills, newest first.
    #[command(
        after_help = "Examples:\n  servo backfill list --state running,paused\n  servo backfill list --asset raw.flights --since 2026-01-05T00:00:00Z"
    )]
    List(Listing),
    /// Show one backfill and its last chunks.
    #[command(after_help = "Examples:\n  servo backfill show latest\n  servo backfill show 01JHKM51")]
    Show {
        /// The backfill: its id, the beginning of it, or latest.
        backfill: Which<BackfillId>,
        /// How many chunks.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=1000))]
        chunks: u16,
    },
    /// Pause a backfill: no chunk is planned, and those at work go on.
    #[command(after_help = "Example:\n  servo backfill pause latest")]
    Pause(ChangeArgs),
    /// Resume a backfill with the next chunk.
    #[command(after_help = "Example:\n  servo backfill resume latest --wait")]
    Resume {
        #[command(flatten)]
        which: ChangeArgs,
        #[command(flatten)]
        wait: Waiting,
    },
    /// Cancel a backfill, and the runs of its chunks.
    #[command(after_help = "Example:\n  servo backfill cancel latest")]
    Cancel(ChangeArgs),
    /// Make again, with another backfill, what one did not make.
    #[command(after_help = "Example:\n  servo backfill retry-failed latest --wait")]
    RetryFailed {
        /// The backfill: its id, the beginning of it, or latest.
        backfill: Which<BackfillId>,
        /// Stable name of the request: the same name again is the same backfill.
        #[arg(long, value_name = "KEY")]
        request_id: Option<String>,
        #[command(flatten)]
        wait: Waiting,
    },
}

/// The partitions that a backfill makes, and how.
#[derive(clap::Args)]
pub(crate) struct What {
    #[command(flatten)]
    selection: SelectionArgs,
    /// A partition, those of a time, or a range; may be given several times.
    #[arg(short = 'p', long = "partition", value_name = "KEY")]
    keys: Vec<String>,
    /// A range of partitions, both ends included, either may be left open; may be given several times.
    #[arg(long = "partitions", value_name = "FROM..TO")]
    ranges: Vec<String>,
    /// The first partition of a range.
    #[arg(long, value_name = "KEY")]
    start: Option<String>,
    /// The last partition of a range.
    #[arg(long, value_name = "KEY")]
    end: Option<String>,
    /// Of these partitions, or of all if none are given, only those that were never made.
    #[arg(long)]
    missing: bool,
    /// Of these partitions, or of all if none are given, only those whose last attempt failed.
    #[arg(long)]
    failed: bool,
    /// Of these partitions, or of all if none are given, only those that have to be made to be up to date.
    #[arg(long)]
    stale: bool,
    /// Most partitions of one run [default: 10].
    #[arg(long, value_name = "N")]
    chunk_size: Option<u32>,
    /// Most runs at once [default: 2].
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// Plan no chunk after a failure.
    #[arg(long)]
    stop_on_failure: bool,
    /// Plan no chunk once more partitions than this have failed: 10% or 25.
    #[arg(long, value_name = "LIMIT")]
    failure_threshold: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    /// Priority of its runs; higher runs first.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// A label of its runs.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = tag)]
    labels: Vec<(String, String)>,
}

impl What {
    fn body(&self) -> anyhow::Result<BackfillBody> {
        let (keys, mut ranges) = keys_and_ranges(&self.keys, &self.ranges);
        if self.start.is_some() || self.end.is_some() {
            let end = |key: &Option<String>| key.clone().unwrap_or_default();
            ranges.push(format!("{}..{}", end(&self.start), end(&self.end)));
        }
        Ok(BackfillBody {
            selection: self.selection.text(),
            partitions: PartitionsBody {
                keys,
                ranges,
                latest: false,
                missing: self.missing,
                failed: self.failed,
                stale: self.stale,
            },
            chunk_size: self.chunk_size,
            max_concurrent_runs: self.concurrency,
            stop_on_failure: self.stop_on_failure,
            failure_threshold: self.failure_threshold.clone(),
            config: self.config.body()?,
            priority: self.priority,
            labels: self.labels.iter().cloned().collect::<BTreeMap<_, _>>(),
            client_request_id: None,
        })
    }
}

/// Which backfills to list.
#[derive(clap::Args)]
pub(crate) struct Listing {
    /// Only those in one of these states: pending, running, paused, succeeded, failed, cancelled.
    #[arg(long)]
    state: Option<String>,
    /// Only those that make partitions of this asset.
    #[arg(long, short)]
    asset: Option<String>,
    /// Only those that came about so: request, or retry for those that make again what another one did not.
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Only those that were created at this time or later, such as 2026-01-05T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those that were created before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The oldest first.
    #[arg(long)]
    oldest_first: bool,
    /// How many.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Where to go on; the last line of a page says it.
    #[arg(long)]
    cursor: Option<String>,
}

/// Whether to stay until a backfill has ended.
#[derive(clap::Args)]
pub(crate) struct Waiting {
    /// Show how it goes until it has ended; where no server runs, run it in this process.
    #[arg(long)]
    wait: bool,
    /// Tasks at once where no server runs [default: one per core].
    #[arg(long, value_name = "N", requires = "wait", value_parser = clap::value_parser!(u16).range(1..=256))]
    slots: Option<u16>,
}

impl Waiting {
    fn need(&self, otherwise: Need) -> Need {
        let slots = self.slots.map_or_else(default_slots, usize::from);
        if self.wait { Need::Backfill { slots } } else { otherwise }
    }
}

/// A backfill that is changed, as its caller knows it.
#[derive(clap::Args)]
pub(crate) struct ChangeArgs {
    /// The backfill: its id, the beginning of it, or latest.
    backfill: Which<BackfillId>,
    /// Only if its state has this version; `servo backfill show` says it.
    #[arg(long, value_name = "VERSION")]
    expected_state_version: Option<u64>,
    /// The reason, for the log.
    #[arg(long, default_value = "")]
    reason: String,
}

impl ChangeArgs {
    fn body(&self) -> ChangeBackfillBody {
        ChangeBackfillBody {
            expected_state_version: self.expected_state_version,
            reason: self.reason.clone(),
            client_request_id: None,
        }
    }
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::Preview(what) => preview(location, what, format).await?,
        Command::Create { what, request_id, wait } => {
            let (body, key) = (what.body()?, key(request_id.as_ref()));
            let need = wait.need(Need::ChangeProject);
            return begin(location, need, wait, format, async |client| {
                Ok(client.create_backfill(&key, &body).await?)
            })
            .await;
        }
        Command::List(listing) => list(location, listing, format).await?,
        Command::Show { backfill, chunks } => show(location, backfill, usize::from(*chunks), format).await?,
        Command::Pause(which) => change(location, which, BackfillChange::Pause, format).await?,
        Command::Cancel(which) => change(location, which, BackfillChange::Cancel, format).await?,
        Command::Resume { which, wait } if !wait.wait => {
            change(location, which, BackfillChange::Resume, format).await?;
        }
        Command::Resume { which, wait } => {
            let body = which.body();
            let ask = async |client: &Client| {
                let id = which.backfill.find(client).await?;
                client.change_backfill(id, BackfillChange::Resume, &body).await?;
                Ok(id)
            };
            return through_both(location, wait.need(Need::Change), ask, async |client, id| {
                follow(client, id, format).await
            })
            .await;
        }
        Command::RetryFailed { backfill, request_id, wait } => {
            let key = key(request_id.as_ref());
            let need = wait.need(Need::ChangeProject);
            // What is the latest backfill now is not any more once it is tried again.
            let id = through(location, Need::Read, async |client| backfill.find(client).await).await?;
            return begin(location, need, wait, format, async |client| {
                Ok(client.retry_backfill(&key, id).await?)
            })
            .await;
        }
    }
    Ok(Exit::Done)
}

/// The key of a request, the same however often it is sent.
fn key(given: Option<&String>) -> String {
    given.cloned().unwrap_or_else(|| format!("cli-{}", SystemPutIds::default().next()))
}

async fn preview(location: &Location, what: &What, format: Format) -> anyhow::Result<()> {
    let body = what.body()?;
    let found: BackfillPreview =
        through(location, Need::ReadProject, async |client| Ok(client.preview_backfill(&body).await?))
            .await?;
    if format == Format::Json {
        return output::json(&found);
    }
    output::line(format_args!(
        "{} partition{} in {} chunk{} of at most {}, {} at once",
        found.total_partitions,
        plural(found.total_partitions),
        found.total_chunks,
        plural(found.total_chunks),
        found.chunk_size,
        found.max_concurrent_runs,
    ));
    for target in &found.targets {
        let more = if target.more > 0 { format!(" and {} more ranges", target.more) } else { String::new() };
        output::line(format_args!("  {}  {}{more}", target.asset_key, shortened(&target.partitions)));
    }
    let (first, tasks) = (shortened(&found.first_chunk_partitions), found.first_run_tasks);
    output::line(format_args!("the first chunk is {first}: {tasks} task{}", plural(tasks)));
    if let (Some(elapsed), Some(work)) = (found.estimated_seconds, found.estimated_work_seconds) {
        let cost = found.estimated_cost_micro_usd.map(|cost| format!(", and costs about {cost}"));
        let cost = cost.unwrap_or_default();
        output::line(format_args!("by the past it takes about {elapsed:.1} s, {work:.1} s of work{cost}"));
    }
    Ok(())
}

/// Begins a backfill, and stays with it if that is wanted.
async fn begin(
    location: &Location,
    need: Need,
    wait: &Waiting,
    format: Format,
    ask: impl AsyncFn(&Client) -> anyhow::Result<AcceptedBackfill>,
) -> anyhow::Result<Exit> {
    if wait.wait {
        return through_both(location, need, ask, async |client, accepted| {
            if format == Format::Table {
                eprintln!("backfill {}", accepted.backfill_id);
            }
            follow(client, accepted.backfill_id, format).await
        })
        .await;
    }
    let accepted = through(location, need, async |client| ask(client).await).await?;
    if format == Format::Json {
        output::json(&accepted)?;
        return Ok(Exit::Done);
    }
    let id = accepted.backfill_id;
    output::line(format_args!(
        "{id} makes {} partition{} in {} chunk{}; servo backfill show {id}",
        accepted.total_partitions,
        plural(accepted.total_partitions),
        accepted.total_chunks,
        plural(accepted.total_chunks),
    ));
    if other_process(location).await?.is_none() {
        output::line(format_args!(
            "nobody runs it yet: start `servo dev`, or `servo backfill resume {id} --wait`"
        ));
    }
    Ok(Exit::Done)
}

/// Shows a backfill until it has ended.
async fn follow(client: &Client, id: BackfillId, format: Format) -> anyhow::Result<Exit> {
    let is_live = format == Format::Table && std::io::stderr().is_terminal();
    let mut told = 0;
    let ended = loop {
        let seen = client.backfill(id).await?;
        if is_live {
            let mut stderr = std::io::stderr();
            write!(stderr, "\r\x1b[2K{}", progress(&seen))?;
            stderr.flush()?;
        } else if format == Format::Table && seen.completed_chunks + seen.failed_chunks > told {
            told = seen.completed_chunks + seen.failed_chunks;
            eprintln!("{}", progress(&seen));
        }
        let is_paused = seen.state.starts_with("PAUSED") && seen.active_runs.is_empty();
        if (seen.is_ended && seen.active_runs.is_empty()) || is_paused {
            break seen;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    if is_live {
        eprintln!();
    }
    match format {
        Format::Json => output::json(&ended)?,
        Format::Table => sentence(&ended),
    }
    Ok(if ended.state == "SUCCEEDED" { Exit::Done } else { Exit::Failed })
}

/// `[=====>    ] 120/365 made, 1 failed, 12.3/s, 20 s left`.
fn progress(seen: &Backfill) -> String {
    let (total, made) = (seen.total_partitions.max(1), seen.completed_partitions);
    let filled = (made.min(total) * BAR / total) as usize;
    let bar = format!("{:<width$}", "=".repeat(filled), width = BAR as usize);
    let mut text = format!("[{bar}] {made}/{} made", seen.total_partitions);
    let mut add = |count: u64, what: &str| {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    };
    add(seen.failed_partitions, "failed");
    add(seen.skipped_partitions, "skipped");
    add(seen.cancelled_partitions, "cancelled");
    if let Some(rate) = seen.partitions_per_second.filter(|_| !seen.is_ended) {
        text.push_str(&format!(", {rate:.1}/s"));
    }
    if let Some(left) = seen.remaining_seconds {
        text.push_str(&format!(", {left:.0} s left"));
    }
    if seen.state != "RUNNING" {
        text.push_str(&format!(", {}", words(&seen.state)));
    }
    text
}

fn sentence(seen: &Backfill) {
    let id = seen.backfill_id;
    output::line(format_args!(
        "{id} {}: {} of {} partitions made, {} failed, {} skipped, {} cancelled",
        words(&seen.state),
        seen.completed_partitions,
        seen.total_partitions,
        seen.failed_partitions,
        seen.skipped_partitions,
        seen.cancelled_partitions,
    ));
    if let Some(reason) = &seen.reason {
        output::line(format_args!("  {reason}"));
    }
    if seen.failed_chunks > 0 {
        output::line(format_args!(
            "  servo backfill show {id} says what failed; servo backfill retry-failed {id} makes it again"
        ));
    }
}

async fn list(location: &Location, listing: &Listing, format: Format) -> anyhow::Result<()> {
    let state = listing.state.as_ref().map(|state| state.to_uppercase());
    let filters = [
        ("asset", &listing.asset),
        ("source", &listing.source),
        ("created_after", &listing.since),
        ("created_before", &listing.until),
    ];
    let filters = filters.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
    let mut which = ListOptions { cursor: listing.cursor.clone(), state, filters, ..ListOptions::default() };
    if listing.oldest_first {
        which.filters.push(("sort", "created_at".to_owned()));
    }
    let page = through(location, Need::Read, async |client| {
        let newest = async |options: &ListOptions| client.backfills(options).await;
        Ok(first_pages(usize::from(listing.limit), which.clone(), newest).await?)
    })
    .await?;
    if format == Format::Json {
        return output::json(&page);
    }
    if page.items.is_empty() {
        output::line("there are no backfills; begin one with `servo backfill create`");
        return Ok(());
    }
    let row = |seen: &Backfill| {
        vec![
            seen.backfill_id.to_string(),
            words(&seen.state),
            seen.selection.clone(),
            format!("{}/{}", seen.completed_partitions, seen.total_partitions),
            seen.failed_partitions.to_string(),
            seen.created_at.to_string(),
        ]
    };
    let header = ["backfill", "state", "selection", "made", "failed", "created"];
    output::table(&header, &[3, 4], page.items.iter().map(row).collect());
    more(&page, "servo backfill list");
    Ok(())
}

async fn show(
    location: &Location,
    which: &Which<BackfillId>,
    chunks: usize,
    format: Format,
) -> anyhow::Result<()> {
    let (id, found, chunks) = through(location, Need::Read, async |client| {
        let id = which.find(client).await?;
        let found = client.backfill(id).await?;
        let last = async |options: &ListOptions| client.backfill_chunks(id, options).await;
        let chunks = match chunks {
            0 => Vec::new(),
            some => first_pages(some, ListOptions::default(), last).await?.items,
        };
        Ok((id, found, chunks))
    })
    .await?;
    if format == Format::Json {
        return output::json(&serde_json::json!({"backfill": found, "chunks": chunks}));
    }
    output::line(format_args!("{id}  {}", progress(&found)));
    let mut rows = vec![
        vec!["state".to_owned(), format!("{} (version {})", words(&found.state), found.state_version)],
        vec!["selection".to_owned(), found.selection.clone()],
        vec![
            "chunks".to_owned(),
            format!(
                "{} of {} planned, {} made, {} not; at most {} partitions each, {} at once",
                found.planned_chunks,
                found.total_chunks,
                found.completed_chunks,
                found.failed_chunks,
                found.chunk_size,
                found.max_concurrent_runs
            ),
        ],
        vec!["created".to_owned(), format!("{} by {}", found.created_at, found.created_by)],
        vec!["started".to_owned(), output::time(found.started_at)],
        vec!["ended".to_owned(), output::time(found.completed_at)],
    ];
    let mut add = |name: &str, value: Option<String>| rows.extend(value.map(|it| vec![name.to_owned(), it]));
    add("reason", found.reason.clone());
    add("retries", found.parent_backfill_id.map(|parent| parent.to_string()));
    add("stops at", found.failure_threshold.clone());
    for target in &found.targets {
        add("makes", Some(format!("{} {}", target.asset_key, shortened(&target.partitions))));
    }
    for row in rows {
        output::line(format_args!("  {:<9}  {}", row[0], row[1]));
    }
    let row = |chunk: &BackfillChunk| {
        vec![
            chunk.chunk_index.to_string(),
            words(&chunk.state),
            shortened(&chunk.partition_keys),
            chunk.run_id.to_string(),
            chunk.failed_tasks.first().map(|task| subject(task)).unwrap_or_default(),
        ]
    };
    if !chunks.is_empty() {
        output::line("");
        output::table(
            &["chunk", "state", "partitions", "run", "first that failed"],
            &[0],
            chunks.iter().map(row).collect(),
        );
    }
    Ok(())
}

async fn change(
    location: &Location,
    which: &ChangeArgs,
    change: BackfillChange,
    format: Format,
) -> anyhow::Result<()> {
    let body = which.body();
    let (id, accepted) = through(location, Need::Change, async |client| {
        let id = which.backfill.find(client).await?;
        Ok((id, client.change_backfill(id, change, &body).await?))
    })
    .await?;
    if format == Format::Json {
        return output::json(&accepted);
    }
    let done = match (change, accepted.accepted_event_id.is_some()) {
        (BackfillChange::Pause, true) => "is paused; what is at work goes on",
        (BackfillChange::Pause, false) => "was paused already",
        (BackfillChange::Resume, true) => "goes on",
        (BackfillChange::Resume, false) => "was not paused",
        (BackfillChange::Cancel, true) => "is cancelled",
        (BackfillChange::Cancel, false) => "was cancelled already",
    };
    output::line(format_args!("{id} {done}"));
    Ok(())
}

/// The asset and the partition of a task.
fn subject(task: &str) -> String {
    TaskKey::parse(task).map_or_else(|_| task.to_owned(), |key| key.subject())
}

/// The first few of a list.
fn shortened(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [first, second, third, .., last] => format!("{first}, {second}, {third}, …, {last}"),
        some => some.join(", "),
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
