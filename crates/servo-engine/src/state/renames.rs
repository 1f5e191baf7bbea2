//! Assets that were given another name: which name something of the past has today, and whose data is on its way.

use std::collections::BTreeSet;

use servo_core::{AssetKey, EventId, Timestamp};

use super::shared::SharedMap;
use crate::rows::AssetRenameRow;

/// Every rename there ever was, by the name before and the event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Renames(SharedMap<(AssetKey, EventId), AssetRenameRow>);

impl Renames {
    /// The name that an asset has today which was called so when an event was written.
    pub(crate) fn current(&self, name: &AssetKey, event: EventId) -> AssetKey {
        let (mut name, mut event) = (name.clone(), event);
        // Each step is a later rename, so it ends.
        while let Some(next) = self.next(&name, event) {
            (name, event) = (next.renamed_to.clone(), next.renamed_event_id);
        }
        name
    }

    /// The first rename of a name after an event.
    fn next(&self, name: &AssetKey, event: EventId) -> Option<&AssetRenameRow> {
        self.0.values().find(|row| row.asset_key == *name && row.renamed_event_id > event)
    }

    /// The names that an asset has had, without the one it has.
    pub(crate) fn former(&self, asset: &AssetKey) -> BTreeSet<AssetKey> {
        let before = |row: &AssetRenameRow| EventId::from_u128(row.renamed_event_id.to_u128() - 1);
        let is_it = |row: &&AssetRenameRow| self.current(&row.asset_key, before(row)) == *asset;
        self.0.values().filter(is_it).map(|row| row.asset_key.clone()).filter(|name| name != asset).collect()
    }

    /// Whether something was ever called so and is not any more.
    pub(crate) fn has(&self, name: &AssetKey) -> bool {
        self.0.values().any(|row| row.asset_key == *name)
    }

    /// Those whose data is on its way.
    pub(crate) fn moving(&self) -> impl Iterator<Item = &AssetRenameRow> {
        self.0.values().filter(|row| row.moved_at.is_none())
    }

    /// Whether data that is stored under this name is on its way.
    pub(crate) fn is_moving(&self, name: &AssetKey) -> bool {
        self.moving().any(|row| row.asset_key == *name || row.renamed_to == *name)
    }

    pub(crate) fn get(&self, name: &AssetKey, event: EventId) -> Option<&AssetRenameRow> {
        self.0.get(&(name.clone(), event))
    }

    pub(crate) fn insert(&mut self, row: AssetRenameRow) {
        self.0.insert((row.asset_key.clone(), row.renamed_event_id), row);
    }

    /// Notes that the data of one is where it belongs; false if that was known.
    pub(crate) fn moved(&mut self, name: &AssetKey, event: EventId, at: Timestamp, by: EventId) -> bool {
        let Some(row) = self.0.get_mut(&(name.clone(), event)).filter(|row| row.moved_at.is_none()) else {
            return false;
        };
        (row.moved_at, row.row_version) = (Some(at), by);
        true
    }

    pub(crate) fn rows(&self) -> Vec<AssetRenameRow> {
        self.0.values().cloned().collect()
    }

    pub(crate) fn restore(rows: Vec<AssetRenameRow>) -> Self {
        Self(rows.into_iter().map(|row| ((row.asset_key.clone(), row.renamed_event_id), row)).collect())
    }
}
