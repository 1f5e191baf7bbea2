//! Table `pauses`.

use servo_core::{EventId, Timestamp};

use super::table::table;
use crate::principal::Principal;

table! {
    /// One row per scope that is paused, or was once.
    "pauses" => PauseRow {
        key (scope: String),
        sorted by row_version,
        at |row| row.changed_at,
    }
    columns {
        /// `all`, `queue:NAME` or `asset:NAMESPACE/NAME`.
        scope: String, unique;
        paused: bool;
        /// Why, in the words of whoever asked.
        reason: String;
        /// The author of the last change.
        changed_by: Principal;
        changed_at: Timestamp;
        /// Number of the last change of the scope.
        change_number: u64;
        row_version: EventId;
    }
}
