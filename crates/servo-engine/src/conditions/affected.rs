//! From changed partitions to those whose condition may have changed: downstream, as far as conditions look up.

use std::collections::BTreeMap;

use servo_core::partitions::{PartitionContext, PartitionSet};

use super::compiled::Conditions;
use crate::definitions::Definitions;

/// Partitions with conditions that look at these, or are these, added to `found`.
pub(crate) fn affected(
    definitions: &Definitions,
    conditions: &Conditions,
    changed: BTreeMap<u32, PartitionSet>,
    at: PartitionContext<'_>,
    found: &mut BTreeMap<u32, PartitionSet>,
) {
    let mut reached: BTreeMap<u32, PartitionSet> = BTreeMap::new();
    let (mut level, mut steps) = (changed, 0u32);
    while !level.is_empty() {
        let mut next: BTreeMap<u32, PartitionSet> = BTreeMap::new();
        for (asset, set) in level {
            // What was reached before was reached in fewer steps, and so is everything behind it.
            let known = reached.entry(asset).or_default();
            let new = set.difference(known);
            if new.is_empty() {
                continue;
            }
            *known = known.union(&new);
            if conditions.get(asset).is_some_and(|compiled| compiled.depth >= steps) {
                add(found, asset, &new);
            }
            let mut readers = definitions.graph().readers(asset).to_vec();
            readers.dedup();
            for reader in readers {
                if conditions.looked_at(reader) <= steps {
                    continue;
                }
                for dep in definitions.asset(reader).deps.iter().filter(|dep| dep.asset == asset) {
                    add(&mut next, reader, &dep.mapping.downstream(&new, at).set);
                }
            }
        }
        level = next;
        steps = steps.saturating_add(1);
    }
}

pub(crate) fn add(sets: &mut BTreeMap<u32, PartitionSet>, asset: u32, set: &PartitionSet) {
    if !set.is_empty() {
        let known = sets.entry(asset).or_default();
        *known = known.union(set);
    }
}
