//! Table `task_costs`.

use servo_core::{AssetKey, AttemptId, EventId, MicroUsd, PartitionKey, RunId, TaskKey, Timestamp};

use super::table::table;

table! {
    /// One row per attempt that a worker began and that has ended: what it used, and what that cost.
    "task_costs" => TaskCostRow {
        key (run_id: RunId, task_key: TaskKey, row_version: EventId),
        sorted by row_version,
        at |row| row.created_at,
        read in pages,
    }
    columns {
        run_id: RunId;
        task_key: TaskKey;
        /// The asset of the key: what a task costs that makes several is counted with it.
        asset_key: AssetKey;
        partition_key: Option<PartitionKey>;
        attempt: u32;
        attempt_id: AttemptId, unique;
        cpu_ms: u64;
        /// Megabytes (10⁶ bytes) times milliseconds.
        memory_mb_ms: u64;
        gpu_ms: u64;
        input_bytes_read: u64;
        output_bytes_written: u64;
        network_egress_bytes: u64;
        /// Processors and memory.
        compute_cost_micro_usd: MicroUsd;
        storage_cost_micro_usd: MicroUsd;
        network_cost_micro_usd: MicroUsd;
        /// The sum of the three.
        total_cost_micro_usd: MicroUsd;
        /// When the attempt ended.
        created_at: Timestamp;
        row_version: EventId;
    }
}
