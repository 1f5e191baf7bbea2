//! `servo deploy`: checks the project, and makes what it declares what the workspace runs.

use servo_api::views::{Accepted, Deployed};
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
    let deployed = if options.dry_run {
        Deployed { digest: scanned.digest, assets: count as u64, accepted: Accepted::default() }
    } else {
        let manifest = scanned.text;
        through(location, Need::Deploy, async |client| Ok(client.deploy(&manifest).await?)).await?
    };
    if format == Format::Json {
        output::json(&deployed)?;
        return Ok(Exit::Done);
    }
    let Deployed { digest, accepted, .. } = deployed;
    let assets = format!("{count} asset{}", if count == 1 { "" } else { "s" });
    output::line(match (options.dry_run, accepted.accepted_event_id) {
        (true, _) => format!("{assets} checked, {digest}; nothing was changed"),
        (false, Some(_)) => format!("deployed {assets}, {digest}"),
        (false, None) => format!("nothing to deploy: the workspace has {digest} already"),
    });
    Ok(Exit::Done)
}
