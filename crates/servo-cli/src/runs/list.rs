//! `servo run list`.

use servo_api::Page;
use servo_api::client::{ListOptions, first_pages};
use servo_api::views::Run;
use servo_engine::RunState;

use super::told;
use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

/// Options of `servo run list`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Where to go on; the last line of a page says it.
    #[arg(long)]
    cursor: Option<String>,
    /// Only those in this state; may be given several times.
    #[arg(long, short, value_name = "STATE", value_parser = parse_state)]
    state: Vec<RunState>,
    /// Only those with a task that makes this asset, NAMESPACE.NAME.
    #[arg(long, short, value_name = "ASSET")]
    asset: Option<String>,
    /// Only those with a task for this partition.
    #[arg(long, short, value_name = "KEY")]
    partition: Option<String>,
    /// Only those that came about so: manual, api, retry, schedule, sensor, backfill, condition; may be given several
    /// times.
    #[arg(long, value_name = "SOURCE")]
    source: Vec<String>,
    /// Only those with this label; may be given several times, and all must hold.
    #[arg(long, short, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// Only those that were asked for at this time or later, such as 2026-01-05T12:00:00Z.
    #[arg(long, visible_alias = "since", value_name = "TIME")]
    created_after: Option<String>,
    /// Only those that were asked for before this time.
    #[arg(long, visible_alias = "until", value_name = "TIME")]
    created_before: Option<String>,
    /// Which come first.
    #[arg(long, value_enum, default_value_t = Sort::Newest)]
    sort: Sort,
}

/// Which runs come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// Those that were asked for last.
    Newest,
    /// Those that were asked for first.
    Oldest,
}

pub(super) fn parse_state(name: &str) -> Result<RunState, String> {
    RunState::from_name(&name.to_ascii_uppercase()).ok_or_else(|| {
        let known: Vec<&str> = RunState::ALL.iter().map(|state| state.name()).collect();
        format!("there is no such state; the states are {}", known.join(", "))
    })
}

impl Options {
    fn query(&self) -> ListOptions {
        let several = |words: &[String]| (!words.is_empty()).then(|| words.join(","));
        let states: Vec<String> = self.state.iter().map(ToString::to_string).collect();
        let filters = [
            ("asset", self.asset.clone()),
            ("partition", self.partition.clone()),
            ("source", several(&self.source)),
            ("label", several(&self.label)),
            ("created_after", self.created_after.clone()),
            ("created_before", self.created_before.clone()),
            ("sort", (self.sort == Sort::Oldest).then(|| "created_at".to_owned())),
        ];
        ListOptions {
            limit: None,
            cursor: self.cursor.clone(),
            state: several(&states),
            filters: filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
        }
    }
}

pub(super) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let page = through(location, Need::Read, async |client| {
        let runs = async |page: &ListOptions| client.runs(page).await;
        Ok(first_pages(usize::from(options.limit), options.query(), runs).await?)
    });
    print(&page.await?, format)?;
    Ok(Exit::Done)
}

fn print(page: &Page<Run>, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(page);
    }
    if page.items.is_empty() {
        output::line("no runs");
        return Ok(());
    }
    let row = |run: &Run| {
        let ended = run.tasks_succeeded + run.tasks_failed + run.tasks_skipped + run.tasks_cancelled;
        vec![
            told::short_id(run),
            told::state(run),
            format!("{} {}", told::asked(run), told::partitions(&run.partitions)).trim_end().to_owned(),
            format!("{ended}/{}", run.tasks_total),
            told::source(run),
            run.created_at.to_string(),
            output::span(run.started_at, run.finished_at),
        ]
    };
    output::table(
        &["run", "state", "asked for", "tasks", "by", "created", "took"],
        &[3, 6],
        page.items.iter().map(row).collect(),
    );
    if let Some(next) = &page.next_cursor {
        output::line(format_args!("\nmore: the same with --cursor {next}"));
    }
    Ok(())
}
