//! Costs of attempts, in fractions: the log says what was used, and the settings of the moment what that costs.

use std::collections::BTreeMap;

use serde_json::Value;
use servo_core::EventId;
use servo_engine::Settings;
use servo_engine::rows::TaskCostRow;

use super::compare::Differences;
use super::{Event, Model, Task};

/// What each attempt cost, by the event that ended it, its run and its task: for compute, storage and network.
pub type Costs = BTreeMap<(EventId, String, String), [u64; 3]>;

const BILLION: u128 = 1_000_000_000;

/// The nearest whole number of a fraction; halves go up.
fn nearest(amount: u128, of: u128) -> u64 {
    let (whole, rest) = (amount / of, amount % of);
    u64::try_from(whole + u128::from(rest * 2 >= of)).unwrap_or(u64::MAX)
}

impl Model {
    /// The newest attempt of a task ends.
    pub(super) fn charge(&mut self, (run, position): (usize, usize), event: &Event) {
        let task = &self.runs[run].tasks[position];
        let usage = event.payload.get("usage").filter(|usage| usage.is_object());
        if task.started_at.is_none() && usage.is_none() {
            return;
        }
        let cost = self.cost(task, usage.unwrap_or(&Value::Null), event);
        let run = &mut self.runs[run];
        run.cost += cost.iter().sum::<u64>();
        let key = run.tasks[position].key.as_str().to_owned();
        self.costs.insert((event.id, run.id.clone(), key), cost);
    }

    fn cost(&self, task: &Task, usage: &Value, event: &Event) -> [u64; 3] {
        let price = |name: &str| {
            let set = self.settings.get(name).and_then(|(value, _)| *value);
            u128::from(set.or_else(|| Settings::default().get(name)).unwrap_or_default())
        };
        let used = |name: &str| u128::from(usage[name].as_u64().unwrap_or_default());
        let leads = task.led_by.as_ref().is_none_or(|leader| *leader == task.attempt_id);
        let held = task.started_at.filter(|_| leads).map_or(0, |from| event.at.since(from).get());
        let declared = |name: &str| task.compute.get(name).and_then(Value::as_u64).map(u128::from);
        let memory = declared("memory_bytes").unwrap_or_else(|| used("max_rss_bytes"));
        let megabytes = memory * u128::from(held) / 1_000_000;
        let gpus = declared("gpus").unwrap_or_default() * u128::from(held);
        let compute = used("cpu_ms") * price("nano_usd_per_cpu_second") * 1_000
            + gpus * price("nano_usd_per_gpu_second") * 1_000
            + megabytes * price("nano_usd_per_memory_gb_second");
        let storage = (used("bytes_read") + used("bytes_written")) * price("nano_usd_per_storage_gb");
        let network = used("network_egress_bytes") * price("nano_usd_per_egress_gb");
        [nearest(compute, BILLION), nearest(storage, BILLION * 1_000), nearest(network, BILLION * 1_000)]
    }

    /// The differences of the table.
    pub(super) fn compare_costs(&self, found: &mut Differences, rows: &[TaskCostRow]) {
        let known = rows.iter().map(|row| {
            let parts = [row.compute_cost_micro_usd, row.storage_cost_micro_usd, row.network_cost_micro_usd];
            let key = (row.row_version, row.run_id.to_string(), row.task_key.as_str().to_owned());
            (key, parts.map(|part| part.get()), row.total_cost_micro_usd.get())
        });
        let expected = self.costs.iter().map(|(key, parts)| (key.clone(), *parts, parts.iter().sum()));
        found.same_keys("costs", &known.collect(), &expected.collect());
    }
}
