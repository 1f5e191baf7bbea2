//! Says for each selected asset which part of the selection it is there for.

use std::sync::Arc;

use super::ast::{Expr, Reach};
use super::evaluate::{part, steps};
use super::graph::AssetGraph;
use super::set::AssetSet;

/// Why an asset is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// A part of the selection means it.
    Matches(Arc<str>),
    /// It is upstream of an asset that a part means.
    Upstream {
        /// Position of that asset.
        of: usize,
    },
    /// It is downstream of an asset that a part means.
    Downstream {
        /// Position of that asset.
        of: usize,
    },
}

type Reasons = Vec<Option<Why>>;

/// The reason for each asset of the graph; none for those that are not selected. Of several reasons the first in the
/// text counts.
pub(super) fn explain(expr: &Expr, graph: &AssetGraph) -> Reasons {
    match expr {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Not(_) => {
            matches(&part(expr, graph), expr.to_string().into())
        }
        Expr::Reach { upstream, downstream, of } => {
            let start = explain(of, graph);
            let mut reasons = start.clone();
            if let Some(reach) = upstream {
                follow(&start, graph.upstream(), *reach, |of| Why::Upstream { of }, &mut reasons);
            }
            if let Some(reach) = downstream {
                follow(&start, graph.downstream(), *reach, |of| Why::Downstream { of }, &mut reasons);
            }
            reasons
        }
        Expr::And(parts) => {
            // What a part says positively explains more than what another leaves out.
            let told = parts.iter().find(|part| !matches!(part, Expr::Not(_))).unwrap_or(&parts[0]);
            let selected = part(expr, graph);
            let mut reasons = explain(told, graph);
            for (position, reason) in reasons.iter_mut().enumerate() {
                reason.take_if(|_| !selected.contains(position));
            }
            reasons
        }
        Expr::Or(parts) => {
            let mut parts = parts.iter().map(|part| explain(part, graph));
            let first = parts.next().unwrap_or_default();
            parts.fold(first, |told, more| told.into_iter().zip(more).map(|(a, b)| a.or(b)).collect())
        }
    }
}

fn matches(set: &AssetSet, text: Arc<str>) -> Reasons {
    (0..set.capacity())
        .map(|position| set.contains(position).then(|| Why::Matches(Arc::clone(&text))))
        .collect()
}

/// Adds what is within reach of the start, level by level, each with the start that reached it first.
fn follow(start: &Reasons, edges: &[Vec<u32>], reach: Reach, why: fn(usize) -> Why, reasons: &mut Reasons) {
    let told = start.iter().enumerate().filter(|(_, reason)| reason.is_some());
    let mut level: Vec<(usize, usize)> = told.map(|(position, _)| (position, position)).collect();
    let mut seen: Vec<bool> = start.iter().map(Option::is_some).collect();
    for _ in 0..steps(reach) {
        let mut next = Vec::new();
        for (position, origin) in level {
            for to in edges[position].iter().map(|to| *to as usize) {
                if !std::mem::replace(&mut seen[to], true) {
                    reasons[to].get_or_insert_with(|| why(origin));
                    next.push((to, origin));
                }
            }
        }
        if next.is_empty() {
            return;
        }
        level = next;
    }
}
