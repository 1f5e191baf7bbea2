//! Pauses that are in force: of everything, of queues, of assets.

use std::collections::BTreeMap;

use servo_core::{AssetKey, EventId, Timestamp};

use crate::event::{PauseChanged, PauseScope};
use crate::principal::Principal;
use crate::rows::PauseRow;

/// Scopes that are paused, or were once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pauses {
    rows: BTreeMap<String, PauseRow>,
    /// Whether any asset is paused now.
    has_assets: bool,
}

impl Pauses {
    pub(crate) fn restore(rows: Vec<PauseRow>) -> Self {
        let rows = rows.into_iter().map(|row| (row.scope.clone(), row)).collect();
        let mut pauses = Self { rows, has_assets: false };
        pauses.look_for_assets();
        pauses
    }

    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &PauseRow> {
        self.rows.values()
    }

    pub(crate) fn row(&self, scope: &str) -> Option<&PauseRow> {
        self.rows.get(scope)
    }

    /// The pause of a scope, if it is paused now.
    pub(crate) fn paused(&self, scope: &PauseScope) -> Option<&PauseRow> {
        if self.rows.is_empty() {
            return None;
        }
        self.rows.get(&scope.to_string()).filter(|row| row.paused)
    }

    pub(crate) fn has_assets(&self) -> bool {
        self.has_assets
    }

    pub(crate) fn asset(&self, asset: &AssetKey) -> Option<&PauseRow> {
        self.paused(&PauseScope::Asset(asset.clone()))
    }

    /// Number of the last change of a scope; 0 before the first.
    pub(crate) fn number(&self, scope: &PauseScope) -> u64 {
        self.rows.get(&scope.to_string()).map_or(0, |row| row.change_number)
    }

    pub(crate) fn change(&mut self, by: &Principal, at: Timestamp, id: EventId, change: &PauseChanged) {
        let scope = change.scope.to_string();
        let row = PauseRow {
            scope: scope.clone(),
            paused: change.paused,
            reason: change.reason.clone(),
            changed_by: by.clone(),
            changed_at: at,
            change_number: change.number,
            row_version: id,
        };
        self.rows.insert(scope, row);
        self.look_for_assets();
    }

    fn look_for_assets(&mut self) {
        self.has_assets =
            self.rows.values().any(|row| row.paused && row.scope.starts_with(PauseScope::ASSET));
    }
}
