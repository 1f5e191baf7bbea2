//! Table `quarantine`.

use std::sync::Arc;

use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, RunId, TaskKey, Timestamp};

use super::Json;
use super::table::table;
use crate::outputs::OutputReport;
use crate::provenance::Provenance;

table! {
    /// One row per output that a check has blocked and that waits for review, or was approved and is not released yet.
    "quarantine" => QuarantineRow {
        key (asset_key: AssetKey, materialization_id: MaterializationId),
        sorted by row_version,
        at |row| row.quarantined_at,
    }
    columns {
        asset_key: AssetKey;
        materialization_id: MaterializationId, unique;
        partition_key: Option<PartitionKey>;
        run_id: RunId;
        task_key: TaskKey;
        attempt: u32;
        quarantined_at: Timestamp, unique;
        /// The output as its worker reported it.
        output: Json<OutputReport>, unique;
        /// The code and the data of the attempt that made it.
        provenance: Json<Arc<Provenance>>;
        /// The event that decided what that attempt reads.
        inputs_as_of: Option<EventId>, unique;
        /// The event that approved it; its data is not moved yet.
        approved_event_id: Option<EventId>, unique;
        approved_at: Option<Timestamp>, unique;
        row_version: EventId, unique;
    }
}
