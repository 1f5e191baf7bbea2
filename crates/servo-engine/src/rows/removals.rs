//! Table `removals`.

use servo_core::{AssetKey, EventId, MaterializationId, PartitionKey, Timestamp};

use super::table::table;

table! {
    /// One row per materialization whose data was removed because it is not kept any more.
    "removals" => RemovalRow {
        key (materialization_id: MaterializationId, asset_key: AssetKey, row_version: EventId),
        sorted by row_version,
        at |row| row.removed_at,
    }
    columns {
        materialization_id: MaterializationId, unique;
        asset_key: AssetKey;
        partition_key: Option<PartitionKey>;
        /// Size of the data, if it is known.
        byte_size: Option<u64>;
        removed_at: Timestamp;
        row_version: EventId;
    }
}
