//! Costs of attempts, summed: the row groups of the time that is asked about, and of them a few columns.

use std::collections::{BTreeMap, BTreeSet};

use servo_core::{AssetKey, EventId, MicroUsd, RunId, Timestamp};
use servo_engine::rows::{Row, TaskCostRow};

use crate::batch::Batch;
use crate::error::Error;
use crate::projection::Projection;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Which attempts to count. Every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostFilter {
    /// Of these assets, by their names of today.
    pub assets: Option<BTreeSet<AssetKey>>,
    /// Those that ended at this time or later.
    pub since: Option<Timestamp>,
    /// Those that ended before this time.
    pub until: Option<Timestamp>,
}

/// What attempts are counted together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostGrouping {
    /// The asset of their task.
    Asset,
    /// The day on which they ended, in UTC.
    Day,
    /// Their run.
    Run,
}

/// A group of attempts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostGroup {
    /// Those of an asset, under its name of today.
    Asset(AssetKey),
    /// Those of a day, by its first moment.
    Day(Timestamp),
    /// Those of a run.
    Run(RunId),
}

/// What attempts used and cost together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CostSum {
    pub attempts: u64,
    pub cpu_ms: u64,
    pub memory_mb_ms: u64,
    pub gpu_ms: u64,
    pub input_bytes_read: u64,
    pub output_bytes_written: u64,
    pub network_egress_bytes: u64,
    pub compute: MicroUsd,
    pub storage: MicroUsd,
    pub network: MicroUsd,
    pub total: MicroUsd,
}

impl CostSum {
    /// Counts others too.
    pub fn add(&mut self, other: &CostSum) {
        let number = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        number(&mut self.attempts, other.attempts);
        number(&mut self.cpu_ms, other.cpu_ms);
        number(&mut self.memory_mb_ms, other.memory_mb_ms);
        number(&mut self.gpu_ms, other.gpu_ms);
        number(&mut self.input_bytes_read, other.input_bytes_read);
        number(&mut self.output_bytes_written, other.output_bytes_written);
        number(&mut self.network_egress_bytes, other.network_egress_bytes);
        self.compute = self.compute.saturating_add(other.compute);
        self.storage = self.storage.saturating_add(other.storage);
        self.network = self.network.saturating_add(other.network);
        self.total = self.total.saturating_add(other.total);
    }
}

impl From<&TaskCostRow> for CostSum {
    fn from(row: &TaskCostRow) -> Self {
        Self {
            attempts: 1,
            cpu_ms: row.cpu_ms,
            memory_mb_ms: row.memory_mb_ms,
            gpu_ms: row.gpu_ms,
            input_bytes_read: row.input_bytes_read,
            output_bytes_written: row.output_bytes_written,
            network_egress_bytes: row.network_egress_bytes,
            compute: row.compute_cost_micro_usd,
            storage: row.storage_cost_micro_usd,
            network: row.network_cost_micro_usd,
            total: row.total_cost_micro_usd,
        }
    }
}

/// Sums costs by group, one attempt after the other.
pub struct CostTotals<'a> {
    filter: &'a CostFilter,
    by: CostGrouping,
    /// The name that an asset has today which had this one when the event was written.
    name: &'a (dyn Fn(&AssetKey, EventId) -> AssetKey + Sync),
    /// What was counted so far.
    pub groups: BTreeMap<CostGroup, CostSum>,
}

impl<'a> CostTotals<'a> {
    /// Nothing counted yet. `name` gives the name that an asset has today which had another when an event was written.
    pub fn new(
        filter: &'a CostFilter,
        by: CostGrouping,
        name: &'a (dyn Fn(&AssetKey, EventId) -> AssetKey + Sync),
    ) -> Self {
        Self { filter, by, name, groups: BTreeMap::new() }
    }

    /// Counts an attempt, if it is one of those that are asked about.
    pub fn add(&mut self, row: &TaskCostRow) {
        let place =
            Place { asset: &row.asset_key, run: row.run_id, at: row.created_at, event: row.row_version };
        self.count(&place, &CostSum::from(row));
    }

