//! Requests for runs: planned against a state, refused when the state has outrun the plan, remembered as they were
//! made.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::PartitionsDef;
use servo_engine::definitions::{AssetDef, DepDef};
use servo_engine::event::{decode_batch, encode_batch};
use servo_engine::planner::PartitionChoice;
use servo_engine::requests::{self, EndedRun, Retry, StalePlan};
use servo_engine::{
    Applied, Caller, Causation, ChangePartitions, Deploy, Input, Principal, Refusal, Reply, RequestError,
    RunReply, RunRequest, RunSource, Settings, State, TriggerRun,
};

use crate::support;
use crate::support::{SECRET, World, empty_state, plan, user_error};

fn asset(name: &str, upstream: &[&str]) -> AssetDef {
    let dep = |name: &&str| DepDef { asset: Some(format!("t/{name}")), ..DepDef::default() };
    AssetDef { key: format!("t/{name}"), deps: upstream.iter().map(dep).collect(), ..AssetDef::default() }
}

fn by_customer(def: AssetDef) -> AssetDef {
    AssetDef { partitions: Some(PartitionsDef::Dynamic { name: "customers".to_owned() }), ..def }
}

fn deploy(digest: &str, assets: Vec<AssetDef>) -> Input {
    Input::Deploy(Deploy {
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        digest: digest.into(),
        time_zones: "2026e".into(),
        project: "tests".to_owned(),
        assets: assets.into_iter().map(Arc::new).collect(),
        caller: Caller::user("me"),
    })
}

fn customers(add: &[&str]) -> Input {
    Input::ChangePartitions(ChangePartitions {
        name: "customers".to_owned(),
        add: add.iter().map(|key| (*key).to_owned()).collect(),
        remove: vec![],
        caller: Caller::user("me"),
    })
}

/// `a` is whole, `b` and `c` have a partition for each customer, `c` reads `b`.
fn deployed() -> World {
    let mut world = World::new(Settings::default());
    let assets = vec![asset("a", &[]), by_customer(asset("b", &[])), by_customer(asset("c", &["b"]))];
    world.ask(deploy("one", assets)).expect("deployed");
    world.ask(customers(&["acme", "zoë"])).expect("added");
    world
}

fn select(selection: &str) -> RunRequest {
    let selection = selection.to_owned();
    RunRequest { selection, caller: Caller::user("me"), ..RunRequest::default() }
}

fn of_customer(selection: &str, customer: &str) -> RunRequest {
    let partitions = PartitionChoice { keys: vec![customer.to_owned()], ..PartitionChoice::default() };
    RunRequest { partitions, ..select(selection) }
}

fn prepare(world: &World, run_key: &str, request: RunRequest) -> Result<TriggerRun, RequestError> {
    requests::prepare(world.engine.state(), SECRET, run_key.into(), request, world.now)
}

fn trigger(world: &mut World, command: TriggerRun) -> Result<RunReply, Refusal> {
    let reply = world.ask(Input::Trigger(command))?;
    let Reply::Run(reply) = reply else { panic!("{reply:?}") };
    Ok(reply)
}

fn stale(refused: Result<RunReply, Refusal>) -> StalePlan {
    let refusal = refused.expect_err("the plan is out of date");
    let Refusal::StalePlan(stale) = refusal else { panic!("{refusal}") };
    stale
}

#[test]
fn a_request_is_planned_against_a_state_and_says_what_it_was_made_from() {
    let world = deployed();
    let planned =
        requests::plan(world.engine.state(), &of_customer("+t.c", "zoë"), world.now).expect("a plan");
    assert_eq!(planned.planned.plan.tasks().len(), 2);
    assert_eq!(planned.basis.deployment, Some(1));
    assert_eq!(planned.basis.dynamic, BTreeMap::from([("customers".to_owned(), 1)]));
    let whole = requests::plan(world.engine.state(), &select("t.a"), world.now).expect("a plan");
    assert_eq!(whole.basis.dynamic, BTreeMap::new(), "nothing that it speaks of is dynamic");
}

#[test]
fn what_makes_no_sense_is_refused_in_the_words_of_the_request() {
    let world = deployed();
    let ask = |request| requests::plan(world.engine.state(), &request, world.now).expect_err("refused");
    assert!(matches!(ask(select("t.a and")), RequestError::Selection(_)));
    assert!(matches!(ask(select("t.none")), RequestError::Planning(_)));
    let empty: State = empty_state(&Settings::default());
    let nothing = requests::plan(&empty, &select("t.a"), world.now).expect_err("nothing is deployed");
    assert!(matches!(nothing, RequestError::NothingDeployed));
}

#[test]
fn a_plan_is_refused_when_something_else_was_deployed_meanwhile() {
    let mut world = deployed();
    let command = prepare(&world, "k", select("t.a")).expect("planned");
    world.ask(deploy("two", vec![asset("a", &[])])).expect("deployed");
    let refused = stale(trigger(&mut world, command));
    assert_eq!(refused, StalePlan::Deployment { planned: 1, deployed: 2 });
    let again = prepare(&world, "k", select("t.a")).expect("planned again");
    assert!(trigger(&mut world, again).expect("accepted").accepted.is_some());
}

