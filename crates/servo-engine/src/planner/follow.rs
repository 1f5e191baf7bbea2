//! Which partitions of the assets that `+` adds are needed by those that the selection names, or need them.

use std::collections::BTreeMap;

use servo_core::partitions::{Moment, PartitionSet};

use super::Role;
use super::choose::Chosen;
use crate::definitions::Definitions;

/// Adds what mappings name, asset by asset: upstream ones after all that read them, downstream ones after all that
/// they read.
pub(super) fn follow(
    definitions: &Definitions,
    assets: &[(u32, Role)],
    chosen: &mut BTreeMap<u32, (Chosen, PartitionSet)>,
    at: Moment<'_>,
) {
    let roles: BTreeMap<u32, Role> = assets.iter().copied().collect();
    let order = order(definitions, &roles);
    for &position in order.iter().rev() {
        let Some((_, reads)) = chosen.get(&position) else { continue };
        let reads = reads.clone();
        for dep in &definitions.asset(position).deps {
            if roles.get(&dep.asset) == Some(&Role::Upstream) && roles[&position] != Role::Downstream {
                add(chosen, dep.asset, dep.mapping.upstream(&reads, at).set);
            }
        }
    }
    for &position in order.iter().filter(|position| roles[position] == Role::Downstream) {
        for dep in &definitions.asset(position).deps {
            let is_on_the_way = matches!(roles.get(&dep.asset), Some(Role::Named | Role::Downstream));
            let changed = chosen.get(&dep.asset).filter(|_| is_on_the_way && dep.asset != position);
            if let Some(set) = changed.map(|(_, set)| dep.mapping.downstream(set, at).set) {
                add(chosen, position, set);
            }
        }
    }
}

fn add(chosen: &mut BTreeMap<u32, (Chosen, PartitionSet)>, asset: u32, more: PartitionSet) {
    let (_, set) = chosen.entry(asset).or_insert_with(|| (Chosen::Mapped, PartitionSet::EMPTY));
    *set = set.union(&more);
}

/// The assets so that each comes after what it reads; the graph has no cycles but those of an asset with itself.
fn order(definitions: &Definitions, roles: &BTreeMap<u32, Role>) -> Vec<u32> {
    let mut order = Vec::with_capacity(roles.len());
    let mut seen = vec![false; definitions.assets().len()];
    for &root in roles.keys() {
        // Without recursion: a chain may have thousands of links.
        let mut path = vec![(root, 0)];
        while let Some((position, next)) = path.last_mut() {
            if *next == 0 && std::mem::replace(&mut seen[*position as usize], true) {
                path.pop();
                continue;
            }
            let deps = &definitions.asset(*position).deps;
            match deps.get(*next) {
                Some(dep) => {
                    *next += 1;
                    if roles.contains_key(&dep.asset) && !seen[dep.asset as usize] {
                        path.push((dep.asset, 0));
                    }
                }
                None => {
                    order.push(*position);
                    path.pop();
                }
            }
        }
    }
    order
}
