//! Resolves a selection: for each asset why it is planned, and which of its partitions each reason asks for.
//!
//! A name or attribute asks for the partitions that the request asks for. `+` asks for what those partitions read, or
//! for what reads them, along the mappings. `or` asks for everything that its parts ask for. `and` keeps the assets
//! that all parts mean; its parts with `+` say which partitions, and the others only filter. `not` takes assets away.
//!
//! Every part is evaluated by itself and the results are united, so the order of operands does not matter, and adding
//! `+` only adds tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::partitions::PartitionSet;
use servo_core::selection::Expr;

use super::reach::{Follower, Reached};

/// Why partitions of an asset are planned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A part of the selection means the asset.
    Selected {
        /// The part.
        part: Arc<str>,
    },
    /// Read by the assets of a part of the selection.
    Upstream {
        /// The part.
        of: Arc<str>,
    },
    /// They read what a part of the selection means.
    Downstream {
        /// The part.
        of: Arc<str>,
    },
    /// A planned asset is made by the same function, which makes both at once.
    SameFunction {
        /// Position of that asset.
        of: u32,
    },
}

/// A reason, and the partitions that are planned for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedReason {
    /// Why.
    pub why: Why,
    /// Query of the list of partitions.
    pub partitions: PartitionSet,
}

/// The selected partitions of one asset, with reasons.
#[derive(Debug, Clone, Default)]
pub(super) struct Member {
    /// In the order of [`Why`], each once.
    pub(super) reasons: Vec<PlannedReason>,
    /// Whether it has partitions, or an asset that has led to it. If not, the request still says which partitions of
    /// the assets around it are meant.
    pub(super) is_told: bool,
}

impl Member {
    /// Adds a reason; one that is known asks for more.
    pub(super) fn add(&mut self, why: Why, partitions: &PartitionSet) {
        match self.reasons.binary_search_by(|known| known.why.cmp(&why)) {
            Ok(known) => {
                self.reasons[known].partitions = self.reasons[known].partitions.union(partitions);
            }
            Err(at) => self.reasons.insert(at, PlannedReason { why, partitions: partitions.clone() }),
        }
    }

    /// All requested partitions.
    pub(super) fn partitions(&self) -> PartitionSet {
        match self.reasons.as_slice() {
            [only] => only.partitions.clone(),
            several => several.iter().fold(PartitionSet::EMPTY, |all, reason| all.union(&reason.partitions)),
        }
    }
}

/// The resolved part of a selection, by position of the assets.
pub(super) type Meaning = BTreeMap<u32, Member>;

/// Evaluates selections.
pub(super) struct Evaluation<'a> {
    pub(super) follower: Follower<'a>,
}

impl Evaluation<'_> {
    /// Resolves a part of a selection.
    pub(super) fn meaning(&self, expr: &Expr) -> Meaning {
        match expr {
            Expr::Or(parts) => parts.iter().map(|part| self.meaning(part)).fold(Meaning::new(), united),
            Expr::And(parts) if has_reach(expr) => self.all_of(parts),
            Expr::Name(_) | Expr::Attribute(_) | Expr::Not(_) | Expr::And(_) => self.matching(expr),
            Expr::Neighbours { upstream, downstream, of } => {
                let start = self.meaning(of);
                let text: Arc<str> = of.to_string().into();
                let mut all = start.clone();
                if let Some(reach) = upstream {
                    let reached = self.follower.upstream(&start, *reach);
                    add(&mut all, reached, &Why::Upstream { of: Arc::clone(&text) });
                }
                if let Some(reach) = downstream {
                    add(&mut all, self.follower.downstream(&start, *reach), &Why::Downstream { of: text });
                }
                all
            }
        }
    }

    /// The assets that match, with the partitions that the request asks for.
    fn matching(&self, expr: &Expr) -> Meaning {
        let why = Why::Selected { part: expr.to_string().into() };
        let matching = expr.matching(self.follower.definitions.graph());
        let member = |position: usize| {
            let position = position as u32;
            let mut member = Member { is_told: self.follower.has_partitions(position), ..Member::default() };
            member.add(why.clone(), &self.follower.asked(position));
            (position, member)
        };
        matching.positions().map(member).collect()
    }

    /// Resolves the parts with `+`, for the assets that all parts select.
    fn all_of(&self, parts: &[Expr]) -> Meaning {
        let (reaching, filters): (Vec<&Expr>, Vec<&Expr>) = parts.iter().partition(|part| has_reach(part));
        let meanings: Vec<Meaning> = reaching.into_iter().map(|part| self.meaning(part)).collect();
        let graph = self.follower.definitions.graph();
        let filters: Vec<_> = filters.into_iter().map(|part| part.matching(graph)).collect();
        let in_all: Vec<u32> = meanings[0]
            .keys()
            .copied()
            .filter(|position| meanings[1..].iter().all(|meaning| meaning.contains_key(position)))
            .filter(|position| filters.iter().all(|filter| filter.contains(*position as usize)))
            .collect();
        let mut all = meanings.into_iter().fold(Meaning::new(), united);
        all.retain(|position, _| in_all.binary_search(position).is_ok());
        all
    }
}

/// Whether a part follows dependencies, other than to take assets away.
fn has_reach(expr: &Expr) -> bool {
    match expr {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Not(_) => false,
        Expr::Neighbours { .. } => true,
        Expr::And(parts) | Expr::Or(parts) => parts.iter().any(has_reach),
    }
}

/// Both together.
fn united(mut all: Meaning, more: Meaning) -> Meaning {
    for (position, member) in more {
        let known = all.entry(position).or_default();
        known.is_told |= member.is_told;
        for reason in member.reasons {
            known.add(reason.why, &reason.partitions);
        }
    }
    all
}

fn add(all: &mut Meaning, reached: Vec<Reached>, why: &Why) {
    for Reached { asset, partitions, is_told } in reached {
        let member = all.entry(asset).or_default();
        member.is_told |= is_told;
        if !partitions.is_empty() || member.reasons.is_empty() {
            member.add(why.clone(), &partitions);
        }
    }
}
