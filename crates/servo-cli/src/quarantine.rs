//! `servo quarantine`: materializations that checks blocked and that wait for review.

use anyhow::bail;
use servo_api::client::{Client, ListOptions, all_pages};
use servo_api::views::{Quarantined, ReviewBody};
use servo_api::{Code, Page, Problem};
use servo_core::{AssetKey, MaterializationId};
use servo_engine::Verdict;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::target::confirm;
use crate::which::Which;

/// Review materializations that checks blocked.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List materializations that wait for review.
    #[command(after_help = "Example:\n  servo quarantine list --json")]
    List,
    /// Approve it: it becomes the latest of its partition.
    #[command(after_help = "Example:\n  servo quarantine approve latest --reason 'checked with the source'")]
    Approve(ReviewArgs),
    /// Throw it away.
    #[command(after_help = "Examples:\n  servo quarantine reject latest\n  servo quarantine reject 01JB2X")]
    Reject(ReviewArgs),
}

/// The materialization to review.
#[derive(clap::Args)]
pub(crate) struct ReviewArgs {
    /// The materialization: its id, the beginning of it, or latest, as `servo quarantine list` shows them.
    id: Which<MaterializationId>,
    /// The asset, where a task made several that were blocked.
    #[arg(long, value_parser = AssetKey::parse)]
    asset: Option<AssetKey>,
    /// The reason, for the log.
    #[arg(long, default_value = "")]
    reason: String,
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List => list(through(location, Need::Read, waiting).await?, format)?,
        Command::Approve(which) => review(location, which, Verdict::Approve, format).await?,
        Command::Reject(which) => review(location, which, Verdict::Reject, format).await?,
    }
    Ok(Exit::Done)
}

async fn waiting(client: &Client) -> anyhow::Result<Vec<Quarantined>> {
    Ok(all_pages(async |options: &ListOptions| client.quarantine(options).await).await?)
}

fn list(waiting: Vec<Quarantined>, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(&Page { items: waiting, next_cursor: None });
    }
    if waiting.is_empty() {
        output::line("nothing waits for review");
        return Ok(());
    }
    let row = |row: &Quarantined| {
        let failed: Vec<String> = row
            .output
            .iter()
            .flat_map(|output| output.checks.iter().filter(|check| !check.passed))
            .map(|check| match &check.message {
                Some(message) => format!("{}: {message}", check.name),
                None => check.name.clone(),
            })
            .collect();
        let rows = row.output.as_ref().and_then(|output| output.row_count);
        vec![
            row.materialization_id.to_string(),
            row.asset_key.to_string(),
            row.partition.clone().unwrap_or_default(),
            rows.map(|rows| rows.to_string()).unwrap_or_default(),
            row.quarantined_at.to_string(),
            failed.join("; "),
        ]
    };
    output::table(
        &["materialization", "asset", "partition", "rows", "since", "failed checks"],
        &[3],
        waiting.iter().map(row).collect(),
    );
    Ok(())
}

async fn review(
    location: &Location,
    which: &ReviewArgs,
    verdict: Verdict,
    format: Format,
) -> anyhow::Result<()> {
    let body = ReviewBody { reason: which.reason.clone(), ..ReviewBody::default() };
    let (asset, id, accepted) = through(location, Need::Change, async |client| {
        let (asset, id) = which.output(&waiting(client).await?)?;
        if verdict == Verdict::Reject {
            confirm(location, &format!("reject and remove {asset} {id}"))?;
        }
        let accepted = client.review(&asset, id, verdict, &body).await?;
        Ok((asset, id, accepted))
    })
    .await?;
    if format == Format::Json {
        return output::json(&accepted);
    }
    let done = match verdict {
        Verdict::Approve => "approved: it is the latest now",
        Verdict::Reject => "rejected: it is removed",
    };
    output::line(format_args!("{asset} {id} {done}"));
    Ok(())
}

impl ReviewArgs {
    /// The asset and the materialization that are meant.
    fn output(&self, waiting: &[Quarantined]) -> anyhow::Result<(AssetKey, MaterializationId)> {
        let mut ids: Vec<MaterializationId> = waiting
            .iter()
            .filter(|row| self.asset.as_ref().is_none_or(|asset| row.asset_key == *asset))
            .map(|row| row.materialization_id)
            .filter(|id| self.id.is(*id))
            .collect();
        ids.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
        ids.dedup();
        if waiting.is_empty() && matches!(self.id, Which::Latest) {
            return Err(Problem::new(Code::NotInQuarantine, "nothing waits for review").into());
        }
        let missing = |what: &str| {
            let detail = format!("{what}; `servo quarantine list` shows what waits for review");
            Problem::new(Code::NotInQuarantine, detail)
        };
        let id = self.id.of(&ids, missing)?;
        let found: Vec<&AssetKey> = waiting
            .iter()
            .filter(|row| row.materialization_id == id)
            .map(|row| &row.asset_key)
            .filter(|key| self.asset.as_ref().is_none_or(|asset| *key == asset))
            .collect();
        match found.as_slice() {
            [asset] => Ok(((*asset).clone(), id)),
            [] => {
                let detail =
                    format!("{id} does not wait for review; `servo quarantine list` shows what does");
                Err(Problem::new(Code::NotInQuarantine, detail).into())
            }
            [first, second, ..] => {
                bail!("{id} is of several assets, {first} and {second}; name one with --asset")
            }
        }
    }
}
