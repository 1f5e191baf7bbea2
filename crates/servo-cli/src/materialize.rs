//! `servo materialize`: the main job. Runs what is selected, shows how it goes, and ends with it.

use servo_api::Code;
use servo_api::client::Client;
use servo_api::views::{RequestSource, RunBody};
use servo_core::{Clock, Millis};
use servo_runtime::SystemClock;
use servo_store::{PutIds, SystemPutIds};

use crate::backend::{Need, through_both};
use crate::exit::Exit;
use crate::follow;
use crate::location::Location;
use crate::output::{self, Format};
use crate::plan::{ConfigArgs, PartitionArgs, SelectionArgs};

/// Options of `servo materialize`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    partitions: PartitionArgs,
    #[command(flatten)]
    config: ConfigArgs,
    /// Tasks at once [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    slots: Option<u16>,
    /// Stable name of the run: the same name again is the same run.
    #[arg(long, value_name = "KEY")]
    run_key: Option<String>,
    /// Longest that the run may take, in seconds.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Leave tasks that fail at that: try nothing again, whatever their policy says.
    #[arg(long)]
    no_retry: bool,
    /// End with exit code 3 if a check of severity error or critical fails, although the run succeeds.
    #[arg(long)]
    strict_checks: bool,
}

impl Options {
    /// The request. Made again, it is the same one.
    fn body(&self) -> anyhow::Result<RunBody> {
        let run_key = self.run_key.clone();
        Ok(RunBody {
            selection: self.selection.text(),
            partitions: self.partitions.body(),
            config: self.config.body()?,
            run_key: Some(run_key.unwrap_or_else(new_run_key)),
            no_retry: self.no_retry,
            timeout_ms: self.timeout.map(Millis::from_secs),
            source: Some(RequestSource::Manual),
            ..RunBody::default()
        })
    }
}

/// One per core.
pub(crate) fn default_slots() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let asked = Asked {
        body: options.body()?,
        is_named: options.run_key.is_some(),
        slots: options.slots,
        strict_checks: options.strict_checks,
    };
    asked.run(location, format).await
}

/// A run that a command asks for and follows to its end.
pub(crate) struct Asked {
    pub(crate) body: RunBody,
    /// Whether the caller gave the run key, so that the run may be an older one.
    pub(crate) is_named: bool,
    /// Tasks at once.
    pub(crate) slots: Option<u16>,
    /// Whether failed checks decide how the command ends.
    pub(crate) strict_checks: bool,
}

impl Asked {
    pub(crate) async fn run(self, location: &Location, format: Format) -> anyhow::Result<Exit> {
        let Self { body, is_named, slots, strict_checks } = self;
        let slots = slots.map_or_else(default_slots, usize::from);
        let begun = SystemClock.now();
        let ask = async |client: &Client| {
            let asked = match client.trigger(&body).await {
                // Nothing to do is what a request for what is stale, missing or failed hopes for.
                Err(error) if error.code() == Some(Code::UpToDate) => {
                    match format {
                        Format::Json => output::json(&serde_json::json!({ "up_to_date": true }))?,
                        Format::Table => output::line(format_args!("{error}")),
                    }
                    return Ok(None);
                }
                asked => asked?,
            };
            if is_named && asked.accepted.accepted_at.is_some_and(|at| at < begun) {
                eprintln!("this run was asked for before: it is shown, not run again");
            }
            Ok(Some(asked.run_id))
        };
        through_both(location, Need::Run { slots }, ask, async |client, run| {
            let Some(run) = run else { return Ok(Exit::Done) };
            let ended = follow::until_end(client, run, format).await?;
            Ok(Exit::of_run(&ended.run, strict_checks))
        })
        .await
    }
}

/// A run key that nobody else uses.
pub(crate) fn new_run_key() -> String {
    format!("manual:{}", SystemPutIds::default().next())
}
