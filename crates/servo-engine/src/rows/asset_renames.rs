//! Table `asset_renames`.

use servo_core::{AssetKey, EventId, Timestamp};

use super::table::table;
use crate::principal::Principal;

table! {
    /// One row per asset that was given another name. What was made before has the old one in every other table.
    "asset_renames" => AssetRenameRow {
        key (asset_key: AssetKey, renamed_event_id: EventId),
        sorted by row_version,
        at |row| row.renamed_at,
    }
    columns {
        /// The name before.
        asset_key: AssetKey;
        renamed_to: AssetKey;
        renamed_by: Principal;
        renamed_at: Timestamp;
        renamed_event_id: EventId, unique;
        /// When its data was where the new name is; none while it is on its way.
        moved_at: Option<Timestamp>;
        row_version: EventId, unique;
    }
}
