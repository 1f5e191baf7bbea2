//! Materializations outside the plan, by indexes of partitions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use servo_core::MaterializationId;
use servo_core::partitions::{Block, PartitionSet};

use super::PlanContext;
use super::lookup::Lookup;
use crate::definitions::Definitions;

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
