//! Freshness: deadlines that are missed and met, through everything upstream, by timers alone.

use std::sync::Arc;

use serde_json::{Value, json};
use servo_core::{AssetKey, Millis, TaskKey, Timestamp};
use servo_engine::controllers::notifications::Notifying;
use servo_engine::definitions::{AssetDef, NotificationDef};
use servo_engine::event::FreshnessChanged;
use servo_engine::staleness::{StaleReason, Staleness};
use servo_engine::{
    Caller, Deploy, Effect, Engine, EventData, FreshnessStatus, Input, NotificationTrigger, Report,
    RestorePartitions, Settings, State, TaskOptions, TaskRequest, TriggerRun, WipePartitions,
};

use crate::support::{World, plan_of, tenant, workspace};

fn asset(key: &str, more: Value) -> Value {
    let mut asset = json!({
        "key": key,
        "location": { "file": "assets.py", "line": 1 },
        "function": format!("assets:{}", key.replace('/', "_")),
    });
    asset.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    asset
}

fn world(assets: &[Value]) -> World {
    let mut world = World::new(Settings::default());
    deploy(&mut world, "d1", assets);
    world
}

fn deploy(world: &mut World, digest: &str, assets: &[Value]) {
    deploy_with(world, digest, assets, Vec::new());
}

fn deploy_with(world: &mut World, digest: &str, assets: &[Value], rules: Vec<Arc<NotificationDef>>) {
    let read = |asset: &Value| Arc::new(serde_json::from_value::<AssetDef>(asset.clone()).expect("an asset"));
    let deploy = Deploy {
        digest: digest.into(),
        time_zones: "2026e".into(),
        project: "p".to_owned(),
        assets: assets.iter().map(read).collect(),
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: rules,
        caller: Caller::user("me"),
    };
    world.ask(Input::Deploy(deploy)).expect("deployed");
}

fn make(world: &mut World, task: &str) {
    let key = TaskKey::parse(&format!("{task}:materialize")).expect("a task key");
    let plan = plan_of(vec![TaskRequest { key, upstream: vec![], options: TaskOptions::default() }]);
    let step = world.step(&[Input::Trigger(TriggerRun::new(format!("run {}", world.log.len()), plan, "me"))]);
    let attempt = step.effects.iter().find_map(|effect| {
        if let Effect::Enqueue(dispatch) = effect { Some(dispatch.attempt.clone()) } else { None }
    });
    let report = Report {
        materialization_id: Some(servo_core::MaterializationId::from_u128(world.log.len() as u128)),
        ..Report::succeeded()
    };
    world.ask(Input::Finished(attempt.expect("dispatched"), report)).expect("finished");
}

fn key(text: &str) -> AssetKey {
    AssetKey::parse_canonical(text).expect("a key")
}

fn status(world: &World, asset: &str) -> FreshnessStatus {
    world.state().asset_freshness(&key(asset)).expect("it has a policy").status
}

/// The changes so far: asset, old status, new status.
fn changes(world: &World) -> Vec<FreshnessChanged> {
    let events = world.events().into_iter();
    let changes = events.filter_map(|event| {
        if let EventData::FreshnessChanged(change) = event.data { Some(change) } else { None }
    });
    changes.collect()
}

/// Lets the engine wake up by itself until a time, and gives how often it did.
fn sleep_until(world: &mut World, until: Timestamp) -> usize {
    let mut woken = 0;
    while let Some(due) = world.engine.next_deadline(world.now).filter(|due| *due <= until) {
        world.now = world.now.max(due);
        world.step(&[]);
        woken += 1;
        assert!(woken < 1_000, "it never comes to rest");
    }
    world.now = until;
    woken
}

