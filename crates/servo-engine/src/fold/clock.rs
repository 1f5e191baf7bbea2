//! A step of the clock moves everything that is counted from a time along, so that no deadline comes early or late
//! (ADR-088).

use servo_core::planted::{self, Mistake};
use servo_core::{RunId, Timestamp};

use super::{Applied, At, Ignored, retention, schedules, sensors};
use crate::event::ClockStepped;
use crate::rows::{NotificationRow, SensorMessageRow};
use crate::state::{Schedule, State, Task};

pub(super) fn stepped(state: &mut State, at: At, payload: &ClockStepped, key: &str) -> Applied {
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    let active: Vec<RunId> = state.runs().filter(|run| !run.state.is_terminal()).map(|run| run.id).collect();
    for id in active {
        state.change_run(id, at.id, |run| shift(&mut run.started_at, payload.by_ms));
        let tasks = state.run(id).map_or(0, |run| run.tasks.len() as u32);
        for position in 0..tasks {
            let waits = |task: &Task| task.has_open_attempt() || task.retry_at.is_some();
            if state.run(id).is_some_and(|run| waits(&run.tasks[position as usize])) {
                let shifted = |time| moved(time, payload.by_ms);
                state.change_task(id, position, at.id, |task| task.restate_times(shifted));
            }
        }
    }
    shift_automation(state, at, payload.by_ms);
    if planted::has(Mistake::TickAgainAfterClockStep) {
        schedules::begin_all_anew(state, at);
    }
    Applied::Yes
}

/// When evaluations are due, tried again and lost. Ticks of schedules are times of the clock itself.
fn shift_automation(state: &mut State, at: At, by_ms: i64) {
    let ids: Vec<_> = state.sensors().map(|sensor| sensor.id).collect();
    for id in ids {
        state.change_sensor(id, at, |sensor| {
            shift(&mut sensor.next_evaluation_at, by_ms);
            if let Some(pending) = &mut sensor.evaluating {
                pending.requested_at = moved(pending.requested_at, by_ms);
                pending.deadline = moved(pending.deadline, by_ms);
            }
        });
    }
    let failed: Vec<_> = state
        .sensors()
        .flat_map(|sensor| sensor.messages.failed().into_iter().map(|key| (sensor.id, key)))
        .collect();
    for (id, key) in failed {
        let Some(row) = state.sensors.get(id).and_then(|sensor| sensor.messages.get(&key)) else { continue };
        let mut row = SensorMessageRow { row_version: at.id, ..(**row).clone() };
        shift(&mut row.retry_at, by_ms);
        sensors::put_message(state, at, id, row);
    }
    let waiting: Vec<_> =
        state.notifications.rows().filter(|row| row.next_attempt_at.is_some()).cloned().collect();
    for row in waiting {
        let mut row = NotificationRow::clone(&row);
        shift(&mut row.next_attempt_at, by_ms);
        row.created_at = moved(row.created_at, by_ms);
        row.row_version = at.id;
        state.put_notification(row, usize::MAX);
    }
    let waits = |schedule: &&Schedule| schedule.evaluating.is_some() || schedule.retry_at.is_some();
    let schedules: Vec<_> = state.schedules().filter(waits).map(|schedule| schedule.id).collect();
    for id in schedules {
        state.change_schedule(id, at.id, |schedule| {
            shift(&mut schedule.retry_at, by_ms);
            if let Some(pending) = &mut schedule.evaluating {
                pending.requested_at = moved(pending.requested_at, by_ms);
                pending.deadline = moved(pending.deadline, by_ms);
            }
        });
    }
}

fn shift(time: &mut Option<Timestamp>, by_ms: i64) {
    *time = time.map(|time| moved(time, by_ms));
}

fn moved(time: Timestamp, by_ms: i64) -> Timestamp {
    Timestamp::from_millis(time.as_millis().saturating_add(by_ms))
}
