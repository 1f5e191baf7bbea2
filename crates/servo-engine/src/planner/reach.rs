//! Where `+` leads: which partitions of other assets the partitions of a part read, or are read by (ADR-084).
//!
//! Upstream, a task of every partition that a planned task reads is planned, of the assets within reach. What the
//! function of an asset makes at once is read for at once. An asset's own earlier partitions are followed back through
//! those that were never materialized: what comes before is there to be read.
//!
//! Downstream, a task of every partition that reads a planned one is planned. An asset's own later partitions are
//! followed through those that are materialized: a partition that was never made is not made for the first time because
//! an earlier one is made again.
//!
//! A part without partitions says nothing about partitions, so the request says which are meant of the assets that it
//! first leads to.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use servo_core::partitions::{Block, PartitionSet};
use servo_core::selection::Depth;

use super::PlanContext;
use super::meaning::{Meaning, Member};
use super::outside::Outside;
use crate::definitions::{Definitions, Dep};

/// The partitions of an asset that were reached.
pub(super) struct Reached {
    pub(super) asset: u32,
    pub(super) partitions: PartitionSet,
    /// Whether partitions led to it.
    pub(super) is_told: bool,
}

/// Follows dependencies partition by partition.
pub(super) struct Follower<'a> {
    pub(super) definitions: &'a Definitions,
    pub(super) context: &'a PlanContext<'a>,
    pub(super) outside: &'a Outside<'a>,
    /// The partitions that the request asks for of an asset with partitions.
    pub(super) asked: &'a dyn Fn(u32) -> PartitionSet,
    /// How many tasks were found when following stopped because a run may not have so many.
    pub(super) stopped_at: &'a Cell<Option<u128>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Upstream,
    Downstream,
}

impl<'a> Follower<'a> {
    pub(super) fn has_partitions(&self, asset: u32) -> bool {
        self.definitions.asset(asset).partitions.is_some()
    }

    /// The partitions that the request asks for.
    pub(super) fn asked(&self, asset: u32) -> PartitionSet {
        if self.has_partitions(asset) { (self.asked)(asset) } else { PartitionSet::unpartitioned() }
    }

    /// The upstream partitions of a part, following dependencies up to the depth.
    pub(super) fn upstream(&self, start: &Meaning, reach: Depth) -> Vec<Reached> {
        let mut walk = Walk::new(self, start, reach, Direction::Upstream);
        for unit in walk.units().into_iter().rev() {
            let (set, is_told) = unit.iter().fold((PartitionSet::EMPTY, false), |(set, is_told), asset| {
                (set.union(&walk.partitions(*asset)), is_told || walk.is_told(*asset))
            });
            let outputs = self.outputs(&unit);
            let inside = |dep: &Dep| outputs.contains(&dep.asset);
            let own: Vec<_> = outputs.iter().flat_map(|output| self.own_deps(*output)).collect();
            let earlier = self.own(&own, &set, Direction::Upstream);
            let set = set.union(&earlier);
            let mut read_back = earlier;
            // One output may be meant for partitions of which another is read.
            for (output, dep) in own.iter().filter(|_| outputs.len() > 1) {
                let read = dep.mapping.upstream(&set, self.context.at).set;
                read_back = read_back.union(&self.outside.never_materialized(*output, &read));
            }
            unit.iter().for_each(|asset| walk.add(*asset, &read_back, false));
            let deps = outputs.iter().flat_map(|output| &self.definitions.asset(*output).deps);
            for dep in deps.filter(|dep| !inside(dep)) {
                let read = if set.is_empty() || !walk.is_within(dep.asset) {
                    PartitionSet::EMPTY
                } else if !is_told && self.has_partitions(dep.asset) {
                    self.asked(dep.asset)
                } else {
                    dep.mapping.upstream(&set, self.context.at).set
                };
                walk.add(dep.asset, &read, is_told);
            }
        }
        walk.finish()
    }

    /// The downstream partitions of a part, following dependents up to the depth.
    pub(super) fn downstream(&self, start: &Meaning, reach: Depth) -> Vec<Reached> {
        let mut walk = Walk::new(self, start, reach, Direction::Downstream);
        for unit in walk.units() {
            // Outputs of one function may read each other in any order.
            for _ in &unit {
                for &asset in &unit {
                    let deps = self.definitions.asset(asset).deps.iter();
                    for dep in deps.filter(|dep| dep.asset != asset) {
                        let is_told = walk.is_within(dep.asset) && walk.is_told(dep.asset);
                        let set = walk.partitions(dep.asset);
                        let readers = if set.is_empty() {
                            PartitionSet::EMPTY
                        } else if !is_told && self.has_partitions(asset) {
                            self.asked(asset)
                        } else {
                            dep.mapping.downstream(&set, self.context.at).set
                        };
                        walk.add(asset, &readers, is_told);
                    }
                    let own: Vec<_> = self.own_deps(asset).collect();
                    let later = self.own(&own, &walk.partitions(asset), Direction::Downstream);
                    walk.add(asset, &later, false);
                }
            }
        }
        walk.finish()
    }

    /// The outputs made together with any of these by one function: all of them unless it can leave some out.
    fn outputs(&self, unit: &[u32]) -> Vec<u32> {
        let can_leave_out = |asset: &u32| {
            self.definitions.asset(*asset).def.multi.as_ref().is_none_or(|multi| multi.can_subset)
        };
        match unit {
            [first, ..] if !can_leave_out(first) => self.definitions.made_with(*first).collect(),
            some => some.to_vec(),
        }
    }

