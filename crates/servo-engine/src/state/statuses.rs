//! The status of every partition of every asset, by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{AssetKey, EventId, PartitionKey};

use super::RestoreError;
use super::code_versions::CodeVersions;
use super::partition_status::{
    LastAttempt, Materialization, Materialized, PartitionCounts, PartitionStatus, restore, row,
};
use super::prior_status::{PriorStatus, restore_prior, undo_row};
use super::shared::{SharedMap, SharedVec};
use crate::rows::{PartitionStatusRow, PartitionUndoRow};

/// The partitions of one asset.
#[derive(Debug, Clone, Default)]
struct AssetPartitions {
    /// Where in `statuses` each is, by the canonical text of its key; empty for an asset without partitions.
    index: SharedMap<Box<str>, u32>,
    statuses: SharedVec<PartitionStatus>,
    counts: PartitionCounts,
    changed: Changed,
    /// Statuses that can be given back, by the same text.
    prior: SharedMap<Box<str>, PriorStatus>,
    /// Counts how often a partition has lost its slot.
    layout: u64,
}

/// Slots whose newest changes are noted together.
const NOTED: usize = 64;

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

    pub(crate) fn get(&self, slot: u32) -> &'a PartitionStatus {
        &self.asset.statuses[slot as usize]
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
    ) -> impl Iterator<Item = (Option<&'a str>, u32, &'a PartitionStatus)> {
        let asset = self.asset;
        let is_older = asset.changed.newest <= event;
        let index = (!is_older).then(|| asset.index.iter()).into_iter().flatten();
        index
            .filter(move |(_, slot)| asset.changed.by_slot[**slot as usize / NOTED] > event)
            .map(|(key, slot)| (canonical(key), *slot, &asset.statuses[*slot as usize]))
    }

    pub(crate) fn code_version(&self, latest: &Materialized) -> Option<&'a Arc<str>> {
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
    pub(crate) fn get(&self, asset: &AssetKey, partition: Option<&PartitionKey>) -> Option<&PartitionStatus> {
        let asset = self.assets.get(asset)?;
        asset.index.get(text(partition)).map(|at| &asset.statuses[*at as usize])
    }

    pub(crate) fn of_asset(
        &self,
        asset: &AssetKey,
    ) -> impl DoubleEndedIterator<Item = (Option<&str>, &PartitionStatus)> {
        self.assets.get(asset).into_iter().flat_map(|asset| {
            asset.index.iter().map(|(key, at)| (canonical(key), &asset.statuses[*at as usize]))
        })
    }

    pub(crate) fn slots(&self, asset: &AssetKey) -> Option<PartitionSlots<'_>> {
        let asset = self.assets.get(asset)?;
        Some(PartitionSlots { asset, code_versions: &self.code_versions })
    }

    /// The version of the code that made a materialization.
    pub(crate) fn code_version(&self, latest: &Materialized) -> Option<&Arc<str>> {
        self.code_versions.get(latest.code_version())
    }

    pub(crate) fn counts(&self, asset: &AssetKey) -> PartitionCounts {
        self.assets.get(asset).map_or_else(PartitionCounts::default, |asset| asset.counts)
    }

    pub(crate) fn assets(&self) -> impl DoubleEndedIterator<Item = (&AssetKey, PartitionCounts)> {
        let known = self.assets.iter().filter(|(_, asset)| !asset.index.is_empty());
        known.map(|(key, asset)| (key, asset.counts))
    }

    /// Notes the end of an attempt; false if that was known or is older than what is.
    pub(crate) fn record(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        latest: Option<&Materialization>,
        last: LastAttempt,
    ) -> bool {
        let latest = latest.map(|latest| Materialized::new(latest, &mut self.code_versions));
        let asset = self.asset_mut(asset);
        let Some(at) = asset.index.get(text(partition)).map(|at| *at as usize) else {
            asset.changed.note(asset.statuses.len(), last.event_id);
            asset.push(text(partition), PartitionStatus::of(latest, last));
            return true;
        };
        let merged = asset.statuses[at].merge(latest, last);
        if merged == asset.statuses[at] {
            return false;
        }
        asset.replace(at, merged);
        asset.changed.note(at, last.event_id);
        true
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
        let asset = self.asset_mut(asset);
        let event = status.last_attempt().event_id;
        match asset.index.get(text(partition)).map(|at| *at as usize) {
            Some(at) => {
                asset.replace(at, status);
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
        let status = asset.statuses[at as usize].clone();
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
        let statuses: Vec<_> = asset.index.keys().map(|key| partition_key(key)).collect();
        let priors: Vec<_> = asset.prior.keys().map(|key| partition_key(key)).collect();
        // What was known of its slots was known of another asset.
        asset.layout += 1;
        if let Some(event) = newer {
            asset.prior = SharedMap::default();
            for slot in 0..asset.statuses.len() {
                let renewed = asset.statuses[slot].renewed(event);
                asset.statuses[slot] = renewed;
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
        asset.flat_map(|asset| asset.prior.iter().map(|(key, prior)| (canonical(key), prior)))
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
        if !self.assets.contains_key(asset) {
            self.assets.insert(asset.clone(), Arc::default());
        }
        self.assets.get_mut(asset).map(Arc::make_mut).expect("it was inserted above")
    }

    pub(crate) fn rows(&self) -> Vec<PartitionStatusRow> {
        let mut rows = Vec::with_capacity(self.assets.values().map(|asset| asset.statuses.len()).sum());
        for (key, asset) in self.assets.iter() {
            rows.extend(asset.index.iter().map(|(partition, at)| {
                row(key, partition_key(partition), &asset.statuses[*at as usize], &self.code_versions)
            }));
        }
        rows
    }

    pub(crate) fn row(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<PartitionStatusRow> {
        self.get(asset, partition).map(|status| row(asset, partition.cloned(), status, &self.code_versions))
    }

    pub(crate) fn restore(rows: Vec<PartitionStatusRow>) -> Result<Self, RestoreError> {
        let mut code_versions = CodeVersions::default();
        let mut assets = BTreeMap::<AssetKey, Restored>::new();
        // Rows come by asset, so that one is looked up only when it changes.
        let mut rest = rows.into_iter().peekable();
        while let Some(first) = rest.peek() {
            let key = first.asset_key.clone();
            let Restored { index, statuses, counts, changed } = assets.entry(key.clone()).or_default();
            while let Some(row) = rest.next_if(|row| row.asset_key == key) {
                let status = restore(&row, &mut code_versions)?;
                *counts.of(status.status()) += 1;
                let since = status.latest().map_or(EventId::NIL, Materialized::content_since);
                changed.note(statuses.len(), row.row_version.max(since));
                index.push((Box::from(text(row.partition_key.as_ref())), position(statuses.len())));
                statuses.push(status);
            }
        }
        let asset = |(key, Restored { index, statuses, counts, changed }): (AssetKey, Restored)| {
            let (index, statuses) = (index.into_iter().collect(), statuses.into_iter().collect());
            let rest = AssetPartitions::default();
            (key, Arc::new(AssetPartitions { index, statuses, counts, changed, ..rest }))
        };
        Ok(Self { assets: assets.into_iter().map(asset).collect(), code_versions })
    }
}

/// The partitions of one asset while they are restored.
#[derive(Default)]
struct Restored {
    index: Vec<(Box<str>, u32)>,
    statuses: Vec<PartitionStatus>,
    counts: PartitionCounts,
    changed: Changed,
}

impl AssetPartitions {
    fn push(&mut self, partition: &str, status: PartitionStatus) {
        *self.counts.of(status.status()) += 1;
        self.index.insert(partition.into(), position(self.statuses.len()));
        self.statuses.push(status);
    }

    /// Gives the slots of wiped partitions back, once they are the most.
    fn compact(&mut self) {
        let newest = self.changed.newest;
        let kept: Vec<(Box<str>, PartitionStatus)> =
            self.index.iter().map(|(key, at)| (key.clone(), self.statuses[*at as usize].clone())).collect();
        self.changed = Changed::default();
        for slot in 0..kept.len() {
            self.changed.note(slot, newest);
        }
        self.index = kept.iter().zip(0..).map(|((key, _), at)| (key.clone(), at)).collect();
        self.statuses = kept.into_iter().map(|(_, status)| status).collect();
    }

    fn replace(&mut self, at: usize, status: PartitionStatus) {
        *self.counts.of(self.statuses[at].status()) -= 1;
        *self.counts.of(status.status()) += 1;
        self.statuses[at] = status;
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

fn canonical(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
