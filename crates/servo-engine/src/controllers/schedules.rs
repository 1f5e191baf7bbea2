//! Schedules: a tick that is due is recorded, and its run is requested in the same batch.
//!
//! Ticks are made one by one, in order, each once: the fold knows the last one, so that a clock that is set back makes
//! none again (L2-INV-1). Ticks that were missed are made up for if they are within the catch-up window, the newest of
//! them first to be kept; the others are left out, and one record says how many. The definition at the tick is part of
//! the record, and is what runs (L2-INV-11).

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::cron::Ticks;
use servo_core::planted::{self, Mistake};
use servo_core::{Millis, ScheduleId, Timestamp};

use crate::decide::{NoRun, request_run, tick as evaluated};
use crate::definitions::IfRunning;
use crate::derive::evaluation_id;
use crate::evaluation::{DEFAULT_TIMEOUT, PATIENCE};
use crate::event::{
    EventData, RequestedRun, RunSource, ScheduleEvaluationRequested, ScheduleTicked, tick_id,
};
use crate::lifecycle::TickStatus;
use crate::principal::{Caller, Principal};
use crate::requests::RunRequest;
use crate::state::{PendingTick, Schedule, State};

/// The events of the next tick of a schedule that is due: the tick first, then what it requests.
pub fn reconcile(state: &State, secret: &[u8], id: ScheduleId, now: Timestamp) -> Vec<EventData> {
    let schedule = state.schedules.get(id);
    if let Some((schedule, pending)) = schedule.and_then(|it| Some((it, it.evaluating.as_ref()?))) {
        return match pending.deadline <= now {
            true => lost(state, secret, schedule, pending, now),
            false => Vec::new(),
        };
    }
    match next(state, id, now) {
        Some(Next::LeftOut(tick)) => vec![EventData::ScheduleTicked(*tick)],
        Some(Next::Tick(schedule, scheduled_for)) => tick(state, secret, schedule, scheduled_for, now),
        None => Vec::new(),
    }
}

/// The next thing to do for a schedule.
enum Next<'a> {
    /// Ticks were missed that are not made up for: the newest of them stands for all.
    LeftOut(Box<ScheduleTicked>),
    /// A tick is due.
    Tick(&'a Schedule, Timestamp),
}

fn next(state: &State, id: ScheduleId, now: Timestamp) -> Option<Next<'_>> {
    let schedule = state.schedules.get(id)?;
    schedule.due_at().filter(|due| *due <= now)?;
    let first = schedule.next_tick_at?;
    // A schedule whose texts cannot be read has no next tick.
    let ticks = state.schedules.ticks_of(&schedule.definition).ok()?;
    match left_out(schedule, &ticks, first, now) {
        Some(tick) => Some(Next::LeftOut(Box::new(tick))),
        None => Some(Next::Tick(schedule, first)),
    }
}

/// The record of the ticks that are not made up for, if there are any. Counts them without walking over them.
fn left_out(schedule: &Schedule, ticks: &Ticks, first: Timestamp, now: Timestamp) -> Option<ScheduleTicked> {
    let definition = &schedule.definition;
    let (first_rank, last_rank) = (ticks.rank(first), ticks.rank(now.saturating_add(Millis::new(1))) - 1);
    let window = Millis::from_minutes(u64::from(definition.catchup_window_minutes));
    let in_window = ticks.rank(now.saturating_sub(window));
    let newest = last_rank - i64::from(definition.max_catchup_ticks) + 1;
    // A paused schedule makes up for nothing: the newest tick is recorded, and stands for those before it.
    let newest = if schedule.paused { last_rank } else { newest };
    let kept = first_rank.max(in_window).max(newest);
    let count = kept - first_rank;
    if count <= 0 {
        return None;
    }
    let last = ticks.tick(kept - 1)?;
    let why = if schedule.paused {
        "the schedule is paused".to_owned()
    } else if in_window >= newest {
        format!("they are older than catchup_window_minutes={}", definition.catchup_window_minutes)
    } else {
        format!("at most max_catchup_ticks={} are made up for", definition.max_catchup_ticks)
    };
    let plural = if count == 1 { "tick was" } else { "ticks were" };
    let reason = format!("{count} {plural} left out, from {first} to {last}: {why}");
    Some(ticked(schedule, last, TickStatus::Skipped, Some(reason)))
}

