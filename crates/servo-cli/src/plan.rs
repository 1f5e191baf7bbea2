//! `servo plan`: what would run, in which order, and why each task is in it. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use servo_api::views::{PartitionsBody, Plan, PlannedInput, PlannedTask, RunBody};
use servo_api::{Code, Problem};
use servo_core::AssetKey;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

/// Which assets and partitions.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    partitions: PartitionArgs,
    #[command(flatten)]
    config: ConfigArgs,
    /// How many tasks to show.
    #[arg(long, short = 'n', default_value_t = 50)]
    limit: usize,
}

/// Which assets.
#[derive(clap::Args)]
pub(crate) struct SelectionArgs {
    /// Which assets: names, globs, +upstream, downstream+, tag:, group:, owner:, kind:, and, or, not. Several selections
    /// are taken together.
    #[arg(required = true, value_name = "SELECTION")]
    selections: Vec<String>,
}

impl SelectionArgs {
    /// All of them as one selection.
    pub(crate) fn text(&self) -> String {
        let parts = &self.selections;
        if let [one] = &parts[..] {
            return one.clone();
        }
        // An expression that nobody has put into quotes.
        let is_operator = |part: &String| matches!(part.as_str(), "and" | "or" | "not" | "(" | ")");
        if parts.iter().any(is_operator) {
            return parts.join(" ");
        }
        let grouped = |part: &String| {
            if part.contains(char::is_whitespace) { format!("({part})") } else { part.clone() }
        };
        parts.iter().map(grouped).collect::<Vec<_>>().join(" or ")
    }
}

/// Keys that are ranges, and those that are none. A key that has two dots itself is written in quotes.
pub(crate) fn keys_and_ranges(keys: &[String], ranges: &[String]) -> (Vec<String>, Vec<String>) {
    let is_range = |key: &&String| key.contains("..") && !key.contains('"');
    let (more, keys): (Vec<&String>, Vec<&String>) = keys.iter().partition(is_range);
    (keys.into_iter().cloned().collect(), ranges.iter().chain(more).cloned().collect())
}

/// Query of the list of partitions.
#[derive(clap::Args)]
pub(crate) struct PartitionArgs {
    /// A partition, or those of a time: 2013-01-15, 2013-01, date=2013-01-15,region=eu; or a range, 2013-01..2013-03;
    /// may be given several times.
    #[arg(short = 'p', long = "partition", value_name = "KEY")]
    keys: Vec<String>,
    /// A range of partitions, both ends included, either may be left open; may be given several times.
    #[arg(long = "partitions", value_name = "FROM..TO")]
    ranges: Vec<String>,
    /// The newest partition of every asset.
    #[arg(long)]
    latest: bool,
    /// Of these partitions, or of all if none are given, only those that were never made.
    #[arg(long)]
    missing: bool,
    /// Of these partitions, or of all if none are given, only those whose last attempt failed.
    #[arg(long)]
    failed: bool,
    /// Of these partitions, or of all if none are given, only those that have to be made to be up to date.
    #[arg(long)]
    stale: bool,
}

impl PartitionArgs {
    pub(crate) fn body(&self) -> PartitionsBody {
        let (keys, ranges) = keys_and_ranges(&self.keys, &self.ranges);
        PartitionsBody {
            keys,
            ranges,
            latest: self.latest,
            missing: self.missing,
            failed: self.failed,
            stale: self.stale,
        }
    }
}

/// Values of configuration.
#[derive(clap::Args)]
pub(crate) struct ConfigArgs {
    /// A value of a configuration field, NAME=VALUE or NAMESPACE.ASSET:NAME=VALUE; a text, or JSON if the field is not
    /// of text.
    #[arg(long = "config", value_name = "NAME=VALUE", value_parser = parse_config)]
    config: Vec<(String, Value)>,
}

impl ConfigArgs {
    pub(crate) fn body(&self) -> anyhow::Result<BTreeMap<String, Value>> {
        let mut config = BTreeMap::new();
        for (name, value) in &self.config {
            if config.insert(name.clone(), value.clone()).is_some() {
                let detail = format!("--config {name} is given twice");
                return Err(Problem::new(Code::InvalidRequest, detail).into());
            }
        }
        Ok(config)
    }
}

