//! `servo cost`: what attempts cost, by asset, day or run.

use servo_api::client::{Client, ListOptions};
use servo_api::views::{CostGroup, Costs, CostsBy};
use servo_core::Millis;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::lists::PageArgs;
use crate::location::Location;
use crate::output::{self, Format};

/// The most that the interface gives at once.
const MOST_IN_A_PAGE: usize = 100;

/// Options of `servo cost`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which deployed assets, as in servo materialize [default: everything that was ever made].
    selection: Option<String>,
    /// Grouping of the costs.
    #[arg(long, value_enum, default_value_t = By::Asset)]
    by: By,
    /// Only attempts that ended at this time or later, such as 2026-01-05T00:00:00Z [default: 30 days before the end].
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only attempts that ended before this time [default: now].
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// What costs are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// The asset, the dearest first.
    Asset,
    /// The day in UTC, the newest first.
    Day,
    /// The run, the dearest first.
    Run,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            Self::Asset => "asset",
            Self::Day => "day",
            Self::Run => "run",
        }
    }
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let filters = [("selection", &options.selection), ("since", &options.since), ("until", &options.until)];
    let filters = filters.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
    let which = ListOptions { filters: filters.collect(), ..options.page.options(Some(options.by.name())) };
    let limit = options.page.limit();
    let costs = through(location, Need::Read, async |client| fetch(client, which.clone(), limit).await);
    print(&costs.await?, format)?;
    Ok(Exit::Done)
}

/// The first groups, page by page.
async fn fetch(client: &Client, mut which: ListOptions, limit: usize) -> anyhow::Result<Costs> {
    let mut items = Vec::new();
    loop {
        which.limit = Some((limit - items.len()).min(MOST_IN_A_PAGE));
        let page = client.costs(&which).await?;
        items.extend(page.items);
        if page.next_cursor.is_none() || items.len() >= limit {
            return Ok(Costs { items, ..page });
        }
        which.cursor = page.next_cursor;
    }
}

fn print(costs: &Costs, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(costs);
    }
    let Costs { since, until, total, .. } = costs;
    if total.attempts == 0 {
        output::line(format_args!("no attempt ended from {since} to {until}"));
        return Ok(());
    }
    let by = match costs.by {
        CostsBy::Asset => "asset",
        CostsBy::Day => "day",
        CostsBy::Run => "run",
    };
    let head = [by, "attempts", "cpu", "compute", "storage", "network", "total"];
    output::table(&head, &[1, 2, 3, 4, 5, 6], costs.items.iter().map(row).collect());
    let together = total.total_cost_micro_usd;
    output::line(format_args!("\n{together} all together, by attempts that ended from {since} to {until}"));
    if let Some(cursor) = &costs.next_cursor {
        output::line(format_args!("more: the same with --cursor {cursor}"));
    }
    Ok(())
}

fn row(group: &CostGroup) -> Vec<String> {
    let asset = group.asset_key.as_ref().map(ToString::to_string);
    let key = asset.or_else(|| group.day.clone()).or_else(|| Some(group.run_id?.to_string()));
    let sum = &group.sum;
    vec![
        key.unwrap_or_default(),
        sum.attempts.to_string(),
        Millis::new(sum.cpu_ms).to_string(),
        sum.compute_cost_micro_usd.to_string(),
        sum.storage_cost_micro_usd.to_string(),
        sum.network_cost_micro_usd.to_string(),
        sum.total_cost_micro_usd.to_string(),
    ]
}
