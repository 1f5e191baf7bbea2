//! Table `materialization_inputs`: lineage by execution.

use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, RunId, Timestamp};

use super::table::table;

table! {
    /// One row per materialization that was read to make another; of very many partitions of one asset a row for all.
    "materialization_inputs" => MaterializationInputRow {
        key (
            materialization_id: MaterializationId,
            asset_key: AssetKey,
            upstream_asset_key: AssetKey,
            upstream_partition_key: Option<PartitionKey>,
            row_version: EventId
        ),
        sorted by row_version,
        at |row| row.materialized_at,
        lookup materialization_id & upstream_materialization_id,
    }
    columns {
        /// The materialization that was made.
        materialization_id: MaterializationId;
        asset_key: AssetKey;
        partition_key: Option<PartitionKey>;
        upstream_asset_key: AssetKey;
        /// The partition that was read, or the first of very many.
        upstream_partition_key: Option<PartitionKey>;
        /// The materialization that was read; of very many partitions, their newest ones at `inputs_as_of`.
        upstream_materialization_id: Option<MaterializationId>, unique;
        /// The last of very many partitions.
        upstream_last_partition_key: Option<PartitionKey>;
        /// How many materializations the row stands for.
        upstream_count: u64;
        /// The event that decided what was read.
        inputs_as_of: Option<EventId>;
        run_id: RunId;
        materialized_at: Timestamp, unique;
        row_version: EventId;
    }
}
