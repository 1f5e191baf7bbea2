//! Costs of attempts, summed: memory for what is not written yet, tables for the rest.

use std::collections::BTreeMap;

use servo_core::{AssetKey, EventId};
use servo_projections::{CostFilter, CostGroup, CostGrouping, CostSum, CostTotals};

use crate::error::Error;
use crate::workspace::Workspace;

impl Workspace {
    /// What the attempts cost that a filter accepts, by group.
    pub async fn costs(
        &self,
        filter: &CostFilter,
        by: CostGrouping,
    ) -> Result<BTreeMap<CostGroup, CostSum>, Error> {
        if !self.is_open() {
            return Err(Error::Stopped);
        }
        let snapshot = self.snapshot();
        let state = snapshot.state();
        let name = |asset: &AssetKey, event: EventId| state.current_name(asset, event);
        let mut totals = CostTotals::new(filter, by, &name);
        let in_flight = self.inner.flushes.in_flight();
        let projection = self.projection();
        // Tables have all events up to one, and ids are in the order of events: nothing is counted twice.
        let written =
            projection.as_ref().map(|projection| projection.manifest().watermarks.events_processed_through);
        let unwritten = state.unwritten_costs().chain(in_flight.iter().flat_map(|flush| &flush.costs));
        let unwritten = unwritten.filter(|row| written.is_none_or(|written| row.row_version > written));
        let unwritten: BTreeMap<_, _> =
            unwritten.map(|row| ((row.row_version, row.run_id, &row.task_key), row)).collect();
        unwritten.into_values().for_each(|row| totals.add(row));
        if let Some(projection) = &projection {
            projection.add_costs(&mut totals).await?;
        }
        Ok(totals.groups)
    }
}
