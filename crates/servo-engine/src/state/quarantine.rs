//! Outputs that a check has blocked. Of each partition the newest waits for review: it takes the place of the one before, so
//! that there is never more to look at, and to remember, than there are partitions (ADR-062). What was approved stays
//! until its data is released, beside what may wait again (ADR-075).

use std::sync::Arc;

use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, Timestamp};

use super::shared::SharedMap;
use crate::rows::QuarantineRow;

#[derive(Debug, Clone, Default)]
pub(crate) struct Quarantine {
    rows: SharedMap<(AssetKey, MaterializationId), Arc<QuarantineRow>>,
    /// Which one waits for each partition.
    newest: SharedMap<(AssetKey, Option<PartitionKey>), MaterializationId>,
}

impl Quarantine {
    /// All rows, whether they wait or are approved.
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &QuarantineRow> {
        self.rows.values().map(|row| &**row)
    }

    /// Approved outputs that are not released yet.
    pub(crate) fn approved(&self) -> impl DoubleEndedIterator<Item = &QuarantineRow> {
        self.rows().filter(|row| row.approved_event_id.is_some())
    }

    /// A row, whether it waits or is approved.
    pub(crate) fn get(&self, asset: &AssetKey, id: MaterializationId) -> Option<&QuarantineRow> {
        self.rows.get(&(asset.clone(), id)).map(|row| &**row)
    }

    /// A row that waits for review.
    pub(crate) fn waiting(&self, asset: &AssetKey, id: MaterializationId) -> Option<&QuarantineRow> {
        self.get(asset, id).filter(|row| row.approved_event_id.is_none())
    }

    /// Adds a row. Returns the one that is replaced, if the partition has two: the one with the smaller event,
    /// whichever came first (INV-1).
    pub(crate) fn insert(&mut self, row: QuarantineRow) -> Option<QuarantineRow> {
        let place = (row.asset_key.clone(), row.partition_key.clone());
        let known = self.newest.get(&place).map(|id| (row.asset_key.clone(), *id));
        if known
            .as_ref()
            .and_then(|key| self.rows.get(key))
            .is_some_and(|known| known.row_version > row.row_version)
        {
            return Some(row);
        }
        let replaced = known.and_then(|key| self.rows.remove(&key)).map(Arc::unwrap_or_clone);
        self.newest.insert(place, row.materialization_id);
        self.rows.insert((row.asset_key.clone(), row.materialization_id), Arc::new(row));
        replaced
    }

    /// Ends the wait of one: it stays until it is released. False if it does not wait.
    pub(crate) fn approve(
        &mut self,
        asset: &AssetKey,
        id: MaterializationId,
        by: EventId,
        at: Timestamp,
    ) -> bool {
        let Some(row) = self.rows.get_mut(&(asset.clone(), id)).map(Arc::make_mut) else { return false };
        if row.approved_event_id.is_some() {
            return false;
        }
        row.approved_event_id = Some(by);
        row.approved_at = Some(at);
        row.row_version = row.row_version.max(by);
        self.newest.remove(&(asset.clone(), row.partition_key.clone()));
        true
    }

    /// Removes one, whether it waits or is approved.
    pub(crate) fn take(&mut self, asset: &AssetKey, id: MaterializationId) -> Option<QuarantineRow> {
        let row = Arc::unwrap_or_clone(self.rows.remove(&(asset.clone(), id))?);
        if row.approved_event_id.is_none() {
            self.newest.remove(&(row.asset_key.clone(), row.partition_key.clone()));
        }
        Some(row)
    }

    pub(crate) fn restore(rows: Vec<QuarantineRow>) -> Self {
        let mut quarantine = Self::default();
        for row in rows {
            if row.approved_event_id.is_some() {
                quarantine.rows.insert((row.asset_key.clone(), row.materialization_id), Arc::new(row));
            } else {
                quarantine.insert(row);
            }
        }
        quarantine
    }
}
