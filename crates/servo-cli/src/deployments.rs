//! `servo deployment`: what was deployed when, what differs, and the way back.

use servo_api::client::{Client, ListOptions, first_pages};
use servo_api::views::{DefinitionDiff, Deployment, DeploymentDiff, DiffCounts, RollbackBody};

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

/// `servo deployment`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List deployments, the newest first.
    #[command(after_help = "Example:\n  servo deployment list --limit 5")]
    List {
        /// How many.
        #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Where to go on; the last line of a page says it.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Show one deployment, and what it changed.
    #[command(after_help = "Examples:\n  servo deployment show\n  servo deployment show 1 --json")]
    Show {
        /// Its number; the current one if not given.
        number: Option<u64>,
    },
    /// Show what differs between two deployments, field by field.
    #[command(
        after_help = "Examples:\n  servo deployment diff 1      # what has changed since the first one\n  servo deployment diff 0 1    # what the first one changed"
    )]
    Diff {
        /// The first one; 0 is before anything was deployed.
        from: u64,
        /// The second one; the current one if not given.
        to: Option<u64>,
    },
    /// Make the definitions of an earlier deployment current again, by a new deployment.
    ///
    /// The code is not changed by it: workers that have other code get no tasks until they have that of the deployment,
    /// and the next `servo deploy` or a file that is saved under `servo dev` deploys what the project declares.
    #[command(
        after_help = "Example:\n  servo deployment rollback 1 --dry-run\n  servo deployment rollback 1"
    )]
    Rollback {
        /// The deployment to return to.
        number: u64,
        /// Only show what would change.
        #[arg(long)]
        dry_run: bool,
    },
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List { limit, cursor } => list(location, *limit, cursor.clone(), format).await?,
        Command::Show { number } => show(location, *number, format).await?,
        Command::Diff { from, to } => {
            let found =
                through(location, Need::ReadTables, async |client| whole(client, *from, *to).await).await?;
            print(&found, format)?;
        }
        Command::Rollback { number, dry_run: true } => {
            let found = through(location, Need::ReadTables, async |client| {
                let current = client.deployment().await?.number;
                whole(client, current, Some(*number)).await
            });
            print(&found.await?, format)?;
        }
        Command::Rollback { number, dry_run: false } => roll_back(location, *number, format).await?,
    }
    Ok(Exit::Done)
}

async fn list(location: &Location, limit: u16, cursor: Option<String>, format: Format) -> anyhow::Result<()> {
    let which = ListOptions { cursor, ..ListOptions::default() };
    let page = through(location, Need::ReadTables, async |client| {
        let deployments = async |list: &ListOptions| client.deployments(list).await;
        Ok(first_pages(usize::from(limit), which.clone(), deployments).await?)
    });
    let page = page.await?;
    if format == Format::Json {
        return output::json(&page);
    }
    let row = |deployment: &Deployment| {
        vec![
            deployment.number.to_string(),
            deployment.deployed_at.to_string(),
            deployment.deployed_by.clone(),
            deployment.assets.to_string(),
            deployment.assets_upserted.to_string(),
            deployment.assets_removed.to_string(),
            short(&deployment.digest).to_owned(),
        ]
    };
    output::table(
        &["number", "time", "who", "assets", "changed", "removed", "digest"],
        &[0, 3, 4, 5],
        page.items.iter().map(row).collect(),
    );
    if let Some(next) = &page.next_cursor {
        output::line(format_args!("\nmore: the same with --cursor {next}"));
    }
    Ok(())
}

async fn show(location: &Location, number: Option<u64>, format: Format) -> anyhow::Result<()> {
    let (detail, diff) = through(location, Need::ReadTables, async |client| {
        let number = match number {
            Some(number) => number,
            None => client.deployment().await?.number,
        };
        let detail = client.deployment_by_number(number).await?;
        let diff = whole(client, number.saturating_sub(1), Some(number)).await?;
        Ok((detail, diff))
    })
    .await?;
    if format == Format::Json {
        return output::json(&detail);
    }
    let deployment = &detail.deployment;
    let current = if detail.is_current { ", current" } else { "" };
    output::line(format_args!("deployment {}{current}: project {}", deployment.number, deployment.project));
    output::line(format_args!("  deployed   {} by {}", deployment.deployed_at, deployment.deployed_by));
    output::line(format_args!("  digest     {}", deployment.digest));
    output::line(format_args!(
        "  has        {} assets, {} schedules, {} sensors",
        deployment.assets, detail.schedules, detail.sensors
    ));
    output::line(format_args!("  changed    {}", counted(detail.changes)));
    listed(&diff.items);
    Ok(())
}

/// All pages of a difference.
async fn whole(client: &Client, from: u64, to: Option<u64>) -> anyhow::Result<DeploymentDiff> {
    let mut found = client.deployment_diff(from, to, None).await?;
    while let Some(cursor) = found.next_cursor.take() {
        let next = client.deployment_diff(from, Some(found.to), Some(&cursor)).await?;
        found.items.extend(next.items);
        found.next_cursor = next.next_cursor;
    }
    Ok(found)
}

fn print(diff: &DeploymentDiff, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(diff);
    }
    output::line(format_args!("from {} to {}: {}", diff.from, diff.to, counted(diff.counts)));
    listed(&diff.items);
    Ok(())
}

fn listed(items: &[DefinitionDiff]) {
    for item in items {
        let name = if item.kind == "asset" { item.name.replacen('/', ".", 1) } else { item.name.clone() };
        let sign = match item.change.as_str() {
            "ADDED" => '+',
            "REMOVED" => '-',
            "MOVED" => '>',
            _ => '~',
        };
        output::line(format_args!("  {sign} {} {name}", item.kind));
        let fields = item.fields.iter().filter(|_| item.change != "MOVED");
        for field in fields.filter(|field| !field.path.starts_with("location")) {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
            output::line(format_args!(
                "      {}: {} → {}",
                field.path,
                shown(&field.before),
                shown(&field.after)
            ));
        }
        if item.more_fields > 0 {
            output::line(format_args!("      and {} more fields", item.more_fields));
        }
    }
}

fn counted(counts: DiffCounts) -> String {
    let parts = [
        (counts.added, "added"),
        (counts.changed, "changed"),
        (counts.moved, "moved within the code"),
        (counts.removed, "removed"),
    ];
    let told: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if told.is_empty() { "nothing differs".to_owned() } else { told.join(", ") }
}

async fn roll_back(location: &Location, number: u64, format: Format) -> anyhow::Result<()> {
    let body = RollbackBody::default();
    let done =
        through(location, Need::Deploy, async |client| Ok(client.roll_back(number, &body).await?)).await?;
    if format == Format::Json {
        return output::json(&done);
    }
    if done.accepted.accepted_event_id.is_none() {
        output::line(format_args!("nothing to do: deployment {number} is what the workspace has already"));
        return Ok(());
    }
    output::line(format_args!("the definitions of deployment {number} are current: {} assets", done.assets));
    output::line(
        "the code is not changed by that: workers that have other code get no tasks until they have it",
    );
    if done.outdated_workers > 0 {
        output::line(format_args!("{} of the workers that are there have other code", done.outdated_workers));
    }
    Ok(())
}

/// A digest that people can compare.
fn short(digest: &str) -> &str {
    digest.get(..19).unwrap_or(digest)
}
