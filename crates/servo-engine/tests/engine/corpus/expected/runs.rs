//! Runs: requests, plans, cancellations, and answers to requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{EventId, Millis, Operation};
use servo_engine::event::{
    PlanCreated, RequestAnswered, RunCancelRequested, RunKeyConflicted, RunRequested, RunTriggered,
};
use servo_engine::planner::PartitionChoice;
use servo_engine::{EventData, RunSource, TaskOptions};

use super::{fingerprint, options, plan_id, run};
use crate::corpus::AT;
use crate::support::{plan_of, task};

pub(super) fn run_requested() -> Vec<EventData> {
    let run_id = run();
    let bare = RunRequested {
        run_key: "daily:2025-01-15".into(),
        run_id,
        request_fingerprint: fingerprint("a"),
        source: RunSource::Manual,
        selection: String::new(),
        operation: Operation::Materialize,
        partitions: PartitionChoice::default(),
        config: BTreeMap::new(),
        priority: 0,
        timeout_ms: None,
        labels: BTreeMap::new(),
        request_id: None,
    };
    let labels = [("team".to_owned(), "ops \"one\"".to_owned())].into();
    let full = RunRequested {
        source: RunSource::Schedule { id: "nightly".into(), tick: AT },
        selection: "+raw.events or tag:größe".to_owned(),
        partitions: PartitionChoice {
            keys: vec!["2025-01-15".to_owned()],
            ranges: vec!["2025-01-01..2025-01-07".to_owned()],
            latest: true,
            ..PartitionChoice::default()
        },
        config: [("limit".to_owned(), "1.50".to_owned())].into(),
        priority: -5,
        timeout_ms: None,
        labels,
        request_id: Some("6f1c".into()),
        ..bare.clone()
    };
    vec![EventData::RunRequested(bare), EventData::RunRequested(full)]
}

pub(super) fn run_key_conflicted() -> Vec<EventData> {
    let run_id = run();
    let bare = RunKeyConflicted {
        run_key: "daily:2025-01-15".into(),
        run_id,
        existing_fingerprint: fingerprint("a"),
        conflicting_fingerprint: fingerprint("b"),
        request_id: None,
    };
    let full = RunKeyConflicted { request_id: Some("6f1c".into()), ..bare.clone() };
    vec![EventData::RunKeyConflicted(bare), EventData::RunKeyConflicted(full)]
}

pub(super) fn request_answered() -> Vec<EventData> {
    let run_id = run();
    let bare = RequestAnswered {
        request_id: "6f1c".into(),
        request_fingerprint: fingerprint("a"),
        run_id: None,
        event_id: None,
        added: 0,
        removed: 0,
    };
    let full = RequestAnswered {
        run_id: Some(run_id),
        event_id: Some(EventId::from_parts(1_736_899_200_000, 5)),
        added: 2,
        removed: 1,
        ..bare.clone()
    };
    vec![EventData::RequestAnswered(bare), EventData::RequestAnswered(full)]
}

pub(super) fn plan_created() -> Vec<EventData> {
    let run_id = run();
    let plan_id = plan_id();
    let plan = plan_of(vec![
        task("a", &[], TaskOptions::default()),
        task("b", &["a"], options()),
        task("c", &["b", "a"], TaskOptions::default()),
    ]);
    vec![EventData::PlanCreated(PlanCreated {
        run_id,
        plan_id,
        fingerprint: fingerprint("b"),
        deployment: 0,
        tasks: plan.tasks().clone(),
        sets: Arc::default(),
    })]
}

pub(super) fn run_triggered() -> Vec<EventData> {
    let run_id = run();
    let plan_id = plan_id();
    vec![
        EventData::RunTriggered(RunTriggered { run_id, plan_id, timeout_ms: None }),
        EventData::RunTriggered(RunTriggered { run_id, plan_id, timeout_ms: Some(Millis::from_hours(2)) }),
    ]
}

pub(super) fn run_cancel_requested() -> Vec<EventData> {
    let run_id = run();
    let bare = RunCancelRequested {
        run_id,
        reason: String::new(),
        force: false,
        silent_since: None,
        by_system: false,
    };
    let reason = "wrong day\nof the week".to_owned();
    let full = RunCancelRequested { reason, force: true, ..bare.clone() };
    vec![EventData::RunCancelRequested(bare), EventData::RunCancelRequested(full)]
}
