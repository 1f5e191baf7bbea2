//! Requests about schedules: define, pause, resume, remove, and a tick by hand.

use std::sync::Arc;

use servo_core::{ScheduleId, Timestamp};

use super::named::{self, Decided, Turn};
use super::{Answer, Decision, evaluations, request_run};
use crate::command::{ChangeSchedule, TriggerSchedule};
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

impl Decided for Schedule {
    const NAME: &'static str = "schedule";
    const QUOTA: &'static str = "max_schedules";
    const MOST: usize = 200_000;

    fn new_id(state: &State, name: &str, now: Timestamp) -> ScheduleId {
        schedule_id(state.tenant(), state.workspace(), name, now)
    }

    fn check(state: &State, definition: &ScheduleDef) -> Result<(), String> {
        if definition.function.is_some() {
            return Err(named::BELONGS_TO_CODE.to_owned());
        }
        let definitions = state.checked_definitions().ok_or(named::NOTHING_DEPLOYED)?;
        definitions.check_schedule(definition).map_err(|problems| named::told(&problems))
    }

    fn defined(
        schedule_id: ScheduleId,
        origin: Origin,
        state_version: u64,
        definition: Arc<ScheduleDef>,
    ) -> EventData {
        EventData::ScheduleDefined(ScheduleDefined { schedule_id, origin, state_version, definition })
    }

    fn turned(schedule_id: ScheduleId, state_version: u64, turn: Turn) -> EventData {
        match turn {
            Turn::Paused => EventData::SchedulePaused(SchedulePaused { schedule_id, state_version }),
            Turn::Resumed => EventData::ScheduleResumed(ScheduleResumed { schedule_id, state_version }),
            Turn::Removed => EventData::ScheduleRemoved(ScheduleRemoved { schedule_id, state_version }),
        }
    }
}

pub(super) fn change(state: &State, command: &ChangeSchedule, now: Timestamp) -> Decision {
    named::change(state, command, now, |_: &Schedule, never| match *never {})
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
    let schedule: &Schedule = named::find(state, &command.schedule)?;
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
    if !command.partitions.is_empty() {
        request.partitions.clone_from(&command.partitions);
    }
    request.config.extend(command.config.clone());
    let tick_id = manual_tick_id(schedule.id, now);
    let run_key = format!("sched:{tick_id}").into();
    let found = request_run(state, secret, run_key, request, None, now, now)
        .map_err(|none| cannot(none.into_reason()))?;
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
