//! `servo partition list|add|remove`: which partitions there are and what is known of them; keys of dynamic ones.

use std::collections::BTreeSet;
use std::process::ExitCode;

use servo_core::{PartitionKey, PartitionsDef};
use servo_engine::ChangePartitions;
use servo_engine::rows::PartitionStatusRow;

use crate::assets::{find, now};
use crate::known::Known;
use crate::location::Location;
use crate::output::{self, Format};

/// Look at partitions; add and remove keys of dynamic ones.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// The partitions of an asset, newest first.
    #[command(
        after_help = "Examples:\n  servo partition list raw.flights\n  servo partition list raw.flights --offset 100 --limit 100"
    )]
    List {
        /// The asset.
        asset: String,
        /// How many.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// How many of the newest to leave out.
        #[arg(long, default_value_t = 0)]
        offset: u64,
    },
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

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { asset, limit, offset } => {
            list(location, asset, usize::from(*limit), *offset, format).await?
        }
        Command::Add { name, keys } => change(location, name, keys.clone(), Vec::new(), format).await?,
        Command::Remove { name, keys } => change(location, name, Vec::new(), keys.clone(), format).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(
    location: &Location,
    name: &str,
    limit: usize,
    offset: u64,
    format: Format,
) -> anyhow::Result<()> {
    let definitions = location.project.definitions()?;
    let known = Known::read(location).await?;
    let at = known.at(now());
    let asset = definitions.asset(find(&definitions, name)?);
    let Some(partitions) = &asset.partitions else {
        anyhow::bail!("{} has no partitions", asset.key);
    };
    let count = partitions.count(at);
    let newest = count.saturating_sub(u128::from(offset));
    let first = newest.saturating_sub(limit as u128);
    let mut keys = partitions.page(first, (newest - first) as usize, at);
    keys.reverse();
    let statuses: Vec<_> = keys.iter().map(|key| known.status(&asset.key, Some(key))).collect();
    let rows: Vec<_> = keys.iter().zip(statuses.iter().map(Option::as_ref)).collect();
    if format == Format::Json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(key, row)| {
                serde_json::json!({
                    "partition": key.to_string(),
                    "partition_key": key.canonical(),
                    "status": row.map_or("NEVER_MATERIALIZED", |row| row.status.name()),
                    "materialized_at": row.and_then(|row| row.last_materialization_at).map(|at| at.to_string()),
                    "run_id": row.and_then(|row| row.last_materialization_run_id).map(|run| run.to_string()),
                })
            })
            .collect();
        let materialized = known.materialized(&asset.key);
        let count = u64::try_from(count).ok();
        output::json(
            &serde_json::json!({ "count": count, "materialized": materialized, "partitions": rows }),
        );
        return Ok(());
    }
    output::line(format_args!(
        "{}: {count} partitions, {} materialized\n",
        asset.key,
        known.materialized(&asset.key)
    ));
    let row = |(key, row): &(&PartitionKey, Option<&PartitionStatusRow>)| {
        vec![
            key.to_string(),
            row.map_or("never materialized".to_owned(), |row| {
                row.status.to_string().to_lowercase().replace('_', " ")
            }),
            row.and_then(|row| row.last_materialization_at).map(|at| at.to_string()).unwrap_or_default(),
            row.and_then(|row| row.last_materialization_run_id)
                .map(|run| run.to_string())
                .unwrap_or_default(),
        ]
    };
    output::table(&["partition", "status", "materialized", "run"], &[], rows.iter().map(row).collect());
    if first > 0 {
        output::line(format_args!(
            "\nmore: servo partition list {} --offset {}",
            asset.key,
            u128::from(offset) + keys.len() as u128
        ));
    }
    Ok(())
}

/// A name that no definition has is nearly always a slip. Without a project there is nothing to compare it with.
fn must_be_declared(location: &Location, name: &str) -> anyhow::Result<()> {
    if location.project.find().is_err() {
        return Ok(());
    }
    let definitions = location.project.definitions()?;
    let mut names = BTreeSet::new();
    for def in definitions.assets().iter().filter_map(|asset| asset.def.partitions.as_ref()) {
        let dims: Vec<&PartitionsDef> =
            if let PartitionsDef::Multi { dims } = def { dims.values().collect() } else { vec![def] };
        for def in dims {
            if let PartitionsDef::Dynamic { name } = def {
                names.insert(name.as_str());
            }
        }
    }
    if names.contains(name) {
        return Ok(());
    }
    let declared: Vec<&str> = names.into_iter().collect();
    match declared.as_slice() {
        [] => anyhow::bail!("no asset has dynamic partitions; declare servo.DynamicPartitions(\"{name}\")"),
        declared => {
            anyhow::bail!("no asset has dynamic partitions {name}; there are {}", declared.join(", "))
        }
    }
}

async fn change(
    location: &Location,
    name: &str,
    add: Vec<String>,
    remove: Vec<String>,
    format: Format,
) -> anyhow::Result<()> {
    must_be_declared(location, name)?;
    let workspace = location.workspace_alone().await?;
    let dynamic = name.to_owned();
    let known = workspace
        .read(move |state| state.dynamic_partitions().get(&dynamic).cloned())
        .await?
        .unwrap_or_default();
    let is_known = |key: &&String| known.binary_search(key).is_ok();
    let asked = add.iter().filter(|key| !is_known(key)).count() + remove.iter().filter(is_known).count();
    let verb = if remove.is_empty() { "added to" } else { "removed from" };
    let change = ChangePartitions { name: name.to_owned(), add, remove, caller: location.caller() };
    let reply = workspace.change_partitions(change).await;
    workspace.shutdown().await?;
    let event = reply?.event_id();
    match (format, event) {
        (Format::Json, event) => {
            output::json(&serde_json::json!({ "accepted_event_id": event.map(|id| id.to_string()) }))
        }
        (Format::Table, Some(_)) => {
            output::line(format_args!("{asked} key{} {verb} {name}", if asked == 1 { "" } else { "s" }))
        }
        (Format::Table, None) => output::line(format_args!("nothing to change: {name} is like that already")),
    }
    Ok(())
}
