//! `servo partition list|stale|wipe|mark|undo|add|remove`: which partitions there are and what is known of them; keys of
//! dynamic ones.

use servo_api::Page;
use servo_api::client::{ListOptions, first_pages};
use servo_api::views::{Asset, ChangePartitionsBody, Partition};
use servo_core::AssetKey;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::lists::{PageArgs, more};
use crate::location::Location;
use crate::output::{self, Format, words};
use crate::partition_life::{self, Mark, Undo, Wipe};
use crate::staleness;
use crate::target::confirm;

/// Look at partitions; wipe and mark them; add and remove keys of dynamic ones.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// The partitions of an asset, newest first.
    #[command(
        after_help = "Examples:\n  servo partition list raw.flights\n  servo partition list raw.flights --status expired --limit 1000"
    )]
    List {
        /// The asset.
        #[arg(value_parser = AssetKey::parse)]
        asset: AssetKey,
        /// Only those with this status: materialized, last_attempt_failed, never_materialized, expired.
        #[arg(long)]
        status: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Forget what was made of partitions, and remove their data.
    Wipe(Wipe),
    /// Say that partitions are materialized, or that they failed.
    Mark(Mark),
    /// Undo a wipe that kept the data, or a mark.
    Undo(Undo),
    /// The partitions that are not what they would be if they were made now, and why.
    #[command(
        after_help = "Examples:\n  servo partition stale\n  servo partition stale '+analytics.weekly' --limit 100\n  servo partition stale raw.flights --reason code-changed"
    )]
    Stale(staleness::StaleOptions),
    /// Add keys to dynamic partitions.
    #[command(after_help = "Example:\n  servo partition add customers acme globex")]
    Add {
        /// The name that the definition gives the partitions.
        name: String,
        /// The keys.
        #[arg(required = true)]
        keys: Vec<String>,
    },
    /// Remove keys from dynamic partitions. Their data stays.
    #[command(after_help = "Example:\n  servo partition remove customers globex")]
    Remove {
        /// The name that the definition gives the partitions.
        name: String,
        /// The keys.
        #[arg(required = true)]
        keys: Vec<String>,
    },
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List { asset, status, page } => {
            list(location, asset, status.as_deref(), page, format).await?;
        }
        Command::Wipe(options) => return partition_life::wipe(location, options, format).await,
        Command::Mark(options) => return partition_life::mark(location, options, format).await,
        Command::Undo(options) => return partition_life::undo(location, options, format).await,
        Command::Stale(options) => staleness::list(location, options, format).await?,
        Command::Add { name, keys } => {
            let body = ChangePartitionsBody { add: keys.clone(), ..ChangePartitionsBody::default() };
            change(location, name, &body, format).await?
        }
        Command::Remove { name, keys } => {
            confirm(location, &format!("remove {} from {name}", keys.join(", ")))?;
            let body = ChangePartitionsBody { remove: keys.clone(), ..ChangePartitionsBody::default() };
            change(location, name, &body, format).await?
        }
    }
    Ok(Exit::Done)
}

async fn list(
    location: &Location,
    key: &AssetKey,
    status: Option<&str>,
    page: &PageArgs,
    format: Format,
) -> anyhow::Result<()> {
    let (asset, page) = through(location, Need::ReadProject, async |client| {
        let asset = client.asset(key).await?.asset;
        if !asset.partitioned {
            anyhow::bail!("{key} has no partitions");
        }
        let newest = async |options: &ListOptions| client.newest_partitions(key, options).await;
        Ok((asset, first_pages(page.limit(), page.options(status), newest).await?))
    })
    .await?;
    match format {
        Format::Json => output::json(&page),
        Format::Table => {
            table(&asset, &page);
            Ok(())
        }
    }
}

fn table(asset: &Asset, page: &Page<Partition>) {
    let totals = &asset.partitions;
    output::line(format_args!(
        "{}: {} partition{}, {} materialized",
        asset.asset_key,
        totals.total,
        if totals.total == 1 { "" } else { "s" },
        totals.materialized + totals.last_attempt_failed
    ));
    if page.items.is_empty() {
        return;
    }
    output::line("");
    let row = |partition: &Partition| {
        let latest = partition.latest.as_ref();
        vec![
            partition.partition.clone().unwrap_or_default(),
            status(partition),
            latest.map(|latest| latest.materialized_at.to_string()).unwrap_or_default(),
            latest.and_then(|latest| latest.run_id).map(|run| run.to_string()).unwrap_or_default(),
        ]
    };
    output::table(&["partition", "status", "materialized", "run"], &[], page.items.iter().map(row).collect());
    more(page, format_args!("servo partition list {}", asset.asset_key));
}

/// `materialized, stale (upstream newer)`.
fn status(partition: &Partition) -> String {
    let status = words(partition.status);
    match &partition.stale {
        Some(reason) => format!("{status}, stale ({})", words(reason)),
        None => status,
    }
}

async fn change(
    location: &Location,
    name: &str,
    body: &ChangePartitionsBody,
    format: Format,
) -> anyhow::Result<()> {
    let changed = through(location, Need::ChangeProject, async |client| {
        Ok(client.change_partitions(name, body).await?)
    })
    .await?;
    if format == Format::Json {
        return output::json(&changed);
    }
    let keys = |count: u64| format!("{count} key{}", if count == 1 { "" } else { "s" });
    match (changed.added, changed.removed) {
        (0, 0) => output::line(format_args!("nothing to change: {name} is like that already")),
        (added, 0) => output::line(format_args!("{} added to {name}", keys(added))),
        (_, removed) => output::line(format_args!("{} removed from {name}", keys(removed))),
    }
    Ok(())
}
