//! Ready tasks get slots as long as there are any: highest priority first, then the source with the fewest tasks at
//! work, then the oldest. Lanes that are paused, pools that are full and queues without a worker that has room give
//! nothing (ADR-097, ADR-111).

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{AssetKey, RunId, Timestamp};

use super::Dispatching;
use crate::derive::attempt_id;
use crate::event::{DispatchRequested, EventData, PauseScope};
use crate::state::{Capacities, Flow, Index, ReadyKey, Run, State, TaskLane, TaskRef};
use crate::work;

/// A `DispatchRequested` for every ready task that has a slot.
pub fn reconcile(state: &State, now: Timestamp) -> Vec<EventData> {
    dispatches(state, &state.index, now)
}

/// The same, where one run goes first: others get the slots that it has no use for.
pub(super) fn reconcile_with(state: &State, now: Timestamp, dispatching: Dispatching) -> Vec<EventData> {
    match dispatching {
        Dispatching::Held => Vec::new(),
        Dispatching::First(run) if state.active_runs() > 1 => {
            let first = requests(state, choose(state, &state.index, Some(run)), now);
            if first.is_empty() { reconcile(state, now) } else { first }
        }
        Dispatching::All | Dispatching::First(_) => reconcile(state, now),
    }
}

/// The same by these indexes.
pub(super) fn dispatches(state: &State, index: &Index, now: Timestamp) -> Vec<EventData> {
    requests(state, choose(state, index, None), now)
}

fn requests(state: &State, chosen: Vec<TaskRef>, now: Timestamp) -> Vec<EventData> {
    let request = |task: TaskRef| Some(request(state, state.runs.get(&task.run)?, task.task, now));
    chosen.into_iter().filter_map(request).collect()
}

/// The tasks that get a slot, in order: of all runs, or of one.
fn choose(state: &State, index: &Index, of: Option<RunId>) -> Vec<TaskRef> {
    let mut free = state.settings.max_concurrent_tasks.saturating_sub(index.outstanding);
    if free == 0 || index.ready.is_empty() || state.pauses.paused(&PauseScope::All).is_some() {
        return Vec::new();
    }
    let mut lanes: Vec<Waiting<'_>> = index
        .ready
        .iter()
        .filter(|(lane, _)| !lane.is_paused && !is_queue_paused(state, lane))
        .map(|(lane, keys)| {
            let mut rest = keys.iter().copied();
            Waiting { lane, head: next_of(state, &mut rest, of), rest }
        })
        .collect();
    let mut of_flow: BTreeMap<&Flow, u32> = index.outstanding_of.iter().map(|(flow, n)| (flow, *n)).collect();
    let mut in_pool: BTreeMap<&Arc<str>, u32> = index.in_pool.iter().map(|(pool, n)| (pool, *n)).collect();
    let mut capacities = Capacities::new(state, index);
    let mut chosen = Vec::new();
    while free > 0 {
        let is_full = |pool: &Arc<str>| {
            let limit = state.settings.pools.get(&**pool);
            limit.is_some_and(|limit| in_pool.get(pool).copied().unwrap_or_default() >= *limit)
        };
        lanes.retain(|waiting| {
            waiting.head.is_some()
                && !waiting.lane.pool.as_ref().is_some_and(is_full)
                && capacities.of(&waiting.lane.queue).free > 0
        });
        let next = lanes.iter_mut().min_by_key(|waiting| {
            let at_work = of_flow.get(&waiting.lane.flow).copied().unwrap_or_default();
            (waiting.head.map(|key| key.run_priority), at_work, waiting.head)
        });
        let Some(Waiting { lane, head, rest }) = next else { break };
        let Some(key) = std::mem::replace(head, next_of(state, rest, of)) else { break };
        let lane = *lane;
        *of_flow.entry(&lane.flow).or_default() += 1;
        if let Some(pool) = &lane.pool {
            *in_pool.entry(pool).or_default() += 1;
        }
        capacities.take(&lane.queue);
        chosen.push(key.task);
        free -= 1;
    }
    chosen
}

/// The tasks of one lane that are not chosen yet.
struct Waiting<'a> {
    lane: &'a TaskLane,
    head: Option<ReadyKey>,
    rest: std::iter::Copied<std::collections::btree_set::Iter<'a, ReadyKey>>,
}

fn next_of(state: &State, keys: &mut impl Iterator<Item = ReadyKey>, of: Option<RunId>) -> Option<ReadyKey> {
    let any_moves = state.renames.moving().next().is_some();
    keys.find(|key| {
        of.is_none_or(|run| key.task.run == run) && !(any_moves && waits_for_move(state, key.task))
    })
}

/// Whether data that a task makes or reads is on its way to another name.
fn waits_for_move(state: &State, task: TaskRef) -> bool {
    let Some(task) = state.runs.get(&task.run).and_then(|run| run.tasks.get(task.task as usize)) else {
        return false;
    };
    let definitions = state.checked_definitions();
    let is_moving = |asset: &AssetKey| state.renames.is_moving(asset);
    task.assets().any(|asset| {
        let reads_it = definitions.as_deref().is_some_and(|all| {
            let deps = all.position(&asset).map(|position| &all.asset(position).deps);
            deps.into_iter().flatten().any(|dep| is_moving(&all.asset(dep.asset).key))
        });
        reads_it || is_moving(&asset)
    })
}

fn is_queue_paused(state: &State, lane: &TaskLane) -> bool {
    state.pauses.paused(&PauseScope::Queue(lane.queue.clone())).is_some()
}

/// The intent to hand the next attempt of a task to its queue.
fn request(state: &State, run: &Run, position: u32, now: Timestamp) -> EventData {
    let task = &run.tasks[position as usize];
    let attempt = task.attempt + 1;
    EventData::DispatchRequested(DispatchRequested {
        run_id: run.id,
        task_key: task.key.clone(),
        attempt,
        attempt_id: attempt_id(run.id, &task.key, attempt, now),
        worker_queue: task.options.worker_queue.clone(),
        provenance: Arc::new(work::provenance(state, run, task)),
    })
}
