//! Partitions expire by themselves when their time has come, once, and can be given back (ADR-182).

use std::sync::Arc;

use serde_json::{Value, json};
use servo_core::{AssetKey, Millis, PartitionKey, PartitionValue, TaskKey, Timestamp};
use servo_engine::definitions::AssetDef;
use servo_engine::event::{KeyList, PartitionsExpired};
use servo_engine::outputs::OutputReport;
use servo_engine::requests::PlanBasis;
use servo_engine::staleness::{StaleReason, Staleness};
use servo_engine::{
    AttemptOutcome, Caller, DataFormat, DataStatus, Deploy, Effect, EventData, Input, MarkPartitions,
    OutputState, Report, RestorePartitions, Settings, State, TaskOptions, TaskRequest, TriggerRun,
    WipePartitions,
};

use crate::support::{World, fold, plan_of, tenant, workspace};

/// A little later than what is kept for an hour expires, which is at a full second.
const HOUR: Millis = Millis::new(3_601_000);

fn asset() -> AssetKey {
    AssetKey::new("t", "a").expect("an asset")
}

fn definition(key: &str, more: Value) -> Value {
    let mut asset = json!({
        "key": key,
        "location": { "file": "assets.py", "line": 1 },
        "function": format!("assets:{}", key.replace('/', "_")),
    });
    asset.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    asset
}

fn days(more: Value) -> Value {
    let mut found = json!({ "partitions": { "kind": "static", "keys": ["one", "two", "three"] } });
    found.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    definition("t/a", found)
}

fn deploy(world: &mut World, digest: &str, assets: &[Value]) {
    let read = |asset: &Value| Arc::new(serde_json::from_value::<AssetDef>(asset.clone()).expect("an asset"));
    let deploy = Deploy {
        digest: digest.into(),
        time_zones: "2026e".into(),
        project: "p".to_owned(),
        assets: assets.iter().map(read).collect(),
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("me"),
    };
    world.ask(Input::Deploy(deploy)).expect("deployed");
}

fn key(name: &str) -> PartitionKey {
    PartitionKey::single("partition", PartitionValue::Str(name.to_owned())).expect("a partition")
}

/// A partition of an asset, as it is written in the key of a task.
fn at(asset: &str, name: &str) -> String {
    format!("{asset}[{}]", key(name).canonical())
}

fn make(world: &mut World, task: &str) {
    let key = TaskKey::parse(&format!("{task}:materialize")).expect("a task key");
    let asset = key.asset();
    let plan = plan_of(vec![TaskRequest { key, upstream: vec![], options: TaskOptions::default() }]);
    let step = world.step(&[Input::Trigger(TriggerRun::new(format!("run {}", world.log.len()), plan, "me"))]);
    let attempt = step.effects.iter().find_map(|effect| {
        if let Effect::Enqueue(dispatch) = effect { Some(dispatch.attempt.clone()) } else { None }
    });
    let output =
        OutputReport { format: Some(DataFormat::Json), ..OutputReport::new(asset, OutputState::Committed) };
    let report = Report { outputs: [output].into(), ..Report::succeeded() };
    world.ask(Input::Finished(attempt.expect("dispatched"), report)).expect("finished");
}

fn make_partition(world: &mut World, name: &str) {
    make(world, &at("t/a", name));
}

fn status(state: &State, name: &str) -> Option<DataStatus> {
    state.partition_status(&asset(), Some(&key(name))).map(|status| status.status())
}

fn undo() -> Input {
    Input::RestorePartitions(RestorePartitions { asset: asset(), change: None, caller: Caller::user("zoë") })
}

fn expiries(world: &World) -> Vec<PartitionsExpired> {
    let events = world.events().into_iter();
    let found = events.filter_map(|event| {
        if let EventData::PartitionsExpired(expired) = event.data { Some(expired) } else { None }
    });
    found.collect()
}

/// Lets the engine wake up by itself until a time, and gives how often it did.
fn sleep_until(world: &mut World, until: Timestamp) -> usize {
    let mut woken = 0;
    while let Some(due) = world.engine.next_deadline(world.now).filter(|due| *due <= until) {
        world.now = world.now.max(due);
        world.step(&[]);
        woken += 1;
        assert!(woken < 100, "it never comes to rest");
    }
    world.now = until;
    woken
}

