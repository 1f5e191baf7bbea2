//! What the tables say about partitions: keys of dynamic ones, and what is materialized.

use std::collections::BTreeMap;

use servo_core::partitions::Moment;
use servo_core::{AssetKey, MaterializationId, PartitionKey, Timestamp};
use servo_engine::planner::Materializations;
use servo_engine::rows::PartitionStatusRow;
use servo_projections::Projection;

use crate::location::Location;

/// What is known of partitions. Nothing, in a workspace that was never written to.
#[derive(Default)]
pub(crate) struct Known {
    dynamic: BTreeMap<String, Vec<String>>,
    status: BTreeMap<AssetKey, BTreeMap<Option<PartitionKey>, PartitionStatusRow>>,
}

impl Known {
    /// Reads the tables, beside whoever writes them.
    pub(crate) async fn read(location: &Location) -> anyhow::Result<Self> {
        if !location.exists() {
            return Ok(Self::default());
        }
        let stores = location.look()?;
        let Some(projection) = Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await?
        else {
            return Ok(Self::default());
        };
        let mut known = Self::default();
        for row in projection.dynamic_partitions().await? {
            known.dynamic.entry(row.name).or_default().push(row.partition);
        }
        known.dynamic.values_mut().for_each(|keys| keys.sort_unstable());
        for row in projection.partition_status().await? {
            let asset = known.status.entry(row.asset_key.clone()).or_default();
            asset.insert(row.partition_key.clone(), row);
        }
        Ok(known)
    }

    /// The moment, with the keys of dynamic partitions.
    pub(crate) fn at(&self, now: Timestamp) -> Moment<'_> {
        Moment::new(now, &self.dynamic)
    }

    /// What is known of a partition, or of an asset without partitions.
    pub(crate) fn status(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<&PartitionStatusRow> {
        self.status.get(asset)?.get(&partition.cloned())
    }

    /// How many partitions of an asset have a good materialization.
    pub(crate) fn materialized(&self, asset: &AssetKey) -> usize {
        self.of(asset).count()
    }
}

impl Materializations for Known {
    fn of<'s>(
        &'s self,
        asset: &AssetKey,
    ) -> Box<dyn Iterator<Item = (Option<PartitionKey>, MaterializationId)> + 's> {
        let rows = self.status.get(asset).into_iter().flatten();
        Box::new(rows.filter_map(|(key, row)| Some((key.clone(), row.last_materialization_id?))))
    }
}
