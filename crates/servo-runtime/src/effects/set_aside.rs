//! Effects on files that fail again and again: a file that may not be written, a directory that may not be changed.
//!
//! One such path must not hold up all tables, which wait for the effects of their batches. So it is set aside: noted in
//! a file of its own, durable before the tables go on, and tried again for as long as it takes, also by the next process.
//! Whoever looks after the workspace is told its name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use servo_core::{AssetKey, Clock, PartitionKey, Timestamp};
use servo_engine::{Promotion, State};
use servo_store::{BlobError, Blobs, DataError};

use super::promote;
use crate::data::Data;

/// The name of the file.
const FILE: &str = "effects/set-aside.json";
/// Where there are more, it is no single path that fails: tables wait for it.
const MAX_PATHS: usize = 1_000;

/// An asset's partition; none for an asset without partitions.
pub(super) type Partition = (AssetKey, Option<PartitionKey>);

/// A path that could not be written when data had to follow the log. It is tried again all the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckPath {
    /// Which file or directory.
    pub path: String,
    /// The last error.
    pub problem: String,
    /// When it failed first.
    pub since: Timestamp,
}

/// The paths that are stuck now, for those who show them. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct StuckPaths(Arc<Mutex<BTreeMap<String, StuckPath>>>);

impl StuckPaths {
    /// All of them, by path.
    pub(crate) fn list(&self) -> Vec<StuckPath> {
        self.lock().values().cloned().collect()
    }

    /// Notes a failure; true if it is the first of this path.
    pub(super) fn failed(&self, path: String, problem: &DataError, clock: &dyn Clock) -> bool {
        let problem = problem.to_string();
        let mut all = self.lock();
        if let Some(known) = all.get_mut(&path) {
            known.problem = problem;
            return false;
        }
        let since = clock.now();
        all.insert(path.clone(), StuckPath { path, problem, since });
        true
    }

    pub(super) fn healed(&self, path: &str) {
        if self.lock().remove(path).is_some() {
            tracing::info!(path, "what could not be written before was written");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, StuckPath>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Effects that were set aside.
pub(crate) struct SetAside {
    blobs: Arc<dyn Blobs>,
    promotions: BTreeMap<Partition, Promotion>,
    /// Directories to remove.
    removals: BTreeSet<String>,
    /// Whether the file says something else.
    is_changed: bool,
}

impl SetAside {
    /// The paths that a process before this one has set aside, with what counts by now.
    pub(crate) async fn load(blobs: Arc<dyn Blobs>, state: &State) -> Result<Self, BlobError> {
        let mut found =
            Self { blobs, promotions: BTreeMap::new(), removals: BTreeSet::new(), is_changed: false };
        let bytes = match found.blobs.get(FILE).await {
            Ok(bytes) => bytes,
            Err(BlobError::NotFound { .. }) => return Ok(found),
            Err(error) => return Err(error),
        };
        let noted: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let list = |name: &str| noted[name].as_array().cloned().unwrap_or_default();
        found.removals = list("removals").iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
        for entry in list("promotions") {
            let asset = entry["asset_key"].as_str().and_then(|key| AssetKey::parse(key).ok());
            let partition = entry["partition_key"].as_str().map(PartitionKey::parse).transpose();
            if let (Some(asset), Ok(partition)) = (asset, partition)
                && let Some(row) = state.partition_status_row(&asset, partition.as_ref())
                && let Some(promotion) = Promotion::of_row(&row)
            {
                found.promotions.insert((asset, partition), promotion);
            }
        }
        Ok(found)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.promotions.is_empty() && self.removals.is_empty()
    }

    /// Whether so many more can be set aside.
    pub(super) fn has_room_for(&self, more: usize) -> bool {
        self.promotions.len() + self.removals.len() + more <= MAX_PATHS
    }

    pub(super) fn add_promotion(&mut self, partition: Partition, promotion: Promotion) {
        self.is_changed = true;
        let newer = |known: &Promotion| known.event_id < promotion.event_id;
        if self.promotions.get(&partition).is_none_or(newer) {
            self.promotions.insert(partition, promotion);
        }
    }

    pub(super) fn add_removal(&mut self, dir: String) {
        self.is_changed |= self.removals.insert(dir);
    }

    /// Forgets a promotion that a newer one has made needless.
    pub(super) fn promoted(&mut self, partition: &Partition) {
        self.is_changed |= self.promotions.remove(partition).is_some();
    }

    /// Makes durable what is set aside, if it has changed.
    pub(super) async fn store(&mut self) -> Result<(), BlobError> {
        if !self.is_changed {
            return Ok(());
        }
        let promotions: Vec<serde_json::Value> = self
            .promotions
            .keys()
            .map(|(asset, partition)| {
                let partition = partition.as_ref().map(PartitionKey::canonical);
                serde_json::json!({ "asset_key": asset.canonical(), "partition_key": partition })
            })
            .collect();
        let noted = serde_json::json!({ "promotions": promotions, "removals": self.removals });
        self.blobs.put(FILE, noted.to_string().into()).await?;
        self.is_changed = false;
        Ok(())
    }

    /// Tries everything again, each on its own.
    pub(super) async fn retry(&mut self, data: &Data, stuck: &StuckPaths, clock: &dyn Clock) {
        for (partition, promotion) in std::mem::take(&mut self.promotions) {
            let path = data.root.uri(&data.layout.latest(&partition.0, partition.1.as_ref()));
            match promote::promote(data, &[&promotion]).await {
                Ok(()) => {
                    self.is_changed = true;
                    stuck.healed(&path);
                }
                Err(error) => {
                    stuck.failed(path, &error, clock);
                    self.promotions.insert(partition, promotion);
                }
            }
        }
        for dir in std::mem::take(&mut self.removals) {
            let path = data.root.uri(&dir);
            match data.root.remove(&dir).await {
                Ok(()) => {
                    self.is_changed = true;
                    stuck.healed(&path);
                }
                Err(error) => {
                    stuck.failed(path, &error, clock);
                    self.removals.insert(dir);
                }
            }
        }
    }
}
