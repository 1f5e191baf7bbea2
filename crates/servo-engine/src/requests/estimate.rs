//! How long work will take and what it will cost, from the past: the tasks of ended runs that are in memory, and of
//! assets that have none there what is kept with them (ADR-220, ADR-290).

use std::collections::BTreeMap;

use servo_core::partitions::PartitionSet;
use servo_core::{MicroUsd, Millis};

use crate::chunks::Sets;
use crate::definitions::Definitions;
use crate::lifecycle::TaskState;
use crate::state::{AssetState, Effort, State};

/// An estimate of time and cost from history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Time of all tasks together.
    pub work: Millis,
    /// Time until the last of them has ended, with as many at once as the request and the workers allow.
    pub elapsed: Millis,
    /// What all tasks together cost, with the attempts that fail.
    pub cost: MicroUsd,
    /// Tasks of the past that it follows from.
    pub from_tasks: u64,
}

/// Tasks of the past, together.
#[derive(Debug, Clone, Copy, Default)]
struct Past {
    tasks: u64,
    took_ms: u64,
    cost_micro_usd: u64,
}

impl Past {
    fn add(&mut self, other: Past) {
        self.tasks = self.tasks.saturating_add(other.tasks);
        self.took_ms = self.took_ms.saturating_add(other.took_ms);
        self.cost_micro_usd = self.cost_micro_usd.saturating_add(other.cost_micro_usd);
    }
}

/// The time that some partitions take, and their cost; none if none of their assets has a past. Of assets without one, the mean of the
/// others counts.
pub(super) fn estimate(
    state: &State,
    definitions: &Definitions,
    targets: &Sets,
    at_once: u64,
) -> Option<Estimate> {
    let keys: BTreeMap<&str, u32> =
        targets.keys().map(|asset| (definitions.asset(*asset).key.canonical(), *asset)).collect();
    let mut past: BTreeMap<u32, Past> = BTreeMap::new();
    for task in state.runs().filter(|run| run.state.is_terminal()).flat_map(|run| run.tasks.iter()) {
        let Some(asset) = keys.get(task.key.asset_str()).filter(|_| task.state == TaskState::Succeeded)
        else {
            continue;
        };
        let began = task.execution.as_ref().map(|execution| execution.started_at);
        if let Some((began, ended)) = began.zip(task.finished_at) {
            let took_ms = ended.since(began).get();
            past.entry(*asset).or_default().add(Past { tasks: 1, took_ms, cost_micro_usd: task.cost.get() });
        }
    }
    for asset in targets.keys() {
        let kept = state.asset_state(&definitions.asset(*asset).key).map(AssetState::efforts);
        let Some(kept) = kept.filter(|kept| kept.len() > 0) else { continue };
        past.entry(*asset).or_insert_with(|| {
            let one =
                |Effort { took, cost }| Past { tasks: 1, took_ms: took.get(), cost_micro_usd: cost.get() };
            sum(kept.map(one))
        });
    }
    let all = sum(past.values().copied());
    if all.tasks == 0 {
        return None;
    }
    let expected = targets.iter().map(|(asset, set): (&u32, &PartitionSet)| {
        let past = past.get(asset).copied().unwrap_or(all);
        let tasks = u64::try_from(set.len()).unwrap_or(u64::MAX);
        let scaled = |total: u64| tasks.saturating_mul(total) / past.tasks;
        Past { tasks, took_ms: scaled(past.took_ms), cost_micro_usd: scaled(past.cost_micro_usd) }
    });
    let Past { took_ms: work, cost_micro_usd, .. } = sum(expected);
    let slots: u64 =
        state.workers().filter(|worker| !worker.state.is_gone()).map(|worker| u64::from(worker.slots)).sum();
    let at_once = if slots == 0 { at_once } else { at_once.min(slots) };
    Some(Estimate {
        work: Millis::new(work),
        elapsed: Millis::new(work.div_ceil(at_once.max(1))),
        cost: MicroUsd::new(cost_micro_usd),
        from_tasks: all.tasks,
    })
}

fn sum(parts: impl Iterator<Item = Past>) -> Past {
    let mut sum = Past::default();
    parts.for_each(|part| sum.add(part));
    sum
}
