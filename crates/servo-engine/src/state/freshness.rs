//! The freshness of assets that have a policy, and when to look at each again.

use servo_core::{AssetKey, EventId, Timestamp};

use super::State;
use super::shared::SharedMap;
use crate::definitions::FreshnessDef;
use crate::lifecycle::FreshnessStatus;
use crate::rows::{FreshnessStatusRow, Json};

/// The freshness of an asset as it was last decided. [`crate::freshness::evaluate`] says what it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetFreshness {
    /// Its status.
    pub status: FreshnessStatus,
    /// Since when.
    pub since: Timestamp,
    /// When the oldest of what its newest data was made from was made, as of the last look.
    pub data_as_of: Option<Timestamp>,
    /// When there is something to look at.
    pub due_at: Option<Timestamp>,
    /// The policy.
    pub policy: FreshnessDef,
    /// The deployment that the policy is of.
    pub deployment: u64,
    pub(crate) version: EventId,
}

/// The freshness of every deployed asset that has a policy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Freshnesses(SharedMap<AssetKey, AssetFreshness>);

impl Freshnesses {
    pub(crate) fn get(&self, asset: &AssetKey) -> Option<&AssetFreshness> {
        self.0.get(asset)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&AssetKey, &AssetFreshness)> {
        self.0.iter()
    }

    /// Sets the freshness of an asset, or removes it.
    pub(super) fn put(&mut self, asset: &AssetKey, freshness: Option<AssetFreshness>) {
        match freshness {
            Some(freshness) => {
                self.0.insert(asset.clone(), freshness);
            }
            None => {
                self.0.remove(asset);
            }
        }
    }

    pub(super) fn rows(&self) -> Vec<FreshnessStatusRow> {
        self.0.iter().map(|(asset, freshness)| row(asset, freshness)).collect()
    }

    pub(super) fn row(&self, asset: &AssetKey) -> Option<FreshnessStatusRow> {
        self.0.get(asset).map(|freshness| row(asset, freshness))
    }

    pub(super) fn restore(rows: Vec<FreshnessStatusRow>) -> Self {
        let entry = |row: FreshnessStatusRow| {
            let freshness = AssetFreshness {
                status: row.status,
                since: row.since,
                data_as_of: row.data_as_of,
                due_at: row.due_at,
                policy: row.policy.0,
                deployment: row.deployment_number,
                version: row.row_version,
            };
            (row.asset_key, freshness)
        };
        Self(rows.into_iter().map(entry).collect())
    }
}

fn row(asset: &AssetKey, freshness: &AssetFreshness) -> FreshnessStatusRow {
    FreshnessStatusRow {
        asset_key: asset.clone(),
        status: freshness.status,
        since: freshness.since,
        data_as_of: freshness.data_as_of,
        due_at: freshness.due_at,
        policy: Json(freshness.policy.clone()),
        deployment_number: freshness.deployment,
        row_version: freshness.version,
    }
}

impl State {
    /// The freshness of an asset as it was last decided; none if it has no policy.
    pub fn asset_freshness(&self, asset: &AssetKey) -> Option<&AssetFreshness> {
        self.freshness.get(asset)
    }

    /// The freshness of all deployed assets that have a policy, by key.
    pub fn asset_freshnesses(&self) -> impl DoubleEndedIterator<Item = (&AssetKey, &AssetFreshness)> {
        self.freshness.iter()
    }

    /// Sets the freshness of an asset through its index, or removes it.
    pub(crate) fn change_freshness(&mut self, asset: &AssetKey, freshness: Option<AssetFreshness>) {
        let before = self.freshness.get(asset).and_then(|known| known.due_at);
        if let Some(due) = before {
            self.index.freshness.remove(&(due, asset.clone()));
        }
        if let Some(due) = freshness.as_ref().and_then(|freshness| freshness.due_at) {
            self.index.freshness.insert((due, asset.clone()));
        }
        self.freshness.put(asset, freshness);
        self.changes.freshness.insert(asset.clone());
    }
}
