//! Lineage by execution, level by level: memory for what is not written yet, tables for the rest.

use std::collections::BTreeSet;

use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey};
use servo_engine::rows::MaterializationInputRow;
use servo_projections::{LineageSide, Wanted};

use crate::error::Error;
use crate::workspace::Workspace;

/// The most rows of a lineage.
const MAX_ROWS: usize = 10_000;

/// Where lineage is followed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To what was read.
    Up,
    /// To what was made of it.
    Down,
}

/// The lineage of one materialization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// Rows with their distance from it, from 1: the nearest first.
    pub rows: Vec<(u32, MaterializationInputRow)>,
    /// Whether there is more: the depth or the most rows were reached.
    pub has_more: bool,
}

impl Workspace {
    /// The newest materialization of a partition, or of an asset: its partition and its id.
    pub async fn newest(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
    ) -> Result<Option<(Option<PartitionKey>, MaterializationId)>, Error> {
        self.read(|state| {
            let latest = state.latest(asset, partition).map(|latest| (partition.cloned(), latest.id()));
            let last = || {
                let success = state.asset_state(asset)?.last_success()?;
                Some((success.partition.clone(), success.materialization_id?))
            };
            latest.or_else(|| if partition.is_none() { last() } else { None })
        })
        .await
    }

    /// Follows what was read to make a materialization, or what was made of it, up to `depth` steps.
    pub async fn lineage(
        &self,
        asset: &AssetKey,
        id: MaterializationId,
        direction: Direction,
        depth: u32,
    ) -> Result<Lineage, Error> {
        let side = match direction {
            Direction::Up => LineageSide::Made,
            Direction::Down => LineageSide::Read,
        };
        let mut seen = BTreeSet::from([(id, asset.clone())]);
        let mut level: BTreeSet<(MaterializationId, AssetKey)> = seen.clone();
        let mut wanted = Wanted::default();
        wanted.insert(id, None);
        let mut rows = Vec::new();
        for distance in 1.. {
            if wanted.is_empty() {
                break;
            }
            if distance > depth || rows.len() >= MAX_ROWS {
                // A look at the next level tells whether there is one.
                let rest = self.rows_of(side, &wanted).await?;
                let is_next = |row: &MaterializationInputRow| level.contains(&from(direction, row));
                return Ok(Lineage { has_more: rest.iter().any(is_next), rows });
            }
            let mut found = self.rows_of(side, &wanted).await?;
            found.retain(|row| level.contains(&from(direction, row)));
            found.sort_by_cached_key(|row| {
                let (asset, partition) = (&row.upstream_asset_key, &row.upstream_partition_key);
                (
                    row.materialization_id,
                    row.asset_key.clone(),
                    asset.clone(),
                    partition.clone(),
                    row.row_version,
                )
            });
            found.dedup();
            wanted = Wanted::default();
            level = BTreeSet::new();
            for row in found {
                let next = to(direction, &row);
                if let Some((id, asset)) = next
                    && seen.insert((id, asset.clone()))
                {
                    wanted.insert(id, until(direction, &row));
                    level.insert((id, asset));
                }
                rows.push((distance, row));
            }
        }
        let has_more = rows.len() > MAX_ROWS;
        rows.truncate(MAX_ROWS);
        Ok(Lineage { rows, has_more })
    }

    /// Rows with one of these materializations on a side, written or not.
    async fn rows_of(
        &self,
        side: LineageSide,
        wanted: &Wanted,
    ) -> Result<Vec<MaterializationInputRow>, Error> {
        let is_wanted = |row: &&MaterializationInputRow| wanted.has(side, row);
        let unwritten = |state: &servo_engine::State| {
            state.unwritten_inputs().filter(is_wanted).cloned().collect::<Vec<_>>()
        };
        let mut found = self.read(unwritten).await?;
        for flush in self.inner.flushes.in_flight() {
            found.extend(flush.inputs.iter().filter(is_wanted).cloned());
        }
        if let Some(projection) = self.projection() {
            found.extend(projection.lineage(side, wanted).await?);
        }
        // Names of today, whatever the assets were called then.
        let name = |state: &servo_engine::State| {
            for row in &mut found {
                let read = row.inputs_as_of.unwrap_or(row.row_version);
                row.asset_key = state.current_name(&row.asset_key, row.row_version);
                row.upstream_asset_key = state.current_name(&row.upstream_asset_key, read);
            }
            found
        };
        self.read(name).await
    }
}

/// The near side of a row.
fn from(direction: Direction, row: &MaterializationInputRow) -> (MaterializationId, AssetKey) {
    match direction {
        Direction::Up => (row.materialization_id, row.asset_key.clone()),
        // Of very many that were read together none is named.
        Direction::Down => {
            let id = row.upstream_materialization_id.unwrap_or(MaterializationId::NIL);
            (id, row.upstream_asset_key.clone())
        }
    }
}

/// The far side of a row.
fn to(direction: Direction, row: &MaterializationInputRow) -> Option<(MaterializationId, AssetKey)> {
    match direction {
        Direction::Up => Some((row.upstream_materialization_id?, row.upstream_asset_key.clone())),
        Direction::Down => Some((row.materialization_id, row.asset_key.clone())),
    }
}

/// The last event that rows about the far side can have: what was read had been made when it was decided to read it.
fn until(direction: Direction, row: &MaterializationInputRow) -> Option<EventId> {
    match direction {
        Direction::Up => row.inputs_as_of,
        Direction::Down => None,
    }
}
