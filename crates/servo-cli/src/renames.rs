//! `servo asset rename`: gives what was made of an asset to another name.

use servo_api::views::RenameBody;
use servo_core::AssetKey;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::target::confirm;

/// Options of `servo asset rename`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The name that it had.
    #[arg(value_parser = AssetKey::parse)]
    old: AssetKey,
    /// The name that the code gives it now.
    #[arg(value_parser = AssetKey::parse)]
    new: AssetKey,
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let Options { old, new } = options;
    confirm(location, &format!("rename {old} to {new}"))?;
    let body = RenameBody { to: new.to_string(), client_request_id: None };
    let renamed =
        through(location, Need::ChangeProject, async |client| Ok(client.rename_asset(old, &body).await?))
            .await?;
    match format {
        Format::Json => output::json(&renamed)?,
        Format::Table => {
            output::line(format_args!("{old} is {new} now, with everything that was made of it"));
            for name in &renamed.named_by {
                output::line(format_args!("{name} still selects {old} by its name: change that too"));
            }
        }
    }
    Ok(Exit::Done)
}