fn parse_config(text: &str) -> Result<(String, Value), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("write NAME=VALUE, such as limit=10".to_owned());
    };
    if name.is_empty() {
        return Err("the name before = is missing".to_owned());
    }
    // A number that JSON would write in another way stays as it was typed, for fields of text.
    let read: Option<Value> = serde_json::from_str(value).ok();
    let number = read.as_ref().filter(|read| read.is_number()).map(ToString::to_string);
    let exact = read.filter(|_| number.is_none_or(|number| number == value));
    Ok((name.to_owned(), exact.unwrap_or_else(|| value.into())))
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let (selection, partitions) = (options.selection.text(), options.partitions.body());
    let body = RunBody { selection, partitions, config: options.config.body()?, ..RunBody::default() };
    let plan = through(location, Need::ReadProject, async |client| Ok(client.plan(&body).await?)).await?;
    match format {
        Format::Json => output::json(&plan)?,
        Format::Table => table(&plan, options.limit),
    }
    Ok(Exit::Done)
}

fn table(plan: &Plan, limit: usize) {
    let (count, stages) = (plan.tasks.len(), plan.stages);
    let pairs: usize = plan.tasks.iter().map(|task| task.upstream.len()).sum();
    let sets = plan.sets.iter().map(|set| set.upstream.len() * set.downstream.len());
    let edges = pairs + sets.sum::<usize>();
    output::line(format_args!(
        "{count} task{} in {stages} stage{}, {edges} edge{}, {}\n",
        plural(count),
        plural(stages as usize),
        plural(edges),
        plan.fingerprint,
    ));
    let row = |task: &&PlannedTask| {
        let names: Vec<String> = task.asset_keys.iter().map(ToString::to_string).collect();
        let why: Vec<String> = task.why.iter().map(ToString::to_string).collect();
        let inputs: Vec<String> = task.inputs.iter().map(input).collect();
        vec![
            task.stage.to_string(),
            names.join(" + "),
            task.partition.clone().unwrap_or_default(),
            why.join("; "),
            inputs.join("; "),
        ]
    };
    let calls: BTreeSet<&AssetKey> =
        plan.tasks.iter().filter(|task| task.single_call).flat_map(|task| &task.asset_keys).collect();
    // In the order in which they could run.
    let mut tasks: Vec<&PlannedTask> = plan.tasks.iter().collect();
    tasks.sort_by_key(|task| task.stage);
    output::table(
        &["stage", "asset", "partition", "why", "reads"],
        &[0],
        tasks.iter().take(limit).map(row).collect(),
    );
    if count > limit {
        output::line(format_args!("\nand {} more; see them with --limit {count} or --json", count - limit));
    }
    for asset in calls {
        output::line(format_args!("\none call makes all partitions of {asset} (single_call)"));
    }
    let inputs = plan.tasks.iter().flat_map(|task| &task.inputs);
    if let never @ 1.. = inputs.filter(|input| input.never_materialized > 0 && !input.available).count() {
        output::line(format_args!(
            "\n{never} input{} never materialized; select {} too (\"+name\"), or run {} first",
            if never == 1 { " was" } else { "s were" },
            if never == 1 { "it" } else { "them" },
            if never == 1 { "it" } else { "them" },
        ));
    }
    for skipped in &plan.skipped {
        let what = match skipped.reason.as_str() {
            "SKIPPED_UP_TO_DATE" => "up to date",
            _ => "stale only because of what is not selected",
        };
        output::line(format_args!("skipped {} of {}: {what}", skipped.partitions, skipped.asset_key));
    }
    for external in &plan.external {
        output::line(format_args!("{external} is external and is not run"));
    }
}

/// `raw.flights 2013-01-05 (never materialized)`.
fn input(input: &PlannedInput) -> String {
    let some = |count: u64, what: &str| match count {
        0 => None,
        all if all == input.partitions => Some(what.to_owned()),
        some => Some(format!("{some} {what}")),
    };
    let mut parts: Vec<String> = some(input.in_run, "in this run").into_iter().collect();
    if input.materialized > 0 {
        parts.push(format!("{} materialized before", input.materialized));
    }
    let never = if input.available { "never materialized, left out" } else { "never materialized" };
    parts.extend(some(input.never_materialized, never));
    if input.external {
        parts.push("external".to_owned());
    }
    if input.partitions == 0 {
        parts.push("none".to_owned());
    }
    let space = if input.which.is_empty() { "" } else { " " };
    format!("{}{space}{} ({})", input.asset_key, input.which, parts.join(", "))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