    fn count(&mut self, place: &Place<'_>, sum: &CostSum) {
        let CostFilter { assets, since, until } = self.filter;
        if since.is_some_and(|since| place.at < since) || until.is_some_and(|until| place.at >= until) {
            return;
        }
        let group = match (self.by, assets) {
            (CostGrouping::Asset, _) | (_, Some(_)) => {
                let asset = (self.name)(place.asset, place.event);
                if assets.as_ref().is_some_and(|assets| !assets.contains(&asset)) {
                    return;
                }
                match self.by {
                    CostGrouping::Asset => CostGroup::Asset(asset),
                    CostGrouping::Day => day(place.at),
                    CostGrouping::Run => CostGroup::Run(place.run),
                }
            }
            (CostGrouping::Day, None) => day(place.at),
            (CostGrouping::Run, None) => CostGroup::Run(place.run),
        };
        self.groups.entry(group).or_default().add(sum);
    }
}

/// Where an attempt is counted.
struct Place<'a> {
    asset: &'a AssetKey,
    run: RunId,
    at: Timestamp,
    event: EventId,
}

fn day(at: Timestamp) -> CostGroup {
    CostGroup::Day(Timestamp::from_millis(at.as_millis().div_euclid(DAY_MS) * DAY_MS))
}

/// The columns that sums are made of.
const COLUMNS: [&str; 14] = [
    "run_id",
    "asset_key",
    "cpu_ms",
    "memory_mb_ms",
    "gpu_ms",
    "input_bytes_read",
    "output_bytes_written",
    "network_egress_bytes",
    "compute_cost_micro_usd",
    "storage_cost_micro_usd",
    "network_cost_micro_usd",
    "total_cost_micro_usd",
    "created_at",
    "row_version",
];

impl Projection {
    /// Counts the attempts in the tables.
    pub async fn add_costs(&self, totals: &mut CostTotals<'_>) -> Result<(), Error> {
        let CostFilter { since, until, .. } = totals.filter;
        for file in self.manifest.immutable(TaskCostRow::TABLE) {
            let is_early = since.is_some_and(|since| file.max_at.is_some_and(|at| at < since.as_millis()));
            let is_late = until.is_some_and(|until| file.min_at.is_some_and(|at| at >= until.as_millis()));
            if is_early || is_late {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in 0..open.groups() {
                let rows = self.files.group(&open, group, Some(&COLUMNS)).await?;
                let batch =
                    Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
                add_batch(&batch, totals)?;
            }
        }
        Ok(())
    }
}

fn add_batch(batch: &Batch<'_>, totals: &mut CostTotals<'_>) -> Result<(), Error> {
    let (runs, assets) = (batch.column::<RunId>("run_id")?, batch.column::<AssetKey>("asset_key")?);
    let (times, events) = (batch.column("created_at")?, batch.column("row_version")?);
    let (cpu, memory) = (batch.column("cpu_ms")?, batch.column("memory_mb_ms")?);
    let (gpu, egress) = (batch.column("gpu_ms")?, batch.column("network_egress_bytes")?);
    let (read, written) = (batch.column("input_bytes_read")?, batch.column("output_bytes_written")?);
    let compute = batch.column("compute_cost_micro_usd")?;
    let storage = batch.column("storage_cost_micro_usd")?;
    let network = batch.column("network_cost_micro_usd")?;
    let total = batch.column("total_cost_micro_usd")?;
    for row in 0..batch.len() {
        let (asset, run) = (assets.get(row)?, runs.get(row)?);
        let place = Place { asset: &asset, run, at: times.get(row)?, event: events.get(row)? };
        let sum = CostSum {
            attempts: 1,
            cpu_ms: cpu.get(row)?,
            memory_mb_ms: memory.get(row)?,
            gpu_ms: gpu.get(row)?,
            input_bytes_read: read.get(row)?,
            output_bytes_written: written.get(row)?,
            network_egress_bytes: egress.get(row)?,
            compute: compute.get(row)?,
            storage: storage.get(row)?,
            network: network.get(row)?,
            total: total.get(row)?,
        };
        totals.count(&place, &sum);
    }
    Ok(())
}
