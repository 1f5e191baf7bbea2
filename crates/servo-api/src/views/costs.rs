//! Costs of attempts.

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, MicroUsd, RunId, Timestamp};
use servo_projections::{CostGroup as Group, CostGrouping, CostSum as Sum};
use utoipa::ToSchema;

/// Costs of the attempts that ended in some time, by group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Costs {
    /// What they are grouped by.
    pub by: CostsBy,
    /// Attempts that ended at this time or later are counted.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// Those that ended before this time are.
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    /// All groups together, those of other pages too.
    pub total: CostSum,
    /// The groups of this page: days the newest first, others the dearest first.
    pub items: Vec<CostGroup>,
    /// Where the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What costs are grouped by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostsBy {
    /// The asset of the task; of a task that makes several, the one that it is named after.
    #[default]
    Asset,
    /// The day on which the attempt ended, in UTC.
    Day,
    /// The run.
    Run,
}

impl From<CostsBy> for CostGrouping {
    fn from(by: CostsBy) -> Self {
        match by {
            CostsBy::Asset => CostGrouping::Asset,
            CostsBy::Day => CostGrouping::Day,
            CostsBy::Run => CostGrouping::Run,
        }
    }
}

/// What a group of attempts cost. It has the key that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CostGroup {
    /// The asset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub asset_key: Option<AssetKey>,
    /// The day in UTC, such as `2026-01-05`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub run_id: Option<RunId>,
    /// What its attempts used and cost.
    #[serde(flatten)]
    pub sum: CostSum,
}

/// What attempts used and cost together, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CostSum {
    /// Attempts that were begun and have ended.
    pub attempts: u64,
    /// Time of processors.
    pub cpu_ms: u64,
    /// Megabytes (10⁶ bytes) of memory times the milliseconds that they were held.
    pub memory_mb_ms: u64,
    /// Time of graphics processors.
    pub gpu_ms: u64,
    /// Bytes read.
    pub input_bytes_read: u64,
    /// Bytes written.
    pub output_bytes_written: u64,
    /// Bytes that left the network of a worker, where that was reported.
    pub network_egress_bytes: u64,
    /// For processors and memory.
    #[schema(value_type = u64)]
    pub compute_cost_micro_usd: MicroUsd,
    /// For reading and writing.
    #[schema(value_type = u64)]
    pub storage_cost_micro_usd: MicroUsd,
    /// For what left the network.
    #[schema(value_type = u64)]
    pub network_cost_micro_usd: MicroUsd,
    /// All of it.
    #[schema(value_type = u64)]
    pub total_cost_micro_usd: MicroUsd,
}

impl From<Sum> for CostSum {
    fn from(sum: Sum) -> Self {
        Self {
            attempts: sum.attempts,
            cpu_ms: sum.cpu_ms,
            memory_mb_ms: sum.memory_mb_ms,
            gpu_ms: sum.gpu_ms,
            input_bytes_read: sum.input_bytes_read,
            output_bytes_written: sum.output_bytes_written,
            network_egress_bytes: sum.network_egress_bytes,
            compute_cost_micro_usd: sum.compute,
            storage_cost_micro_usd: sum.storage,
            network_cost_micro_usd: sum.network,
            total_cost_micro_usd: sum.total,
        }
    }
}

impl From<(Group, Sum)> for CostGroup {
    fn from((group, sum): (Group, Sum)) -> Self {
        let none = Self { asset_key: None, day: None, run_id: None, sum: sum.into() };
        match group {
            Group::Asset(asset) => Self { asset_key: Some(asset), ..none },
            Group::Day(day) => Self { day: Some(day_of(day)), ..none },
            Group::Run(run) => Self { run_id: Some(run), ..none },
        }
    }
}

/// The date of a time, in UTC.
fn day_of(at: Timestamp) -> String {
    at.to_string().split('T').next().unwrap_or_default().to_owned()
}
