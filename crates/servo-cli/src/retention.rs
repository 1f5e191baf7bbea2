//! `servo admin retention`: what is not kept any more, and its removal.

use servo_api::views::{Retention, RetentionKind};

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::target::confirm;

/// Commands about retention.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show what would go and how many bytes that frees. Changes nothing.
    #[command(after_help = "Example:\n  servo admin retention preview --json")]
    Preview,
    /// Remove what the rules do not keep any more. A server does it by itself every hour.
    #[command(
        after_help = "Examples:\n  servo admin retention apply\n  servo config set keep_superseded=7d && servo admin retention apply"
    )]
    Apply,
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::Preview => {
            let found = through(location, Need::Read, async |client| Ok(client.retention().await?)).await?;
            match format {
                Format::Json => output::json(&found)?,
                Format::Table => table(&found),
            }
        }
        Command::Apply => {
            confirm(location, "remove what is not kept")?;
            let applied =
                through(location, Need::Change, async |client| Ok(client.apply_retention().await?)).await?;
            match format {
                Format::Json => output::json(&applied)?,
                Format::Table => {
                    table(&applied.retention);
                    let nothing = applied.accepted.accepted_event_id.is_none();
                    output::line(if nothing { "\nthere was nothing to remove" } else { "\nremoved" });
                }
            }
        }
    }
    Ok(Exit::Done)
}

fn table(retention: &Retention) {
    let row = |kind: &RetentionKind| {
        let rules: Vec<String> =
            kind.rules.iter().map(|rule| format!("{}={}", rule.name, rule.value)).collect();
        vec![kind.kind.clone(), kind.items.to_string(), kind.bytes.to_string(), rules.join(", ")]
    };
    output::table(&["kind", "goes", "bytes", "rules"], &[1, 2], retention.kinds.iter().map(row).collect());
}
