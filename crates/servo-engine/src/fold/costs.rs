//! Costs of attempts are folded when they end: a row of `task_costs`, and the totals of the task and its run (ADR-290).
//! Every attempt that a worker began costs, however it ended, and costs once: late reports change nothing.

use servo_core::RunId;

use super::At;
use crate::costs::{Cost, Used};
use crate::rows::TaskCostRow;
use crate::state::{State, Task};

/// What an attempt used that is about to end, and what that costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Charge {
    used: Used,
    cost: Cost,
}

/// The charge for the newest attempt of a task, which ends now; none if nobody began it.
pub(super) fn charge(state: &State, at: At, task: &Task) -> Option<Charge> {
    let used = Used::of(task, at.time)?;
    Some(Charge { used, cost: Cost::of(&used, &state.settings) })
}

impl Charge {
    /// Counts it with the task.
    pub(super) fn add_to(self, task: &mut Task) {
        task.cost = task.cost.saturating_add(self.cost.total());
    }

    /// Counts it with the run, and writes its row.
    pub(super) fn record(self, state: &mut State, at: At, run: RunId, position: u32) {
        let Some(task) = state.runs.get(&run).map(|owner| &owner.tasks[position as usize]) else { return };
        let Some(attempt_id) = task.attempt_id else { return };
        let Self { used, cost } = self;
        let total = cost.total();
        let row = TaskCostRow {
            run_id: run,
            task_key: task.key.clone(),
            asset_key: task.key.asset(),
            partition_key: task.key.partition(),
            attempt: task.attempt,
            attempt_id,
            cpu_ms: used.cpu_ms,
            memory_mb_ms: used.memory_mb_ms,
            gpu_ms: used.gpu_ms,
            input_bytes_read: used.input_bytes_read,
            output_bytes_written: used.output_bytes_written,
            network_egress_bytes: used.network_egress_bytes,
            compute_cost_micro_usd: cost.compute,
            storage_cost_micro_usd: cost.storage,
            network_cost_micro_usd: cost.network,
            total_cost_micro_usd: total,
            created_at: at.time,
            row_version: at.id,
        };
        state.changes.costs.push(row);
        if !total.is_zero() {
            state.change_run(run, at.id, |run| run.cost = run.cost.saturating_add(total));
        }
    }
}
