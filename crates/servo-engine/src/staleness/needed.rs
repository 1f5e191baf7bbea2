//! Which partitions have to be made to bring some of them up to date: those that are stale by themselves, and those
//! that become stale because something that they read is made.
//!
//! Partitions that are stale only because of something that is not to be made would be stale again at once, and are
//! left out.

use std::collections::BTreeMap;

use servo_core::partitions::PartitionSet;

use super::StaleView;

/// The partitions of a request by what is to be done about them, by position of their assets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needed {
    /// To be made.
    pub needed: BTreeMap<u32, PartitionSet>,
    /// Stale because of something that is not part of the request, and nothing else.
    pub waiting: BTreeMap<u32, PartitionSet>,
    /// Up to date.
    pub up_to_date: BTreeMap<u32, PartitionSet>,
}

impl StaleView<'_> {
    /// Sorts partitions that were asked for, by position of assets that were looked at.
    pub fn needed(&self, asked: &BTreeMap<u32, PartitionSet>) -> Needed {
        let mut found = Needed::default();
        for unit in super::units(self.definitions, asked.keys().copied()) {
            let members: Vec<u32> = unit.into_iter().filter(|asset| asked.contains_key(asset)).collect();
            for &asset in &members {
                let own = self.sets.get(&asset).map(|sets| sets.by_themselves()).unwrap_or_default();
                found.needed.insert(asset, own.intersection(&asked[&asset]));
            }
            while members.iter().any(|asset| self.lead_on(*asset, asked, &mut found)) {}
        }
        for (asset, asked) in asked {
            let Some(needed) = found.needed.get(asset) else { continue };
            let stale = self.sets.get(asset).map(|sets| sets.upstream_stale.clone()).unwrap_or_default();
            let rest = asked.difference(needed);
            found.waiting.insert(*asset, rest.intersection(&stale));
            found.up_to_date.insert(*asset, rest.difference(&stale));
        }
        found
    }

    /// Adds what reads something that is to be made; false if nothing is added.
    fn lead_on(&self, asset: u32, asked: &BTreeMap<u32, PartitionSet>, found: &mut Needed) -> bool {
        let mut has_more = false;
        for dep in &self.definitions.asset(asset).deps {
            let Some(read) = found.needed.get(&dep.asset).filter(|read| !read.is_empty()) else { continue };
            let led_to = dep.mapping.downstream(read, self.at).set.intersection(&asked[&asset]);
            let Some(known) = found.needed.get_mut(&asset) else { continue };
            let more = led_to.difference(known);
            if !more.is_empty() {
                *known = known.union(&more);
                has_more = true;
            }
        }
        has_more
    }
}
