//! Sensors and schedules with functions: each evaluation once, with its runs in the same batch, or nothing of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::Timestamp;
use servo_engine::controllers::{schedules, sensors};
use servo_engine::definitions::{ScheduleDef, SensorDef};
use servo_engine::evaluation::{
    Call, Evaluated, Evaluation, EvaluationOutcome, EvaluationReport, EvaluationResult, RequestSpec,
};
use servo_engine::event::{ScheduleTicked, SensorEvaluated};
use servo_engine::{
    Applied, AutomationStatus, Caller, Change, ChangeSensor, Deploy, Effect, Engine, Event, EventData,
    Ignored, Input, PushMessage, Refusal, Reply, ResetCursor, RunState, Schedule, Sensor, SensorChange,
    SensorStatus, Settings, State, TickStatus, effect,
};

use crate::support;
use crate::support::{SECRET, START, World, definition, tenant, workspace};

fn sensor_of(text: &str) -> SensorDef {
    let name = if text.contains(r#""name":"mine""#) { "" } else { r#""name":"inbox","# };
    let whole = format!(r#"{{{name}"location":{{"file":"jobs.py","line":3}},{text}}}"#);
    serde_json::from_str(&whole).expect("a sensor")
}

fn poll() -> SensorDef {
    sensor_of(r#""function":"jobs:inbox","selection":"t.a","interval_ms":60000"#)
}

fn push() -> SensorDef {
    sensor_of(r#""function":"jobs:inbox","selection":"t.a","push":true"#)
}

fn deploy(digest: &str, schedules: Vec<ScheduleDef>, sensors: Vec<SensorDef>) -> Input {
    Input::Deploy(Deploy {
        time_zones: "2026e".into(),
        digest: digest.into(),
        project: "shop".to_owned(),
        assets: vec![definition("a", "1"), definition("b", "1"), definition("c", "1")],
        schedules: schedules.into_iter().map(Arc::new).collect(),
        sensors: sensors.into_iter().map(Arc::new).collect(),
        notifications: Vec::new(),
        caller: Caller::user("me"),
    })
}

/// A workspace with a sensor, and the calls that its deployment has asked for.
fn world(sensor: SensorDef) -> World {
    let mut world = World::new(Settings::default());
    world.now = Timestamp::from_millis(START.as_millis() + 30_000);
    world.ask(deploy("d1", Vec::new(), vec![sensor])).expect("deployed");
    world
}

fn sensor(world: &World) -> &Sensor {
    world.state().sensor("inbox").expect("it is there")
}

/// The call that a worker is asked for now, as it would be after a restart.
fn pending(world: &World) -> Evaluation {
    let calls = effect::unfinished(world.state()).into_iter().filter_map(|effect| match effect {
        Effect::Evaluate(evaluation) => Some(*evaluation),
        Effect::Enqueue(_)
        | Effect::Release(_)
        | Effect::Move(_)
        | Effect::Promote(_)
        | Effect::Discard(_)
        | Effect::ClearStaging(_)
        | Effect::Notify(_)
        | Effect::Expire(_)
        | Effect::ExpireLogs(_) => None,
    });
    let mut calls: Vec<_> = calls.collect();
    assert_eq!(calls.len(), 1, "one call is pending");
    calls.remove(0)
}

fn returned(result: EvaluationResult) -> EvaluationReport {
    EvaluationReport { outcome: EvaluationOutcome::Returned(result), output: Some("looked".to_owned()) }
}

fn requests(keys: &[&str], cursor: &str) -> EvaluationReport {
    let request = |key: &&str| RequestSpec { run_key: Some((*key).to_owned()), ..RequestSpec::default() };
    returned(EvaluationResult {
        requests: keys.iter().map(request).collect(),
        cursor: Some(cursor.into()),
        ..EvaluationResult::default()
    })
}

fn answer(call: &Evaluation, report: EvaluationReport) -> Input {
    let keys = report.run_keys(call.subject).into_iter();
    let stored_keys: BTreeMap<_, _> = keys.map(|key| (key, Default::default())).collect();
    Input::Evaluated(Evaluated {
        evaluation_id: call.evaluation_id,
        subject: call.subject,
        report,
        stored_keys,
    })
}

fn evaluations(world: &World) -> Vec<SensorEvaluated> {
    let evaluated = world.events().into_iter().filter_map(|event| {
        let EventData::SensorEvaluated(evaluated) = event.data else { return None };
        Some(evaluated)
    });
    evaluated.collect()
}

fn change(change: SensorChange) -> Input {
    let (name, caller) = ("inbox".to_owned(), Caller::user("me"));
    Input::ChangeSensor(ChangeSensor { name, expected_state_version: None, change, caller })
}

fn message(id: &str) -> Input {
    Input::PushMessage(PushMessage {
        sensor: "inbox".to_owned(),
        message_id: id.into(),
        message: format!(r#"{{"id":"{id}","data":1}}"#).into(),
        caller: Caller::user("me"),
    })
}

fn kinds(batch: &[Event]) -> Vec<&'static str> {
    batch.iter().map(|event| event.data.kind().name()).collect()
}

fn minutes(world: &mut World, minutes: u64) {
    world.pass(minutes * 60);
}

#[test]
fn a_poll_is_asked_for_answered_and_its_runs_are_one_batch_with_it() {
    let mut world = world(poll());
    let call = pending(&world);
    assert_eq!(call.call, Call::Poll { cursor: None, evaluated_at: world.now });
    assert_eq!((call.function.as_str(), &*call.name), ("jobs:inbox", "inbox"));
    world.ask(answer(&call, requests(&["a.csv", "b.csv"], "b.csv"))).expect("answered");
    let batch = world.log.last().expect("a batch");
    assert_eq!(
        kinds(batch)[..5],
        ["SensorEvaluated", "RunRequested", "PlanCreated", "RunRequested", "PlanCreated"]
    );
    let evaluated = &evaluations(&world)[0];
    assert_eq!(evaluated.status, SensorStatus::Triggered);
    let seconds = world.now.as_millis() / 1_000;
    assert_eq!(&*evaluated.eval_id, format!("{}:poll:{seconds}:none", sensor(&world).id));
    assert_eq!(&*evaluated.run_requests[0].run_key, format!("sensor:{}:key:a.csv", sensor(&world).id));
    assert_eq!(
        world.state().runs().filter(|run| run.state == RunState::Running).count(),
        2,
        "both have started"
    );
    assert_eq!((sensor(&world).cursor.as_deref(), sensor(&world).state_version), (Some("b.csv"), 2));
    let row = world.state().recent_evals().next().expect("a row").clone();
    assert_eq!((row.status, row.output.as_deref()), (SensorStatus::Triggered, Some("looked")));
    // Not before its interval has passed.
    assert!(sensor(&world).evaluating.is_none());
    world.pass(59);
    assert!(sensor(&world).evaluating.is_none());
    world.pass(1);
    assert_eq!(pending(&world).call, Call::Poll { cursor: Some("b.csv".into()), evaluated_at: world.now });
}

/// L2-INV-3 of the seeds: the same evaluation twice changes nothing.
#[test]
fn test_poll_sensor_idempotent() {
    let mut world = world(poll());
    let call = pending(&world);
    let again = sensors::reconcile(world.state(), SECRET, sensor(&world).id, world.now);
    assert_eq!(again, [], "the controller has nothing to add (INV-3)");
    world.ask(answer(&call, requests(&["a"], "1"))).expect("answered");
    let before = world.state().rows();
    world.ask(answer(&call, requests(&["a", "b"], "2"))).expect("answered");
    assert_eq!(world.state().rows(), before, "an answer counts once");
    let mut state = world.state().clone();
    let evaluated = world.log.last().expect("a batch")[0].clone();
    assert_eq!(state.apply(&evaluated), Applied::No(Ignored::Duplicate));
}

/// The same run key is the same run, whichever evaluation asks for it.
#[test]
fn a_run_key_of_a_function_starts_one_run() {
    let mut world = world(poll());
    let call = pending(&world);
    world.ask(answer(&call, requests(&["a", "a"], "1"))).expect("answered");
    minutes(&mut world, 1);
    let call = pending(&world);
    world.ask(answer(&call, requests(&["a"], "2"))).expect("answered");
    assert_eq!(world.state().runs().count(), 1);
    assert_eq!(evaluations(&world).len(), 2);
    let other =
        RequestSpec { run_key: Some("a".into()), selection: Some("t.b".into()), ..Default::default() };
    minutes(&mut world, 1);
    let call = pending(&world);
    let report = returned(EvaluationResult { requests: vec![other], ..Default::default() });
    world.ask(answer(&call, report)).expect("answered");
    let failed = evaluations(&world).pop().expect("one");
    assert_eq!(failed.status, SensorStatus::Failed);
    assert!(failed.reason.expect("why").contains("was used before for another request"));
}

/// L2-INV-12, C4: an evaluation of another state is recorded, and its runs are dropped.
#[test]
fn test_sensor_eval_version_mismatch() {
    let mut world = world(poll());
    let call = pending(&world);
    world.ask(change(SensorChange::Own(ResetCursor(Some("7".into()))))).expect("set");
    world.ask(answer(&call, requests(&["a"], "1"))).expect("answered");
    let stale = evaluations(&world).pop().expect("recorded");
    assert_eq!((stale.status, stale.run_requests.len()), (SensorStatus::Stale, 0));
    assert_eq!(sensor(&world).cursor.as_deref(), Some("7"));
    assert_eq!(world.state().runs().count(), 0);
    assert_eq!(pending(&world).call, Call::Poll { cursor: Some("7".into()), evaluated_at: world.now });
}

#[test]
fn a_failed_poll_is_tried_again_later_each_time_and_says_error() {
    let mut world = world(sensor_of(r#""function":"jobs:inbox","selection":"t.a","interval_ms":1000"#));
    let mut waits = Vec::new();
    for _ in 0..4 {
        let call = pending(&world);
        world.ask(answer(&call, EvaluationReport::failed("ValueError: no such bucket"))).expect("answered");
        let next = sensor(&world).next_evaluation_at.expect("a time");
        waits.push(next.since(world.now).get() / 1_000);
        world.pass(next.since(world.now).get() / 1_000);
    }
    assert_eq!(waits, [5, 10, 20, 40]);
    assert_eq!(sensor(&world).status(), AutomationStatus::Error);
    assert_eq!(sensor(&world).last_error.as_deref(), Some("ValueError: no such bucket"));
    let call = pending(&world);
    world.ask(answer(&call, returned(EvaluationResult::default()))).expect("answered");
    assert_eq!((sensor(&world).status(), sensor(&world).failures), (AutomationStatus::Active, 0));
}

#[test]
fn what_cannot_be_requested_fails_as_a_whole() {
    let bad = [
        (RequestSpec { selection: Some("t.nothing".into()), ..Default::default() }, "no asset matches"),
        (RequestSpec { partition: Some("2026-01-01".into()), ..Default::default() }, "has partitions"),
    ];
    for (spec, problem) in bad {
        let mut world = world(poll());
        let call = pending(&world);
        let good = RequestSpec { run_key: Some("good".into()), ..Default::default() };
        let requests = vec![good, spec];
        let report = returned(EvaluationResult { requests, cursor: Some("9".into()), ..Default::default() });
        world.ask(answer(&call, report)).expect("answered");
        let failed = evaluations(&world).pop().expect("one");
        assert_eq!(failed.status, SensorStatus::Failed);
        assert!(failed.reason.as_deref().expect("why").contains(problem), "{:?}", failed.reason);
        assert_eq!((sensor(&world).cursor.as_deref(), world.state().runs().count()), (None, 0));
    }
    let mut world = world(poll());
    let call = pending(&world);
    let many = vec![RequestSpec::default(); 1_001];
    world
        .ask(answer(&call, returned(EvaluationResult { requests: many, ..Default::default() })))
        .expect("heard");
    assert!(evaluations(&world)[0].reason.as_deref().expect("why").contains("at most 1000"));
}

#[test]
fn a_call_that_nobody_answers_is_lost_at_its_deadline_and_late_answers_do_not_count() {
    let mut world = world(poll());
    let call = pending(&world);
    world.pass(119);
    assert!(sensor(&world).evaluating.is_some());
    world.pass(1);
    let lost = evaluations(&world).pop().expect("recorded");
    assert_eq!(lost.status, SensorStatus::Failed);
    assert!(lost.reason.expect("why").contains("no worker has evaluated it within"));
    world.ask(answer(&call, requests(&["a"], "1"))).expect("heard");
    assert_eq!((evaluations(&world).len(), world.state().runs().count()), (1, 0));
}

/// L2-INV-2: the same message twice is one evaluation.
#[test]
fn test_push_sensor_idempotent() {
    let mut world = world(push());
    assert!(matches!(world.ask(message("m1")), Ok(Reply::Change(Change::Accepted { .. }))));
    assert_eq!(world.ask(message("m1")), Ok(Reply::Change(Change::Duplicate)));
    let call = pending(&world);
    let Call::Message { message: told, .. } = &call.call else { panic!("a message") };
    assert_eq!(&**told, r#"{"id":"m1","data":1}"#);
    let report = returned(EvaluationResult { requests: vec![RequestSpec::default()], ..Default::default() });
    world.ask(answer(&call, report)).expect("answered");
    let evaluated = &evaluations(&world)[0];
    let id = sensor(&world).id;
    assert_eq!(&*evaluated.eval_id, format!("{id}:msg:m1"));
    assert_eq!(&*evaluated.run_requests[0].run_key, format!("sensor:{id}:msg:m1"));
    assert!(sensor(&world).messages.is_empty());
    assert_eq!(world.ask(message("m1")), Ok(Reply::Change(Change::Duplicate)), "also when it is done");
    assert_eq!(world.state().runs().count(), 1);
}

/// The id of the message that a worker is asked about.
fn told(world: &World) -> String {
    let Call::Message { message, .. } = pending(world).call else { panic!("a message") };
    let read: serde_json::Value = serde_json::from_str(&message).expect("JSON");
    read["id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_message_that_fails_holds_up_no_other_and_is_given_up_after_five_tries() {
    let mut world = world(push());
    for id in ["m1", "m2", "m3"] {
        world.ask(message(id)).expect("taken");
    }
    let fail = |world: &mut World| {
        let call = pending(world);
        world.ask(answer(&call, EvaluationReport::failed("boom"))).expect("answered");
    };
    assert_eq!(told(&world), "m1");
    fail(&mut world);
    // The others go on at once, in the order in which they came.
    assert_eq!(told(&world), "m2");
    let call = pending(&world);
    world.ask(answer(&call, returned(EvaluationResult::default()))).expect("answered");
    assert_eq!(told(&world), "m3");
    let call = pending(&world);
    world.ask(answer(&call, returned(EvaluationResult::default()))).expect("answered");
    assert!(sensor(&world).evaluating.is_none(), "m1 waits for its time");
    let restored = State::from_rows(tenant(), workspace(), world.state().rows()).expect("its own rows fit");
    assert_eq!(restored.rows(), world.state().rows());
    for attempt in 2..=5 {
        let retry = sensor(&world).messages.find("m1").and_then(|row| row.retry_at).expect("a time");
        assert_eq!(world.engine.next_deadline(world.now), Some(retry));
        // What comes meanwhile does not wait for it.
        let late = format!("late{attempt}");
        world.ask(message(&late)).expect("taken");
        assert_eq!(told(&world), late);
        let call = pending(&world);
        world.ask(answer(&call, returned(EvaluationResult::default()))).expect("answered");
        world.pass(retry.since(world.now).get() / 1_000);
        assert_eq!(told(&world), "m1");
        fail(&mut world);
        assert_eq!(evaluations(&world).last().expect("one").attempt, attempt);
    }
    assert!(sensor(&world).messages.is_empty(), "it is given up");
    let all = evaluations(&world);
    let ids: std::collections::BTreeSet<_> = all.iter().map(|it| it.eval_id.clone()).collect();
    assert_eq!(ids.len(), all.len(), "each try has a name of its own");
}

#[test]
fn a_paused_sensor_keeps_its_messages_and_goes_on_when_it_is_resumed() {
    let mut world = world(push());
    world.ask(change(SensorChange::Pause)).expect("paused");
    world.ask(message("m1")).expect("taken");
    assert!(sensor(&world).evaluating.is_none());
    world.ask(change(SensorChange::Resume)).expect("resumed");
    assert!(matches!(pending(&world).call, Call::Message { .. }));
}

#[test]
fn messages_are_refused_where_they_make_no_sense() {
    let mut world = world(push());
    let bad = |id: &str, text: String| {
        Input::PushMessage(PushMessage {
            sensor: "inbox".to_owned(),
            message_id: id.into(),
            message: text.into(),
            caller: Caller::user("me"),
        })
    };
    assert!(matches!(world.ask(bad("", "{}".into())), Err(Refusal::BadMessageId { .. })));
    assert!(matches!(world.ask(bad("a\n", "{}".into())), Err(Refusal::BadMessageId { .. })));
    assert!(matches!(world.ask(bad("a", "x".repeat(300_000))), Err(Refusal::TooLarge { .. })));
    let mut polls = self::world(poll());
    assert!(matches!(polls.ask(message("m1")), Err(Refusal::TakesNoMessages { .. })));
}

#[test]
fn a_push_sensor_without_a_function_requests_its_selection_with_the_message() {
    let mut world = world(sensor_of(r#""selection":"t.a","push":true"#));
    world.ask(message("m1")).expect("taken");
    let batch = kinds(world.log.last().expect("a batch"));
    assert_eq!(batch[..3], ["SensorMessageReceived", "SensorEvaluated", "RunRequested"]);
    assert_eq!(world.state().runs().count(), 1);
}

#[test]
fn a_sensor_that_is_redefined_keeps_its_messages_and_what_code_declares_is_not() {
    let mut world = world(poll());
    let mine = |text: &str| Arc::new(sensor_of(text));
    let asked = |name: &str, expected_state_version, change| {
        let (name, caller) = (name.to_owned(), Caller::user("me"));
        Input::ChangeSensor(ChangeSensor { name, expected_state_version, change, caller })
    };
    let before = mine(r#""name":"mine","selection":"t.a","push":true"#);
    let after = mine(r#""name":"mine","selection":"t.b","push":true"#);
    world.ask(asked("mine", None, SensorChange::Create(before))).expect("created");
    world.ask(asked("mine", None, SensorChange::Pause)).expect("paused");
    let told = PushMessage {
        sensor: "mine".to_owned(),
        message_id: "m1".into(),
        message: r#"{"id":"m1"}"#.into(),
        caller: Caller::user("me"),
    };
    world.ask(Input::PushMessage(told)).expect("taken");
    let late = world.ask(asked("mine", Some(1), SensorChange::Redefine(after.clone()))).expect_err("late");
    assert!(late.to_string().contains("has state version 2, not 1"), "{late}");
    world.ask(asked("mine", Some(2), SensorChange::Redefine(after.clone()))).expect("redefined");
    let sensor = world.state().sensor("mine").expect("it is there");
    assert_eq!((sensor.state_version, sensor.paused, sensor.messages.len()), (3, true, 1));
    let same = world.ask(asked("mine", Some(3), SensorChange::Redefine(after.clone())));
    assert_eq!(same, Ok(Reply::Change(Change::Duplicate)));
    world.ask(asked("mine", None, SensorChange::Resume)).expect("resumed");
    let selections: Vec<_> = world.state().runs().map(|run| run.selection.clone()).collect();
    assert_eq!(selections, ["t.b"], "the message is answered as it is defined now");

    let refused = |answer: Result<Reply, Refusal>| answer.expect_err("refused").to_string();
    let of_code = refused(world.ask(asked("inbox", None, SensorChange::Redefine(after.clone()))));
    assert_eq!(of_code, "sensor inbox is declared in code: change it there and deploy");
    let unknown = world.ask(asked("nothing", None, SensorChange::Redefine(after)));
    assert!(matches!(unknown, Err(Refusal::UnknownSensor { .. })));
}

#[test]
fn a_sensor_of_the_api_refers_to_secrets_that_are_meant_for_sensors() {
    let mut world = world(poll());
    let create = |place: &str| {
        let text = format!(
            r#""name":"mine","selection":"t.a","push":true,
               "verify":{{"scheme":"github","secret":{{"name":"secret",{place}}}}}"#
        );
        let change = SensorChange::Create(Arc::new(sensor_of(&text)));
        let (name, caller) = ("mine".to_owned(), Caller::user("me"));
        Input::ChangeSensor(ChangeSensor { name, expected_state_version: None, change, caller })
    };
    for place in [r#""provider":"env","path":"SERVO_KEY""#, r#""provider":"file","path":"SERVO_SENSOR_x""#] {
        let refused = world.ask(create(place)).expect_err("refused").to_string();
        assert!(refused.contains("that begin with SERVO_SENSOR_"), "{refused}");
    }
    world.ask(create(r#""provider":"env","path":"SERVO_SENSOR_HOOK""#)).expect("created");
}

#[test]
fn an_asset_sensor_is_told_in_the_batch_of_the_materialization() {
    let mut world = world(sensor_of(r#""selection":"t.c","on":["t/a","t/b"]"#));
    make(&mut world, "a");
    let batch = kinds(world.log.last().expect("a batch"));
    let position = |kind: &str| batch.iter().position(|found| *found == kind).expect("it is there");
    assert!(position("TaskFinished") < position("SensorEvaluated"), "{batch:?}");
    assert!(position("SensorEvaluated") < position("RunRequested"), "{batch:?}");
    let run = world.state().runs().find(|run| run.selection == "t.c").expect("a run of the sensor");
    assert_eq!(run.source.kind(), "sensor");
}

#[test]
fn an_asset_sensor_of_all_waits_for_the_last_and_begins_anew() {
    let mut world = world(sensor_of(r#""selection":"t.c","on":["t/a","t/b"],"all_of":true"#));
    make(&mut world, "a");
    make(&mut world, "a");
    assert_eq!(evaluations(&world).len(), 0);
    let rows = world.state().rows();
    let restored = State::from_rows(tenant(), workspace(), rows.clone()).expect("restored");
    assert_eq!(restored.rows(), rows, "what it has seen survives a restart");
    make(&mut world, "b");
    assert_eq!(evaluations(&world).len(), 1);
    make(&mut world, "b");
    assert_eq!(evaluations(&world).len(), 1);
    make(&mut world, "a");
    assert_eq!(evaluations(&world).len(), 2);
}

#[test]
fn a_run_status_sensor_is_told_of_ends_but_not_of_its_own_runs() {
    let mut world = world(sensor_of(r#""selection":"t.c","run_status":["SUCCEEDED"]"#));
    make(&mut world, "a");
    assert_eq!(evaluations(&world).len(), 1);
    let own = world.state().runs().find(|run| run.selection == "t.c").map(|run| run.id).expect("its run");
    world.run = own;
    world.succeed("c");
    assert_eq!(evaluations(&world).len(), 1, "else it would never end");
}

/// Makes an asset by a run of its own.
fn make(world: &mut World, name: &str) {
    let key = format!("by hand {}", world.log.len());
    let request = servo_engine::RunRequest { selection: format!("t.{name}"), ..Default::default() };
    let command = servo_engine::requests::prepare(world.state(), SECRET, key.into(), request, world.now);
    world.trigger(command.expect("a plan"));
    let mut report = servo_engine::Report::succeeded();
    report.materialization_id = Some(servo_core::MaterializationId::from_parts(1, world.log.len() as u128));
    world.play(name, report);
}

#[test]
fn dynamic_partitions_are_added_in_the_batch_of_their_runs() {
    let mut world = world(poll());
    let call = pending(&world);
    let add_partitions = BTreeMap::from([("customers".to_owned(), vec!["acme".to_owned()])]);
    let requests = vec![RequestSpec::default()];
    let report = returned(EvaluationResult { requests, add_partitions, ..Default::default() });
    world.ask(answer(&call, report)).expect("answered");
    let batch = kinds(world.log.last().expect("a batch"));
    assert_eq!(batch[..3], ["SensorEvaluated", "DynamicPartitionsChanged", "RunRequested"]);
    assert_eq!(world.state().dynamic_partitions()["customers"], ["acme"]);
}

#[test]
fn deploying_removes_what_code_no_longer_declares_and_keeps_its_history() {
    let mut world = world(poll());
    let (id, call) = (sensor(&world).id, pending(&world));
    world.ask(answer(&call, requests(&["a"], "1"))).expect("answered");
    world.ask(deploy("d2", Vec::new(), Vec::new())).expect("deployed");
    assert!(world.state().sensor("inbox").is_none());
    assert_eq!(world.state().sensor_id("inbox"), Some(id));
    assert_eq!(world.state().recent_evals().count(), 1);
    minutes(&mut world, 10);
    assert_eq!(evaluations(&world).len(), 1, "nothing is evaluated");
    world.ask(deploy("d3", Vec::new(), vec![poll()])).expect("deployed");
    assert_eq!(sensor(&world).id, id);
    assert_eq!(sensor(&world).cursor.as_deref(), Some("1"), "it goes on where it was");
}

#[test]
fn definitions_of_sensors_are_checked() {
    let mut world = world(push());
    let create = |text: &str| {
        change(SensorChange::Create(Arc::new(SensorDef { name: "x".into(), ..sensor_of(text) })))
    };
    for (text, problem) in [
        (r#""selection":"t.nothing","push":true"#, "no asset matches"),
        (r#""selection":"t.a""#, "has no function that looks for something"),
        (r#""selection":"t.a","on":["t/zzz"]"#, "watches t.zzz, which the project does not have"),
        (r#""selection":"t.a","on":["t/a"]"#, "requests t.a whenever t.a was made, without end"),
        (r#""selection":"t.a","push":true,"on":["t/b"]"#, "waits for more than one"),
        (r#""selection":"t.a","run_status":["RUNNING"]"#, "which is no end"),
        (r#""selection":"t.a","function":"a:b","push":true"#, "belongs into a project"),
    ] {
        let refusal = world.ask(create(text)).expect_err("refused").to_string();
        assert!(refusal.contains(problem), "{refusal}");
    }
    world.ask(create(r#""selection":"t.a","push":true"#)).expect("created");
}

#[test]
fn sensors_come_back_from_their_rows_and_calls_are_made_again() {
    let mut world = world(push());
    world.ask(message("m1")).expect("taken");
    world.ask(message("m2")).expect("taken");
    let call = pending(&world);
    let rows = world.state().rows();
    let state = State::from_rows(tenant(), workspace(), rows.clone()).expect("restored");
    assert_eq!(state.rows(), rows);
    let mut engine = Engine::new(state, SECRET);
    let calls = |engine: &mut Engine| {
        let effects = engine.recovered_effects().into_iter();
        effects.filter(|effect| *effect == Effect::Evaluate(Box::new(call.clone()))).count()
    };
    assert_eq!(calls(&mut engine), 1);
    engine.set_automation(false);
    assert_eq!(calls(&mut engine), 0, "a command for a moment leaves it to others");
    engine.step(&[answer(&call, returned(EvaluationResult::default()))], world.now);
    assert_eq!(engine.state().sensor("inbox").expect("it").messages.len(), 1);
}

fn morning() -> ScheduleDef {
    serde_json::from_str(
        r#"{"name":"morning","location":{"file":"jobs.py","line":3},"cron":"*/10 * * * *","function":"jobs:morning",
            "selection":"t.a"}"#,
    )
    .expect("a schedule")
}

fn scheduled() -> World {
    let mut world = World::new(Settings::default());
    world.now = Timestamp::from_millis(START.as_millis() + 30_000);
    world.ask(deploy("d1", vec![morning()], Vec::new())).expect("deployed");
    minutes(&mut world, 10);
    world
}

fn schedule(world: &World) -> &Schedule {
    world.state().schedule("morning").expect("it is there")
}

fn ticks(world: &World) -> Vec<ScheduleTicked> {
    let ticks = world.events().into_iter().filter_map(|event| {
        let EventData::ScheduleTicked(ticked) = event.data else { return None };
        Some(ticked)
    });
    ticks.collect()
}

#[test]
fn a_schedule_with_a_function_ticks_when_that_has_answered() {
    let mut world = scheduled();
    assert_eq!(ticks(&world), []);
    let call = pending(&world);
    let due = support::after(600);
    assert_eq!(call.call, Call::Tick { scheduled_for: due, latest: BTreeMap::new() });
    assert_eq!(schedules::reconcile(world.state(), SECRET, schedule(&world).id, world.now), []);
    let two =
        vec![RequestSpec::default(), RequestSpec { selection: Some("t.b".into()), ..Default::default() }];
    let report = returned(EvaluationResult { requests: two, ..Default::default() });
    world.ask(answer(&call, report.clone())).expect("answered");
    let tick = &ticks(&world)[0];
    assert_eq!((tick.status, tick.runs.len(), tick.scheduled_for), (TickStatus::Triggered, 2, due));
    assert_eq!(&*tick.runs[1].run_key, format!("sched:{}:1", tick.tick_id));
    assert_eq!(kinds(world.log.last().expect("a batch"))[..2], ["ScheduleTicked", "RunRequested"]);
    assert_eq!(schedule(&world).next_tick_at, Some(support::after(1_200)));
    world.ask(answer(&call, report)).expect("heard");
    assert_eq!(ticks(&world).len(), 1, "an answer counts once");
}

#[test]
fn a_schedule_whose_function_skips_says_why() {
    let mut world = scheduled();
    let call = pending(&world);
    let skip = EvaluationResult { skip: Some("a holiday".to_owned()), ..Default::default() };
    world.ask(answer(&call, returned(skip))).expect("answered");
    let tick = ticks(&world).pop().expect("a tick");
    assert_eq!((tick.status, tick.reason.as_deref()), (TickStatus::Skipped, Some("a holiday")));
}

#[test]
fn a_function_that_fails_is_tried_again_and_then_its_tick_has_failed() {
    let mut world = scheduled();
    for _ in 0..4 {
        let call = pending(&world);
        world.ask(answer(&call, EvaluationReport::failed("boom"))).expect("answered");
        assert_eq!(ticks(&world), []);
        let retry = schedule(&world).retry_at.expect("a time");
        world.pass(retry.since(world.now).get() / 1_000);
    }
    let call = pending(&world);
    world.ask(answer(&call, EvaluationReport::failed("boom"))).expect("answered");
    let tick = ticks(&world).pop().expect("a tick");
    assert_eq!((tick.status, tick.reason.as_deref()), (TickStatus::Failed, Some("after 5 tries: boom")));
    assert_eq!(schedule(&world).status(), AutomationStatus::Error);
}

/// L2-INV-11: the tick follows the definition that it was evaluated with; another one is evaluated again.
#[test]
fn test_schedule_tick_uses_snapshot() {
    let mut world = scheduled();
    let call = pending(&world);
    let other = ScheduleDef { selection: Some("t.b".into()), ..morning() };
    world.ask(deploy("d2", vec![other], Vec::new())).expect("deployed");
    let report = returned(EvaluationResult { requests: vec![RequestSpec::default()], ..Default::default() });
    world.ask(answer(&call, report.clone())).expect("heard");
    assert_eq!(ticks(&world), [], "the function was called for another definition");
    let call = pending(&world);
    world.ask(answer(&call, report)).expect("answered");
    let tick = ticks(&world).pop().expect("a tick");
    assert_eq!(tick.asset_selection, "t.b");
    assert_eq!(tick.definition_version, schedule(&world).definition_version);
}
