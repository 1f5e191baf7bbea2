//! Table `asset_definitions`.

use std::sync::Arc;

use servo_core::{AssetId, AssetKey, EventId, Timestamp};

use super::Json;
use super::table::table;
use crate::definitions::AssetDef;

table! {
    /// One row per asset that is or was deployed, as of the last deployment that had it.
    "asset_definitions" => AssetDefinitionRow {
        key (asset_key: AssetKey),
        sorted by row_version,
        at |row| row.deployed_at,
    }
    columns {
        asset_key: AssetKey, unique;
        /// Kept over deployments, also if the asset was removed in between.
        asset_id: AssetId, unique;
        /// The asset, as in the manifest.
        definition: Json<Arc<AssetDef>>, unique;
        code_version: Option<String>;
        group_name: Option<String>;
        /// The deployment that last changed or removed it.
        deployment_number: u64;
        deployment_digest: String;
        /// When this definition was deployed.
        deployed_at: Timestamp;
        /// When the asset was removed; none if it is deployed.
        removed_at: Option<Timestamp>;
        row_version: EventId;
    }
}