#[test]
fn a_lag_is_warned_of_then_missed_and_recovers_when_the_asset_is_made() {
    let policy = json!({ "freshness": { "max_lag_ms": 3_600_000, "warn_before_ms": 600_000 } });
    let mut world = world(&[asset("t/a", policy)]);
    let begun = world.now;
    let after = |minutes: u64| begun.saturating_add(Millis::from_minutes(minutes));
    assert_eq!(
        status(&world, "t/a"),
        FreshnessStatus::Pass,
        "what was never made is as old as its definition"
    );
    make(&mut world, "t/a");
    sleep_until(&mut world, after(49));
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Pass);
    sleep_until(&mut world, after(55));
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Warn);
    sleep_until(&mut world, after(120));
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Fail);
    let missed = changes(&world).pop().expect("it changed");
    assert_eq!((missed.old, missed.new), (FreshnessStatus::Warn, FreshnessStatus::Fail));
    assert_eq!((missed.since, missed.data_as_of), (after(60), Some(begun)));
    assert_eq!((missed.lag_ms, missed.due_at), (Some(Millis::from_hours(1)), None));
    assert_eq!(world.engine.next_deadline(world.now), None, "what is late is not looked at again");
    make(&mut world, "t/a");
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Pass);
    let all: Vec<_> = changes(&world).iter().map(|change| (change.old, change.new)).collect();
    let [unknown, pass, warn, fail] =
        [FreshnessStatus::Unknown, FreshnessStatus::Pass, FreshnessStatus::Warn, FreshnessStatus::Fail];
    assert_eq!(all, [(unknown, pass), (pass, warn), (warn, fail), (fail, pass)]);
    let restored = State::from_rows(tenant(), workspace(), world.state().rows()).expect("the rows fit");
    assert_eq!(restored.rows().freshness_status, world.state().rows().freshness_status);
    assert_eq!(
        Engine::new(restored, *b"secret").next_deadline(world.now),
        world.engine.next_deadline(world.now),
        "the deadline is found again"
    );
}

#[test]
fn an_asset_that_is_made_all_the_time_costs_one_event_for_each_lag() {
    let mut world = world(&[asset("t/a", json!({ "freshness": { "max_lag_ms": 3_600_000 } }))]);
    for _ in 0..60 {
        let until = world.now.saturating_add(Millis::from_minutes(10));
        sleep_until(&mut world, until);
        make(&mut world, "t/a");
    }
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Pass);
    let about = |name: &str| world.events().iter().filter(|event| event.data.kind().name() == name).count();
    assert_eq!(about("FreshnessChanged"), 1);
    assert!((9..=13).contains(&about("FreshnessObserved")), "{}", about("FreshnessObserved"));
}

#[test]
fn data_is_as_old_as_the_oldest_of_what_it_was_made_from() {
    let hourly = json!({ "freshness": { "max_lag_ms": 3_600_000 }, "deps": [{ "asset": "t/b" }] });
    let assets = [
        asset("t/a", json!({})),
        asset("t/b", json!({ "deps": [{ "asset": "t/a" }] })),
        asset("t/c", hourly),
    ];
    let mut world = world(&assets);
    make(&mut world, "t/a");
    let made = world.now;
    world.wait(50 * 60);
    make(&mut world, "t/b");
    make(&mut world, "t/c");
    assert_eq!(world.state().latest(&key("t/c"), None).expect("it is made").data_as_of(), made);
    let until = world.now.saturating_add(Millis::from_minutes(11));
    sleep_until(&mut world, until);
    assert_eq!(
        status(&world, "t/c"),
        FreshnessStatus::Fail,
        "it was made 11 minutes ago, of data an hour old"
    );
    // Making it again of the same data does not help; new data does.
    make(&mut world, "t/c");
    assert_eq!(status(&world, "t/c"), FreshnessStatus::Fail);
    let definitions = world.state().checked_definitions().expect("deployed");
    let position = definitions.position(&key("t/c")).expect("deployed");
    let mut staleness = Staleness::of(world.state()).expect("deployed");
    let view = staleness.look(world.state(), [position], world.now).expect("deployed");
    let told = view.explain(position, None).expect("it is stale");
    assert_eq!(told.cause.reason(), StaleReason::FreshnessMissed);
    assert!(told.to_string().contains("t.c has data of 1h1m ago"), "{told}");
    for task in ["t/a", "t/b", "t/c"] {
        make(&mut world, task);
    }
    assert_eq!(status(&world, "t/c"), FreshnessStatus::Pass);
}

#[test]
fn a_deadline_asks_at_every_tick_for_data_of_since_the_tick_before() {
    // The test begins at midnight.
    let policy = json!({ "freshness": { "cron": "0 9 * * *", "timezone": "UTC" } });
    let mut world = world(&[asset("t/a", policy)]);
    let begun = world.now;
    let after = |hours: u64| begun.saturating_add(Millis::from_hours(hours));
    make(&mut world, "t/a");
    sleep_until(&mut world, after(32));
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Pass, "the first tick is met");
    sleep_until(&mut world, after(34));
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Fail, "the second is not");
    assert_eq!(changes(&world).last().expect("it changed").since, after(33));
    make(&mut world, "t/a");
    sleep_until(&mut world, after(80));
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Pass, "late for the second, in time for the third");
    sleep_until(&mut world, after(82));
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Fail);
}

