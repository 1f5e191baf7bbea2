//! Tables about what is deployed.

use arrow_array::ArrayRef;
use servo_core::{AssetId, AssetKey, EventId, Timestamp};
use servo_engine::rows::{AssetDefinitionRow, DeploymentRow};

use crate::batch::Batch;
use crate::error::Error;
use crate::table::{ColumnSpec, HistoryTable, HotTable, Table, hot_table, table};
use crate::value::{Field, Value};

table! {
    /// One row per asset that is or was deployed.
    AssetDefinitions = "asset_definitions", AssetDefinitionRow, placed by row_version, at |row| row.deployed_at; columns {
        asset_key: AssetKey, unique;
        asset_id: AssetId, unique;
        definition: String, unique;
        code_version: Option<String>;
        group_name: Option<String>;
        deployment_number: u64;
        deployment_digest: String;
        deployed_at: Timestamp;
        removed_at: Option<Timestamp>;
        row_version: EventId;
    }
}
hot_table!(AssetDefinitions, AssetDefinitionRow, key asset_key = (asset_key: AssetKey), rank |_| 0);

table! {
    /// One row per deployment.
    Deployments = "deployments", DeploymentRow, placed by row_version, at |row| row.deployed_at; columns {
        number: u64, unique;
        digest: String, unique;
        project: String;
        actor: String;
        assets: u32;
        assets_upserted: u32;
        assets_removed: u32;
        deployed_at: Timestamp, unique;
        row_version: EventId, unique;
    }
}
hot_table!(Deployments, DeploymentRow, key number = (number: u64), rank |_| 0);

impl HistoryTable for Deployments {}
