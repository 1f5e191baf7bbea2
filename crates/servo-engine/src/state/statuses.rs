//! The status of every partition of every asset, by key.

mod keys;
mod packed;
mod slots;
mod stored;

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{AssetKey, EventId, PartitionKey};

use self::keys::{Keys, KeysBuilder};
use self::slots::Slots;
pub use self::stored::PackedStatuses;
use super::RestoreError;
use super::code_versions::CodeVersions;
use super::partition_status::{
    LastAttempt, Materialization, Materialized, PartitionCounts, PartitionStatus, restore, row,
};
use super::prior_status::{PriorStatus, restore_prior, undo_row};
use super::shared::{SharedMap, SharedVec};
use crate::lifecycle::DataStatus;
use crate::rows::{PartitionStatusRow, PartitionUndoRow};

/// The partitions of one asset.
#[derive(Debug, Clone, Default)]
struct AssetPartitions {
    /// Where in `statuses` each is, by the canonical text of its key; empty for an asset without partitions.
    index: Keys,
    statuses: Slots,
    counts: PartitionCounts,
    changed: Changed,
    /// Statuses that can be given back, by the same text.
    prior: SharedMap<Box<str>, PriorStatus>,
    /// Counts how often a partition has lost its slot.
    layout: u64,
}

/// Slots whose newest changes are noted together.
const NOTED: usize = 64;
/// More groups of slots are not looked through for one that has changed.
const MANY: usize = 64;

/// The event of the newest change, of all partitions of an asset and of every so many slots.
#[derive(Debug, Clone)]
struct Changed {
    newest: EventId,
    by_slot: SharedVec<EventId>,
}

impl Default for Changed {
    fn default() -> Self {
        Self { newest: EventId::NIL, by_slot: SharedVec::default() }
    }
}

impl Changed {
    fn note(&mut self, slot: usize, event: EventId) {
        self.newest = self.newest.max(event);
        while self.by_slot.len() <= slot / NOTED {
            self.by_slot.push(EventId::NIL);
        }
        if self.by_slot[slot / NOTED] < event {
            self.by_slot[slot / NOTED] = event;
        }
    }
}

/// The effect that the end of an attempt had.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    /// Whether it was neither known nor older than what is.
    pub(crate) is_news: bool,
    /// Whether an earlier change of the partition could be undone until now.
    pub(crate) is_past_undoing: bool,
}

/// The partitions of one asset by the slots in which they are kept. A partition keeps its slot until
/// [`PartitionSlots::layout`] changes.
#[derive(Clone, Copy)]
pub(crate) struct PartitionSlots<'a> {
    asset: &'a AssetPartitions,
    code_versions: &'a CodeVersions,
}

impl<'a> PartitionSlots<'a> {
    pub(crate) fn len(&self) -> usize {
        self.asset.statuses.len()
    }

    pub(crate) fn get(&self, slot: u32) -> PartitionStatus {
        self.asset.statuses.get(slot as usize)
    }

    /// The event of the newest change of any of them.
    pub(crate) fn changed(&self) -> EventId {
        self.asset.changed.newest
    }

    /// Those that may have changed after an event, by key; an asset without partitions has one without a key. The
    /// others cost a look at their place in the index.
    pub(crate) fn changed_since(
        &self,
        event: EventId,
    ) -> impl Iterator<Item = (Option<Arc<str>>, u32, PartitionStatus)> + use<'a> {
        let asset = self.asset;
        let is_older = asset.changed.newest <= event;
        let has_changed = move |slot: u32| asset.changed.by_slot[slot as usize / NOTED] > event;
        let may_have_changed = move |least: u32, most: u32| {
            let groups = least as usize / NOTED..=most as usize / NOTED;
            groups.clone().count() > MANY || groups.into_iter().any(|at| asset.changed.by_slot[at] > event)
        };
        let index = (!is_older).then(|| asset.index.iter_if(may_have_changed)).into_iter().flatten();
        index
            .filter(move |(_, slot)| has_changed(*slot))
            .map(|(key, slot)| (canonical(key), slot, asset.statuses.get(slot as usize)))
    }

    pub(crate) fn code_version(&self, latest: Materialized) -> Option<&'a Arc<str>> {
        self.code_versions.get(latest.code_version())
    }

    /// Counts how often a partition has lost its slot, by a wipe: what was known of slots does not hold then.
    pub(crate) fn layout(&self) -> u64 {
        self.asset.layout
    }
}

/// The partitions that a rename has given to another asset.
#[derive(Debug, Default)]
pub(crate) struct Renamed {
    pub(crate) statuses: Vec<Option<PartitionKey>>,
    /// Those whose last change can be undone.
    pub(crate) priors: Vec<Option<PartitionKey>>,
}

