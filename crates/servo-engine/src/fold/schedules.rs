//! Schedules: each change of one is folded once by its version, each tick once by its time.

use std::collections::BTreeSet;

use servo_core::{Millis, RunId, ScheduleId, Timestamp};

use super::named::{self, Folded};
use super::{Applied, At, Ignored, retention};
use crate::event::{
    RunSource, ScheduleDefined, ScheduleEvaluationFailed, ScheduleEvaluationRequested, SchedulePaused,
    ScheduleRemoved, ScheduleResumed, ScheduleTicked,
};
use crate::lifecycle::TickStatus;
use crate::rows::{DefinitionKind, Json, ScheduleTickRow};
use crate::state::{Defined, PendingTick, Schedule, State};

/// Ticks of all schedules that are kept in memory.
const RECENT_TICKS: usize = 10_000;

/// A last tick that is further ahead than this was made by a wrong clock.
const FAR_AHEAD: Millis = Millis::from_hours(24);

impl Folded for Schedule {
    const KIND: DefinitionKind = DefinitionKind::Schedule;
    const UNKNOWN: Ignored = Ignored::UnknownSchedule;

    fn add(state: &mut State, new: Self) {
        state.add_schedule(new);
    }

    fn change(state: &mut State, id: ScheduleId, at: At, change: impl FnOnce(&mut Self)) {
        state.change_schedule(id, at.id, change);
    }
}

pub(super) fn defined(state: &mut State, at: At, payload: &ScheduleDefined) -> Applied {
    let id = payload.schedule_id;
    let mut definition = payload.definition.clone();
    state.schedules.share(&mut definition);
    let new = Defined::new(id, payload.origin, &definition, payload.state_version, at);
    let create = |defined| Schedule {
        defined,
        ticks_after: at.time,
        last_scheduled_for: None,
        last_tick_id: None,
        last_run_key: None,
        last_run_id: None,
        next_tick_at: None,
        attempts: 0,
        retry_at: None,
        evaluating: None,
        active: BTreeSet::new(),
    };
    let applied = named::defined(state, at, new, create, |schedule, before| {
        schedule.evaluating = None;
        let ticks_as_before = !before.was_removed
            && (before.definition.cron == definition.cron && before.definition.zone() == definition.zone());
        if !ticks_as_before {
            begin_anew(schedule, at.time);
        }
    });
    if applied == Applied::Yes {
        set_next(state, at, id);
    }
    applied
}

pub(super) fn paused(state: &mut State, at: At, payload: &SchedulePaused) -> Applied {
    let version = payload.state_version;
    change(state, at, payload.schedule_id, version, |schedule| schedule.paused = true)
}

pub(super) fn resumed(state: &mut State, at: At, payload: &ScheduleResumed) -> Applied {
    change(state, at, payload.schedule_id, payload.state_version, |schedule| {
        schedule.paused = false;
        if !schedule.definition.catch_up_on_resume {
            begin_anew(schedule, at.time);
        }
    })
}

pub(super) fn removed(state: &mut State, at: At, payload: &ScheduleRemoved) -> Applied {
    let applied = named::removed(state, at, payload.schedule_id, payload.state_version, interrupt);
    if applied == Applied::Yes {
        set_next(state, at, payload.schedule_id);
    }
    applied
}

pub(super) fn ticked(state: &mut State, at: At, payload: &ScheduleTicked, key: &str) -> Applied {
    let id = payload.schedule_id;
    let Some(schedule) = state.schedules.get(id) else { return Applied::No(Ignored::UnknownSchedule) };
    // A copy is known by its place in the log, or by the tick that was made.
    let is_known = at.id <= schedule.version
        || schedule.last_scheduled_for.is_some_and(|last| payload.scheduled_for <= last);
    if payload.manual {
        if !retention::remember(state, at, key) {
            return Applied::No(Ignored::Duplicate);
        }
    } else if is_known {
        return Applied::No(Ignored::Duplicate);
    }
    state.change_schedule(id, at.id, |schedule| {
        if !payload.manual {
            schedule.last_scheduled_for = Some(payload.scheduled_for);
            schedule.ticks_after = schedule.ticks_after.max(payload.scheduled_for);
            (schedule.retry_at, schedule.evaluating) = (None, None);
        }
        schedule.last_tick_id = Some(payload.tick_id.clone());
        if let Some(run) = payload.runs.last() {
            schedule.last_run_key = Some(run.run_key.clone());
            schedule.last_run_id = Some(run.run_id);
        }
        match payload.status {
            TickStatus::Triggered => (schedule.failures, schedule.last_error) = (0, None),
            TickStatus::Failed => {
                schedule.failures = schedule.failures.saturating_add(1);
                schedule.last_error.clone_from(&payload.reason);
            }
            TickStatus::Skipped => {}
        }
    });
    set_next(state, at, id);
    add_row(state, at, payload);
    Applied::Yes
}

