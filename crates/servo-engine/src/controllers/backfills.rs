//! Backfills: while fewer than `max_concurrent_runs` chunks are at work, the next one is planned and its run requested
//! in the same batch; when nothing is left and nothing is at work, the backfill ends.
//!
//! A chunk that reads what another one makes waits until that has ended. If it did not make what is read, the backfill
//! ends there: nothing is made over a gap. A failure that is to stop it, or a definition that no longer has what was
//! asked for, stops planning; the backfill ends when what is at work has.

use servo_core::partitions::{PartitionContext, PartitionSet};
use servo_core::{AssetKey, BackfillId, PartitionKey, Timestamp};

use crate::chunks::{Chunk, Chunks, Sets};
use crate::command::{RunPlan, TriggerRun};
use crate::decide::launch;
use crate::definitions::Definitions;
use crate::event::{
    BackfillChunkPlanned, BackfillStateChanged, EventData, RunSource, chunk_id, chunk_run_key,
};
use crate::lifecycle::BackfillState;
use crate::planner::{self, PartitionChoice, PlanContext};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::requests::{PlanBasis, RunRequest};
use crate::state::{Backfill, State};

/// How many inputs of a chunk are looked up one by one after something has failed.
const MOST_LOOKED_UP: u128 = 100_000;

/// The next events of a backfill: a chunk with its run, or another state. Empty while it can only wait.
pub fn reconcile(state: &State, secret: &[u8], id: BackfillId, now: Timestamp) -> Vec<EventData> {
    let Some(backfill) = state.backfill(id).filter(|backfill| backfill.is_open()) else { return Vec::new() };
    if backfill.state == BackfillState::Pending {
        return vec![changed(backfill, BackfillState::Running, String::new())];
    }
    match next(state, secret, backfill, now) {
        Next::Chunk(events) => events,
        Next::Wait => Vec::new(),
        // It ends with the last of its chunks, so that whoever waits for it waits for all of them.
        Next::End(..) if !backfill.active.is_empty() => Vec::new(),
        Next::End(to, reason) => vec![changed(backfill, to, reason)],
    }
}

enum Next {
    Chunk(Vec<EventData>),
    Wait,
    End(BackfillState, String),
}

fn next(state: &State, secret: &[u8], backfill: &Backfill, now: Timestamp) -> Next {
    let failed = |reason: String| Next::End(BackfillState::Failed, reason);
    if let Some(reason) = backfill.stopped_by() {
        return failed(reason);
    }
    let Some(definitions) = state.deployment().and_then(|_| state.checked_definitions()) else {
        return failed("no project is deployed any more".to_owned());
    };
    let at = context(state, backfill);
    let chunks = match state.prepared(backfill, &definitions, at) {
        Ok(prepared) => Chunks::of(&definitions, prepared, at),
        Err(problem) => return failed(problem),
    };
    let chunk = match chunks.next(backfill.cursor.as_ref(), backfill.definition.chunk_size) {
        Ok(Some(chunk)) => chunk,
        Ok(None) => return end(backfill),
        Err(problem) => return failed(problem),
    };
    // Of all backfills together only so many chunks are at work.
    if !state.has_room_for_chunks() {
        return Next::Wait;
    }
    match readiness(state, backfill, &definitions, &chunks, &chunk) {
        Readiness::Ready => {}
        Readiness::Waits => return Next::Wait,
        Readiness::Gap(reason) => return failed(reason),
    }
    match planned(state, secret, backfill, &definitions, chunk, now) {
        Ok(events) => Next::Chunk(events),
        Err(Some(problem)) => failed(problem),
        Err(None) => Next::Wait,
    }
}

/// Partitions are those that existed when the backfill was accepted.
pub(crate) fn context<'a>(state: &'a State, backfill: &Backfill) -> PartitionContext<'a> {
    PartitionContext::new(backfill.definition.as_of, state.dynamic_partitions())
}

fn end(backfill: &Backfill) -> Next {
    match backfill.fared.not_made() {
        0 => Next::End(BackfillState::Succeeded, String::new()),
        1 => Next::End(BackfillState::Failed, "1 partition was not made".to_owned()),
        some => Next::End(BackfillState::Failed, format!("{some} partitions were not made")),
    }
}

enum Readiness {
    Ready,
    Waits,
    Gap(String),
}

