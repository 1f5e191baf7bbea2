//! `servo partition stale` and `servo why`: what is out of date, and what is to blame.

use servo_api::client::ListOptions;
use servo_api::views::{LastFailure, StalePartition, StaleTotals, WhyStale};
use servo_core::AssetKey;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format, words};
use crate::style::harmless;

/// Which stale partitions.
#[derive(clap::Args)]
pub(crate) struct StaleOptions {
    /// Which assets: names, globs, +upstream, downstream+, tag:, group:, owner:, kind:, and, or, not.
    #[arg(default_value = "*")]
    selection: String,
    /// Only those that are stale for this reason: never-made, expired, code-changed, upstream-newer,
    /// upstream-stale, freshness-missed.
    #[arg(long)]
    reason: Option<String>,
    /// How many.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Where to go on; the last line of a page says it.
    #[arg(long)]
    cursor: Option<String>,
}

/// Options of `servo why`.
#[derive(clap::Args)]
pub(crate) struct WhyOptions {
    /// The asset.
    #[arg(value_parser = AssetKey::parse)]
    asset: AssetKey,
    /// A partition of it; the newest that is stale unless given.
    #[arg(short, long, value_name = "KEY")]
    partition: Option<String>,
}

pub(crate) async fn list(location: &Location, options: &StaleOptions, format: Format) -> anyhow::Result<()> {
    let limit = usize::from(options.limit);
    let page = through(location, Need::ReadProject, async |client| {
        let mut which = ListOptions {
            limit: None,
            cursor: options.cursor.clone(),
            state: options.reason.clone(),
            filters: vec![("selection", options.selection.clone())],
        };
        let mut items = Vec::new();
        loop {
            which.limit = Some((limit - items.len()).clamp(1, 100));
            let mut page = client.stale_partitions(&which).await?;
            items.append(&mut page.items);
            which.cursor = page.next_cursor.clone();
            if which.cursor.is_none() || items.len() >= limit {
                page.items = items;
                return Ok(page);
            }
        }
    })
    .await?;
    if format == Format::Json {
        return output::json(&page);
    }
    if page.totals.total == 0 {
        output::line(format_args!("nothing is stale"));
        return Ok(());
    }
    output::line(format_args!("{}\n", totals(&page.totals)));
    let row = |stale: &StalePartition| {
        vec![
            stale.asset_key.to_string(),
            stale.partition.clone().unwrap_or_default(),
            words(&stale.reason),
            stale.stale_since.map(|since| since.to_string()).unwrap_or_default(),
            stale.why.clone(),
        ]
    };
    output::table(
        &["asset", "partition", "reason", "since", "why"],
        &[],
        page.items.iter().map(row).collect(),
    );
    if let Some(next) = &page.next_cursor {
        output::line(format_args!("\nmore: servo partition stale '{}' --cursor {next}", options.selection));
    }
    Ok(())
}

pub(crate) async fn why(location: &Location, options: &WhyOptions, format: Format) -> anyhow::Result<Exit> {
    let told = through(location, Need::ReadProject, async |client| {
        Ok(client.why_stale(&options.asset, options.partition.as_deref()).await?)
    })
    .await?;
    match format {
        Format::Json => output::json(&told)?,
        Format::Table => tree(&told),
    }
    Ok(Exit::Done)
}

fn tree(told: &WhyStale) {
    output::line(&told.sentence);
    if let Some(failed) = &told.last_failure {
        output::line(last_failure(failed));
    }
    let Some(cause) = told.cause.as_ref().filter(|cause| !cause.because_of.is_empty()) else { return };
    output::line(format_args!("\n{}", named(cause)));
    branches(cause, "");
}

/// `the last attempt to make it failed at … in run_…: a check blocked it, …`.
fn last_failure(failed: &LastFailure) -> String {
    let run = failed.run_id.map(|run| format!(" in {run}")).unwrap_or_default();
    let error =
        failed.error.as_ref().map(|error| format!(": {}", harmless(&error.message))).unwrap_or_default();
    format!("the last attempt to make it failed at {}{run}{error}", failed.at)
}

fn branches(of: &StalePartition, indent: &str) {
    let last = of.because_of.len();
    for (position, cause) in of.because_of.iter().enumerate() {
        let is_last = position + 1 == last && of.more == 0;
        let (mark, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        // What is stale because of others is told by what is below it, unless that was left out.
        let why = if cause.because_of.is_empty() { format!(" {}", cause.why) } else { String::new() };
        output::line(format_args!("{indent}{mark}{}{why}", named(cause)));
        branches(cause, &format!("{indent}{below}"));
    }
    if of.more > 0 {
        output::line(format_args!("{indent}└─ and {} more", of.more));
    }
}

fn named(stale: &StalePartition) -> String {
    let partition = stale.partition.as_ref().map(|partition| format!(" {partition}")).unwrap_or_default();
    format!("{}{partition}", stale.asset_key)
}

/// `12 stale: 10 never made, 2 upstream newer`.
fn totals(totals: &StaleTotals) -> String {
    let parts = totals.each().into_iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = parts.map(|(what, count)| format!("{count} {what}")).collect();
    format!("{} stale: {}", totals.total, parts.join(", "))
}
