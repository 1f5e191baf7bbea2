//! Queued runs start as long as fewer are at work than may be: highest priority first, then the source with the fewest
//! runs at work, then the oldest. Runs with a label whose limit is reached wait, and others pass them (ADR-097).

use std::collections::BTreeMap;

use crate::event::{EventData, PauseScope, RunTriggered};
use crate::settings::Settings;
use crate::state::{Flow, Index, QueuedKey, RunLane, State, sorted_set};

/// A `RunTriggered` for every queued run that has a place.
pub fn reconcile(state: &State) -> Vec<EventData> {
    starts(state, &state.index)
}

/// The same by these indexes.
pub(super) fn starts(state: &State, index: &Index) -> Vec<EventData> {
    let chosen = choose(state, index).into_iter();
    let start = |(_, _, id): QueuedKey| {
        let run = state.runs.get(&id)?;
        let triggered = RunTriggered { run_id: id, plan_id: run.plan?, timeout_ms: run.timeout };
        Some(EventData::RunTriggered(triggered))
    };
    chosen.filter_map(start).collect()
}

fn choose(state: &State, index: &Index) -> Vec<QueuedKey> {
    let mut free = state.settings.max_concurrent_runs.saturating_sub(index.at_work);
    if free == 0 || index.queued.is_empty() || state.pauses.paused(&PauseScope::All).is_some() {
        return Vec::new();
    }
    let mut lanes: Vec<Waiting<'_>> = index
        .queued
        .iter()
        .map(|(lane, keys)| {
            let mut rest = keys.iter().copied();
            Waiting { lane, head: rest.next(), rest }
        })
        .collect();
    let mut of_flow: BTreeMap<&Flow, u32> = index.at_work_of.iter().map(|(flow, n)| (flow, *n)).collect();
    let mut with_label = index.at_work_with.clone();
    let mut chosen = Vec::new();
    while free > 0 {
        lanes.retain(|waiting| {
            let is_full = || full_labels(&state.settings, waiting.lane, &with_label).next().is_some();
            waiting.head.is_some() && !is_full()
        });
        let next = lanes.iter_mut().min_by_key(|waiting| {
            let at_work = of_flow.get(&waiting.lane.flow).copied().unwrap_or_default();
            (waiting.head.map(|key| key.0), at_work, waiting.head)
        });
        let Some(Waiting { lane, head, rest }) = next else { break };
        let Some(key) = std::mem::replace(head, rest.next()) else { break };
        let lane = *lane;
        *of_flow.entry(&lane.flow).or_default() += 1;
        if let Some(run) = state.runs.get(&key.2) {
            for (name, value) in &run.labels {
                *with_label.entry((name.clone(), value.clone())).or_default() += 1;
            }
        }
        chosen.push(key);
        free -= 1;
    }
    chosen
}

/// The runs of one lane that are not chosen yet.
struct Waiting<'a> {
    lane: &'a RunLane,
    head: Option<QueuedKey>,
    rest: std::iter::Copied<sorted_set::Iter<'a, QueuedKey>>,
}

/// Labels of a lane whose limits are reached: name, value, limit.
pub(crate) fn full_labels<'a>(
    settings: &'a Settings,
    lane: &'a RunLane,
    at_work: &'a BTreeMap<(String, String), u32>,
) -> impl Iterator<Item = (&'a str, &'a str, u32)> {
    lane.limited.iter().filter_map(|(name, value)| {
        let limit = settings.runs_limit(name, value)?;
        let used = at_work.get(&(name.clone(), value.clone())).copied().unwrap_or_default();
        (used >= limit).then_some((name.as_str(), value.as_str(), limit))
    })
}
