//! Inputs of the small world: definitions, changes, settings and answers, as chance has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_engine::definitions::{NotificationDef, ScheduleDef, SensorDef};
use servo_engine::evaluation::{
    Evaluated, Evaluation, EvaluationOutcome, EvaluationReport, EvaluationResult, RequestSpec,
};
use servo_engine::notification::{Delivery, Notified, SendFailure};
use servo_engine::{
    Caller, ChangePartitions, ChangeSensor, ChangeSettings, Deploy, Input, Pause, PushMessage, ResetCursor,
    SensorChange, SettingOrigin, SettingValue,
};

use crate::support::definition;

/// Four assets, each absent or in one of three versions; now and then one with a bad key.
pub(super) fn deploy(whom: u16) -> Input {
    let bad = whom >> 8 == 0;
    let versions = (0..4).map(|asset| (asset, whom >> (2 * asset) & 3));
    let mut assets: Vec<_> = versions
        .filter(|(_, version)| *version > 0)
        .map(|(asset, version)| definition(&format!("n{:02}", 20 - asset), &version.to_string()))
        .collect();
    if bad {
        assets.push(definition("no key", "1"));
    }
    let digest = format!("sha256:{:02x}{}", whom & 0xff, if bad { "bad" } else { "" });
    Input::Deploy(Deploy {
        schedules: if whom >> 6 & 1 == 1 { vec![Arc::new(often())] } else { Vec::new() },
        sensors: if whom >> 7 & 1 == 1 { vec![Arc::new(told(whom >> 2 & 1 == 1))] } else { Vec::new() },
        notifications: if whom >> 5 & 1 == 1 { vec![Arc::new(told_of())] } else { Vec::new() },
        time_zones: "2026e".into(),
        digest: digest.into(),
        project: "sim".to_owned(),
        assets,
        caller: Caller::user("me"),
    })
}

/// A schedule with a function, every ten minutes.
pub(super) fn often() -> ScheduleDef {
    serde_json::from_str(
        r#"{"name":"often","location":{"file":"jobs.py","line":3},"cron":"*/10 * * * *","function":"jobs:often",
            "selection":"t.n20"}"#,
    )
    .expect("a schedule")
}

/// A sensor that messages are sent to, with or without a function.
pub(super) fn told(has_function: bool) -> SensorDef {
    let function = has_function.then(|| "jobs:told".to_owned());
    let text = r#"{"name":"told","location":{"file":"jobs.py","line":9},"selection":"t.n20","push":true}"#;
    SensorDef { function, ..serde_json::from_str(text).expect("a sensor") }
}

/// A notification rule about everything, to two destinations.
pub(super) fn told_of() -> NotificationDef {
    serde_json::from_str(
        r#"{"name":"told_of","location":{"file":"jobs.py","line":9},"max_per_hour":5,"when":["run_failed",
            "retries_exhausted","check_failed","check_blocked","schedule_error","sensor_error",
            "queue_without_worker","recovered"],
            "to":[{"type":"command","command":["true"]},{"type":"webhook","url":"https://example.org"}]}"#,
    )
    .expect("a notification rule")
}

/// The outcome of sending a notification: it arrived, or did not, for now or for good.
pub(super) fn notified(delivery: &Delivery) -> Input {
    let retry = delivery.notification_id.len().is_multiple_of(2);
    let fails = delivery.attempt < 3 && delivery.facts.summary.len().is_multiple_of(3);
    let failure = fails.then(|| SendFailure { message: "boom".to_owned(), retry });
    let (notification_id, attempt) = (delivery.notification_id.clone(), delivery.attempt);
    Input::Notified(Notified { notification_id, attempt, failure })
}

