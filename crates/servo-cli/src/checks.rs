//! `servo check`: runs the checks of assets on the data that is there, without making any, and lists results.

use servo_api::client::first_pages;
use servo_api::views::{CheckResult, PartitionsBody, RequestOperation, RequestSource, RunBody};
use servo_core::{Millis, RunId};
use servo_engine::rows::Name;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::lists::{PageArgs, print_page};
use crate::location::Location;
use crate::materialize::{Asked, new_run_key};
use crate::output::Format;
use crate::plan::{SelectionArgs, keys_and_ranges};
use crate::style::harmless;
use crate::which::Which;

/// Commands about checks.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Run the checks of assets on what is materialized. Nothing is made, replaced or put into quarantine.
    #[command(
        after_help = "Examples:\n  servo check run raw.flights\n  servo check run 'tag:daily' --partitions 2013-01-01..2013-01-31 --strict-checks"
    )]
    Run(Options),
    /// List results of checks, the newest first: of materializations and of checks that ran alone.
    #[command(
        after_help = "Examples:\n  servo check list --failed\n  servo check list raw.flights --check row_count --limit 100\n  servo check list --run latest --json"
    )]
    List(ListOptions),
}

/// Options of `servo check list`.
#[derive(clap::Args)]
pub(crate) struct ListOptions {
    /// Only checks of this asset.
    asset: Option<String>,
    /// Only checks of this name.
    #[arg(long, value_name = "NAME")]
    check: Option<String>,
    /// Only checks of this partition.
    #[arg(long, short, value_name = "KEY")]
    partition: Option<String>,
    /// Only those that did not pass.
    #[arg(long, conflicts_with = "passed")]
    failed: bool,
    /// Only those that passed.
    #[arg(long)]
    passed: bool,
    /// Only checks of this run: its id, the beginning of it, or latest.
    #[arg(long, value_name = "RUN")]
    run: Option<Which<RunId>>,
    #[command(flatten)]
    page: PageArgs,
}

/// Options of `servo check run`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: SelectionArgs,
    /// A partition, or those of a time: 2013-01-15, 2013-01, date=2013-01-15,region=eu; or a range, 2013-01..2013-03;
    /// may be given several times. All that are materialized if none are given.
    #[arg(short = 'p', long = "partition", value_name = "KEY")]
    keys: Vec<String>,
    /// A range of partitions, both ends included, either may be left open; may be given several times.
    #[arg(long = "partitions", value_name = "FROM..TO")]
    ranges: Vec<String>,
    /// The newest partition of every asset.
    #[arg(long)]
    latest: bool,
    /// Tasks at once [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    slots: Option<u16>,
    /// Stable name of the run: the same name again is the same run.
    #[arg(long, value_name = "KEY")]
    run_key: Option<String>,
    /// Longest that the run may take, in seconds.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// End with exit code 3 if a check of severity error or critical fails.
    #[arg(long)]
    strict_checks: bool,
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    let options = match command {
        Command::Run(options) => options,
        Command::List(options) => return list(location, options, format).await,
    };
    let (keys, ranges) = keys_and_ranges(&options.keys, &options.ranges);
    let body = RunBody {
        selection: options.selection.text(),
        operation: Some(RequestOperation::Check),
        partitions: PartitionsBody { keys, ranges, latest: options.latest, ..PartitionsBody::default() },
        run_key: Some(options.run_key.clone().unwrap_or_else(new_run_key)),
        timeout_ms: options.timeout.map(Millis::from_secs),
        source: Some(RequestSource::Manual),
        ..RunBody::default()
    };
    let asked = Asked {
        body,
        is_named: options.run_key.is_some(),
        slots: options.slots,
        strict_checks: options.strict_checks,
    };
    asked.run(location, format).await
}

async fn list(location: &Location, options: &ListOptions, format: Format) -> anyhow::Result<Exit> {
    let passed = match (options.passed, options.failed) {
        (true, _) => Some("true".to_owned()),
        (_, true) => Some("false".to_owned()),
        (false, false) => None,
    };
    let filters = [
        ("asset", options.asset.clone()),
        ("check", options.check.clone()),
        ("partition", options.partition.clone()),
        ("passed", passed),
    ];
    let page = through(location, Need::Read, async |client| {
        let mut which = options.page.options(None);
        which.filters = filters.iter().filter_map(|(name, value)| Some((*name, value.clone()?))).collect();
        if let Some(run) = &options.run {
            which.filters.push(("run_id", run.find(client).await?.to_string()));
        }
        let checks = async |list: &servo_api::client::ListOptions| client.checks(list).await;
        Ok(first_pages(options.page.limit(), which, checks).await?)
    });
    let page = page.await?;
    let head = ["checked", "asset", "partition", "check", "result", "severity", "found"];
    print_page(&page, format, &head, row, "the same with")?;
    Ok(Exit::Done)
}

fn row(result: &CheckResult) -> Vec<String> {
    let check = &result.check;
    let outcome = match (check.passed, &check.error) {
        (true, _) => "passed".to_owned(),
        (false, None) => "failed".to_owned(),
        (false, Some(error)) => format!("raised {error}"),
    };
    vec![
        result.checked_at.to_string(),
        result.asset_key.to_string(),
        harmless(result.partition.as_deref().unwrap_or_default()).into_owned(),
        harmless(&check.name).into_owned(),
        outcome,
        Name(check.severity).to_text(),
        harmless(check.message.as_deref().unwrap_or_default()).into_owned(),
    ]
}
