//! The graph of assets: as a tree, for Graphviz, or as JSON.

use std::collections::{BTreeMap, BTreeSet};

use servo_api::views::{Asset, AssetEdge, AssetGraph};
use servo_core::AssetKey;

use crate::describe;
use crate::output;

/// The graph of these assets, with the edges between them.
pub(crate) fn of(nodes: Vec<Asset>) -> AssetGraph {
    let shown: BTreeSet<&AssetKey> = nodes.iter().map(|asset| &asset.asset_key).collect();
    let edges: BTreeSet<AssetEdge> = nodes
        .iter()
        .flat_map(|asset| {
            let upstream = asset.upstream.iter().filter(|from| shown.contains(from));
            upstream.map(|from| AssetEdge { from: from.clone(), to: asset.asset_key.clone() })
        })
        .collect();
    AssetGraph { edges: edges.into_iter().collect(), nodes }
}

/// From the sources on, each asset with what reads it below. What was drawn before is only named again.
pub(crate) fn tree(graph: &AssetGraph) {
    if graph.nodes.is_empty() {
        output::line("no assets");
        return;
    }
    // An asset that reads its own earlier partitions is not drawn below itself.
    let edges = || graph.edges.iter().filter(|edge| edge.from != edge.to);
    let notes: BTreeMap<&AssetKey, String> =
        graph.nodes.iter().map(|asset| (&asset.asset_key, note(asset))).collect();
    let mut readers: BTreeMap<&AssetKey, Vec<&AssetKey>> = BTreeMap::new();
    for edge in edges() {
        readers.entry(&edge.from).or_default().push(&edge.to);
    }
    let reading: BTreeSet<&AssetKey> = edges().map(|edge| &edge.to).collect();
    let sources = graph.nodes.iter().map(|asset| &asset.asset_key).filter(|key| !reading.contains(key));
    let mut drawn = BTreeSet::new();
    for source in sources {
        // A stack instead of recursion: a chain may have thousands of links.
        let mut stack = vec![(source, String::new(), String::new())];
        while let Some((node, lead, below)) = stack.pop() {
            let readers = readers.get(node).map(Vec::as_slice).unwrap_or_default();
            let is_new = drawn.insert(node);
            let again = if is_new || readers.is_empty() { "" } else { "  (above)" };
            let note = notes.get(node).map(String::as_str).unwrap_or_default();
            output::line(format_args!("{lead}{node}{note}{again}"));
            for (at, reader) in readers.iter().enumerate().rev().filter(|_| is_new) {
                let (turn, line) =
                    if at + 1 == readers.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                stack.push((reader, format!("{below}{turn}"), format!("{below}{line}")));
            }
        }
    }
}

/// In the language of Graphviz.
pub(crate) fn dot(graph: &AssetGraph) {
    output::line("digraph assets {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];");
    for asset in &graph.nodes {
        let style = if asset.external { " [style=dashed]" } else { "" };
        output::line(format_args!("  \"{}\"{style};", asset.asset_key));
    }
    for edge in &graph.edges {
        output::line(format_args!("  \"{}\" -> \"{}\";", edge.from, edge.to));
    }
    output::line("}");
}

fn note(asset: &Asset) -> String {
    let external = asset.external.then_some("external");
    let words: Vec<&str> =
        external.into_iter().chain(asset.partitioning.as_ref().map(describe::kind)).collect();
    if words.is_empty() { String::new() } else { format!("  [{}]", words.join(", ")) }
}
