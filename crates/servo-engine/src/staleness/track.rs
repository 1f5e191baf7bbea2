//! The partitions of one asset by their indexes: which are made, and which were made by other code than is deployed.

use std::ops::Range;

use servo_core::partitions::{Block, PartitionContext, PartitionSet, Reason};
use servo_core::{EventId, PartitionKey, PartitionsDef};

use super::newer::Newer;
use crate::definitions::Asset;
use crate::lifecycle::DataStatus;
use crate::state::{Materialized, PartitionSlots, State};

/// Stands for the index of a slot that holds no partition of the deployed definition.
const NOWHERE: u64 = u64::MAX;

/// Staleness of the partitions of one asset, as of one event.
#[derive(Debug, Clone)]
pub(super) struct Track {
    /// Numbers of the dynamic partitions and of the layout of slots that indexes were found with; none before the first
    /// look.
    dynamic: Option<Vec<u64>>,
    /// The event of the newest change that was looked at.
    seen: EventId,
    dimensions: usize,
    /// The indexes of the partition in each slot, one per dimension.
    digits: Vec<u64>,
    /// The slots that hold partitions, by their indexes.
    order: Vec<u32>,
    /// Slots of keys that become partitions later.
    not_yet: Vec<(PartitionKey, u32)>,
    /// The greatest event since which any of them has its content.
    pub(super) last_change: EventId,
    pub(super) made: PartitionSet,
    pub(super) expired: PartitionSet,
    pub(super) other_code: PartitionSet,
    /// Those that are made, of which the last attempt failed.
    pub(super) failing: PartitionSet,
    /// Those that were attempted and never made.
    pub(super) never_made: PartitionSet,
    /// For each dependency, those of which something that they read is newer.
    pub(super) newer: Vec<Newer>,
    /// Counts how often it began anew: what was found out with an earlier one does not hold.
    pub(super) generation: u64,
    /// The slots that the last look found to have changed, sorted by their indexes, and after which event.
    moved: Vec<u32>,
    moved_after: EventId,
}

impl Default for Track {
    fn default() -> Self {
        Self {
            dynamic: None,
            seen: EventId::NIL,
            dimensions: 0,
            digits: Vec::new(),
            order: Vec::new(),
            not_yet: Vec::new(),
            last_change: EventId::NIL,
            made: PartitionSet::EMPTY,
            expired: PartitionSet::EMPTY,
            other_code: PartitionSet::EMPTY,
            failing: PartitionSet::EMPTY,
            never_made: PartitionSet::EMPTY,
            newer: Vec::new(),
            generation: 0,
            moved: Vec::new(),
            moved_after: EventId::NIL,
        }
    }
}

impl Track {
    /// Takes in what has changed since the last look.
    pub(super) fn advance(&mut self, state: &State, asset: &Asset, at: PartitionContext<'_>) {
        let mut dynamic = numbers(asset, state);
        dynamic.extend(state.partition_slots(&asset.key).map(|slots| slots.layout()));
        if self.dynamic.as_ref() != Some(&dynamic) {
            *self = Self {
                dynamic: Some(dynamic),
                dimensions: asset.partitions.as_ref().map_or(0, |partitions| partitions.dimensions().count()),
                generation: self.generation + 1,
                ..Self::default()
            };
        }
        self.moved = Vec::new();
        self.moved_after = self.seen;
        let Some(slots) = state.partition_slots(&asset.key) else { return };
        let mut changed: Vec<u32> = Vec::new();
        for (key, slot) in std::mem::take(&mut self.not_yet) {
            changed.extend(self.place(asset, slot, Some(key), at).then_some(slot));
        }
        // No event says that these have become partitions.
        self.generation += u64::from(!changed.is_empty());
        let known = self.digits.len() / self.stride();
        self.digits.resize(slots.len() * self.stride(), NOWHERE);
        for (key, slot, status) in slots.changed_since(self.seen) {
            let is_placed = if (slot as usize) < known {
                self.digits[slot as usize * self.stride()] != NOWHERE
            } else {
                match key.as_deref().map(PartitionKey::parse).transpose() {
                    Ok(key) => self.place(asset, slot, key, at),
                    Err(_) => false,
                }
            };
            changed.extend(is_placed.then_some(slot));
            self.last_change =
                self.last_change.max(status.latest().map_or(EventId::NIL, Materialized::content_since));
        }
        self.seen = self.seen.max(slots.changed());
        changed.sort_by(|a, b| self.digits_of(*a).cmp(self.digits_of(*b)));
        self.arrange(&changed);
        changed.dedup();
        self.judge(&changed, slots, asset);
        self.moved = changed;
    }

