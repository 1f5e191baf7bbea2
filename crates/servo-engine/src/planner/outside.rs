//! Materializations outside the plan, by indexes of partitions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use servo_core::partitions::{Block, PartitionSet};
use servo_core::{MaterializationId, PartitionKey};

use super::PlanContext;
use super::lookup::Lookup;
use crate::definitions::{Asset, Definitions};

/// Partitions that are looked up one by one.
const FEW: u128 = 10_000;

/// The materialized partitions of assets, read when they are first asked for.
pub(super) struct Outside<'a> {
    definitions: &'a Definitions,
    context: &'a PlanContext<'a>,
    known: RefCell<BTreeMap<u32, Rc<Lookup<MaterializationId>>>>,
}

impl<'a> Outside<'a> {
    pub(super) fn new(definitions: &'a Definitions, context: &'a PlanContext<'a>) -> Self {
        Self { definitions, context, known: RefCell::default() }
    }

    /// The materializations of an asset; keys that are no partitions any more are left out.
    pub(super) fn of(&self, asset: u32) -> Rc<Lookup<MaterializationId>> {
        let mut known = self.known.borrow_mut();
        Rc::clone(known.entry(asset).or_insert_with(|| Rc::new(self.read(asset))))
    }

    /// The materializations of some partitions of an asset. Few of them are looked up one by one, so that the cost does
    /// not depend on how many there are of the others.
    pub(super) fn within(&self, asset: u32, set: &PartitionSet) -> Rc<Lookup<MaterializationId>> {
        let Asset { key, partitions, def, .. } = self.definitions.asset(asset);
        if def.external || set.len() > FEW || self.known.borrow().contains_key(&asset) {
            return self.of(asset);
        }
        let found: Vec<_> = match partitions {
            None => {
                let id = self.context.materializations.get(key, None);
                id.map(|id| (Vec::new(), id)).into_iter().collect()
            }
            Some(partitions) => {
                let keys = partitions.keys_in(set, self.context.at).zip(set.iter());
                let get = |(partition, digits)| {
                    Some((digits, self.context.materializations.get(key, Some(&partition))?))
                };
                keys.filter_map(get).collect()
            }
        };
        Rc::new(Lookup::new(found))
    }

    /// The partitions of a set whose last attempt failed.
    pub(super) fn failed(&self, asset: u32, set: &PartitionSet) -> PartitionSet {
        let Asset { key, partitions, .. } = self.definitions.asset(asset);
        let has_failed =
            |partition: Option<&PartitionKey>| self.context.materializations.has_failed(key, partition);
        let Some(partitions) = partitions else {
            return if has_failed(None) { set.clone() } else { PartitionSet::EMPTY };
        };
        let keys = partitions.keys_in(set, self.context.at).zip(set.iter());
        keys.filter(|(key, _)| has_failed(Some(key))).map(|(_, digits)| Block::one(&digits)).collect()
    }

    /// The partitions of a set that were never materialized.
    pub(super) fn never_materialized(&self, asset: u32, set: &PartitionSet) -> PartitionSet {
        let known = self.of(asset);
        set.iter().filter(|digits| !known.contains(digits)).map(|digits| Block::one(&digits)).collect()
    }

    /// The partitions of a set that are materialized.
    pub(super) fn materialized(&self, asset: u32, set: &PartitionSet) -> PartitionSet {
        let known = self.of(asset);
        let found = set.blocks().iter().flat_map(|block| known.within(block));
        found.map(|(digits, _)| Block::one(digits)).collect()
    }

    fn read(&self, asset: u32) -> Lookup<MaterializationId> {
        let asset = self.definitions.asset(asset);
        if asset.def.external {
            return Lookup::new(Vec::new());
        }
        let materialized = self.context.materializations.of(&asset.key);
        let known = materialized.filter_map(|(key, id)| match (&asset.partitions, key) {
            (None, None) => Some((Vec::new(), id)),
            (Some(partitions), Some(key)) => {
                let block = partitions.block_of(&key, self.context.at).ok()?;
                Some((block.ranges().iter().map(|range| range.start).collect(), id))
            }
            (None, Some(_)) | (Some(_), None) => None,
        });
        Lookup::new(known.collect())
    }
}
