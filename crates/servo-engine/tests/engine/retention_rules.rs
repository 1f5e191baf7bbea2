//! The rules of retention: what they keep, and what is needed although they do not.

use std::sync::Arc;

use serde_json::{Value, json};
use servo_core::{AssetKey, MaterializationId, Millis};
use servo_engine::definitions::AssetDef;
use servo_engine::event::{EventData, ExpiredData};
use servo_engine::outputs::{OutputReport, materialization_of};
use servo_engine::retention::{MadeData, Read, Superseded, logs_before, removable, superseded};
use servo_engine::{
    Applied, ApplyRetention, Caller, Change, Deploy, Effect, Expired, Ignored, Input, OutputState, Reply,
    Report, Settings, TriggerRun,
};

use crate::support;
use crate::support::{World, after, event, plan};

const DAY: u64 = 24 * 3_600;

fn a() -> AssetKey {
    AssetKey::parse("t.a").expect("an asset")
}

fn settings(keep_days: u64, versions: u32) -> Settings {
    Settings {
        keep_superseded: Millis::from_hours(24 * keep_days),
        keep_superseded_versions: versions,
        ..Settings::default()
    }
}

/// Makes `a` once.
fn make(world: &mut World) {
    let run_key = format!("run {}", world.log.len());
    world.trigger(TriggerRun::new(run_key, plan(&[("a", &[])]), "me"));
    let output = OutputReport { byte_size: Some(10), ..OutputReport::new(a(), OutputState::Committed) };
    world.play("a", Report { outputs: [output].into(), ..Report::succeeded() });
}

/// The materializations of which the tables do not know yet.
fn tables(world: &mut World) -> Vec<MadeData> {
    let rows = world.engine.state_mut().take_delta().appended.materializations;
    let data = rows.into_iter().map(|row| MadeData {
        asset: row.asset_key,
        partition: row.partition_key,
        id: row.materialization_id,
        at: row.materialized_at,
        event: row.row_version,
        byte_size: row.byte_size,
        is_stored: true,
    });
    data.collect()
}

/// Makes `a` once a day, and gives what the tables would say about it.
fn made(world: &mut World, times: usize) -> Vec<MadeData> {
    for _ in 0..times {
        make(world);
        world.wait(DAY);
    }
    tables(world)
}

fn ids(found: &[Superseded]) -> Vec<MaterializationId> {
    found.iter().map(|found| found.data.materialization_id).collect()
}

#[test]
fn old_versions_go_when_they_were_superseded_long_ago_and_enough_newer_ones_are_kept() {
    for (keep_days, versions, expected) in
        [(3, 0, 2), (3, 3, 2), (3, 4, 1), (3, 5, 0), (1, 0, 4), (1, 3, 2), (0, 0, 0)]
    {
        let mut world = World::new(settings(keep_days, versions));
        // Made on days 0 to 5; now it is day 6. The one of day n was superseded on day n + 1.
        let data = made(&mut world, 6);
        let all: Vec<_> = data.iter().map(|data| data.id).collect();
        let found = superseded(world.state(), world.now, data);
        assert_eq!(ids(&found), all[..expected], "{keep_days} days, {versions} versions");
    }
}

