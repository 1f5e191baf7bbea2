//! Reads what retention needs of all materializations: a few columns of every row.

use std::collections::BTreeSet;

use servo_core::{AssetKey, EventId, MaterializationId};
use servo_engine::DataFormat;
use servo_engine::retention::{MadeData, Read};
use servo_engine::rows::{MaterializationInputRow, MaterializationRow, RemovalRow, Row};

use crate::error::Error;
use crate::projection::Projection;
use crate::request_keys::read;

impl Projection {
    /// Every materialization whose data was not removed.
    pub async fn kept_data(&self) -> Result<Vec<MadeData>, Error> {
        let files = self.manifest.immutable(RemovalRow::TABLE);
        let columns = &["materialization_id", "asset_key"];
        let removed = read(&self.files, files, columns, |batch, entries| {
            let (ids, assets) = (batch.column("materialization_id")?, batch.column("asset_key")?);
            for row in 0..batch.len() {
                entries.push((ids.get(row)?, assets.get(row)?));
            }
            Ok(())
        });
        let removed: BTreeSet<(MaterializationId, AssetKey)> = removed.await?.into_iter().collect();
        let files = self.manifest.immutable(MaterializationRow::TABLE);
        let columns = &[
            "materialization_id",
            "asset_key",
            "partition_key",
            "materialized_at",
            "format",
            "byte_size",
            "row_version",
        ];
        let made = read(&self.files, files, columns, |batch, entries| {
            let (ids, assets) = (batch.column("materialization_id")?, batch.column("asset_key")?);
            let (partitions, times) = (batch.column("partition_key")?, batch.column("materialized_at")?);
            let formats = batch.column::<Option<DataFormat>>("format")?;
            let (sizes, events) = (batch.column("byte_size")?, batch.column("row_version")?);
            for row in 0..batch.len() {
                let format = formats.get(row)?;
                entries.push(MadeData {
                    asset: assets.get(row)?,
                    partition: partitions.get(row)?,
                    id: ids.get(row)?,
                    at: times.get(row)?,
                    event: events.get(row)?,
                    byte_size: sizes.get(row)?,
                    is_stored: !matches!(format, Some(DataFormat::None | DataFormat::External)),
                });
            }
            Ok(())
        });
        let mut made = made.await?;
        made.retain(|data| !removed.contains(&(data.id, data.asset.clone())));
        Ok(made)
    }

    /// The inputs of these materializations.
    pub async fn read_for(&self, made: &BTreeSet<MaterializationId>) -> Result<Read, Error> {
        let files = self.manifest.immutable(MaterializationInputRow::TABLE);
        let columns =
            &["materialization_id", "upstream_asset_key", "upstream_materialization_id", "inputs_as_of"];
        let rows = read(&self.files, files, columns, |batch, entries| {
            let (ids, assets) = (batch.column("materialization_id")?, batch.column("upstream_asset_key")?);
            let read = batch.column::<Option<MaterializationId>>("upstream_materialization_id")?;
            let as_of = batch.column::<Option<EventId>>("inputs_as_of")?;
            for row in 0..batch.len() {
                if made.contains(&ids.get(row)?) {
                    entries.push((assets.get(row)?, read.get(row)?, as_of.get(row)?));
                }
            }
            Ok(())
        });
        let mut found = Read::default();
        for (asset, read, as_of) in rows.await? {
            match (read, as_of) {
                (Some(id), _) => found.name(asset, id),
                (None, Some(as_of)) => found.count(asset, as_of),
                (None, None) => {}
            }
        }
        Ok(found)
    }
}
