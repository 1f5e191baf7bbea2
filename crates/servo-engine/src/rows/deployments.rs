//! Table `deployments`. The newest is hot; those before are history.

use servo_core::{EventId, Timestamp};

use super::table::table;
use crate::principal::Principal;

table! {
    /// One row per deployment.
    "deployments" => DeploymentRow {
        key (number: u64),
        sorted by row_version,
        at |row| row.deployed_at,
    }
    columns {
        number: u64, unique;
        digest: String, unique;
        /// Release of the time zone database that its partitions follow.
        time_zones: String;
        project: String;
        deployed_by: Principal;
        /// Number of deployed assets.
        assets: u32;
        assets_upserted: u32;
        assets_removed: u32;
        deployed_at: Timestamp, unique;
        row_version: EventId, unique;
    }
}
