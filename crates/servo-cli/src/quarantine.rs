//! `servo quarantine`: what checks have blocked and somebody should look at.

use std::process::ExitCode;

use anyhow::bail;
use servo_core::{AssetKey, MaterializationId};
use servo_engine::rows::QuarantineRow;
use servo_engine::{Review, Verdict};
use servo_projections::Projection;

use crate::control::Control;
use crate::location::Location;
use crate::output::{self, Format};

/// Look at what checks have blocked, and decide about it.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// What waits for review.
    #[command(after_help = "Example:\n  servo quarantine list --json")]
    List,
    /// Let it count after all: it becomes the latest of its partition.
    #[command(after_help = "Example:\n  servo quarantine approve 01JB2X… --reason 'checked with the source'")]
    Approve(Which),
    /// Throw it away.
    #[command(after_help = "Example:\n  servo quarantine reject 01JB2X…")]
    Reject(Which),
}

/// Which materialization.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// Id of the materialization.
    id: MaterializationId,
    /// The asset, where a task made several that were blocked.
    #[arg(long, value_parser = AssetKey::parse)]
    asset: Option<AssetKey>,
    /// Why, for the log.
    #[arg(long, default_value = "")]
    reason: String,
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<ExitCode> {
    let waiting = waiting(location).await?;
    match command {
        Command::List => list(&waiting, format),
        Command::Approve(which) => review(location, &waiting, which, Verdict::Approve, format).await?,
        Command::Reject(which) => review(location, &waiting, which, Verdict::Reject, format).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn waiting(location: &Location) -> anyhow::Result<Vec<QuarantineRow>> {
    if !location.exists() {
        return Ok(Vec::new());
    }
    let stores = location.look()?;
    match Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await? {
        Some(projection) => Ok(projection.quarantine().await?),
        None => Ok(Vec::new()),
    }
}

fn list(rows: &[QuarantineRow], format: Format) {
    if format == Format::Json {
        let rows: Vec<_> = rows.iter().map(json).collect();
        output::json(&serde_json::json!({ "quarantine": rows }));
        return;
    }
    if rows.is_empty() {
        output::line("nothing waits for review");
        return;
    }
    let row = |row: &QuarantineRow| {
        let failed: Vec<String> = row
            .output
            .checks
            .iter()
            .filter(|check| !check.passed)
            .map(|check| match &check.message {
                Some(message) => format!("{}: {message}", check.name),
                None => check.name.clone(),
            })
            .collect();
        vec![
            row.materialization_id.to_string(),
            row.asset_key.to_string(),
            row.partition_key.as_ref().map(ToString::to_string).unwrap_or_default(),
            row.output.row_count.map(|rows| rows.to_string()).unwrap_or_default(),
            row.quarantined_at.to_string(),
            failed.join("; "),
        ]
    };
    output::table(
        &["materialization", "asset", "partition", "rows", "since", "failed checks"],
        &[3],
        rows.iter().map(row).collect(),
    );
}

async fn review(
    location: &Location,
    waiting: &[QuarantineRow],
    which: &Which,
    verdict: Verdict,
    format: Format,
) -> anyhow::Result<()> {
    let found: Vec<&QuarantineRow> = waiting
        .iter()
        .filter(|row| row.materialization_id == which.id)
        .filter(|row| which.asset.as_ref().is_none_or(|asset| row.asset_key == *asset))
        .collect();
    let row = match found.as_slice() {
        [row] => *row,
        [] => bail!("{} does not wait for review; `servo quarantine list` shows what does", which.id),
        [first, second, ..] => bail!(
            "{} is of several assets, {} and {}; name one with --asset",
            which.id,
            first.asset_key,
            second.asset_key
        ),
    };
    let control = Control::find(location).await?;
    control
        .review(Review {
            asset: row.asset_key.clone(),
            materialization_id: row.materialization_id,
            verdict,
            caller: location.caller(),
            reason: which.reason.clone(),
        })
        .await?;
    let done = match verdict {
        Verdict::Approve => "approved: it is the latest now",
        Verdict::Reject => "rejected: it is removed",
    };
    match format {
        Format::Json => output::json(&json(row)),
        Format::Table => output::line(format_args!("{} {} {done}", row.asset_key, row.materialization_id)),
    }
    Ok(())
}

fn json(row: &QuarantineRow) -> serde_json::Value {
    serde_json::json!({
        "materialization_id": row.materialization_id.to_string(),
        "asset_key": row.asset_key.to_string(),
        "partition_key": row.partition_key.as_ref().map(|key| key.canonical().to_owned()),
        "run_id": row.run_id.to_string(),
        "task_key": row.task_key.to_string(),
        "attempt": row.attempt,
        "quarantined_at": row.quarantined_at.to_string(),
        "output": *row.output,
    })
}