#[test]
fn a_plan_is_refused_when_its_dynamic_partitions_changed_and_no_others() {
    let mut world = deployed();
    let of_customers = prepare(&world, "b", of_customer("t.b", "zoë")).expect("planned");
    let whole = prepare(&world, "a", select("t.a")).expect("planned");
    world.ask(customers(&["new"])).expect("added");
    let refused = stale(trigger(&mut world, of_customers));
    assert_eq!(refused, StalePlan::DynamicPartitions { name: "customers".to_owned() });
    assert!(trigger(&mut world, whole).is_ok(), "it does not depend on customers");
}

#[test]
fn the_same_request_after_a_deployment_gets_its_run_back() {
    let mut world = deployed();
    let first = prepare(&world, "k", select("t.a")).expect("planned");
    let RunReply { run_id, .. } = trigger(&mut world, first).expect("accepted");
    // What was asked for cannot even be planned any more.
    world.ask(deploy("two", vec![asset("other", &[])])).expect("deployed");
    let again = prepare(&world, "k", select("t.a")).expect("a repeat is not planned");
    assert!(again.plan.is_none());
    assert_eq!(trigger(&mut world, again), Ok(RunReply { run_id, accepted: None }));
}

#[test]
fn another_request_under_the_key_is_a_conflict_with_both_fingerprints() {
    let mut world = deployed();
    let first = prepare(&world, "k", select("t.a")).expect("planned");
    let other = prepare(&world, "k", select("t.b or t.a")).err();
    assert!(other.is_some(), "t.b needs a partition");
    let (existing, run) =
        (first.fingerprint().clone(), trigger(&mut world, first.clone()).expect("accepted"));
    world.engine.state_mut().take_delta();
    let other = prepare(&world, "k", RunRequest { priority: 1, ..select("t.a") }).expect("not planned");
    let conflicting = other.fingerprint().clone();
    assert!(matches!(trigger(&mut world, other), Err(Refusal::RunKeyConflict { .. })));
    let delta = world.engine.state_mut().take_delta();
    let [row] = delta.appended.run_key_conflicts.as_slice() else {
        panic!("{:?}", delta.appended.run_key_conflicts)
    };
    assert_eq!(
        (row.run_id, &row.existing_fingerprint, &row.conflicting_fingerprint),
        (run.run_id, &existing, &conflicting)
    );
}

#[test]
fn what_was_taken_for_a_repeat_and_is_none_is_planned() {
    let mut world = deployed();
    let first = prepare(&world, "k", select("t.a")).expect("planned");
    let RunReply { .. } = trigger(&mut world, first).expect("accepted");
    let mut elsewhere = deployed();
    let repeat = prepare(&world, "k", select("t.a")).expect("a repeat");
    assert_eq!(stale(trigger(&mut elsewhere, repeat)), StalePlan::Unplanned);
}

#[test]
fn the_fingerprint_is_of_the_request_and_of_all_of_it() {
    let world = deployed();
    let of = |request: RunRequest| {
        let state = world.engine.state();
        let command = requests::prepare(state, SECRET, "k".into(), request, world.now).expect("planned");
        command.fingerprint().clone()
    };
    let base = RunRequest { labels: [("a".to_owned(), "1".to_owned())].into(), ..of_customer("t.b", "zoë") };
    let source = RunSource::Schedule { id: "nightly".into(), tick: world.now };
    let caller = Caller { request_id: Some("1".into()), ..Caller::user("somebody else") };
    assert_eq!(of(base.clone()), of(RunRequest { source, caller, ..base.clone() }), "whoever asks, and why");
    let keys = |keys: &[&str]| PartitionChoice {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        ..PartitionChoice::default()
    };
    let two = RunRequest { partitions: keys(&["zoë", "acme"]), ..base.clone() };
    let reordered = RunRequest { partitions: keys(&["acme", "zoë", "acme"]), ..base.clone() };
    assert_eq!(of(two.clone()), of(reordered));
    for other in [
        two,
        RunRequest { selection: "t.c".to_owned(), ..base.clone() },
        RunRequest { partitions: PartitionChoice { latest: true, ..keys(&["zoë"]) }, ..base.clone() },
        RunRequest { priority: 1, ..base.clone() },
        RunRequest { labels: BTreeMap::new(), ..base.clone() },
        RunRequest { timeout: Some(servo_core::Millis::from_secs(1)), ..base.clone() },
    ] {
        assert_ne!(of(base.clone()), of(other));
    }
}

#[test]
fn a_request_is_remembered_as_it_was_made() {
    let mut world = deployed();
    let request = RunRequest {
        source: RunSource::Api,
        caller: Caller { request_id: Some("6f1c".into()), ..Caller::user("zoë") },
        labels: [("team".to_owned(), "ops".to_owned())].into(),
        ..of_customer("+t.c", "acme")
    };
    let command = prepare(&world, "k", request.clone()).expect("planned");
    let run_id = trigger(&mut world, command).expect("accepted").run_id;
    let run = world.engine.state().run(run_id).expect("in memory");
    assert_eq!((run.selection.as_str(), &run.partitions), ("+t.c", &request.partitions));
    assert_eq!((&run.source, &run.requested_by), (&RunSource::Api, &Principal::user("zoë")));
    assert_eq!((run.request_id.as_deref(), &run.labels), (Some("6f1c"), &request.labels));
}