pub(super) fn evaluation_failed(state: &mut State, at: At, payload: &ScheduleEvaluationFailed) -> Applied {
    let Some(schedule) = state.schedules.get(payload.schedule_id) else {
        return Applied::No(Ignored::UnknownSchedule);
    };
    if schedule.next_tick_at != Some(payload.scheduled_for) {
        return Applied::No(Ignored::NotInThatState);
    }
    if payload.attempt <= schedule.attempts {
        return Applied::No(Ignored::Duplicate);
    }
    state.change_schedule(payload.schedule_id, at.id, |schedule| {
        schedule.attempts = payload.attempt;
        schedule.failures = schedule.failures.saturating_add(1);
        schedule.last_error = Some(payload.error.clone());
        schedule.retry_at = Some(payload.retry_at);
        schedule.evaluating = None;
    });
    Applied::Yes
}

pub(super) fn evaluation_requested(
    state: &mut State,
    at: At,
    payload: &ScheduleEvaluationRequested,
) -> Applied {
    let Some(schedule) = state.schedules.get(payload.schedule_id) else {
        return Applied::No(Ignored::UnknownSchedule);
    };
    if schedule.next_tick_at != Some(payload.scheduled_for) {
        return Applied::No(Ignored::NotInThatState);
    }
    if schedule.evaluating.is_some() || payload.attempt <= schedule.attempts {
        return Applied::No(Ignored::Duplicate);
    }
    state.change_schedule(payload.schedule_id, at.id, |schedule| {
        schedule.evaluating = Some(Box::new(PendingTick {
            evaluation_id: payload.evaluation_id,
            attempt: payload.attempt,
            requested_at: at.time,
            deadline: payload.deadline,
        }));
    });
    Applied::Yes
}

/// A run was requested, or has ended: the schedule whose tick asked for it knows.
pub(super) fn run_changed(state: &mut State, source: &RunSource, run: RunId, is_active: bool) {
    let RunSource::Schedule { id, .. } = source else { return };
    let Ok(id) = id.parse::<ScheduleId>() else { return };
    state.change_schedule_runs(id, |active| {
        if is_active {
            active.insert(run);
        } else {
            active.remove(&run);
        }
    });
}

fn change(
    state: &mut State,
    at: At,
    id: ScheduleId,
    version: u64,
    apply: impl FnOnce(&mut Schedule),
) -> Applied {
    let applied = named::changed(state, at, id, version, |schedule| {
        interrupt(schedule);
        apply(schedule);
    });
    if applied == Applied::Yes {
        set_next(state, at, id);
    }
    applied
}

/// A call that knows the schedule as it was does not count: the tick is evaluated again.
fn interrupt(schedule: &mut Schedule) {
    schedule.evaluating = None;
}

/// Counts ticks from now on. A tick that was made is not made again, unless the clock was so far ahead that the schedule
/// would be silent for days.
fn begin_anew(schedule: &mut Schedule, now: Timestamp) {
    schedule.last_scheduled_for =
        schedule.last_scheduled_for.filter(|last| *last <= now.saturating_add(FAR_AHEAD));
    schedule.ticks_after = schedule.last_scheduled_for.map_or(now, |last| last.max(now));
    (schedule.retry_at, schedule.attempts) = (None, 0);
}

/// Forgets the ticks of all schedules. A mistake that is only made by those who plant it.
pub(super) fn begin_all_anew(state: &mut State, at: At) {
    let ids: Vec<ScheduleId> = state.schedules().map(|schedule| schedule.id).collect();
    for id in ids {
        state.change_schedule(id, at.id, |schedule| {
            schedule.last_scheduled_for = None;
            begin_anew(schedule, at.time);
        });
        set_next(state, at, id);
    }
}

/// Sets when the schedule ticks next. One whose texts this version cannot read never does.
fn set_next(state: &mut State, at: At, id: ScheduleId) {
    let Some(schedule) = state.schedules.get(id) else { return };
    let definition = schedule.definition.clone();
    let after =
        schedule.last_scheduled_for.map_or(schedule.ticks_after, |last| last.max(schedule.ticks_after));
    let next = state.schedules.ready_ticks_of(&definition).ok().and_then(|ticks| ticks.next(after));
    state.change_schedule(id, at.id, |schedule| {
        if schedule.next_tick_at != next {
            schedule.attempts = 0;
        }
        schedule.next_tick_at = next;
    });
}

fn add_row(state: &mut State, at: At, payload: &ScheduleTicked) {
    let Some(schedule) = state.schedules.get(payload.schedule_id) else { return };
    let first = payload.runs.first();
    let choice = &payload.partition_selection;
    let row = ScheduleTickRow {
        tick_id: payload.tick_id.to_string(),
        schedule_id: payload.schedule_id,
        schedule_name: schedule.name.to_string(),
        scheduled_for: payload.scheduled_for,
        ticked_at: at.time,
        manual: payload.manual,
        definition_version: payload.definition_version,
        asset_selection: Some(payload.asset_selection.clone()).filter(|selection| !selection.is_empty()),
        partition_selection: (!choice.is_empty()).then(|| Json(choice.clone())),
        status: payload.status,
        reason: payload.reason.clone(),
        run_key: first.map(|run| run.run_key.to_string()),
        run_id: first.map(|run| run.run_id),
        request_fingerprint: first.map(|run| run.request_fingerprint.clone()),
        runs: Json(payload.runs.clone()),
        output: payload.output.clone(),
        row_version: at.id,
    };
    state.changes.ticks.push(at.id);
    if let Some(oldest) = state.schedules.ticks.add(at.id, row, RECENT_TICKS) {
        state.changes.ended_ticks.push(oldest);
    }
}
