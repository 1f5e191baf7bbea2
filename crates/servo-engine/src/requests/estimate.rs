//! How long work will take, from how long it took: the tasks of ended runs that are in memory, and of assets that have
//! none there the durations that are kept with them (ADR-220).

use std::collections::BTreeMap;

use servo_core::Millis;
use servo_core::partitions::PartitionSet;

use crate::chunks::Sets;
use crate::definitions::Definitions;
use crate::lifecycle::TaskState;
use crate::state::{AssetState, State};

/// An estimate of time from history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Time of all tasks together.
    pub work: Millis,
    /// Time until the last of them has ended, with as many at once as the request and the workers allow.
    pub elapsed: Millis,
    /// Tasks of the past that it follows from.
    pub from_tasks: u64,
}

/// The time that some partitions take; none if none of their assets has a past. Of assets without one, the mean of the
/// others counts.
pub(super) fn estimate(
    state: &State,
    definitions: &Definitions,
    targets: &Sets,
    at_once: u64,
) -> Option<Estimate> {
    let keys: BTreeMap<&str, u32> =
        targets.keys().map(|asset| (definitions.asset(*asset).key.canonical(), *asset)).collect();
    let mut past: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for task in state.runs().filter(|run| run.state.is_terminal()).flat_map(|run| run.tasks.iter()) {
        let Some(asset) = keys.get(task.key.asset_str()).filter(|_| task.state == TaskState::Succeeded)
        else {
            continue;
        };
        let began = task.execution.as_ref().map(|execution| execution.started_at);
        if let Some((began, ended)) = began.zip(task.finished_at) {
            let (count, total) = past.entry(*asset).or_default();
            *count += 1;
            *total += ended.since(began).get();
        }
    }
    for asset in targets.keys() {
        let kept = state.asset_state(&definitions.asset(*asset).key).map(AssetState::durations);
        let Some(kept) = kept.filter(|kept| kept.len() > 0) else { continue };
        past.entry(*asset).or_insert_with(|| {
            let count = kept.len() as u64;
            (count, kept.map(Millis::get).fold(0, u64::saturating_add))
        });
    }
    let (count, total) = past.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if count == 0 {
        return None;
    }
    let work = targets.iter().map(|(asset, set): (&u32, &PartitionSet)| {
        let (count, total) = past.get(asset).copied().unwrap_or((count, total));
        u64::try_from(set.len()).unwrap_or(u64::MAX).saturating_mul(total) / count
    });
    let work = work.fold(0_u64, u64::saturating_add);
    let slots: u64 =
        state.workers().filter(|worker| !worker.state.is_gone()).map(|worker| u64::from(worker.slots)).sum();
    let at_once = if slots == 0 { at_once } else { at_once.min(slots) };
    Some(Estimate {
        work: Millis::new(work),
        elapsed: Millis::new(work.div_ceil(at_once.max(1))),
        from_tasks: count,
    })
}