    /// The event of the newest change that was looked at.
    pub(super) fn seen(&self) -> EventId {
        self.seen
    }

    /// The slots that have changed after an event, sorted by their indexes.
    pub(super) fn moved_since(&self, event: EventId, slots: PartitionSlots<'_>) -> Vec<u32> {
        if event >= self.seen {
            return Vec::new();
        }
        if event == self.moved_after {
            return self.moved.clone();
        }
        let changed = slots.changed_since(event).map(|(_, slot, _)| slot);
        let is_partition = |slot: &u32| self.digits[*slot as usize * self.stride()] != NOWHERE;
        let mut moved: Vec<u32> = changed.filter(is_partition).collect();
        moved.sort_by(|a, b| self.digits_of(*a).cmp(self.digits_of(*b)));
        moved
    }

    fn stride(&self) -> usize {
        self.dimensions.max(1)
    }

    /// The indexes of the partition in a slot.
    pub(super) fn digits_of(&self, slot: u32) -> &[u64] {
        let start = slot as usize * self.stride();
        &self.digits[start..start + self.dimensions]
    }

    /// The slots that hold partitions, by their indexes.
    pub(super) fn slots(&self) -> &[u32] {
        &self.order
    }

    /// The slot of a partition; none if it was never attempted.
    pub(super) fn slot_of(&self, digits: &[u64]) -> Option<u32> {
        let found = self.order.binary_search_by(|slot| self.digits_of(*slot).cmp(digits)).ok()?;
        Some(self.order[found])
    }

    /// The slots of the partitions of a set that were ever attempted, in the order of their indexes.
    pub(super) fn slots_in<'t>(&'t self, set: &'t PartitionSet) -> impl Iterator<Item = u32> + 't {
        set.blocks().iter().flat_map(move |block| {
            let within = match block.ranges() {
                [] => &self.order[..],
                [first, ..] => {
                    let start = self.order.partition_point(|slot| self.digits_of(*slot)[0] < first.start);
                    let len =
                        self.order[start..].partition_point(|slot| self.digits_of(*slot)[0] < first.end);
                    &self.order[start..start + len]
                }
            };
            within.iter().copied().filter(move |slot| block.contains(self.digits_of(*slot)))
        })
    }

    /// Finds the indexes of the key in a slot; false if it is no partition.
    fn place(
        &mut self,
        asset: &Asset,
        slot: u32,
        key: Option<PartitionKey>,
        at: PartitionContext<'_>,
    ) -> bool {
        let start = slot as usize * self.stride();
        match (&asset.partitions, key) {
            (None, None) => self.digits[start] = 0,
            (Some(partitions), Some(key)) => match partitions.block_of(&key, at) {
                Ok(block) => {
                    for (dimension, range) in block.ranges().iter().enumerate() {
                        self.digits[start + dimension] = range.start;
                    }
                }
                Err(error) => {
                    if matches!(error.reason, Reason::NotYet { .. }) {
                        self.not_yet.push((key, slot));
                    }
                    return false;
                }
            },
            (None, Some(_)) | (Some(_), None) => return false,
        }
        true
    }

    /// Adds slots that are new, which are sorted by their indexes.
    fn arrange(&mut self, changed: &[u32]) {
        let added: Vec<u32> =
            changed.iter().copied().filter(|slot| self.slot_of(self.digits_of(*slot)).is_none()).collect();
        if added.is_empty() {
            return;
        }
        let mut order = Vec::with_capacity(self.order.len() + added.len());
        let (mut old, mut new) = (self.order.iter().copied().peekable(), added.into_iter().peekable());
        loop {
            let is_old = match (old.peek(), new.peek()) {
                (Some(a), Some(b)) => self.digits_of(*a) < self.digits_of(*b),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break,
            };
            order.extend(if is_old { old.next() } else { new.next() });
        }
        self.order = order;
    }

