//! The graph of assets: as a tree, for Graphviz, or as JSON.

use std::collections::BTreeSet;

use servo_engine::definitions::Definitions;

use crate::describe;
use crate::output::{self, Format};

/// Prints the assets at these positions, and the edges between them.
pub(crate) fn print(definitions: &Definitions, positions: &[u32], dot: bool, format: Format) {
    let graph = Graph::new(definitions, positions);
    if dot {
        graph.dot();
    } else if format == Format::Json {
        graph.json();
    } else {
        graph.tree();
    }
}

struct Graph<'d> {
    definitions: &'d Definitions,
    nodes: &'d [u32],
    /// From an asset to those that read it, each once.
    edges: BTreeSet<(u32, u32)>,
}

impl<'d> Graph<'d> {
    fn new(definitions: &'d Definitions, nodes: &'d [u32]) -> Self {
        let is_shown = |position: &u32| nodes.binary_search(position).is_ok();
        let edges = nodes.iter().flat_map(|node| {
            let upstream = definitions.asset(*node).deps.iter().map(|dep| dep.asset);
            upstream.filter(is_shown).map(move |upstream| (upstream, *node))
        });
        Self { definitions, nodes, edges: edges.collect() }
    }

    fn readers(&self, node: u32) -> impl DoubleEndedIterator<Item = u32> {
        // An asset that reads its own earlier partitions is not drawn below itself.
        self.edges
            .range((node, 0)..=(node, u32::MAX))
            .map(|(_, reader)| *reader)
            .filter(move |reader| *reader != node)
    }

    fn name(&self, node: u32) -> String {
        self.definitions.asset(node).key.to_string()
    }

    /// From the sources on, each asset with what reads it below. What was drawn before is only named again.
    fn tree(&self) {
        if self.nodes.is_empty() {
            output::line("no assets");
            return;
        }
        let read: BTreeSet<u32> =
            self.edges.iter().filter(|(from, to)| from != to).map(|(_, to)| *to).collect();
        let mut drawn = BTreeSet::new();
        for source in self.nodes.iter().filter(|node| !read.contains(node)) {
            // A stack instead of recursion: a chain may have thousands of links.
            let mut stack = vec![(*source, String::new(), String::new())];
            while let Some((node, lead, below)) = stack.pop() {
                let is_new = drawn.insert(node);
                let readers: Vec<u32> = if is_new { self.readers(node).collect() } else { Vec::new() };
                let again = if !is_new && self.readers(node).next().is_some() { "  (above)" } else { "" };
                output::line(format_args!("{lead}{}{}{again}", self.name(node), self.note(node)));
                for (at, reader) in readers.iter().enumerate().rev() {
                    let (turn, line) =
                        if at + 1 == readers.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                    stack.push((*reader, format!("{below}{turn}"), format!("{below}{line}")));
                }
            }
        }
    }

    fn note(&self, node: u32) -> String {
        let def = &self.definitions.asset(node).def;
        let words: Vec<&str> = def
            .external
            .then_some("external")
            .into_iter()
            .chain(def.partitions.as_ref().map(describe::kind))
            .collect();
        if words.is_empty() { String::new() } else { format!("  [{}]", words.join(", ")) }
    }

    fn dot(&self) {
        output::line("digraph assets {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];");
        for node in self.nodes {
            let style = if self.definitions.asset(*node).def.external { " [style=dashed]" } else { "" };
            output::line(format_args!("  \"{}\"{style};", self.name(*node)));
        }
        for (from, to) in &self.edges {
            output::line(format_args!("  \"{}\" -> \"{}\";", self.name(*from), self.name(*to)));
        }
        output::line("}");
    }

    fn json(&self) {
        let nodes: Vec<_> = self
            .nodes
            .iter()
            .map(|node| {
                let def = &self.definitions.asset(*node).def;
                serde_json::json!({
                    "asset": self.name(*node),
                    "group": def.group,
                    "kinds": def.kinds,
                    "external": def.external,
                    "partitions": def.partitions,
                })
            })
            .collect();
        let edges: Vec<_> = self
            .edges
            .iter()
            .map(|(from, to)| serde_json::json!({ "from": self.name(*from), "to": self.name(*to) }))
            .collect();
        output::json(&serde_json::json!({ "nodes": nodes, "edges": edges }));
    }
}