/// One tick and what it requests.
fn tick(
    state: &State,
    secret: &[u8],
    schedule: &Schedule,
    scheduled_for: Timestamp,
    now: Timestamp,
) -> Vec<EventData> {
    if let Some(reason) = skip_reason(schedule) {
        let tick = ticked(schedule, scheduled_for, TickStatus::Skipped, Some(reason));
        return vec![EventData::ScheduleTicked(tick)];
    }
    if schedule.definition.function.is_some() {
        return vec![evaluation(state, schedule, scheduled_for, now)];
    }
    let tick = ticked(schedule, scheduled_for, TickStatus::Triggered, None);
    let run_key: Arc<str> = format!("sched:{}", tick.tick_id).into();
    let request = request(schedule, scheduled_for, Principal::controller("schedules").into());
    requested(state, secret, tick, vec![(run_key, request)], scheduled_for, now)
}

/// Asks a worker to call the function of a schedule. What follows is decided when it has answered.
fn evaluation(state: &State, schedule: &Schedule, scheduled_for: Timestamp, now: Timestamp) -> EventData {
    let timeout = schedule.definition.timeout_ms.unwrap_or(DEFAULT_TIMEOUT);
    let name = format!("schedule:{}:{}", schedule.id, state.head.last_event);
    EventData::ScheduleEvaluationRequested(ScheduleEvaluationRequested {
        schedule_id: schedule.id,
        evaluation_id: evaluation_id(&name, now),
        scheduled_for,
        definition_version: schedule.definition_version,
        attempt: schedule.attempts + 1,
        deadline: now.saturating_add(timeout).saturating_add(PATIENCE),
    })
}

/// No worker has answered.
fn lost(
    state: &State,
    secret: &[u8],
    schedule: &Schedule,
    pending: &PendingTick,
    now: Timestamp,
) -> Vec<EventData> {
    let waited = pending.deadline.since(pending.requested_at);
    let error = format!("no worker has evaluated it within {waited}; is one running that has the project?");
    evaluated(state, secret, schedule, Err(error), None, &BTreeMap::new(), now)
}

/// Completes a tick with the runs that it requests. If one of them cannot be, the tick has failed and requests nothing;
/// where nothing is to be made, it is skipped.
pub(crate) fn requested(
    state: &State,
    secret: &[u8],
    mut tick: ScheduleTicked,
    requests: Vec<(Arc<str>, RunRequest)>,
    at: Timestamp,
    now: Timestamp,
) -> Vec<EventData> {
    let mut events = Vec::new();
    for (run_key, request) in requests {
        match request_run(state, secret, run_key, request, None, at, now) {
            Ok(found) => {
                tick.asset_selection.clone_from(&found.request.selection);
                tick.partition_selection.clone_from(&found.request.partitions);
                tick.runs.push(found.run);
                if !planted::has(Mistake::TickWithoutRun) {
                    events.extend(found.events);
                }
            }
            Err(none) => {
                tick.status = match none {
                    NoRun::NothingToMake(_) => TickStatus::Skipped,
                    NoRun::Problem(_) => TickStatus::Failed,
                };
                tick.reason = Some(none.into_reason());
                tick.runs.clear();
                return vec![EventData::ScheduleTicked(tick)];
            }
        }
    }
    events.insert(0, EventData::ScheduleTicked(tick));
    events
}

fn skip_reason(schedule: &Schedule) -> Option<String> {
    if schedule.paused {
        return Some("the schedule is paused".to_owned());
    }
    let running = schedule.active.first().filter(|_| schedule.definition.if_running == IfRunning::Skip)?;
    Some(format!("run {running} of an earlier tick is still active"))
}

/// The request of a tick, as the definition says.
pub(crate) fn request(schedule: &Schedule, tick: Timestamp, caller: Caller) -> RunRequest {
    let definition = &schedule.definition;
    RunRequest {
        selection: definition.selection.as_deref().unwrap_or_default().to_owned(),
        partitions: definition.partitions.clone(),
        config: definition.config.clone(),
        priority: definition.priority,
        labels: definition.tags.clone(),
        source: RunSource::Schedule { id: schedule.id.to_string().into(), tick },
        caller,
        ..RunRequest::default()
    }
}

pub(crate) fn ticked(
    schedule: &Schedule,
    scheduled_for: Timestamp,
    status: TickStatus,
    reason: Option<String>,
) -> ScheduleTicked {
    ScheduleTicked {
        schedule_id: schedule.id,
        tick_id: tick_id(schedule.id, scheduled_for),
        scheduled_for,
        manual: false,
        definition_version: schedule.definition_version,
        asset_selection: schedule.definition.selection.as_deref().unwrap_or_default().to_owned(),
        partition_selection: schedule.definition.partitions.clone(),
        status,
        reason,
        runs: Vec::<RequestedRun>::new(),
        output: None,
    }
}