/// The same state, from rows and from the log, with the same indexes.
fn survives(world: &World) {
    let rows = world.state().rows();
    let restored = State::from_rows(tenant(), workspace(), rows.clone()).expect("its own rows fit");
    assert_eq!(restored.rows(), rows);
    assert_eq!(restored.next_expiry(), world.state().next_expiry());
    let mut replayed = fold(&Settings::default(), &world.events()).rows();
    replayed.head.seq = rows.head.seq;
    assert_eq!(replayed, rows);
}

/// Two partitions made ten minutes apart, kept for an hour.
fn two_made() -> (World, Timestamp) {
    let mut world = World::new(Settings::default());
    deploy(&mut world, "d1", &[days(json!({ "expires_after_ms": 3_600_000 }))]);
    make_partition(&mut world, "one");
    let first = world.now;
    world.now = first.saturating_add(Millis::from_minutes(10));
    make_partition(&mut world, "two");
    (world, first)
}

#[test]
fn each_partition_expires_when_its_own_time_has_come_and_wakes_nobody_before() {
    let (mut world, first) = two_made();
    survives(&world);
    let after = |minutes: u64| first.saturating_add(Millis::from_minutes(minutes));
    assert_eq!(sleep_until(&mut world, after(59)), 0, "nothing is looked at before its time");
    assert_eq!(status(world.state(), "one"), Some(DataStatus::Materialized));
    assert_eq!(sleep_until(&mut world, after(65)), 1);
    assert_eq!(status(world.state(), "one"), Some(DataStatus::Expired));
    assert_eq!(world.state().latest(&asset(), Some(&key("one"))), None, "it is missing for whoever reads it");
    assert_eq!(status(world.state(), "two"), Some(DataStatus::Materialized));
    assert_eq!(world.state().partition_counts(&asset()).expired, 1);
    survives(&world);
    assert_eq!(sleep_until(&mut world, after(600)), 1);
    assert_eq!(status(world.state(), "two"), Some(DataStatus::Expired));
    let expired = expiries(&world);
    assert_eq!(expired.len(), 2);
    assert_eq!(expired[0].partitions, KeyList::new(vec![key("one")]));
    assert_eq!(world.engine.next_deadline(world.now), None, "what has expired is not looked at again");
    survives(&world);
}

#[test]
fn what_expires_at_one_moment_is_one_event_and_no_data_is_removed() {
    let mut world = World::new(Settings::default());
    deploy(&mut world, "d1", &[days(json!({ "expires_after_ms": 3_600_000 }))]);
    for name in ["one", "two", "three"] {
        make_partition(&mut world, name);
    }
    world.now = world.now.saturating_add(HOUR);
    let step = world.step(&[]);
    assert!(!step.effects.iter().any(|effect| matches!(effect, Effect::Expire(_))), "{:?}", step.effects);
    let expired = expiries(&world);
    assert_eq!(expired.iter().map(|event| event.partitions.iter().len()).collect::<Vec<_>>(), [3]);
}

#[test]
fn an_expiry_can_be_undone_and_then_counts_for_as_long_again() {
    let (mut world, first) = two_made();
    sleep_until(&mut world, first.saturating_add(HOUR));
    assert_eq!(status(world.state(), "one"), Some(DataStatus::Expired));
    world.ask(undo()).expect("undone");
    assert_eq!(status(world.state(), "one"), Some(DataStatus::Materialized));
    survives(&world);
    let undone = world.now;
    sleep_until(&mut world, undone.saturating_add(Millis::from_minutes(59)));
    assert_eq!(status(world.state(), "one"), Some(DataStatus::Materialized));
    sleep_until(&mut world, undone.saturating_add(HOUR));
    assert_eq!(status(world.state(), "one"), Some(DataStatus::Expired));
}

#[test]
fn a_partition_that_is_made_again_counts_from_then_on() {
    let (mut world, first) = two_made();
    world.now = first.saturating_add(Millis::from_minutes(50));
    make_partition(&mut world, "one");
    sleep_until(&mut world, first.saturating_add(Millis::from_minutes(90)));
    assert_eq!(status(world.state(), "one"), Some(DataStatus::Materialized));
    assert_eq!(status(world.state(), "two"), Some(DataStatus::Expired));
    make_partition(&mut world, "two");
    assert_eq!(status(world.state(), "two"), Some(DataStatus::Materialized));
    assert!(world.ask(undo()).is_err(), "it was made since");
    survives(&world);
}

