//! `servo materialize`: the main job. Runs what is selected, shows how it goes, and ends with it.

use std::collections::BTreeMap;

use anyhow::bail;
use serde_json::Value;
use servo_api::views::RunBody;
use servo_core::Millis;
use servo_store::{PutIds, SystemPutIds};

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::follow;
use crate::location::Location;
use crate::output::Format;
use crate::plan::PartitionArgs;

/// Options of `servo materialize`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which assets: names, globs, +upstream, downstream+, tag:, group:, owner:, kind:, and, or, not.
    selection: String,
    #[command(flatten)]
    partitions: PartitionArgs,
    /// A value of a configuration field, NAME=VALUE or NAMESPACE.ASSET:NAME=VALUE; JSON, or else a text.
    #[arg(long = "config", value_name = "NAME=VALUE", value_parser = parse_config)]
    config: Vec<(String, Value)>,
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
    /// The request. Made again, it is the same one.
    fn body(&self) -> anyhow::Result<RunBody> {
        let mut config = BTreeMap::new();
        for (name, value) in &self.config {
            if config.insert(name.clone(), value.clone()).is_some() {
                bail!("--config {name} is given twice");
            }
        }
        let run_key = self.run_key.clone();
        Ok(RunBody {
            selection: self.selection.clone(),
            partitions: self.partitions.body(),
            config,
            run_key: Some(run_key.unwrap_or_else(|| format!("manual:{}", SystemPutIds::default().next()))),
            timeout_ms: self.timeout.map(Millis::from_secs),
            ..RunBody::default()
        })
    }
}

/// One per core.
pub(crate) fn default_slots() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let body = options.body()?;
    let slots = options.slots.map_or_else(default_slots, usize::from);
    through(location, Need::Run { slots }, async |client| {
        let asked = client.trigger(&body).await?;
        if asked.repeated {
            eprintln!("this run was asked for before: it is shown, not run again");
        }
        follow::until_end(client, asked.run_id, format).await
    })
    .await
}

fn parse_config(text: &str) -> Result<(String, Value), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("write NAME=VALUE, such as limit=10".to_owned());
    };
    if name.is_empty() {
        return Err("the name before = is missing".to_owned());
    }
    Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}