    /// Sorts slots, which are sorted by their indexes, by how they fare and by the code that made them.
    fn judge(&mut self, changed: &[u32], slots: PartitionSlots<'_>, asset: &Asset) {
        let deployed = asset.def.code_version.as_deref();
        let has_other_code = |latest: Materialized| {
            deployed.is_some() && slots.code_version(latest).map(|version| &**version) != deployed
        };
        let fares = |slot: u32| {
            let status = slots.get(slot);
            (status.status(), status.latest().is_some_and(has_other_code))
        };
        let fares: Vec<(DataStatus, bool)> = changed.iter().map(|slot| fares(*slot)).collect();
        let with = |set: &PartitionSet, belongs: &dyn Fn(&(DataStatus, bool)) -> bool| {
            let mut judged = fares.iter();
            self.with(set, changed, |_| judged.next().is_some_and(belongs))
        };
        let made = with(&self.made, &|(status, _)| {
            !matches!(status, DataStatus::NeverMaterialized | DataStatus::Expired)
        });
        let expired = with(&self.expired, &|(status, _)| *status == DataStatus::Expired);
        let other_code = with(&self.other_code, &|(_, has_other_code)| *has_other_code);
        let failing = with(&self.failing, &|(status, _)| *status == DataStatus::LastAttemptFailed);
        let never_made = with(&self.never_made, &|(status, _)| *status == DataStatus::NeverMaterialized);
        (self.made, self.other_code, self.failing, self.never_made) = (made, other_code, failing, never_made);
        self.expired = expired;
    }

    /// A set in which some partitions, sorted by their indexes, have been judged again.
    pub(super) fn with(
        &self,
        set: &PartitionSet,
        judged: &[u32],
        mut belongs: impl FnMut(u32) -> bool,
    ) -> PartitionSet {
        let (mut more, mut less) = (Vec::new(), Vec::new());
        for &slot in judged {
            match (belongs(slot), set.contains(self.digits_of(slot))) {
                (true, false) => more.push(slot),
                (false, true) => less.push(slot),
                (true, true) | (false, false) => {}
            }
        }
        let kept = if less.is_empty() { set.clone() } else { set.difference(&self.set_of(&less)) };
        if more.is_empty() { kept } else { kept.union(&self.set_of(&more)) }
    }

    /// The partitions of some slots, which are sorted by their indexes.
    pub(super) fn set_of(&self, slots: &[u32]) -> PartitionSet {
        let mut runs: Vec<Vec<Range<u64>>> = Vec::new();
        for slot in slots {
            let digits = self.digits_of(*slot);
            let continues = runs.last_mut().filter(|run| is_next(run, digits));
            match continues {
                Some(run) => {
                    if let Some(last) = run.last_mut() {
                        last.end += 1;
                    }
                }
                None => runs.push(digits.iter().map(|digit| *digit..digit + 1).collect()),
            }
        }
        runs.into_iter().map(Block::new).collect()
    }
}

/// Whether indexes are the next ones along the last dimension.
fn is_next(run: &[Range<u64>], digits: &[u64]) -> bool {
    let Some((last, before)) = run.split_last() else { return true };
    let Some((digit, others)) = digits.split_last() else { return true };
    last.end == *digit && before.iter().zip(others).all(|(range, digit)| range.start == *digit)
}

/// Numbers of the dynamic partitions of an asset.
pub(super) fn numbers(asset: &Asset, state: &State) -> Vec<u64> {
    let number = |def: &PartitionsDef| match def {
        PartitionsDef::Dynamic { name } => Some(state.dynamic.number(name)),
        PartitionsDef::Hourly { .. }
        | PartitionsDef::Daily { .. }
        | PartitionsDef::Weekly { .. }
        | PartitionsDef::Monthly { .. }
        | PartitionsDef::Cron { .. }
        | PartitionsDef::Static { .. }
        | PartitionsDef::Multi { .. } => None,
    };
    match asset.partitions.as_ref().map(|partitions| partitions.def()) {
        Some(PartitionsDef::Multi { dims }) => dims.values().filter_map(number).collect(),
        Some(def) => number(def).into_iter().collect(),
        None => Vec::new(),
    }
}
