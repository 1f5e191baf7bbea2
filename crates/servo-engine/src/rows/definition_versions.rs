//! Table `definition_versions`: what each deployment changed, so that older definitions can be compared and returned to.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use servo_core::{EventId, Timestamp};

use super::table::table;
use super::{Json, Name};

/// The kinds of definitions that a deployment has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum DefinitionKind {
    Asset,
    Schedule,
    Sensor,
    Notification,
}

/// The change that a deployment made to a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)]
pub enum DefinitionChange {
    Added,
    Changed,
    Removed,
}

table! {
    /// One row per definition that a deployment added, changed or removed.
    "definition_versions" => DefinitionVersionRow {
        key (deployment_number: u64, kind: Name<DefinitionKind>, name: String),
        sorted by row_version,
        at |row| row.deployed_at,
        lookup name,
    }
    columns {
        deployment_number: u64;
        /// Kind of the definition: asset, schedule or sensor.
        kind: Name<DefinitionKind>;
        /// The canonical key of an asset, the name of a schedule or a sensor.
        name: String;
        /// ADDED, CHANGED or REMOVED.
        change: Name<DefinitionChange>;
        /// The version of its code; of assets.
        code_version: Option<String>;
        /// The whole definition, as in the manifest; none if it was removed.
        definition: Option<Json<Value>>, unique;
        deployed_at: Timestamp;
        row_version: EventId;
    }
}
