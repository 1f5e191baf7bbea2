//! `servo asset lineage`: what was read to make data, and what was made of it.

use std::collections::{BTreeMap, BTreeSet};

use servo_api::views::{Lineage, LineageDirection, LineageEdge};
use servo_core::{AssetKey, MaterializationId, PartitionKey};

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::which::Which;

/// Options of `servo asset lineage`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The asset.
    #[arg(value_parser = AssetKey::parse)]
    asset: AssetKey,
    /// The partition [default: the one that was made last].
    #[arg(long, short, value_name = "KEY")]
    partition: Option<String>,
    /// A materialization: its id, the beginning of it, or latest [default: the newest].
    #[arg(long, value_name = "ID")]
    materialization: Option<Which<MaterializationId>>,
    /// Show the data that it was made of; the default.
    #[arg(long, conflicts_with = "down")]
    up: bool,
    /// Show the data that was made of it.
    #[arg(long)]
    down: bool,
    /// How many steps to follow.
    #[arg(long, short, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    depth: u32,
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let direction = if options.down { "down" } else { "up" };
    let mut query = vec![("direction", direction.to_owned()), ("depth", options.depth.to_string())];
    query.extend(options.partition.clone().map(|partition| ("partition", partition)));
    let found = through(location, Need::Read, async |client| {
        let chosen = match &options.materialization {
            Some(which) => which.find(client, &options.asset).await?,
            None => None,
        };
        let chosen = chosen.map(|id| ("materialization_id", id.to_string()));
        let query: Vec<_> = query.iter().cloned().chain(chosen).collect();
        Ok(client.lineage(&options.asset, &query).await?)
    });
    let found = found.await?;
    match format {
        Format::Json => output::json(&found)?,
        Format::Table => print(&found),
    }
    Ok(Exit::Done)
}

/// A materialization of an asset; none of very many.
type Node = (AssetKey, Option<MaterializationId>);

fn print(found: &Lineage) {
    let mut below: BTreeMap<Node, Vec<&LineageEdge>> = BTreeMap::new();
    for edge in &found.edges {
        let near = match found.direction {
            LineageDirection::Up => (edge.asset_key.clone(), Some(edge.materialization_id)),
            LineageDirection::Down => (edge.upstream_asset_key.clone(), edge.upstream_materialization_id),
        };
        below.entry(near).or_default().push(edge);
    }
    let root = (found.asset_key.clone(), Some(found.materialization_id));
    output::line(named(&root, found.partition_key.as_ref()));
    let mut shown = BTreeSet::new();
    tree(&root, 1, found.direction, &below, &mut shown);
    if found.edges.is_empty() {
        output::line(match found.direction {
            LineageDirection::Up => "  nothing was read to make it",
            LineageDirection::Down => "  nothing was made of it",
        });
    }
    if found.has_more {
        output::line("there is more; follow it with --depth");
    }
}

fn tree(
    node: &Node,
    depth: usize,
    direction: LineageDirection,
    below: &BTreeMap<Node, Vec<&LineageEdge>>,
    shown: &mut BTreeSet<Node>,
) {
    for edge in below.get(node).into_iter().flatten() {
        let (next, partition) = match direction {
            LineageDirection::Up => (
                (edge.upstream_asset_key.clone(), edge.upstream_materialization_id),
                &edge.upstream_partition_key,
            ),
            LineageDirection::Down => {
                ((edge.asset_key.clone(), Some(edge.materialization_id)), &edge.partition_key)
            }
        };
        let indent = "  ".repeat(depth);
        let many = direction == LineageDirection::Up && edge.upstream_count > 1;
        if let (true, Some(first), Some(last)) = (many, partition, &edge.upstream_last_partition_key) {
            let (asset, count) = (&next.0, edge.upstream_count);
            output::line(format_args!("{indent}{asset} {count} partitions, {first} to {last}"));
            continue;
        }
        let is_new = shown.insert(next.clone());
        let again = if is_new || !below.contains_key(&next) { "" } else { "  (above)" };
        output::line(format_args!("{indent}{}{again}", named(&next, partition.as_ref())));
        if is_new {
            tree(&next, depth + 1, direction, below, shown);
        }
    }
}

fn named((asset, id): &Node, partition: Option<&PartitionKey>) -> String {
    let partition = partition.map(|key| format!(" {key}")).unwrap_or_default();
    let id = id.map(|id| format!("  {id}")).unwrap_or_default();
    format!("{asset}{partition}{id}")
}