#[test]
fn what_has_expired_can_be_wiped_and_marked_and_that_undone() {
    let (mut world, first) = two_made();
    let made = world.state().latest(&asset(), Some(&key("one")));
    sleep_until(&mut world, first.saturating_add(HOUR));
    let mark = |outcome| {
        Input::MarkPartitions(MarkPartitions {
            asset: asset(),
            partitions: KeyList::new(vec![key("one")]),
            outcome,
            reason: String::new(),
            basis: PlanBasis::default(),
            caller: Caller::user("zoë"),
        })
    };
    world.ask(mark(AttemptOutcome::Succeeded)).expect("marked");
    assert_eq!(world.state().latest(&asset(), Some(&key("one"))), made, "its data is still there");
    survives(&world);
    world.ask(undo()).expect("undone");
    assert_eq!(status(world.state(), "one"), Some(DataStatus::Expired), "it is as old as it was");
    survives(&world);
    world.ask(mark(AttemptOutcome::Failed)).expect("marked");
    assert_eq!(status(world.state(), "one"), Some(DataStatus::NeverMaterialized));
    world.ask(undo()).expect("undone");
    let wipe = |keep_data| {
        Input::WipePartitions(WipePartitions {
            asset: asset(),
            partitions: vec![Some(key("one"))],
            keep_data,
            force: false,
            reason: String::new(),
            caller: Caller::user("zoë"),
        })
    };
    world.ask(wipe(true)).expect("wiped");
    assert_eq!(status(world.state(), "one"), None);
    world.ask(undo()).expect("undone");
    assert_eq!(status(world.state(), "one"), Some(DataStatus::Expired));
    survives(&world);
    let step = world.step(&[wipe(false)]);
    let gone = step.effects.iter().filter(|effect| matches!(effect, Effect::Expire(_))).count();
    assert_eq!(gone, 1, "the data of what has expired goes with a wipe");
    survives(&world);
}

#[test]
fn a_deployment_that_keeps_longer_or_for_ever_is_followed() {
    let (mut world, first) = two_made();
    deploy(&mut world, "d2", &[days(json!({ "expires_after_ms": 7_200_000 }))]);
    survives(&world);
    sleep_until(&mut world, first.saturating_add(Millis::from_minutes(90)));
    assert_eq!(status(world.state(), "one"), Some(DataStatus::Materialized));
    deploy(&mut world, "d3", &[days(json!({}))]);
    sleep_until(&mut world, first.saturating_add(Millis::from_hours(48)));
    assert_eq!(expiries(&world), [], "it does not say any more for how long");
    deploy(&mut world, "d4", &[days(json!({ "expires_after_ms": 3_600_000 }))]);
    assert_eq!(expiries(&world).len(), 1, "what is too old already expires with the deployment");
    survives(&world);
}

#[test]
fn expired_is_a_reason_to_be_stale_and_makes_readers_stale() {
    let mut world = World::new(Settings::default());
    let reader = definition("t/b", json!({ "deps": [{ "asset": "t/whole", "parameter": "whole" }] }));
    let whole = definition("t/whole", json!({ "expires_after_ms": 3_600_000 }));
    deploy(&mut world, "d1", &[whole, reader]);
    make(&mut world, "t/whole");
    make(&mut world, "t/b");
    let mut staleness = Staleness::of(world.state()).expect("deployed");
    let reasons = |staleness: &mut Staleness, world: &World| {
        let definitions = world.state().checked_definitions().expect("checked");
        let at =
            |name: &str| definitions.position(&AssetKey::new("t", name).expect("a key")).expect("deployed");
        let (whole, reader) = (at("whole"), at("b"));
        let view = staleness.look(world.state(), [whole, reader], world.now).expect("a view");
        let why = view.explain(reader, None).map(|stale| stale.cause.to_string());
        (view.reason(whole, None), view.reason(reader, None), why)
    };
    assert_eq!(reasons(&mut staleness, &world), (None, None, None));
    let until = world.now.saturating_add(HOUR);
    sleep_until(&mut world, until);
    let (whole, reader, why) = reasons(&mut staleness, &world);
    assert_eq!((whole, reader), (Some(StaleReason::Expired), Some(StaleReason::UpstreamStale)));
    assert_eq!(why.as_deref(), Some("is made from t.whole, which has expired"));
    let fresh = Staleness::of(world.state()).map(|mut fresh| reasons(&mut fresh, &world).0);
    assert_eq!(fresh, Some(Some(StaleReason::Expired)), "whoever looks for the first time sees the same");
}
