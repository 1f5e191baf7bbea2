//! `servo deploy`: checks the project, and makes what it declares what the workspace runs.

use std::process::ExitCode;

use servo_core::TimeZones;
use servo_engine::Deploy;
use servo_engine::definitions::Definitions;

use crate::location::Location;
use crate::output::{self, Format};

/// How to deploy.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only check; change nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<ExitCode> {
    let scanned = location.project.scan()?;
    let definitions = Definitions::check(scanned.manifest)?;
    let count = definitions.assets().len();
    let assets = format!("{count} asset{}", if count == 1 { "" } else { "s" });
    if options.dry_run {
        match format {
            Format::Json => output::json(
                &serde_json::json!({ "digest": scanned.digest, "assets": count, "deployed": false }),
            ),
            Format::Table => {
                output::line(format_args!("{assets} checked, {}; nothing was changed", scanned.digest))
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let workspace = location.workspace_alone().await?;
    let deploy = Deploy {
        digest: scanned.digest.as_str().into(),
        time_zones: TimeZones::in_use().version().into(),
        project: definitions.project().to_owned(),
        assets: definitions.assets().iter().map(|asset| asset.def.clone()).collect(),
        caller: location.caller(),
    };
    let reply = workspace.deploy(deploy).await;
    workspace.shutdown().await?;
    let event = reply?.event_id();
    match (format, event) {
        (Format::Json, event) => output::json(&serde_json::json!({
            "digest": scanned.digest,
            "assets": count,
            "deployed": event.is_some(),
            "accepted_event_id": event.map(|id| id.to_string()),
        })),
        (Format::Table, Some(_)) => output::line(format_args!("deployed {assets}, {}", scanned.digest)),
        (Format::Table, None) => {
            output::line(format_args!("nothing to deploy: the workspace has {} already", scanned.digest))
        }
    }
    Ok(ExitCode::SUCCESS)
}
