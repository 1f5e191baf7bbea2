//! Table `settings`.

use servo_core::{EventId, Timestamp};

use super::table::table;
use crate::lifecycle::SettingOrigin;
use crate::principal::Principal;

table! {
    /// One row per setting that was ever changed.
    "settings" => SettingRow {
        key (name: String),
        sorted by row_version,
        at |row| row.changed_at,
    }
    columns {
        name: String, unique;
        /// The value; null if it is the default. Lengths of time are in milliseconds.
        value: Option<u64>;
        /// Where the value comes from.
        origin: SettingOrigin;
        /// The author of the last change.
        changed_by: Principal;
        changed_at: Timestamp;
        /// Number of the last change, among those of all settings.
        change_number: u64;
        row_version: EventId;
    }
}
