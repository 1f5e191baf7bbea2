//! Schedules and their ticks.

use std::sync::Arc;

use servo_core::{EvaluationId, EventId, Millis, ScheduleId, Timestamp};
use servo_engine::definitions::{IfRunning, ScheduleDef};
use servo_engine::event::{
    RequestedRun, ScheduleDefined, ScheduleEvaluationFailed, ScheduleEvaluationRequested, SchedulePaused,
    ScheduleRemoved, ScheduleResumed, ScheduleTicked, manual_tick_id, tick_id,
};
use servo_engine::planner::PartitionChoice;
use servo_engine::{EventData, Origin, TickStatus};

use super::{fingerprint, run};

pub(super) fn schedule_defined() -> Vec<EventData> {
    let plain = schedule();
    let full = ScheduleDef {
        timezone: Some("Europe/Amsterdam".into()),
        function: Some("jobs:morning".to_owned()),
        selection: None,
        description: Some("Every \"morning\".".to_owned()),
        tags: [("team".to_owned(), "zoë".to_owned())].into(),
        enabled: false,
        catch_up_on_resume: true,
        config: [("limit".to_owned(), "100".to_owned())].into(),
        priority: -3,
        catchup_window_minutes: 60,
        max_catchup_ticks: 100,
        if_running: IfRunning::Queue,
        timeout_ms: Some(Millis::from_minutes(2)),
        ..schedule()
    };
    let defined = |origin, state_version, definition| {
        EventData::ScheduleDefined(ScheduleDefined {
            schedule_id: schedule_id(),
            origin,
            state_version,
            definition: Arc::new(definition),
        })
    };
    vec![defined(Origin::Code, 1, plain), defined(Origin::Api, 2, full)]
}

pub(super) fn schedule_paused() -> Vec<EventData> {
    vec![EventData::SchedulePaused(SchedulePaused { schedule_id: schedule_id(), state_version: 3 })]
}

pub(super) fn schedule_resumed() -> Vec<EventData> {
    vec![EventData::ScheduleResumed(ScheduleResumed { schedule_id: schedule_id(), state_version: 4 })]
}

pub(super) fn schedule_removed() -> Vec<EventData> {
    vec![EventData::ScheduleRemoved(ScheduleRemoved { schedule_id: schedule_id(), state_version: 5 })]
}

pub(super) fn schedule_ticked() -> Vec<EventData> {
    let run_id = run();
    let (id, due) = (schedule_id(), Timestamp::from_millis(1_736_920_800_000));
    let skipped = ScheduleTicked {
        schedule_id: id,
        tick_id: tick_id(id, due),
        scheduled_for: due,
        manual: false,
        definition_version: EventId::from_parts(1_736_899_200_000, 4),
        asset_selection: String::new(),
        partition_selection: PartitionChoice::default(),
        status: TickStatus::Skipped,
        reason: Some("the schedule is paused".to_owned()),
        runs: Vec::new(),
        output: None,
    };
    let run = RequestedRun {
        run_key: format!("sched:{}", manual_tick_id(id, due)).into(),
        run_id,
        request_fingerprint: fingerprint("7"),
    };
    let triggered = ScheduleTicked {
        tick_id: manual_tick_id(id, due),
        manual: true,
        asset_selection: "raw.*".to_owned(),
        partition_selection: PartitionChoice { latest: true, ..PartitionChoice::default() },
        status: TickStatus::Triggered,
        reason: None,
        runs: vec![run],
        ..skipped.clone()
    };
    vec![EventData::ScheduleTicked(skipped), EventData::ScheduleTicked(triggered)]
}

pub(super) fn schedule_evaluation_failed() -> Vec<EventData> {
    let due = Timestamp::from_millis(1_736_920_800_000);
    vec![EventData::ScheduleEvaluationFailed(ScheduleEvaluationFailed {
        schedule_id: schedule_id(),
        scheduled_for: due,
        attempt: 2,
        error: "ValueError: größe".to_owned(),
        retry_at: due.saturating_add(Millis::from_secs(2)),
        output: None,
    })]
}

pub(super) fn schedule_evaluation_requested() -> Vec<EventData> {
    let due = Timestamp::from_millis(1_736_920_800_000);
    vec![EventData::ScheduleEvaluationRequested(ScheduleEvaluationRequested {
        schedule_id: schedule_id(),
        evaluation_id: EvaluationId::from_parts(1_736_899_200_000, 10),
        scheduled_for: due,
        definition_version: EventId::from_parts(1_736_899_200_000, 4),
        attempt: 1,
        deadline: due.saturating_add(Millis::from_secs(120)),
    })]
}

fn schedule_id() -> ScheduleId {
    ScheduleId::from_parts(1_736_899_200_000, 8)
}

pub(super) fn schedule() -> ScheduleDef {
    serde_json::from_str(
        r#"{"name":"morning","location":{"file":"jobs.py","line":3},"cron":"0 6 * * *","selection":"raw.*"}"#,
    )
    .expect("a schedule")
}
