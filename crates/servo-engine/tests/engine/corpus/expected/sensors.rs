//! The events of sensors that the corpus has.

use std::sync::Arc;

use servo_core::{EvaluationId, EventId, Millis, RunId, SensorId, Timestamp};
use servo_engine::definitions::SensorDef;
use servo_engine::event::{
    RequestedRun, SensorCursorReset, SensorDefined, SensorEvaluated, SensorEvaluationRequested,
    SensorMessageReceived, SensorPaused, SensorRemoved, SensorResumed, SensorTrigger,
};
use servo_engine::{EventData, EventKind, Origin, SensorStatus};

use super::fingerprint;

/// The events of a kind.
pub(super) fn expected(kind: EventKind, run_id: RunId) -> Vec<EventData> {
    let sensor_id = SensorId::from_parts(1_736_899_200_000, 9);
    let evaluation_id = EvaluationId::from_parts(1_736_899_200_000, 11);
    let polled = SensorTrigger::Poll { poll_epoch: 1_736_920_800 };
    let told = SensorTrigger::Push { message_id: "größe/1".into() };
    if kind == EventKind::SensorDefined {
        return vec![defined(sensor_id, 1, POLL), defined(sensor_id, 2, PUSH), defined(sensor_id, 3, ASSETS)];
    }
    let only = if kind == EventKind::SensorPaused {
        EventData::SensorPaused(SensorPaused { sensor_id, state_version: 4 })
    } else if kind == EventKind::SensorResumed {
        EventData::SensorResumed(SensorResumed { sensor_id, state_version: 5 })
    } else if kind == EventKind::SensorRemoved {
        EventData::SensorRemoved(SensorRemoved { sensor_id, state_version: 6 })
    } else if kind == EventKind::SensorCursorReset {
        let cursor = Some("2025-01-14".into());
        EventData::SensorCursorReset(SensorCursorReset { sensor_id, state_version: 7, cursor })
    } else if kind == EventKind::SensorMessageReceived {
        EventData::SensorMessageReceived(SensorMessageReceived {
            sensor_id,
            message_id: "größe/1".into(),
            message: r#"{"id":"größe/1","data":{"file":"a.csv"}}"#.into(),
        })
    } else if kind == EventKind::SensorEvaluationRequested {
        EventData::SensorEvaluationRequested(SensorEvaluationRequested {
            sensor_id,
            evaluation_id,
            trigger: polled,
            attempt: 1,
            expected_state_version: 7,
            deadline: Timestamp::from_millis(1_736_920_920_000),
        })
    } else {
        return evaluated(sensor_id, evaluation_id, polled, told, run_id);
    };
    vec![only]
}

const POLL: &str =
    r#"{"name":"inbox","location":{"file":"jobs.py","line":7},"function":"jobs:inbox","selection":"raw.*"}"#;
const PUSH: &str = r#"{"name":"inbox","location":{"file":"jobs.py","line":7},"function":"jobs:inbox","selection":"raw.*",
    "push":true,"timeout_ms":5000,"config":{"limit":"3"},"priority":2,"enabled":false,"tags":{"team":"ops"},
    "verify":{"scheme":"github","secret":{"name":"secret","provider":"env","path":"HOOK"}}}"#;
const ASSETS: &str = r#"{"name":"inbox","location":{"file":"jobs.py","line":7},"selection":"raw.*","on":["raw/a","raw/b"],
    "all_of":true}"#;

fn defined(sensor_id: SensorId, state_version: u64, text: &str) -> EventData {
    let definition: SensorDef = serde_json::from_str(text).expect("a sensor");
    let (origin, definition) = (Origin::Code, Arc::new(definition));
    EventData::SensorDefined(SensorDefined { sensor_id, origin, state_version, definition })
}

fn evaluated(
    sensor_id: SensorId,
    evaluation_id: EvaluationId,
    polled: SensorTrigger,
    told: SensorTrigger,
    run_id: RunId,
) -> Vec<EventData> {
    let eval_id: Arc<str> = format!("{sensor_id}:poll:1736920800:none").into();
    let triggered = SensorEvaluated {
        sensor_id,
        eval_id: eval_id.clone(),
        evaluation_id: Some(evaluation_id),
        trigger: polled,
        attempt: 1,
        manual: false,
        definition_version: EventId::from_parts(1_736_899_200_000, 4),
        expected_state_version: Some(7),
        cursor_before: Some("2025-01-14".into()),
        cursor_after: Some("2025-01-15".into()),
        status: SensorStatus::Triggered,
        reason: None,
        run_requests: vec![RequestedRun {
            run_key: format!("sensor:{eval_id}").into(),
            run_id,
            request_fingerprint: fingerprint("7"),
        }],
        retry_at: None,
        output: Some("3 files".to_owned()),
    };
    let failed = SensorEvaluated {
        eval_id: format!("{sensor_id}:msg:größe/1:2").into(),
        evaluation_id: None,
        trigger: told,
        attempt: 2,
        manual: true,
        expected_state_version: None,
        cursor_before: None,
        cursor_after: None,
        status: SensorStatus::Failed,
        reason: Some("ValueError: größe".to_owned()),
        run_requests: Vec::new(),
        retry_at: Some(Timestamp::from_millis(1_736_920_800_000).saturating_add(Millis::from_secs(10))),
        output: None,
        ..triggered.clone()
    };
    vec![EventData::SensorEvaluated(triggered), EventData::SensorEvaluated(failed)]
}