    /// How an asset reads its own earlier partitions.
    fn own_deps(&self, asset: u32) -> impl Iterator<Item = (u32, &'a Dep)> {
        let deps = self.definitions.asset(asset).deps.iter();
        deps.filter(move |dep| dep.asset == asset).map(move |dep| (asset, dep))
    }

    /// The further partitions of an asset that its partitions read back to, or are read on to.
    fn own(&self, deps: &[(u32, &Dep)], set: &PartitionSet, direction: Direction) -> PartitionSet {
        if deps.is_empty() || set.is_empty() {
            return PartitionSet::EMPTY;
        }
        let deps: Vec<_> = deps
            .iter()
            .map(|(asset, dep)| (self.outside.of(*asset), dep.mapping.at(self.context.at)))
            .collect();
        let mut found = BTreeSet::new();
        let mut frontier = set.clone();
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for (materialized, mapping) in &deps {
                let (led_to, through_materialized) = match direction {
                    Direction::Upstream => (mapping.upstream(&frontier).set, false),
                    Direction::Downstream => (mapping.downstream(&frontier).set, true),
                };
                for digits in led_to.difference(set).iter() {
                    if materialized.contains(&digits) == through_materialized && !found.contains(&digits) {
                        next.push(Block::one(&digits));
                        found.insert(digits);
                    }
                }
            }
            let count = set.len().saturating_add(found.len() as u128);
            if count > u128::from(self.context.max_tasks) {
                self.stopped_at.set(Some(count));
                break;
            }
            frontier = next.into_iter().collect();
        }
        found.iter().map(|digits| Block::one(digits)).collect()
    }
}

/// The partitions reached so far from a part.
struct Walk<'w> {
    definitions: &'w Definitions,
    start: &'w Meaning,
    /// The reached partitions of each asset, and whether partitions led there.
    reached: BTreeMap<u32, (PartitionSet, bool)>,
}

impl<'w> Walk<'w> {
    /// Finds the assets within reach.
    fn new(follower: &Follower<'w>, start: &'w Meaning, reach: Depth, direction: Direction) -> Self {
        let definitions = follower.definitions;
        let mut within: BTreeSet<u32> = start.keys().copied().collect();
        let mut level: Vec<u32> = start.keys().copied().collect();
        let mut steps = match reach {
            Depth::All => u32::MAX,
            Depth::Steps(steps) => steps.get(),
        };
        while steps > 0 && !level.is_empty() {
            steps -= 1;
            let mut next = Vec::new();
            for asset in level {
                match direction {
                    Direction::Upstream => {
                        for output in follower.outputs(&[asset]) {
                            let deps = definitions.asset(output).deps.iter().map(|dep| dep.asset);
                            next.extend(deps.filter(|dep| within.insert(*dep)));
                        }
                    }
                    Direction::Downstream => {
                        let readers = definitions.graph().readers(asset).iter().copied();
                        next.extend(readers.filter(|reader| within.insert(*reader)));
                    }
                }
            }
            level = next;
        }
        let reached = within.into_iter().map(|asset| (asset, (PartitionSet::EMPTY, false))).collect();
        Self { definitions, start, reached }
    }

    fn is_within(&self, asset: u32) -> bool {
        self.reached.contains_key(&asset)
    }

    /// The partitions of the part and those reached, together.
    fn partitions(&self, asset: u32) -> PartitionSet {
        let meant = self.start.get(&asset).map(Member::partitions).unwrap_or_default();
        self.reached.get(&asset).map_or(PartitionSet::EMPTY, |(reached, _)| meant.union(reached))
    }

    /// Whether it has partitions, or partitions led to it.
    fn is_told(&self, asset: u32) -> bool {
        self.definitions.asset(asset).partitions.is_some()
            || self.start.get(&asset).is_some_and(|member| member.is_told)
            || self.reached.get(&asset).is_some_and(|(_, is_told)| *is_told)
    }

    fn add(&mut self, asset: u32, more: &PartitionSet, is_told: bool) {
        if let Some((set, known)) = self.reached.get_mut(&asset) {
            *known |= is_told;
            *set = set.union(more);
        }
    }

    /// The assets within reach, those that one function makes together, each after what it reads.
    fn units(&self) -> Vec<Vec<u32>> {
        let mut units: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for asset in self.reached.keys() {
            units.entry(self.definitions.maker(*asset)).or_default().push(*asset);
        }
        let mut order = Vec::with_capacity(units.len());
        let mut seen = BTreeSet::new();
        for root in units.keys() {
            // Without recursion: a chain may have thousands of links.
            let mut path = vec![(*root, self.read_by(&units[root]))];
            while let Some((unit, reads)) = path.last_mut() {
                let unit = *unit;
                match reads.pop().filter(|_| !seen.contains(&unit)) {
                    Some(read) if read != unit && units.contains_key(&read) && !seen.contains(&read) => {
                        path.push((read, self.read_by(&units[&read])));
                    }
                    Some(_) => {}
                    None => {
                        if seen.insert(unit) {
                            order.push(unit);
                        }
                        path.pop();
                    }
                }
            }
        }
        order.into_iter().filter_map(|unit| units.remove(&unit)).collect()
    }

    /// The makers of what any of these reads.
    fn read_by(&self, assets: &[u32]) -> Vec<u32> {
        let functions = assets.first().into_iter().flat_map(|first| self.definitions.made_with(*first));
        let deps = functions.flat_map(|asset| &self.definitions.asset(asset).deps);
        deps.map(|dep| self.definitions.maker(dep.asset)).collect()
    }

    fn finish(self) -> Vec<Reached> {
        let reached = self.reached.into_iter();
        reached.map(|(asset, (partitions, is_told))| Reached { asset, partitions, is_told }).collect()
    }
}