/// The partitions of all assets, deployed or not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Statuses {
    assets: SharedMap<AssetKey, Arc<AssetPartitions>>,
    code_versions: CodeVersions,
}

impl Statuses {
    pub(crate) fn get(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> Option<PartitionStatus> {
        let asset = self.assets.get(asset)?;
        asset.index.get(text(partition)).map(|at| asset.statuses.get(at as usize))
    }

    pub(crate) fn of_asset(
        &self,
        asset: &AssetKey,
    ) -> impl DoubleEndedIterator<Item = (Option<Arc<str>>, PartitionStatus)> {
        self.assets.get(asset).into_iter().flat_map(|asset| {
            asset.index.iter().map(|(key, at)| (canonical(key), asset.statuses.get(at as usize)))
        })
    }

    /// The partitions of an asset that were ever attempted, in the order of their texts.
    pub(crate) fn keys_of(&self, asset: &AssetKey) -> impl DoubleEndedIterator<Item = Option<Arc<str>>> {
        let asset = self.assets.get(asset).into_iter();
        asset.flat_map(|asset| asset.index.iter().map(|(key, _)| canonical(key)))
    }

    pub(crate) fn slots(&self, asset: &AssetKey) -> Option<PartitionSlots<'_>> {
        let asset = self.assets.get(asset)?;
        Some(PartitionSlots { asset, code_versions: &self.code_versions })
    }

    /// The version of the code that made a materialization.
    pub(crate) fn code_version(&self, latest: Materialized) -> Option<&Arc<str>> {
        self.code_versions.get(latest.code_version())
    }

    pub(crate) fn counts(&self, asset: &AssetKey) -> PartitionCounts {
        self.assets.get(asset).map_or_else(PartitionCounts::default, |asset| asset.counts)
    }

    pub(crate) fn assets(&self) -> impl DoubleEndedIterator<Item = (&AssetKey, PartitionCounts)> {
        let known = self.assets.iter().filter(|(_, asset)| !asset.index.is_empty());
        known.map(|(key, asset)| (key, asset.counts))
    }

    /// Notes the end of an attempt. What was wiped or marked before it is past undoing.
    pub(crate) fn record(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        latest: Option<&Materialization>,
        last: LastAttempt,
    ) -> Recorded {
        let latest = latest.map(|latest| Materialized::new(latest, &mut self.code_versions));
        let asset = self.asset_mut(asset);
        let Some(at) = asset.index.get(text(partition)).map(|at| at as usize) else {
            asset.changed.note(asset.statuses.len(), last.event_id);
            asset.push(text(partition), PartitionStatus::of(latest, last));
            return asset.recorded(partition);
        };
        let known = asset.statuses.look(at);
        let merged = known.merge(latest, last);
        if merged == *known {
            return Recorded { is_news: false, is_past_undoing: false };
        }
        let before = known.status();
        asset.replace(at, before, merged);
        asset.changed.note(at, last.event_id);
        asset.recorded(partition)
    }

    /// Packs a materialization that nothing is known of but its id and its time: somebody says that it is there.
    pub(crate) fn marked(&mut self, materialization: &Materialization) -> Materialized {
        Materialized::new(materialization, &mut self.code_versions)
    }

    /// Sets the status of a partition, whatever it was.
    pub(crate) fn put(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        status: PartitionStatus,
    ) {
        let event = status.last_attempt().event_id;
        self.set(asset, partition, status, event);
    }

    /// The same, noted as changed by an event.
    fn set(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        status: PartitionStatus,
        event: EventId,
    ) {
        let asset = self.asset_mut(asset);
        match asset.index.get(text(partition)).map(|at| at as usize) {
            Some(at) => {
                let before = asset.statuses.look(at).status();
                asset.replace(at, before, status);
                asset.changed.note(at, event);
            }
            None => {
                asset.changed.note(asset.statuses.len(), event);
                asset.push(text(partition), status);
            }
        }
    }

