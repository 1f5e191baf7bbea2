//! Ready tasks get slots as long as there are any: highest priority first, then the source with the fewest tasks at
//! work, then the oldest. Lanes that are paused, pools that are full and queues without a worker that has room give
//! nothing (ADR-097, ADR-111). Partitions that one call makes are dispatched together, into one slot (ADR-210).

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::planted::{self, Mistake};
use servo_core::{AssetKey, RunId, Timestamp};

use super::Dispatching;
use crate::calls::Calls;
use crate::derive::attempt_id;
use crate::event::{DispatchRequested, EventData, PauseScope};
use crate::state::{Capacities, Flow, Index, ReadyKey, Run, State, Task, TaskLane, TaskRef, sorted_set};
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

fn requests(state: &State, chosen: Vec<Vec<TaskRef>>, now: Timestamp) -> Vec<EventData> {
    chosen.into_iter().filter_map(|call| requests_of(state, &call, now)).flatten().collect()
}

/// The requests for the tasks of one call. That of the first comes last: it hands all of them out.
fn requests_of(state: &State, call: &[TaskRef], now: Timestamp) -> Option<Vec<EventData>> {
    let (leader, followers) = call.split_first()?;
    let run = state.runs.get(&leader.run)?;
    let mut lead = request(state, run, leader.task, now);
    let shared = (!followers.is_empty()).then_some(lead.attempt_id);
    let join = |request: &mut DispatchRequested| Arc::make_mut(&mut request.provenance).call = shared;
    let follow = |follower: &TaskRef| {
        let mut request = request(state, run, follower.task, now);
        join(&mut request);
        EventData::DispatchRequested(request)
    };
    let mut events: Vec<EventData> = followers.iter().map(follow).collect();
    if shared.is_some() {
        join(&mut lead);
    }
    events.push(EventData::DispatchRequested(lead));
    Some(events)
}

/// The tasks that get a slot, in order, each with those that share it: of all runs, or of one.
fn choose(state: &State, index: &Index, of: Option<RunId>) -> Vec<Vec<TaskRef>> {
    let settings = &state.settings;
    let mut free = settings
        .max_concurrent_tasks
        .saturating_sub(index.outstanding)
        .min(settings.max_queued_tasks.saturating_sub(index.queued_tasks()));
    if free == 0 || index.ready.is_empty() || state.pauses.paused(&PauseScope::All).is_some() {
        return Vec::new();
    }
    let mut calls = Calls::new(state);
    let mut lanes: Vec<Waiting<'_>> = index
        .ready
        .iter()
        .filter(|(lane, _)| !lane.is_paused && !is_queue_paused(state, lane))
        .map(|(lane, keys)| {
            let mut rest = keys.iter().copied();
            Waiting { lane, head: next_of(state, &mut calls, &mut rest, of), rest }
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
            let head = waiting.head.as_ref().map(|(key, _)| *key);
            (head.map(|key| key.run_priority), at_work, head)
        });
        let Some(Waiting { lane, head, rest }) = next else { break };
        let Some((_, call)) = std::mem::replace(head, next_of(state, &mut calls, rest, of)) else { break };
        let lane = *lane;
        *of_flow.entry(&lane.flow).or_default() += 1;
        if let Some(pool) = &lane.pool
            && !planted::has(Mistake::PoolOverfilled)
        {
            *in_pool.entry(pool).or_default() += 1;
        }
        capacities.take(&lane.queue);
        chosen.push(call);
        free -= 1;
    }
    chosen
}

/// The tasks of one lane that are not chosen yet.
struct Waiting<'a> {
    lane: &'a TaskLane,
    head: Option<(ReadyKey, Vec<TaskRef>)>,
    rest: std::iter::Copied<sorted_set::Iter<'a, ReadyKey>>,
}

fn next_of(
    state: &State,
    calls: &mut Calls<'_>,
    keys: &mut impl Iterator<Item = ReadyKey>,
    of: Option<RunId>,
) -> Option<(ReadyKey, Vec<TaskRef>)> {
    let any_moves = state.renames.moving().next().is_some();
    keys.find_map(|key| {
        let task = state.runs.get(&key.task.run)?.tasks.get(key.task.task as usize)?;
        let is_free =
            of.is_none_or(|run| key.task.run == run) && !(any_moves && moving_data_of(state, task).is_some());
        let call = is_free.then(|| calls.led_by(key.task)).flatten()?;
        Some((key, call))
    })
}

/// The asset whose data a task makes or reads, and which is on its way to another name.
pub(crate) fn moving_data_of(state: &State, task: &Task) -> Option<AssetKey> {
    let definitions = state.checked_definitions();
    let is_moving = |asset: &AssetKey| state.renames.is_moving(asset);
    task.assets().find_map(|asset| {
        let read = definitions.as_deref().and_then(|all| {
            let deps = &all.asset(all.position(&asset)?).deps;
            deps.iter().map(|dep| &all.asset(dep.asset).key).find(|upstream| is_moving(upstream)).cloned()
        });
        read.or_else(|| is_moving(&asset).then_some(asset))
    })
}

fn is_queue_paused(state: &State, lane: &TaskLane) -> bool {
    state.pauses.paused(&PauseScope::Queue(lane.queue.clone())).is_some()
}

/// The intent to hand the next attempt of a task to its queue.
fn request(state: &State, run: &Run, position: u32, now: Timestamp) -> DispatchRequested {
    let task = &run.tasks[position as usize];
    let attempt = task.attempt + 1;
    DispatchRequested {
        run_id: run.id,
        task_key: task.key.clone(),
        attempt,
        attempt_id: attempt_id(run.id, &task.key, attempt, now),
        worker_queue: task.options.worker_queue.clone(),
        provenance: Arc::new(work::provenance(state, run, task).into_event()),
    }
}