#[test]
fn of_partitions_of_time_the_newest_whole_one_counts() {
    let daily = json!({ "kind": "daily", "span": { "start": "2025-01-01" } });
    let policy = json!({ "max_lag_ms": 26 * 3_600_000 });
    let mut world = world(&[asset("t/a", json!({ "partitions": daily, "freshness": policy }))]);
    let begun = world.now;
    let after = |hours: u64| begun.saturating_add(Millis::from_hours(hours));
    world.wait(3_600);
    // The day that has just ended.
    make(&mut world, "t/a[date=d:2025-01-14]");
    sleep_until(&mut world, after(25));
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Pass);
    sleep_until(&mut world, after(27));
    assert_eq!(
        status(&world, "t/a"),
        FreshnessStatus::Fail,
        "the next day ended 3 hours ago and is not made"
    );
    assert_eq!(changes(&world).last().expect("it changed").since, after(26));
    make(&mut world, "t/a[date=d:2025-01-02]");
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Fail, "an old day changes nothing");
    make(&mut world, "t/a[date=d:2025-01-15]");
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Pass);
}

#[test]
fn a_policy_that_changes_is_looked_at_at_once_and_one_that_goes_is_forgotten() {
    let with = |hours: u64| asset("t/a", json!({ "freshness": { "max_lag_ms": hours * 3_600_000 } }));
    let mut world = world(&[with(10)]);
    make(&mut world, "t/a");
    world.wait(2 * 3_600);
    deploy(&mut world, "d2", &[with(1)]);
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Fail);
    deploy(&mut world, "d3", &[with(10)]);
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Pass);
    deploy(&mut world, "d4", &[asset("t/a", json!({}))]);
    assert_eq!(world.state().asset_freshness(&key("t/a")), None);
    assert_eq!(world.engine.next_deadline(world.now), None);
}

#[test]
fn what_is_wiped_is_looked_at_at_once_and_again_when_it_is_given_back() {
    let mut world = world(&[asset("t/a", json!({ "freshness": { "max_lag_ms": 3_600_000 } }))]);
    world.wait(2 * 3_600);
    make(&mut world, "t/a");
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Pass);
    let wipe = WipePartitions {
        asset: key("t/a"),
        partitions: vec![None],
        keep_data: true,
        force: false,
        reason: String::new(),
        caller: Caller::user("me"),
    };
    world.ask(Input::WipePartitions(wipe)).expect("wiped");
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Fail, "as old as its definition");
    let undo = RestorePartitions { asset: key("t/a"), change: None, caller: Caller::user("me") };
    world.ask(Input::RestorePartitions(undo)).expect("given back");
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Pass);
}

#[test]
fn a_deadline_that_is_missed_is_told_once_and_that_it_is_met_again_too() {
    let rule = json!({
        "name": "oncall",
        "location": { "file": "assets.py", "line": 3 },
        "when": ["freshness_missed", "recovered"],
        "to": [{ "type": "webhook", "url": "https://example.org/hook" }],
    });
    let rule: NotificationDef = serde_json::from_value(rule).expect("a rule");
    let policy = json!({ "freshness": { "max_lag_ms": 3_600_000, "warn_before_ms": 600_000 } });
    let mut world = World::new(Settings::default());
    world.engine.set_notifying(Notifying::Everything);
    deploy_with(&mut world, "d1", &[asset("t/a", policy)], vec![Arc::new(rule)]);
    make(&mut world, "t/a");
    let told = |world: &World| -> Vec<(NotificationTrigger, String)> {
        let mut rows = world.state().recent_notifications();
        rows.sort_by_key(|row| row.created_event_id);
        rows.iter().map(|row| (row.trigger, row.facts.0.summary.clone())).collect()
    };
    world.wait(55 * 60);
    world.step(&[]);
    assert_eq!(status(&world, "t/a"), FreshnessStatus::Warn);
    assert_eq!(told(&world), [], "a warning is not told");
    world.wait(10 * 60);
    world.step(&[]);
    let missed = "t.a is 1h5m old, which is more than its freshness allows".to_owned();
    assert_eq!(told(&world), [(NotificationTrigger::FreshnessMissed, missed.clone())]);
    world.wait(10 * 60);
    world.step(&[]);
    assert_eq!(told(&world).len(), 1, "once");
    make(&mut world, "t/a");
    let again = "t.a is fresh again".to_owned();
    assert_eq!(
        told(&world),
        [(NotificationTrigger::FreshnessMissed, missed), (NotificationTrigger::Recovered, again)]
    );
}