/// The answer of a worker to a call: a run, none, or a failure.
pub(super) fn evaluated(evaluation: &Evaluation) -> Input {
    let result = EvaluationResult { requests: vec![RequestSpec::default()], ..EvaluationResult::default() };
    let report = match evaluation.evaluation_id.to_u128() % 4 {
        0 => EvaluationReport::failed("boom"),
        1 => EvaluationReport {
            outcome: EvaluationOutcome::Returned(EvaluationResult::default()),
            output: None,
        },
        _ => EvaluationReport { outcome: EvaluationOutcome::Returned(result), output: None },
    };
    let (evaluation_id, subject) = (evaluation.evaluation_id, evaluation.subject);
    Input::Evaluated(Evaluated { evaluation_id, subject, report, stored_keys: BTreeMap::new() })
}

/// A message for the sensor, or a change of it.
pub(super) fn sensed(whom: u16) -> Input {
    let (sensor, caller) = ("told".to_owned(), Caller::user("me"));
    let change = match whom % 8 {
        0 => SensorChange::Pause,
        1 => SensorChange::Resume,
        2 => SensorChange::Own(ResetCursor(Some(format!("{}", whom / 8 % 4).into()))),
        _ => {
            let message_id: Arc<str> = format!("m{}", whom / 8 % 16).into();
            let message = format!(r#"{{"id":"{message_id}"}}"#).into();
            return Input::PushMessage(PushMessage { sensor, message_id, message, caller });
        }
    };
    Input::ChangeSensor(ChangeSensor { name: sensor, expected_state_version: None, change, caller })
}

/// Four keys, each added or removed or neither; now and then what is refused.
pub(super) fn change_partitions(whom: u16, how: u8) -> Input {
    let keys = |bits: u8| (0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| format!("k{bit}")).collect();
    let mut change = ChangePartitions {
        name: format!("set {}", whom % 2),
        add: keys(how),
        remove: keys(how >> 4),
        caller: Caller::user("me"),
    };
    // Some are carried out once.
    if whom % 4 == 2 {
        change.caller.request_id = Some(format!("{}", whom % 8).into());
        change.caller.request_fingerprint = Some(servo_core::Fingerprint::from_digest([how; 32]));
    }
    match whom % 16 {
        0 => change.add.push(String::new()),
        1..=8 => change.remove.retain(|key| !change.add.contains(key)),
        _ => {}
    }
    Input::ChangePartitions(change)
}

/// Another value for one setting, or its default again.
pub(super) fn new_settings(whom: u16) -> ChangeSettings {
    let (name, values): (&str, [u64; 3]) = [
        ("max_concurrent_tasks", [1, 2, 5]),
        ("max_concurrent_runs", [1, 2, 4]),
        ("max_queued_runs", [0, 1, 5]),
        ("pool.warehouse", [0, 1, 2]),
        ("runs_per.customer", [0, 1, 2]),
        ("recent_runs", [0, 1, 3]),
        ("recent_tasks", [0, 5, 50_000]),
        ("heartbeat_timeout", [5_000, 40_000, 90_000]),
        ("max_run_duration", [60_000, 3_600_000, 14_400_000]),
        ("max_interruptions", [0, 1, 3]),
        ("outbox_retry_after", [1_000, 60_000, 300_000]),
    ][usize::from(whom / 4) % 11];
    let value = values.get(usize::from(whom) % 4);
    ChangeSettings {
        set: value.map(|value| (name.to_owned(), SettingValue::Number(*value))).into_iter().collect(),
        unset: if value.is_none() { vec![name.to_owned()] } else { Vec::new() },
        origin: SettingOrigin::Api,
        caller: Caller::user("me"),
    }
}

/// Pauses or resumes everything, a queue or an asset.
pub(super) fn new_pause(whom: u16) -> Pause {
    let scope =
        ["all", "queue:big", "queue:default", "asset:t/n20", "asset:t/also_0"][usize::from(whom / 2) % 5];
    Pause {
        scope: scope.parse().expect("a scope"),
        paused: whom.is_multiple_of(2),
        reason: String::new(),
        caller: Caller::user("me"),
    }
}
