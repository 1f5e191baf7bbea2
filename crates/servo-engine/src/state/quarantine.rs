//! What a check has blocked and somebody should look at. Of each partition the newest waits: it takes the place of the one
//! before, so that there is never more to look at, and to remember, than there are partitions (ADR-062).

use std::collections::BTreeMap;

use servo_core::{AssetKey, MaterializationId, PartitionKey};

use crate::rows::QuarantineRow;

#[derive(Debug, Clone, Default)]
pub(crate) struct Quarantine {
    waiting: BTreeMap<(AssetKey, MaterializationId), QuarantineRow>,
    /// Which one waits for each partition.
    newest: BTreeMap<(AssetKey, Option<PartitionKey>), MaterializationId>,
}

impl Quarantine {
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &QuarantineRow> {
        self.waiting.values()
    }

    pub(crate) fn get(&self, asset: &AssetKey, id: MaterializationId) -> Option<&QuarantineRow> {
        self.waiting.get(&(asset.clone(), id))
    }

    /// Lets one wait. Gives the one that does not, if the partition has two: the one with the smaller event, whichever
    /// came first (INV-1).
    pub(crate) fn insert(&mut self, row: QuarantineRow) -> Option<QuarantineRow> {
        let place = (row.asset_key.clone(), row.partition_key.clone());
        let known = self.newest.get(&place).map(|id| (row.asset_key.clone(), *id));
        if known
            .as_ref()
            .and_then(|key| self.waiting.get(key))
            .is_some_and(|known| known.row_version > row.row_version)
        {
            return Some(row);
        }
        let replaced = known.and_then(|key| self.waiting.remove(&key));
        self.newest.insert(place, row.materialization_id);
        self.waiting.insert((row.asset_key.clone(), row.materialization_id), row);
        replaced
    }

    /// Ends the wait of one.
    pub(crate) fn take(&mut self, asset: &AssetKey, id: MaterializationId) -> Option<QuarantineRow> {
        let row = self.waiting.remove(&(asset.clone(), id))?;
        self.newest.remove(&(row.asset_key.clone(), row.partition_key.clone()));
        Some(row)
    }

    pub(crate) fn restore(rows: Vec<QuarantineRow>) -> Self {
        let mut quarantine = Self::default();
        for row in rows {
            quarantine.insert(row);
        }
        quarantine
    }
}