#[test]
fn a_run_of_an_unknown_source_is_folded_and_written_back_as_it_was() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.succeed("a");
    let mut text = Vec::new();
    encode_batch(&world.log[0], &mut text);
    let text = String::from_utf8(text).expect("UTF-8");
    let newer = text.replace(r#"{"type":"manual"}"#, r#"{"type":"webhook","url": "https://x"}"#);
    assert_ne!(text, newer);
    let events = decode_batch(newer.as_bytes()).expect("a batch");
    let mut state = empty_state(&Settings::default());
    assert!(events.iter().all(|event| state.apply(event) == Applied::Yes));
    assert_eq!(state.runs().next().map(|run| run.source.kind()), Some("webhook"));
    let mut again = Vec::new();
    encode_batch(&events, &mut again);
    assert_eq!(String::from_utf8(again).expect("UTF-8"), newer);
}

fn retry(world: &World, from_failure: bool) -> Result<TriggerRun, RequestError> {
    let run = world.engine.state().run(world.run).expect("in memory");
    let (row, tasks, edges, sets) = (run.row(), run.task_rows(), run.edge_rows(), run.set_rows());
    let ended = EndedRun { run: &row, tasks: &tasks, edges: &edges, sets: &sets };
    let retry = Retry { of: world.run, from_failure, run_key: "again".into(), caller: Caller::user("zoë") };
    requests::retry(world.engine.state(), ended, retry)
}

#[test]
fn a_retry_does_what_did_not_succeed_with_the_edges_among_it() {
    let mut world = World::with(plan(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &["a"])]));
    assert!(matches!(retry(&world, true), Err(RequestError::StillRunning { .. })));
    world.succeed("a");
    world.succeed("d");
    world.play("b", user_error());
    let (of, command) = (world.run, retry(&world, true).expect("a plan"));
    let tasks = command.plan.as_ref().expect("planned").plan.tasks();
    let tasks: Vec<_> = tasks.iter().map(|task| (task.task_key.as_str(), task.upstream.clone())).collect();
    assert_eq!(tasks, [("t/b:materialize", vec![]), ("t/c:materialize", vec![0])]);
    assert_eq!(command.request.source, RunSource::Retry { of, from_failure: true });
    assert_ne!(command.fingerprint(), retry(&world, false).expect("a plan").fingerprint());
    let whole = retry(&world, false).expect("a plan").plan.expect("planned").plan;
    assert_eq!(whole.tasks().len(), 4);
    world.trigger(command);
    world.succeed("b");
    world.succeed("c");
    assert!(matches!(retry(&world, true), Err(RequestError::NothingToRetry { .. })));
}

#[test]
fn every_event_says_who_is_responsible_and_what_caused_it() {
    let mut world = World::new(Settings::default());
    let caller = Caller { request_id: Some("6f1c".into()), ..Caller::user("zoë") };
    let request = RunRequest { caller, ..RunRequest::default() };
    world.trigger(TriggerRun::of_tasks("k", plan(&[("a", &[]), ("b", &["a"])]), request));
    world.enqueue("a").expect("enqueued");
    world.succeed("a");
    let events = world.events();
    let of = |kind: &str, nth: usize| {
        events.iter().filter(|event| event.data.kind().name() == kind).nth(nth).expect("an event")
    };
    let caused = |kind: &str, nth: usize| of(kind, nth).causation.clone();
    let by = |kind: &str, nth: usize| Some(Causation::Event(of(kind, nth).id));
    assert_eq!(caused("RunRequested", 0), Some(Causation::Request("6f1c".into())));
    assert_eq!(caused("PlanCreated", 0), by("RunRequested", 0));
    assert_eq!(caused("DispatchRequested", 0), by("RunTriggered", 0));
    assert_eq!(caused("DispatchEnqueued", 0), by("DispatchRequested", 0));
    assert_eq!(caused("TaskStarted", 0), by("DispatchEnqueued", 0));
    assert_eq!(caused("TaskFinished", 0), by("TaskStarted", 0));
    assert_eq!(caused("DispatchRequested", 1), by("TaskFinished", 0), "b follows from the end of a");
    for (kind, principal) in [
        ("RunRequested", "user:zoë"),
        ("RunTriggered", "user:zoë"),
        ("DispatchRequested", "controller:ready_dispatch"),
        ("DispatchEnqueued", "system"),
        ("TaskStarted", "worker:w1"),
        ("TaskFinished", "worker:w1"),
    ] {
        assert_eq!(of(kind, 0).principal.to_string(), principal, "{kind}");
    }
    assert!(events.iter().all(|event| event.correlation() == Some(world.run)));
    assert_eq!(support::deployed(1).run_id(), None, "a deployment belongs to no run");
}
