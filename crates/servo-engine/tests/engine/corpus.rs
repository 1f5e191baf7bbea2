//! A frozen corpus of version-1 batches that must load for ever (ADR-051).
//!
//! The files in `corpus/v1/` were written once. If one of these tests fails, the code is wrong, not the file: a change
//! of meaning is a new version of the event. A new event kind adds a file and a line to the table in
//! `corpus/expected.rs`, a new field of an old kind a file to `expected_later` there. A new corpus is made by `cargo
//! test -p servo-engine --test engine corpus -- --ignored`, which only ever writes files that are missing.

mod expected;

use std::path::{Path, PathBuf};

use servo_core::Timestamp;
use servo_engine::event::{UnknownEvent, decode_batch, encode_batch};
use servo_engine::{
    Applied, Causation, DataFormat, Event, EventData, EventKind, Ignored, Outcome, OutputState, Principal,
    Report, RetryPolicy, RunState, Settings, TaskOptions, TaskState,
};

use crate::support;
use crate::support::{World, empty_state, event, key, plan_of, task, user_error};
use expected::{expected, expected_later, options};

const AT: Timestamp = Timestamp::from_millis(1_736_899_200_123);

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/v1")
}

fn read(name: &str) -> Vec<u8> {
    let path = corpus().join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn load(name: &str) -> Vec<Event> {
    decode_batch(&read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn encode(events: &[Event]) -> String {
    let mut bytes = Vec::new();
    encode_batch(events, &mut bytes);
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// The whole small run: a fan-out with a retry, an interruption, a heartbeat, a failure and what it skips.
fn whole_run() -> World {
    let retried = TaskOptions { retry: Some(RetryPolicy::default()), ..TaskOptions::default() };
    let mut world = World::with(plan_of(vec![
        task("extract", &[], retried),
        task("clean", &["extract"], TaskOptions::default()),
        task("check", &["extract"], options()),
        task("report", &["clean", "check"], TaskOptions::default()),
    ]));
    world.enqueue("extract").expect("enqueued");
    world.wait(1);
    world.play("extract", user_error());
    world.pass(60);
    world.start("extract").expect("starts");
    world.wait(30);
    world.beat("extract").expect("beats");
    world.finish("extract", Report::succeeded()).expect("succeeds");
    world.play("check", support::ended_as(Outcome::Interrupted));
    world.succeed("check");
    world.wait(1);
    world.play("clean", user_error());
    world
}

#[test]
#[ignore = "writes the corpus; only for a new event kind"]
fn write_the_files_that_are_missing() {
    let write = |name: String, batches: &[Vec<Event>]| {
        let path = corpus().join(name);
        if !path.exists() {
            let lines: Vec<String> = batches.iter().map(|events| encode(events)).collect();
            std::fs::write(path, lines.join("\n") + "\n").expect("the corpus can be written");
        }
    };
    for kind in EventKind::ALL {
        let events = (0u64..).zip(expected(*kind)).map(|(i, data)| event(data, AT, i)).collect();
        write(format!("{}.json", kind.name()), &[events]);
    }
    for (name, payloads) in expected_later() {
        let events = (0u64..).zip(payloads).map(|(i, data)| event(data, AT, i)).collect();
        write(name.to_owned(), &[events]);
    }
    write("whole_run.jsonl".to_owned(), &whole_run().log);
}

#[test]
fn every_event_kind_of_version_1_loads_and_says_what_it_always_said() {
    let first = EventKind::ALL.iter().map(|kind| (format!("{}.json", kind.name()), expected(*kind)));
    let later = expected_later().into_iter().map(|(name, payloads)| (name.to_owned(), payloads));
    for (name, expected) in first.chain(later) {
        let events = load(&name);
        let payloads: Vec<EventData> = events.iter().map(|event| event.data.clone()).collect();
        assert_eq!(payloads, expected, "{name}");
        for event in &events {
            assert!(name.starts_with(event.data.kind().name()), "{name}");
            assert_eq!(event.at, AT);
            assert_eq!(
                event.idempotency_key,
                event.data.idempotency_key(),
                "{name}: its key has not changed"
            );
            assert_eq!(
                (event.tenant.as_str(), event.workspace.as_str(), &*event.source),
                ("acme", "prod", "test")
            );
        }
        let written = String::from_utf8(read(&name)).expect("UTF-8");
        assert_eq!(encode(&events), written.trim_end(), "{name} is written as it was read");
    }
}

#[test]
fn the_corpus_has_a_file_for_every_kind_and_no_other() {
    let mut found: Vec<String> = std::fs::read_dir(corpus())
        .expect("the corpus is there")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    found.sort();
    let mut wanted: Vec<String> = EventKind::ALL.iter().map(|kind| format!("{}.json", kind.name())).collect();
    wanted.extend(expected_later().into_iter().map(|(name, _)| name.to_owned()));
    wanted.extend(
        [
            "bad_payload.json",
            "bad_plan_edge.json",
            "bad_plan_order.json",
            "extra_fields.json",
            "newer_version.json",
            "no_tenant.json",
            "unknown_type.json",
            "whole_run.jsonl",
        ]
        .map(str::to_owned),
    );
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn a_whole_run_of_version_1_folds_to_the_state_it_always_had() {
    let text = String::from_utf8(read("whole_run.jsonl")).expect("UTF-8");
    let mut state = empty_state(&Settings::default());
    for (seq, line) in (1u64..).zip(text.lines()) {
        let events = decode_batch(line.as_bytes()).expect("a batch");
        assert_eq!(encode(&events), line);
        for event in &events {
            assert!(state.apply(event) == Applied::Yes, "{}", event.idempotency_key);
        }
        state.apply_batch(seq, &[]);
    }
    let run = state.runs().next().expect("one run");
    assert_eq!(run.state, RunState::Failed);
    let task = |name: &str| state.task(run.id, &key(name)).expect("a task");
    let ended = ["extract", "check", "clean", "report"].map(|name| (task(name).state, task(name).attempt));
    assert_eq!(
        ended,
        [
            (TaskState::Succeeded, 2),
            (TaskState::Succeeded, 2),
            (TaskState::Failed, 1),
            (TaskState::Skipped, 0),
        ]
    );
    let rows = state.rows();
    let lines: Vec<String> = rows
        .tasks
        .iter()
        .map(|row| {
            format!(
                "{} {} {} failures={} ready={:?} started={:?} finished={:?} caused_by={:?} error={:?} v={}",
                row.task_key,
                row.state,
                row.transition_reason,
                row.failures,
                row.ready_at,
                row.started_at,
                row.finished_at,
                row.caused_by,
                row.error.as_ref().map(|error| error.to_text()),
                row.row_version
            )
        })
        .collect();
    insta::assert_snapshot!("whole_run_tasks", lines.join("\n"));
    assert_eq!((rows.edges.len(), rows.outbox.len(), rows.timers.len()), (4, 3, 0));
}

#[test]
fn numbers_and_names_of_event_kinds_never_change() {
    let table = [
        (0, "Unknown"),
        (1, "RunRequested"),
        (2, "PlanCreated"),
        (3, "RunTriggered"),
        (4, "RunCancelRequested"),
        (5, "RunKeyConflicted"),
        (6, "RequestAnswered"),
        (10, "DispatchRequested"),
        (11, "DispatchEnqueued"),
        (12, "TimerRequested"),
        (13, "TimerEnqueued"),
        (14, "TimerFired"),
        (15, "ClockStepped"),
        (20, "TaskStarted"),
        (21, "TaskHeartbeat"),
        (22, "TaskFinished"),
        (30, "AssetsDeployed"),
        (31, "DynamicPartitionsChanged"),
        (33, "RequestRefused"),
        (40, "MaterializationApproved"),
        (41, "MaterializationRejected"),
        (42, "MaterializationReleased"),
        (43, "RetentionApplied"),
        (50, "SettingsChanged"),
        (51, "PauseChanged"),
        (60, "ScheduleDefined"),
        (61, "SchedulePaused"),
        (62, "ScheduleResumed"),
        (63, "ScheduleRemoved"),
        (64, "ScheduleTicked"),
        (65, "ScheduleEvaluationFailed"),
        (66, "ScheduleEvaluationRequested"),
        (67, "SensorCursorReset"),
        (68, "SensorMessageReceived"),
        (70, "WorkerRegistered"),
        (71, "WorkerChanged"),
        (72, "WorkerLeft"),
        (73, "WorkerLost"),
        (80, "SensorDefined"),
        (81, "SensorPaused"),
        (82, "SensorResumed"),
        (83, "SensorRemoved"),
        (84, "SensorEvaluationRequested"),
        (85, "SensorEvaluated"),
        (90, "BackfillCreated"),
        (91, "BackfillChunkPlanned"),
        (92, "BackfillStateChanged"),
        (110, "FreshnessChanged"),
        (111, "FreshnessObserved"),
        (120, "ConditionsEvaluated"),
        (121, "ConditionPauseChanged"),
        (130, "PartitionsWiped"),
        (131, "PartitionsMarked"),
        (132, "PartitionsRestored"),
        (133, "PartitionsExpired"),
        (134, "AssetRenamed"),
        (135, "AssetMoved"),
        (150, "NotificationRuleDefined"),
        (151, "NotificationRuleChanged"),
        (152, "NotificationTested"),
        (153, "NotificationRequested"),
        (154, "NotificationAttempted"),
        (155, "QueueServiceChanged"),
    ];
    let kinds = [EventKind::Unknown].into_iter().chain(EventKind::ALL.iter().copied());
    let found: Vec<(u16, &str)> = kinds.map(|kind| (kind as u16, kind.name())).collect();
    assert_eq!(found, table);
}

#[test]
fn names_of_states_and_reasons_never_change() {
    let names = |names: Vec<&'static str>| names.join(" ");
    let of = |list: &[TaskState]| names(list.iter().map(|s| s.name()).collect());
    assert_eq!(
        of(TaskState::ALL),
        "PLANNED BLOCKED READY DISPATCHED RUNNING RETRY_WAIT SKIPPED CANCELLED FAILED SUCCEEDED"
    );
    let ranks: Vec<u8> = TaskState::ALL.iter().map(|s| s.rank()).collect();
    assert_eq!(ranks, [0, 1, 2, 3, 4, 5, 10, 11, 12, 13]);
    assert_eq!(
        names(RunState::ALL.iter().map(|s| s.name()).collect()),
        "PENDING QUEUED RUNNING CANCELLING CANCELLED TIMED_OUT FAILED SUCCEEDED"
    );
    assert_eq!(
        names(servo_engine::TransitionReason::ALL.iter().map(|s| s.name()).collect()),
        "planned run_started dependencies_satisfied enqueued_for_dispatch execution_started execution_succeeded \
         execution_failed timed_out heartbeat_timeout dispatch_ack_timeout interrupted retry_scheduled \
         retry_timer_expired run_cancelled run_timed_out force_cancelled upstream_failed workers_gone"
    );
    assert_eq!(
        names(servo_engine::RunTransitionReason::ALL.iter().map(|s| s.name()).collect()),
        "created queued started all_tasks_succeeded tasks_failed user_cancelled system_cancelled timed_out"
    );
    assert_eq!(
        names(servo_engine::Resolution::ALL.iter().map(|s| s.name()).collect()),
        "SUCCESS PREVIOUS FAILED SKIPPED CANCELLED"
    );
    assert_eq!(
        names(servo_engine::OutboxStatus::ALL.iter().map(|s| s.name()).collect()),
        "PENDING CREATED ACKED FAILED"
    );
    assert_eq!(
        names(servo_engine::TimerState::ALL.iter().map(|s| s.name()).collect()),
        "SCHEDULED ENQUEUED FIRED CANCELLED"
    );
    assert_eq!(
        names(servo_engine::AttemptOutcome::ALL.iter().map(|s| s.name()).collect()),
        "SUCCEEDED FAILED"
    );
    assert_eq!(
        names(servo_engine::AutomationStatus::ALL.iter().map(|s| s.name()).collect()),
        "ACTIVE PAUSED ERROR"
    );
    assert_eq!(
        names(servo_engine::TickStatus::ALL.iter().map(|s| s.name()).collect()),
        "TRIGGERED SKIPPED FAILED"
    );
    assert_eq!(
        names(servo_engine::WorkerState::ALL.iter().map(|s| s.name()).collect()),
        "ACTIVE DRAINING LEFT LOST"
    );
    assert_eq!(names(servo_engine::Origin::ALL.iter().map(|s| s.name()).collect()), "code api");
    assert_eq!(
        names(servo_engine::DataStatus::ALL.iter().map(|s| s.name()).collect()),
        "NEVER_MATERIALIZED MATERIALIZED LAST_ATTEMPT_FAILED EXPIRED"
    );
    assert_eq!(
        names(DataFormat::ALL.iter().map(|s| s.name()).collect()),
        "parquet json bin io external none"
    );
    assert_eq!(
        names(OutputState::ALL.iter().map(|s| s.name()).collect()),
        "COMMITTED QUARANTINED DISCARDED MISSING"
    );
    for state in TaskState::ALL {
        assert_eq!(TaskState::from_name(state.name()), Some(*state));
    }
}

#[test]
fn an_event_of_an_unknown_type_is_kept_counted_and_written_back_unchanged() {
    let events = load("unknown_type.json");
    let EventData::Unknown(UnknownEvent { event_type, event_version, payload }) = &events[1].data else {
        panic!("{:?}", events[1].data)
    };
    assert_eq!((event_type.as_str(), *event_version), ("MaterializationQuarantined", 1));
    assert_eq!(payload, r#"{"z": 1, "a":[1.50, null], "text":"as it was"}"#, "not a byte is different");
    assert_eq!(events[2].data.kind(), EventKind::RunTriggered, "what follows is read as usual");
    let mut state = empty_state(&Settings::default());
    let applied: Vec<Applied> = events.iter().map(|event| state.apply(event)).collect();
    assert_eq!(applied[1], Applied::No(Ignored::UnknownEvent));
    assert_eq!(state.head().unknown_events, 1);
    assert_eq!(state.head().last_event, events[2].id, "and it takes its place in the log");
    let written = String::from_utf8(read("unknown_type.json")).expect("UTF-8");
    assert_eq!(encode(&events), written.trim_end());
}

#[test]
fn a_newer_version_of_a_known_event_is_kept_counted_and_written_back_unchanged() {
    let events = load("newer_version.json");
    let EventData::Unknown(unknown) = &events[0].data else { panic!("{:?}", events[0].data) };
    assert_eq!((unknown.event_type.as_str(), unknown.event_version), ("TaskStarted", 2));
    assert_eq!(events[0].data.kind(), EventKind::Unknown);
    let mut state = empty_state(&Settings::default());
    assert_eq!(state.apply(&events[0]), Applied::No(Ignored::UnknownEvent));
    assert_eq!(state.head().unknown_events, 1);
    let written = String::from_utf8(read("newer_version.json")).expect("UTF-8");
    assert_eq!(encode(&events), written.trim_end());
}

#[test]
fn fields_added_later_to_a_known_event_do_not_matter() {
    let events = load("extra_fields.json");
    assert_eq!(events[0].data, expected(EventKind::TaskStarted)[0]);
}

#[test]
fn what_differs_from_the_event_before_is_written_and_the_rest_is_inherited() {
    let mut events: Vec<Event> =
        (0u64..3).map(|i| event(expected(EventKind::TaskStarted)[0].clone(), AT, i)).collect();
    events[1].source = "api/zoë".into();
    events[1].causation = Some(Causation::Event(events[0].id));
    events[2].causation = Some(Causation::Request("6f1c".into()));
    events[2].principal = Principal::worker("größe");
    let text = encode(&events);
    assert_eq!(text.matches("\"tenant_id\"").count(), 1);
    assert_eq!(text.matches("\"source\"").count(), 3, "test, api, test again");
    assert_eq!(decode_batch(text.as_bytes()).expect("reads back"), events);
}
