//! `servo check`: runs the checks of assets on the data that is there, without making any.

use servo_api::views::{PartitionsBody, RequestOperation, RequestSource, RunBody};
use servo_core::Millis;

use crate::exit::Exit;
use crate::location::Location;
use crate::materialize::{Asked, new_run_key};
use crate::output::Format;

/// Commands about checks.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Run the checks of assets on what is materialized. Nothing is made, replaced or put into quarantine.
    #[command(
        after_help = "Examples:\n  servo check run raw.flights\n  servo check run 'tag:daily' --partitions 2013-01-01..2013-01-31 --strict-checks"
    )]
    Run(Options),
}

/// Options of `servo check run`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which assets: names, globs, +upstream, downstream+, tag:, group:, owner:, kind:, and, or, not.
    selection: String,
    /// A partition, or those of a time: 2013-01-15, 2013-01, date=2013-01-15,region=eu; may be given several times.
    /// All that are materialized if none are given.
    #[arg(short, long = "partition", value_name = "KEY")]
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
    let Command::Run(options) = command;
    let body = RunBody {
        selection: options.selection.clone(),
        operation: Some(RequestOperation::Check),
        partitions: PartitionsBody {
            keys: options.keys.clone(),
            ranges: options.ranges.clone(),
            latest: options.latest,
            ..PartitionsBody::default()
        },
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
