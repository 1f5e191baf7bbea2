//! Requests about schedules: define, pause, resume, remove, and a tick by hand.

use std::sync::Arc;

use servo_core::{ScheduleId, Timestamp};

use super::named::{self, Kind};
use super::{Answer, Decision, evaluations, request_run};
use crate::command::{ChangeSchedule, ScheduleChange, TriggerSchedule};
use crate::controllers::schedules;
use crate::definitions::ScheduleDef;
use crate::derive::schedule_id;
use crate::evaluation::Subject;
use crate::event::{
    EventData, ScheduleDefined, SchedulePaused, ScheduleRemoved, ScheduleResumed, manual_tick_id,
};
use crate::lifecycle::{Origin, TickStatus};
use crate::refusal::Refusal;
use crate::state::{Schedule, State};

const SCHEDULES: Kind = Kind { name: "schedule", quota: "max_schedules", most: 200_000 };

pub(super) fn change(state: &State, command: &ChangeSchedule, now: Timestamp) -> Decision {
    match changed(state, command, now) {
        Ok(Some(event)) => Decision::change(event, command.caller.principal.clone()),
        Ok(None) => Decision::unchanged(),
        Err(refusal) => Decision::refuse(refusal),
    }
}

fn changed(state: &State, command: &ChangeSchedule, now: Timestamp) -> Result<Option<EventData>, Refusal> {
    if let ScheduleChange::Create(definition) = &command.change {
        return create(state, definition, now).map(Some);
    }
    let schedule = find(state, &command.schedule)?;
    SCHEDULES.expect_version(schedule, command.expected_state_version)?;
    let (schedule_id, state_version) = (schedule.id, schedule.state_version + 1);
    Ok(match &command.change {
        ScheduleChange::Pause if schedule.paused => None,
        ScheduleChange::Pause => {
            Some(EventData::SchedulePaused(SchedulePaused { schedule_id, state_version }))
        }
        ScheduleChange::Resume if !schedule.paused => None,
        ScheduleChange::Resume => {
            Some(EventData::ScheduleResumed(ScheduleResumed { schedule_id, state_version }))
        }
        ScheduleChange::Remove => {
            SCHEDULES.is_changeable(schedule)?;
            Some(EventData::ScheduleRemoved(ScheduleRemoved { schedule_id, state_version }))
        }
        ScheduleChange::Create(definition) | ScheduleChange::Redefine(definition) => {
            SCHEDULES.is_changeable(schedule)?;
            check(state, definition)?;
            (schedule.definition != *definition)
                .then(|| defined(schedule_id, Origin::Api, state_version, definition))
        }
    })
}

fn create(state: &State, definition: &Arc<ScheduleDef>, now: Timestamp) -> Result<EventData, Refusal> {
    check(state, definition)?;
    let known = state.schedules.find(&definition.name).map(|known| &**known);
    SCHEDULES.may_create(&definition.name, known, state.schedules.len())?;
    let (id, state_version) = identity(state, &definition.name, known, now);
    Ok(defined(id, Origin::Api, state_version, definition))
}

/// The differences between the schedules of a project and those of the state.
pub(super) fn deploy(
    state: &State,
    schedules: &[Arc<ScheduleDef>],
    now: Timestamp,
) -> Result<Vec<EventData>, Refusal> {
    let declared =
        SCHEDULES.declared(schedules.iter().map(|definition| (definition.name.as_str(), definition)))?;
    let mut events = Vec::new();
    for (name, definition) in &declared {
        let known = state.schedules.find(name).map(|known| &**known);
        SCHEDULES.may_deploy(name, known)?;
        if known.is_some_and(|known| known.removed_at.is_none() && known.definition == **definition) {
            continue;
        }
        let (id, state_version) = identity(state, name, known, now);
        events.push(defined(id, Origin::Code, state_version, definition));
    }
    SCHEDULES.limit(state.schedules.len() + events.len())?;
    let removed = state
        .schedules()
        .filter(|schedule| schedule.origin == Origin::Code && !declared.contains_key(&*schedule.name));
    events.extend(removed.map(|schedule| {
        EventData::ScheduleRemoved(ScheduleRemoved {
            schedule_id: schedule.id,
            state_version: schedule.state_version + 1,
        })
    }));
    Ok(events)
}

/// A tick that somebody asks for. The ticks by the clock go on as if it had not been.
pub(super) fn trigger(state: &State, secret: &[u8], command: &TriggerSchedule, now: Timestamp) -> Decision {
    match triggered(state, secret, command, now) {
        Ok(decision) => decision,
        Err(refusal) => Decision::refuse(refusal),
    }
}

fn triggered(
    state: &State,
    secret: &[u8],
    command: &TriggerSchedule,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let schedule = find(state, &command.schedule)?;
    let cannot = |problem| Refusal::CannotTrigger { name: schedule.name.to_string(), problem };
    if schedule.definition.function.is_some() {
        let nothing = || Refusal::NothingToTrigger { name: schedule.name.to_string() };
        let result = command.evaluated.as_ref().ok_or_else(nothing)?;
        let chosen = result.run_keys(Subject::Schedule(schedule.id));
        evaluations::looked_up(state, secret, &chosen, &command.stored_keys)?;
        let (run_id, events) =
            evaluations::manual_tick(state, secret, schedule, command, result, now).map_err(cannot)?;
        let principal = command.caller.principal.clone();
        return Ok(Decision { events, principal, answer: Answer::NewRun(run_id) });
    }
    let mut request = schedules::request(schedule, now, command.caller.clone());
    request.partitions.clone_from(&command.partitions);
    request.config.extend(command.config.clone());
    let tick_id = manual_tick_id(schedule.id, now);
    let run_key = format!("sched:{tick_id}").into();
    let found = request_run(state, secret, run_key, request, None, now, now).map_err(cannot)?;
    let mut tick = schedules::ticked(schedule, now, TickStatus::Triggered, None);
    (tick.tick_id, tick.manual) = (tick_id, true);
    tick.partition_selection.clone_from(&found.request.partitions);
    let run_id = found.run.run_id;
    tick.runs.push(found.run);
    let mut events = vec![EventData::ScheduleTicked(tick)];
    events.extend(found.events);
    let principal = command.caller.principal.clone();
    Ok(Decision { events, principal, answer: Answer::NewRun(run_id) })
}

fn find<'a>(state: &'a State, name: &str) -> Result<&'a Schedule, Refusal> {
    state.schedule(name).ok_or_else(|| Refusal::UnknownSchedule { name: name.to_owned() })
}

fn check(state: &State, definition: &ScheduleDef) -> Result<(), Refusal> {
    let bad = |problem: String| SCHEDULES.bad(&definition.name, problem);
    if definition.function.is_some() {
        return Err(bad(named::BELONGS_TO_CODE.to_owned()));
    }
    let definitions = state.checked_definitions().ok_or_else(|| bad(named::NOTHING_DEPLOYED.to_owned()))?;
    definitions.check_schedule(definition).map_err(|problems| bad(named::told(&problems)))
}

/// The id that a name keeps, and the next version of its state.
fn identity(state: &State, name: &str, known: Option<&Schedule>, now: Timestamp) -> (ScheduleId, u64) {
    match known {
        Some(known) => (known.id, known.state_version + 1),
        None => (schedule_id(state.tenant(), state.workspace(), name, now), 1),
    }
}

fn defined(
    schedule_id: ScheduleId,
    origin: Origin,
    state_version: u64,
    definition: &Arc<ScheduleDef>,
) -> EventData {
    let definition = definition.clone();
    EventData::ScheduleDefined(ScheduleDefined { schedule_id, origin, state_version, definition })
}