/// Whether everything that a chunk reads from earlier ones is there.
fn readiness(
    state: &State,
    backfill: &Backfill,
    definitions: &Definitions,
    chunks: &Chunks<'_>,
    chunk: &Chunk,
) -> Readiness {
    let read = chunks.read_from_others(&chunk.sets);
    if read.is_empty() {
        return Readiness::Ready;
    }
    let overlaps = |sets: &Sets| {
        let both = |(asset, set): (&u32, &PartitionSet)| {
            sets.get(asset).is_some_and(|made| !made.intersection(set).is_empty())
        };
        read.iter().any(both)
    };
    for index in backfill.active.values() {
        let row = state.backfills.chunk(backfill.id, *index);
        let made = row.and_then(|row| chunks.sets_of(&row.asset_key, &row.partition_keys.0).ok());
        if made.is_none_or(|made| overlaps(&made)) {
            return Readiness::Waits;
        }
    }
    if backfill.failed_chunks == 0 {
        return Readiness::Ready;
    }
    match gap(state, backfill, definitions, &read) {
        Some(what) => Readiness::Gap(format!(
            "{what} was not made, and what comes next reads it; `servo backfill retry-failed {}` goes on",
            backfill.id
        )),
        None => Readiness::Ready,
    }
}

/// The first of these partitions that was not made since the backfill was accepted.
fn gap(state: &State, backfill: &Backfill, definitions: &Definitions, read: &Sets) -> Option<String> {
    let is_made = |asset: &AssetKey, key: Option<&PartitionKey>| {
        state.latest(asset, key).is_some_and(|latest| latest.event_id() > backfill.created)
    };
    for (asset, set) in read {
        let asset = definitions.asset(*asset);
        let Some(partitions) = &asset.partitions else {
            if is_made(&asset.key, None) {
                continue;
            }
            return Some(asset.key.to_string());
        };
        if set.len() > MOST_LOOKED_UP {
            return Some(format!("something of {}", asset.key));
        }
        let mut keys = partitions.keys_in(set, context(state, backfill));
        if let Some(missing) = keys.find(|key| !is_made(&asset.key, Some(key))) {
            return Some(format!("{} {missing}", asset.key));
        }
    }
    None
}

/// The events of a chunk; none if there is no room for its run yet, or why it cannot be planned.
fn planned(
    state: &State,
    secret: &[u8],
    backfill: &Backfill,
    definitions: &Definitions,
    chunk: Chunk,
    now: Timestamp,
) -> Result<Vec<EventData>, Option<String>> {
    let (id, index) = (backfill.id, backfill.planned_chunks);
    let definition = &backfill.definition;
    let Chunk { asset, partition_keys, through, sets } = chunk;
    let partitions = sets.values().map(PartitionSet::len).sum::<u128>();
    let plan_context = PlanContext {
        tenant: state.tenant(),
        workspace: state.workspace(),
        at: context(state, backfill),
        materializations: state,
        max_tasks: state.settings().max_tasks_per_run,
    };
    let selection = &definition.asset_selection;
    let planned = planner::plan_targets(definitions, sets, &definition.config, selection, &plan_context)
        .map_err(|error| Some(format!("chunk {index} cannot be planned: {error}")))?;
    let (ranges, keys): (Vec<_>, Vec<_>) = partition_keys.iter().partition(|range| range.to.is_some());
    let request = RunRequest {
        selection: selection.clone(),
        partitions: PartitionChoice {
            keys: keys.into_iter().map(ToString::to_string).collect(),
            ranges: ranges.into_iter().map(ToString::to_string).collect(),
            ..PartitionChoice::default()
        },
        config: definition.config.clone(),
        priority: definition.priority,
        labels: definition.labels.clone(),
        source: RunSource::Backfill { id: id.to_string().into(), chunk: chunk_id(id, index).into() },
        caller: Principal::controller("backfills").into(),
        ..RunRequest::default()
    };
    let plan = RunPlan { plan: planned.plan, basis: PlanBasis::default() };
    let command = TriggerRun::planned(chunk_run_key(id, index), request, Some(plan));
    let (run, events) = match launch(state, secret, command, now) {
        Ok(launched) => launched,
        Err(Refusal::Quota { quota: "max_queued_runs", .. } | Refusal::DailyRuns { .. }) => return Err(None),
        Err(refusal) => return Err(Some(format!("chunk {index} cannot be run: {refusal}"))),
    };
    if events.is_empty() {
        return Err(Some(format!("the run key of chunk {index}, {}, was used before", run.run_key)));
    }
    let planned = EventData::BackfillChunkPlanned(BackfillChunkPlanned {
        backfill_id: id,
        chunk_index: index,
        asset,
        partition_keys,
        through,
        partitions: u64::try_from(partitions).unwrap_or(u64::MAX),
        run_key: run.run_key,
        run_id: run.run_id,
        request_fingerprint: run.request_fingerprint,
    });
    Ok(std::iter::once(planned).chain(events).collect())
}

pub(crate) fn changed(backfill: &Backfill, to_state: BackfillState, reason: String) -> EventData {
    EventData::BackfillStateChanged(BackfillStateChanged {
        backfill_id: backfill.id,
        from_state: backfill.state,
        to_state,
        state_version: backfill.state_version + 1,
        reason,
    })
}
