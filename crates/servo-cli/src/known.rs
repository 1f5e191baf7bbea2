//! The state that the tables hold, read beside whoever writes them.

use servo_core::partitions::Moment;
use servo_core::{AssetKey, PartitionKey, Timestamp};
use servo_engine::rows::PartitionStatusRow;
use servo_engine::{Settings, State};
use servo_projections::Projection;

use crate::location::Location;

/// The state of a workspace as its tables have it: keys of dynamic partitions, and what is materialized. Empty for a
/// workspace that was never written to.
pub(crate) struct Known(State);

impl Known {
    /// Reads the tables, beside whoever writes them.
    pub(crate) async fn read(location: &Location) -> anyhow::Result<Self> {
        let (tenant, workspace) = (location.tenant.clone(), location.workspace.clone());
        if location.exists() {
            let stores = location.look()?;
            let opened = Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await?;
            if let Some(projection) = opened {
                let rows = projection.hot_rows().await?;
                return Ok(Self(State::from_rows(tenant, workspace, Settings::default(), rows)?));
            }
        }
        Ok(Self(State::new(tenant, workspace, Settings::default())))
    }

    /// The state itself.
    pub(crate) fn state(&self) -> &State {
        &self.0
    }

    /// The moment, with the keys of dynamic partitions.
    pub(crate) fn at(&self, now: Timestamp) -> Moment<'_> {
        Moment::new(now, self.0.dynamic_partitions())
    }

    /// What is known of a partition, or of an asset without partitions.
    pub(crate) fn status(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Option<PartitionStatusRow> {
        self.0.partition_status_row(asset, partition)
    }

    /// How many partitions of an asset have a good materialization.
    pub(crate) fn materialized(&self, asset: &AssetKey) -> usize {
        self.0.partition_statuses(asset).filter(|(_, status)| status.latest().is_some()).count()
    }
}
