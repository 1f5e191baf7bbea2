//! `servo materialize`: the main job. Runs what is selected, shows how it goes, and ends with it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use servo_api::views::{PartitionsBody, RunBody};
use servo_core::Millis;
use servo_engine::planner::PartitionChoice;
use servo_engine::{Caller, RunRequest};

use crate::location::Location;
use crate::output::Format;
use crate::plan::PartitionArgs;
use crate::session::{Reach, Session};
use crate::{runs, server};

/// What to make.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which assets: names, globs, +upstream, downstream+, tag:, group:, owner:, kind:, and, or, not.
    selection: String,
    #[command(flatten)]
    partitions: PartitionArgs,
    /// A value of a configuration field, NAME=VALUE or NAMESPACE.ASSET:NAME=VALUE; JSON, or else a text.
    #[arg(long = "config", value_name = "NAME=VALUE", value_parser = parse_config)]
    config: Vec<(String, String)>,
    /// Tasks at once [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    slots: Option<u16>,
    /// Stable name of the run: the same name again is the same run.
    #[arg(long, value_name = "KEY")]
    run_key: Option<String>,
    /// Longest that the run may take, in seconds.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

impl Options {
    fn request(&self, caller: Caller) -> anyhow::Result<RunRequest> {
        let mut config = BTreeMap::new();
        for (name, value) in &self.config {
            if config.insert(name.clone(), value.clone()).is_some() {
                bail!("--config {name} is given twice");
            }
        }
        Ok(RunRequest {
            selection: self.selection.clone(),
            partitions: self.partitions.choice(),
            config,
            timeout: self.timeout.map(Millis::from_secs),
            caller,
            ..RunRequest::default()
        })
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots.map_or_else(default_slots, usize::from)
    }
}

/// One per core.
pub(crate) fn default_slots() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<ExitCode> {
    let request = options.request(location.caller())?;
    if let Some(client) = server::find(location).await? {
        let asked = client.trigger(&body(request, options.run_key.clone())).await?;
        return runs::end_of(&client, asked.run_id, format).await;
    }
    let mut session =
        Session::open(location, location.project.find()?, options.slots(), Reach::Alone).await?;
    let outcome = make(&mut session, location, options.run_key.clone(), request, format).await;
    session.close().await?;
    outcome
}

async fn make(
    session: &mut Session,
    location: &Location,
    run_key: Option<String>,
    request: RunRequest,
    format: Format,
) -> anyhow::Result<ExitCode> {
    session.deploy(location.caller()).await?;
    let before = session.unfinished().await?;
    let launched = session.workspace.launch(run_key.map(Into::into), request).await?;
    if launched.accepted.is_none() {
        eprintln!("this run was asked for before: it is shown, not run again");
    }
    let code = session.tell_end(launched.run_id, format).await?;
    for run in session.unfinished().await?.iter().filter(|run| before.contains(run)) {
        eprintln!("{run} of before is not finished; go on with it: servo run watch {run}");
    }
    Ok(code)
}

/// The request as a server takes it.
fn body(request: RunRequest, run_key: Option<String>) -> RunBody {
    let PartitionChoice { keys, ranges, latest } = request.partitions;
    RunBody {
        selection: request.selection,
        partitions: PartitionsBody { keys, ranges, latest },
        config: request
            .config
            .into_iter()
            .map(|(name, text)| (name, serde_json::from_str(&text).unwrap_or_default()))
            .collect(),
        run_key,
        timeout_ms: request.timeout,
        ..RunBody::default()
    }
}

fn parse_config(text: &str) -> Result<(String, String), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("write NAME=VALUE, such as limit=10".to_owned());
    };
    if name.is_empty() {
        return Err("the name before = is missing".to_owned());
    }
    let is_json = serde_json::from_str::<serde_json::Value>(value).is_ok();
    let value = if is_json { value.to_owned() } else { serde_json::Value::from(value).to_string() };
    Ok((name.to_owned(), value))
}
