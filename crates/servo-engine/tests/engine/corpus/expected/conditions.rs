//! Automation conditions.

use servo_engine::EventData;
use servo_engine::event::{ConditionPauseChanged, ConditionRequested, ConditionsEvaluated, RequestedRun};

use super::{asset, fingerprint, run};
use crate::corpus::AT;

pub(super) fn conditions_evaluated() -> Vec<EventData> {
    let run_id = run();
    let evaluation_id = servo_core::EvaluationId::from_parts(1_736_899_200_000, 12);
    let trace = servo_engine::conditions::TraceNode {
        label: "eager()".to_owned(),
        holds: 1,
        of: 2,
        since: Some(AT),
        parts: vec![servo_engine::conditions::TraceNode {
            label: "missing()".to_owned(),
            holds: 0,
            of: 2,
            since: None,
            parts: Vec::new(),
        }],
    };
    let day = servo_core::PartitionKey::parse("date=d:2025-01-15").expect("a key");
    let requested = ConditionRequested { asset: asset(), partitions: vec![day], trace: Some(trace.into()) };
    let whole = ConditionRequested { asset: asset(), partitions: Vec::new(), trace: None };
    let run = RequestedRun {
        run_key: format!("cond:{evaluation_id}").into(),
        run_id,
        request_fingerprint: fingerprint("9"),
    };
    let full = ConditionsEvaluated {
        evaluation_id,
        deployment: 7,
        requested: vec![requested],
        run: Some(run),
        problem: None,
    };
    let failed = ConditionsEvaluated {
        requested: vec![whole],
        run: None,
        problem: Some("größe".to_owned()),
        ..full.clone()
    };
    vec![EventData::ConditionsEvaluated(full), EventData::ConditionsEvaluated(failed)]
}

pub(super) fn condition_pause_changed() -> Vec<EventData> {
    let change = |paused: bool, state_version: u64, reason: &str| {
        EventData::ConditionPauseChanged(ConditionPauseChanged {
            asset: asset(),
            state_version,
            paused,
            reason: reason.to_owned(),
        })
    };
    vec![change(true, 2, "größe"), change(false, 3, "")]
}
