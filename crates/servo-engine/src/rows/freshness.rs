//! Tables `freshness_status` and `freshness_history`.

use servo_core::{AssetKey, EventId, Millis, Timestamp};

use super::Json;
use super::table::table;
use crate::definitions::FreshnessDef;
use crate::lifecycle::FreshnessStatus;

table! {
    /// One row per deployed asset with a freshness policy.
    "freshness_status" => FreshnessStatusRow {
        key (asset_key: AssetKey),
        sorted by row_version,
        at |row| row.since,
    }
    columns {
        asset_key: AssetKey, unique;
        status: FreshnessStatus;
        /// Since when it has this status.
        since: Timestamp, unique;
        /// When the oldest of what its newest data was made from was made, as of the last look.
        data_as_of: Option<Timestamp>, unique;
        /// When there is something to look at.
        due_at: Option<Timestamp>, unique;
        /// The policy.
        policy: Json<FreshnessDef>;
        /// The deployment that the policy is of.
        deployment_number: u64;
        row_version: EventId, unique;
    }
}

table! {
    /// One row per change of the freshness of an asset.
    "freshness_history" => FreshnessHistoryRow {
        key (asset_key: AssetKey, row_version: EventId),
        sorted by row_version,
        at |row| row.since,
        lookup asset_key,
    }
    columns {
        asset_key: AssetKey;
        old_status: FreshnessStatus;
        status: FreshnessStatus;
        /// Since when it has this status.
        since: Timestamp;
        /// When the oldest of what its newest data was made from was made.
        data_as_of: Option<Timestamp>;
        /// How old that was.
        lag_ms: Option<Millis>;
        deployment_number: u64;
        row_version: EventId, unique;
    }
}
