//! `servo deploy`: checks the project, and makes what it declares what the workspace runs.

use servo_api::views::{Deployed, Repartitioned};
use servo_engine::definitions::Definitions;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

/// How to deploy.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only check; change nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let scanned = location.project.scan()?;
    let count = Definitions::check(scanned.manifest)?.assets().len();
    let manifest = scanned.text;
    let deployed = if options.dry_run {
        through(location, Need::Read, async |client| Ok(client.preview_deployment(&manifest).await?)).await?
    } else {
        through(location, Need::Deploy, async |client| Ok(client.deploy(&manifest).await?)).await?
    };
    if format == Format::Json {
        output::json(&deployed)?;
        return Ok(Exit::Done);
    }
    let Deployed { digest, accepted, repartitioned, .. } = deployed;
    let assets = format!("{count} asset{}", if count == 1 { "" } else { "s" });
    output::line(match (options.dry_run, accepted.accepted_event_id) {
        (true, _) => format!("{assets} checked, {digest}; nothing was changed"),
        (false, Some(_)) => format!("deployed {assets}, {digest}"),
        (false, None) => format!("nothing to deploy: the workspace has {digest} already"),
    });
    for Repartitioned { asset_key, kept, outside } in repartitioned {
        output::line(format_args!(
            "{asset_key} has other partitions: {kept} that were made keep their status"
        ));
        if outside > 0 {
            output::line(format_args!(
                "  {outside} are not among them any more; they are kept until \
                 `servo partition wipe {asset_key} --outside-definition`"
            ));
        }
    }
    Ok(Exit::Done)
}
