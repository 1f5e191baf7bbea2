//! Finds the assets that a selection means.

use super::ast::{Attribute, Depth, Expr, NamePattern};
use super::error::{EvaluateError, Unmatched};
use super::graph::{AssetGraph, AssetInfo};
use super::pattern::Pattern;
use super::set::AssetSet;
use super::suggest;

/// Near misses are looked for among all assets, so only for so many names.
const MAX_REPORTED: usize = 10;

pub(super) fn evaluate(expr: &Expr, graph: &AssetGraph) -> Result<AssetSet, EvaluateError> {
    let mut evaluation = Evaluation { graph, unmatched: Vec::new() };
    let set = evaluation.set(expr);
    let names = evaluation.unmatched;
    if names.is_empty() {
        return Ok(set);
    }
    let unmatched: Vec<_> = names
        .iter()
        .take(MAX_REPORTED)
        .map(|name| Unmatched {
            name: name.to_string(),
            lacks_namespace: name.namespace.is_none(),
            near_misses: suggest::near_misses(name, graph.assets()),
        })
        .collect();
    Err(EvaluateError { more: names.len() - unmatched.len(), unmatched })
}

impl Expr {
    /// The assets of `graph` that this part of a selection means, whether or not all its names match.
    pub fn matching(&self, graph: &AssetGraph) -> AssetSet {
        Evaluation { graph, unmatched: Vec::new() }.set(self)
    }
}

struct Evaluation<'e> {
    graph: &'e AssetGraph,
    /// Each once, in the order of the text.
    unmatched: Vec<&'e NamePattern>,
}

impl<'e> Evaluation<'e> {
    fn set(&mut self, expr: &'e Expr) -> AssetSet {
        match expr {
            Expr::Name(name) => self.named(name),
            Expr::Attribute(attribute) => self.filter(|asset| has_attribute(asset, attribute)),
            Expr::Neighbours { upstream, downstream, of } => {
                let start = self.set(of);
                let mut reached = start.clone();
                if let Some(reach) = upstream {
                    reached.unite(&follow(&start, self.graph.upstream(), *reach));
                }
                if let Some(reach) = downstream {
                    reached.unite(&follow(&start, self.graph.downstream(), *reach));
                }
                reached
            }
            Expr::Not(part) => self.set(part).complement(),
            Expr::And(parts) => self.combine(parts, AssetSet::intersect),
            Expr::Or(parts) => self.combine(parts, AssetSet::unite),
        }
    }

    /// Every part is evaluated, also when the result is known before, so that every name is checked.
    fn combine(&mut self, parts: &'e [Expr], join: fn(&mut AssetSet, &AssetSet)) -> AssetSet {
        let (first, rest) = parts.split_first().expect("and, or have two parts or more");
        let mut set = self.set(first);
        for part in rest {
            join(&mut set, &self.set(part));
        }
        set
    }

    fn named(&mut self, name: &'e NamePattern) -> AssetSet {
        let set = named(name, self.graph.assets());
        // Inside "not" too: a misspelled name would let through what it was to keep out.
        if set.is_empty() && !self.unmatched.contains(&name) {
            self.unmatched.push(name);
        }
        set
    }

    fn filter(&self, mut wanted: impl FnMut(&AssetInfo) -> bool) -> AssetSet {
        let assets = self.graph.assets();
        let mut set = AssetSet::none(assets.len());
        for (position, asset) in assets.iter().enumerate() {
            if wanted(asset) {
                set.insert(position);
            }
        }
        set
    }
}

/// The assets with a matching name. A namespace without globs is one slice of the sorted assets.
fn named(pattern: &NamePattern, assets: &[AssetInfo]) -> AssetSet {
    let mut set = AssetSet::none(assets.len());
    let Some(namespace) = &pattern.namespace else { return set };
    let is_everything = namespace.is_everything() && pattern.name.is_everything();
    let (range, namespace) = match namespace.literal() {
        Some(literal) => (namespace_range(assets, &literal), None),
        None => (0..assets.len(), Some(namespace)),
    };
    if let (None, Some(name)) = (namespace, pattern.name.literal()) {
        if let Ok(found) = assets[range.clone()].binary_search_by(|asset| asset.key.name().cmp(&name)) {
            set.insert(range.start + found);
        }
        return set;
    }
    for position in range {
        let key = &assets[position].key;
        let in_namespace = || namespace.is_none_or(|namespace| namespace.matches(key.namespace()));
        if is_everything || (pattern.name.matches(key.name()) && in_namespace()) {
            set.insert(position);
        }
    }
    set
}

/// Where the assets of a namespace stand: keys ascend by `namespace/name`, so they stand together.
fn namespace_range(assets: &[AssetInfo], namespace: &str) -> std::ops::Range<usize> {
    let prefix = format!("{namespace}/");
    let start = assets.partition_point(|asset| asset.key.canonical() < prefix.as_str());
    let len = assets[start..].partition_point(|asset| asset.key.canonical().starts_with(&prefix));
    start..start + len
}

fn has_attribute(asset: &AssetInfo, attribute: &Attribute) -> bool {
    let any = |pattern: &Pattern, texts: &[String]| texts.iter().any(|text| pattern.matches(text));
    match attribute {
        Attribute::Tag(key, value) => asset.tags.iter().any(|(tag, tagged)| {
            key.matches(tag) && value.as_ref().is_none_or(|value| value.matches(tagged))
        }),
        Attribute::Group(pattern) => asset.group.as_ref().is_some_and(|group| pattern.matches(group)),
        Attribute::Owner(pattern) => any(pattern, &asset.owners),
        Attribute::Kind(pattern) => any(pattern, &asset.kinds),
    }
}

/// `start` and what is within reach of it, level by level; an asset is visited once, so cycles end.
fn follow(start: &AssetSet, edges: &[Vec<u32>], reach: Depth) -> AssetSet {
    let mut seen = start.clone();
    let mut level: Vec<usize> = start.positions().collect();
    let mut steps_left = steps(reach);
    while !level.is_empty() && steps_left > 0 {
        steps_left -= 1;
        let mut next = Vec::new();
        for position in level {
            next.extend(edges[position].iter().map(|&to| to as usize).filter(|&to| seen.insert(to)));
        }
        level = next;
    }
    seen
}

/// The number of dependencies to follow.
fn steps(reach: Depth) -> u32 {
    match reach {
        Depth::All => u32::MAX,
        Depth::Steps(steps) => steps.get(),
    }
}