    /// Forgets the status of a partition; gives it.
    pub(crate) fn remove(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<PartitionStatus> {
        let asset = self.assets.get_mut(asset).map(Arc::make_mut)?;
        let at = asset.index.remove(text(partition))?;
        let status = asset.statuses.get(at as usize);
        *asset.counts.of(status.status()) -= 1;
        asset.layout += 1;
        if asset.statuses.len() > 2 * asset.index.len() + NOTED {
            asset.compact();
        }
        Some(status)
    }

    /// Gives the partitions of an asset to another, which has none; says which those are. With an event their rows are
    /// as new as that, and what could be undone cannot any more.
    pub(crate) fn rename(&mut self, from: &AssetKey, to: &AssetKey, newer: Option<EventId>) -> Renamed {
        let Some(asset) = self.assets.remove(from) else { return Renamed::default() };
        let mut asset = Arc::unwrap_or_clone(asset);
        let statuses: Vec<_> = asset.index.iter().map(|(key, _)| partition_key(key.as_ref())).collect();
        let priors: Vec<_> = asset.prior.keys().map(|key| partition_key(key)).collect();
        // What was known of its slots was known of another asset.
        asset.layout += 1;
        if let Some(event) = newer {
            asset.prior = SharedMap::default();
            for slot in 0..asset.statuses.len() {
                let renewed = asset.statuses.get(slot).renewed(event);
                asset.statuses.set(slot, renewed);
                asset.changed.note(slot, event);
            }
        }
        self.assets.insert(to.clone(), Arc::new(asset));
        Renamed { statuses, priors }
    }

    /// Notes what a partition was before a change that can be undone.
    pub(crate) fn set_prior(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        prior: PriorStatus,
    ) {
        self.asset_mut(asset).prior.insert(text(partition).into(), prior);
    }

    /// The status of a partition before the last change that can be undone.
    pub(crate) fn prior(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> Option<&PriorStatus> {
        self.assets.get(asset)?.prior.get(text(partition))
    }

    /// Takes out what a partition was before the last change that can be undone.
    pub(crate) fn take_prior(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<PriorStatus> {
        if !self.assets.get(asset)?.prior.contains_key(text(partition)) {
            return None;
        }
        self.assets.get_mut(asset).map(Arc::make_mut)?.prior.remove(text(partition))
    }

    /// Partitions of an asset whose last change can be undone, in the order of their texts.
    pub(crate) fn priors(
        &self,
        asset: &AssetKey,
    ) -> impl DoubleEndedIterator<Item = (Option<&str>, &PriorStatus)> {
        let asset = self.assets.get(asset).into_iter();
        asset.flat_map(|asset| asset.prior.iter().map(|(key, prior)| (canonical(&**key), prior)))
    }

    pub(crate) fn undo_row(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<PartitionUndoRow> {
        let prior = self.assets.get(asset)?.prior.get(text(partition))?;
        Some(undo_row(asset, partition.cloned(), prior, &self.code_versions))
    }

    pub(crate) fn undo_rows(&self) -> Vec<PartitionUndoRow> {
        let mut rows = Vec::new();
        for (key, asset) in self.assets.iter() {
            rows.extend(asset.prior.iter().map(|(partition, prior)| {
                undo_row(key, partition_key(partition), prior, &self.code_versions)
            }));
        }
        rows
    }

    pub(crate) fn restore_undo(&mut self, rows: Vec<PartitionUndoRow>) -> Result<(), RestoreError> {
        for row in rows {
            let (asset, partition) = (row.asset_key.clone(), row.partition_key.clone());
            let prior = restore_prior(row, &mut self.code_versions)?;
            self.set_prior(&asset, partition.as_ref(), prior);
        }
        Ok(())
    }

    fn asset_mut(&mut self, asset: &AssetKey) -> &mut AssetPartitions {
        Arc::make_mut(self.assets.get_or_insert_with(asset, Arc::default))
    }

    pub(crate) fn rows(&self) -> Vec<PartitionStatusRow> {
        let mut rows = Vec::with_capacity(self.assets.values().map(|asset| asset.statuses.len()).sum());
        for (key, asset) in self.assets.iter() {
            rows.extend(asset.index.iter().map(|(partition, at)| {
                row(key, partition_key(&partition), &asset.statuses.get(at as usize), &self.code_versions)
            }));
        }
        rows
    }

    pub(crate) fn row(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<PartitionStatusRow> {
        self.get(asset, partition).map(|status| row(asset, partition.cloned(), &status, &self.code_versions))
    }
}

/// Statuses that are restored row by row. There may be millions: no more of their rows than a few are in memory at
/// once.
#[derive(Debug, Default)]
pub struct RestoredStatuses {
    code_versions: CodeVersions,
    /// The asset of the last row. Rows come by asset, so that one is looked up only when it changes.
    current: Option<(AssetKey, Restored)>,
    assets: BTreeMap<AssetKey, Restored>,
    later: Vec<LaterChange>,
    problem: Option<RestoreError>,
}

/// A change of a status that was restored.
#[derive(Debug)]
struct LaterChange {
    asset: AssetKey,
    partition: Option<PartitionKey>,
    row: Option<PartitionStatusRow>,
    /// Whether what was there before has come to an end.
    is_new: bool,
}

impl RestoredStatuses {
    /// Adds the status of a partition. Rows in the order of their keys cost the least.
    pub fn add(&mut self, row: &PartitionStatusRow) {
        let status = match restore(row, &mut self.code_versions) {
            Ok(status) => status,
            Err(problem) => {
                self.problem.get_or_insert(problem);
                return;
            }
        };
        let Restored { index, statuses, counts, changed } = self.of(&row.asset_key);
        *counts.of(status.status()) += 1;
        changed.note(statuses.len(), status.changed_at());
        index.push(text(row.partition_key.as_ref()), position(statuses.len()));
        statuses.restore(status);
    }

    /// Notes that a partition has changed since: it has another row if that is not older, or none. `is_new` if what it
    /// had before has come to an end.
    pub fn change(
        &mut self,
        (asset, partition): (AssetKey, Option<PartitionKey>),
        row: Option<PartitionStatusRow>,
        is_new: bool,
    ) {
        self.later.push(LaterChange { asset, partition, row, is_new });
    }

    /// The rows of all of them.
    pub fn into_rows(self) -> Result<Vec<PartitionStatusRow>, RestoreError> {
        Ok(self.finish()?.rows())
    }

    fn of(&mut self, asset: &AssetKey) -> &mut Restored {
        if self.current.as_ref().is_some_and(|(current, _)| current != asset) {
            self.assets.extend(self.current.take());
        }
        let known = &mut self.assets;
        let current =
            self.current.get_or_insert_with(|| (asset.clone(), known.remove(asset).unwrap_or_default()));
        &mut current.1
    }

    /// All of them; the first that does not fit, if there is one.
    pub(crate) fn finish(mut self) -> Result<Statuses, RestoreError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        self.assets.extend(self.current.take());
        let asset = |(key, Restored { index, statuses, counts, changed }): (AssetKey, Restored)| {
            let (index, rest) = (index.finish(), AssetPartitions::default());
            (key, Arc::new(AssetPartitions { index, statuses, counts, changed, ..rest }))
        };
        let assets = self.assets.into_iter().map(asset).collect();
        let mut statuses = Statuses { assets, code_versions: self.code_versions };
        for LaterChange { asset, partition, row, is_new } in self.later {
            let known = statuses.get(&asset, partition.as_ref());
            let known = known.filter(|_| !is_new).map(|known| known.last_attempt().event_id);
            match row {
                Some(row) if known.is_none_or(|known| row.row_version >= known) => {
                    let status = restore(&row, &mut statuses.code_versions)?;
                    let event = status.changed_at();
                    statuses.set(&asset, partition.as_ref(), status, event);
                }
                None if is_new => drop(statuses.remove(&asset, partition.as_ref())),
                Some(_) | None => {}
            }
        }
        Ok(statuses)
    }
}

/// The partitions of one asset while they are restored.
#[derive(Debug, Default)]
struct Restored {
    index: KeysBuilder,
    statuses: Slots,
    counts: PartitionCounts,
    changed: Changed,
}

impl AssetPartitions {
    fn push(&mut self, partition: &str, status: PartitionStatus) {
        *self.counts.of(status.status()) += 1;
        self.index.insert(partition, position(self.statuses.len()));
        self.statuses.push(status);
    }

    /// Gives the slots of wiped partitions back, once they are the most.
    fn compact(&mut self) {
        let newest = self.changed.newest;
        self.changed = Changed::default();
        let mut statuses = Slots::default();
        for (_, at) in self.index.iter() {
            self.changed.note(statuses.len(), newest);
            statuses.restore(self.statuses.get(at as usize));
        }
        let mut index = KeysBuilder::default();
        self.index.iter().zip(0..).for_each(|((key, _), at)| index.push(&key, at));
        self.index = index.finish();
        self.statuses = statuses;
    }

    /// A change of a partition was recorded, which cannot be undone.
    fn recorded(&mut self, partition: Option<&PartitionKey>) -> Recorded {
        let is_past_undoing = !self.prior.is_empty() && self.prior.remove(text(partition)).is_some();
        Recorded { is_news: true, is_past_undoing }
    }

    fn replace(&mut self, at: usize, before: DataStatus, status: PartitionStatus) {
        *self.counts.of(before) -= 1;
        *self.counts.of(status.status()) += 1;
        self.statuses.set(at, status);
    }
}

fn position(len: usize) -> u32 {
    u32::try_from(len).expect("an asset has fewer than four billion partitions")
}

/// The text by which a partition is found. That of a partition key is never empty.
fn text(partition: Option<&PartitionKey>) -> &str {
    partition.map_or("", PartitionKey::canonical)
}

fn partition_key(text: &str) -> Option<PartitionKey> {
    canonical(text).map(|text| PartitionKey::parse(text).expect("the text of a partition key parses"))
}

/// None for the text of an asset without partitions.
fn canonical<T: AsRef<str>>(text: T) -> Option<T> {
    (!text.as_ref().is_empty()).then_some(text)
}