#[test]
fn what_counts_was_made_of_is_kept_with_it() {
    let mut world = World::new(settings(1, 0));
    let data = made(&mut world, 4);
    let found = superseded(world.state(), world.now, data.clone());
    let all = ids(&found);
    let left = |read: &Read| {
        let found = superseded(world.state(), world.now, data.clone());
        removable(world.state(), found, read)
            .into_iter()
            .map(|data| data.materialization_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(left(&Read::default()), all);
    let mut read = Read::default();
    read.name(a(), all[0]);
    assert_eq!(left(&read), all[1..]);
    // Very many partitions that were read together: whatever was the latest then.
    let mut read = Read::default();
    read.count(a(), found[1].latest_between.0);
    assert_eq!(left(&read), [&all[..1], &all[2..]].concat());
    let mut read = Read::default();
    read.count(AssetKey::parse("t.b").expect("an asset"), found[1].latest_between.0);
    assert_eq!(left(&read), all);
}

fn expired(data: &MadeData) -> ExpiredData {
    ExpiredData {
        asset_key: data.asset.clone(),
        partition_key: None,
        materialization_id: data.id,
        byte_size: data.byte_size,
    }
}

fn apply(world: &mut World, superseded: Vec<ExpiredData>, logs: bool) -> (Change, Vec<Effect>) {
    world.effects.clear();
    let command = ApplyRetention { superseded, logs, caller: Caller::user("me") };
    let Ok(Reply::Change(change)) = world.ask(command.into()) else { panic!("refused") };
    (change, std::mem::take(&mut world.effects))
}

#[test]
fn data_goes_as_an_effect_of_an_event_and_what_counts_never_goes() {
    let mut world = World::new(settings(1, 0));
    let data = made(&mut world, 3);
    let (change, effects) = apply(&mut world, data.iter().map(expired).collect(), false);
    assert!(matches!(change, Change::Accepted { .. }));
    let gone = |data: &MadeData| {
        Effect::Expire(Expired {
            asset: a(),
            partition: None,
            materialization_id: data.id,
            was_latest: false,
        })
    };
    assert_eq!(effects, [gone(&data[0]), gone(&data[1])]);
    let delta = world.engine.state_mut().take_delta();
    let removed: Vec<_> = delta.appended.removals.iter().map(|row| row.materialization_id).collect();
    assert_eq!(removed, [data[0].id, data[1].id]);
    assert_eq!(delta.appended.audit.iter().filter(|row| row.action == "retention.apply").count(), 1);
    // The same event again, and one that somebody else has written about what counts.
    let known = world.events().pop().expect("an event");
    assert_eq!(world.engine.state_mut().apply(&known), Applied::No(Ignored::Duplicate));
    let wrong =
        servo_engine::event::RetentionApplied { superseded: vec![expired(&data[2])], logs_before: None };
    world.engine.state_mut().apply(&event(EventData::RetentionApplied(wrong), world.now, 1));
    assert!(world.engine.state_mut().take_delta().appended.removals.is_empty());
    assert_eq!(apply(&mut world, vec![expired(&data[2])], false), (Change::Duplicate, vec![]));
}

fn asset(key: &str, deps: Value) -> Arc<AssetDef> {
    let location = json!({ "file": "a.py", "line": 1 });
    let asset = json!({ "key": key, "location": location, "function": "a:f", "deps": deps });
    Arc::new(serde_json::from_value(asset).expect("an asset"))
}

#[test]
fn what_an_attempt_at_work_was_told_to_read_stays_until_it_has_ended() {
    let mut world = World::new(settings(1, 0));
    let reads = json!([{ "asset": "t/a", "parameter": "a" }]);
    let deploy = Deploy {
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        time_zones: "2026e".into(),
        digest: "d1".into(),
        project: "reads".to_owned(),
        assets: vec![asset("t/a", json!([])), asset("t/reader", reads)],
        caller: Caller::user("me"),
    };
    world.ask(Input::Deploy(deploy)).expect("deployed");
    make(&mut world);
    world.trigger(TriggerRun::new("reader", plan(&[("reader", &[])]), "me"));
    let attempt = world.attempt("reader");
    world.wait(1);
    make(&mut world);
    let data = tables(&mut world);
    let found = || {
        vec![Superseded {
            data: expired(&data[0]),
            made_as: data[0].asset.clone(),
            latest_between: (data[0].event, data[1].event),
        }]
    };
    assert_eq!(removable(world.state(), found(), &Read::default()), []);
    assert_eq!(apply(&mut world, vec![expired(&data[0])], false), (Change::Duplicate, vec![]));
    world.ask(Input::Started(attempt.clone(), "w1".into())).expect("begun");
    world.ask(Input::Finished(attempt, Report::succeeded())).expect("ended");
    assert_eq!(removable(world.state(), found(), &Read::default()).len(), 1);
    assert!(matches!(apply(&mut world, vec![expired(&data[0])], false).0, Change::Accepted { .. }));
}

#[test]
fn logs_of_attempts_at_work_are_kept_however_short_logs_are_kept() {
    let mut world = World::new(Settings { keep_logs: Millis::from_secs(60), ..Settings::default() });
    world.trigger(TriggerRun::new("long", plan(&[("a", &[])]), "me"));
    world.start("a").expect("begun");
    let begun = world.now;
    for _ in 0..20 {
        world.wait(30);
        world.beat("a").expect("alive");
    }
    assert_eq!(logs_before(world.state(), world.now), Some(begun));
    world.finish("a", Report::succeeded()).expect("ended");
    assert_eq!(logs_before(world.state(), world.now), Some(world.now.saturating_sub(Millis::from_secs(60))));
    let (change, effects) = apply(&mut world, vec![], true);
    assert!(matches!(change, Change::Accepted { .. }));
    assert_eq!(effects, [Effect::ExpireLogs(world.now.saturating_sub(Millis::from_secs(60)))]);
    let for_ever = World::new(Settings { keep_logs: Millis::ZERO, ..Settings::default() });
    assert_eq!(logs_before(for_ever.state(), after(1_000_000_000)), None);
}

#[test]
fn outputs_that_wait_for_review_for_too_long_are_rejected() {
    let mut world = World::new(Settings { keep_quarantined: Millis::from_hours(24), ..Settings::default() });
    world.trigger(TriggerRun::new("blocked", plan(&[("a", &[])]), "me"));
    let output = OutputReport::new(a(), OutputState::Quarantined);
    let attempt = world.attempt("a");
    world.play("a", Report { outputs: [output].into(), ..support::user_error() });
    assert_eq!(world.state().quarantine().count(), 1);
    assert_eq!(apply(&mut world, vec![], false).0, Change::Duplicate, "it has not waited for long");
    world.wait(2 * DAY);
    let (change, effects) = apply(&mut world, vec![], false);
    assert!(matches!(change, Change::Accepted { .. }));
    assert_eq!(world.state().quarantine().count(), 0);
    let discards = support::discards(effects);
    assert_eq!(discards.len(), 1);
    assert_eq!(materialization_of(discards[0].attempt_id), materialization_of(attempt.attempt_id));
}
