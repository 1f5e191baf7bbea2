//! An asset that is renamed takes along everything that is known of it; its data follows before anything needs it
//! (ADR-181).

use std::sync::Arc;

use serde_json::{Value, json};
use servo_core::{
    AssetKey, EventId, MaterializationId, Millis, PartitionKey, PartitionValue, RunId, TaskKey,
};
use servo_engine::definitions::{AssetDef, Definitions, Manifest};
use servo_engine::outputs::OutputReport;
use servo_engine::{
    AssetMove, Caller, DataFormat, DataStatus, Deploy, Effect, ErrorCode, EventData, Input, OutputState,
    Refusal, RenameAsset, Report, Review, Settings, State, Step, TaskError, TaskOptions, TaskRequest,
    TaskState, TriggerRun, Verdict, WaitReason, why,
};

use crate::support::{World, fold, plan_of, tenant, workspace};

fn key(name: &str) -> AssetKey {
    AssetKey::new("t", name).expect("an asset")
}

fn day(name: &str) -> PartitionKey {
    PartitionKey::single("partition", PartitionValue::Str(name.to_owned())).expect("a partition")
}

/// A partition of an asset, as it is written in the key of a task.
fn at(asset: &str, name: &str) -> String {
    format!("{asset}[{}]", day(name).canonical())
}

fn definition(name: &str, more: Value) -> Value {
    let mut asset = json!({
        "key": format!("t/{name}"),
        "location": { "file": "assets.py", "line": 1 },
        "function": format!("assets:{name}"),
        "partitions": { "kind": "static", "keys": ["one", "two"] },
    });
    asset.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    asset
}

fn deploy(world: &mut World, assets: &[Value]) -> Result<(), Refusal> {
    let read = |asset: &Value| Arc::new(serde_json::from_value::<AssetDef>(asset.clone()).expect("an asset"));
    let deploy = Deploy {
        digest: format!("d{}", world.log.len()).into(),
        time_zones: "2026e".into(),
        project: "p".to_owned(),
        assets: assets.iter().map(read).collect(),
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        caller: Caller::user("me"),
    };
    world.ask(Input::Deploy(deploy)).map(drop)
}

fn trigger(world: &mut World, task: &str) -> Step {
    let key = TaskKey::parse(&format!("{task}:materialize")).expect("a task key");
    let plan = plan_of(vec![TaskRequest { key, upstream: vec![], options: TaskOptions::default() }]);
    let run_key = format!("run {}", world.log.len());
    world.step(&[Input::Trigger(TriggerRun::new(run_key, plan, "me"))])
}

fn dispatched(step: &Step) -> Option<servo_engine::Attempt> {
    step.effects.iter().find_map(|effect| effect.dispatch()).map(|dispatch| dispatch.attempt.clone())
}

fn make(world: &mut World, task: &str) {
    let attempt = dispatched(&trigger(world, task)).expect("dispatched");
    let asset = attempt.task_key.asset();
    let output =
        OutputReport { format: Some(DataFormat::Json), ..OutputReport::new(asset, OutputState::Committed) };
    let report = Report { outputs: [output].into(), ..Report::succeeded() };
    world.ask(Input::Finished(attempt, report)).expect("finished");
}

fn rename(from: &str, to: &str) -> Input {
    Input::RenameAsset(RenameAsset { from: key(from), to: key(to), caller: Caller::user("zoë") })
}

fn latest(state: &State, name: &str, partition: &str) -> Option<MaterializationId> {
    state.latest(&key(name), Some(&day(partition))).map(|latest| latest.id())
}

fn moves(effects: &[Effect]) -> Vec<AssetMove> {
    let of = |effect: &Effect| if let Effect::Move(moved) = effect { Some(moved.clone()) } else { None };
    effects.iter().filter_map(of).collect()
}

/// The same state, from rows and from the log.
fn survives(world: &World) {
    let rows = world.state().rows();
    let restored = State::from_rows(tenant(), workspace(), rows.clone()).expect("its own rows fit");
    assert_eq!(restored.rows(), rows);
    assert_eq!(restored.next_expiry(), world.state().next_expiry());
    let mut replayed = fold(&Settings::default(), &world.events()).rows();
    replayed.head.seq = rows.head.seq;
    assert_eq!(replayed, rows);
}

/// `t.old` with one partition made, and `t.new` deployed in its place.
fn renamed_in_code() -> World {
    let mut world = World::new(Settings::default());
    deploy(&mut world, &[definition("old", json!({ "expires_after_ms": 3_600_000 }))]).expect("deployed");
    make(&mut world, &at("t/old", "one"));
    deploy(&mut world, &[definition("new", json!({ "expires_after_ms": 3_600_000 }))]).expect("deployed");
    world
}

#[test]
fn everything_that_is_known_belongs_to_the_new_name_and_nothing_to_the_old_one() {
    let mut world = renamed_in_code();
    let made = latest(world.state(), "old", "one").expect("made");
    world.engine.state_mut().take_delta();
    let step = world.step(&[rename("old", "new")]);
    let renamed_by = step.events[0].id;
    let expected = AssetMove { from: key("old"), to: key("new"), renamed_by };
    assert_eq!(moves(&step.effects), std::slice::from_ref(&expected));
    assert_eq!(latest(world.state(), "new", "one"), Some(made));
    assert_eq!(latest(world.state(), "old", "one"), None);
    assert!(!world.state().has_history(&key("old")));
    assert_eq!(world.state().partition_counts(&key("new")).materialized, 1);
    let health = world.state().asset_state(&key("new")).expect("how it fares");
    assert_eq!(health.last_success().and_then(|success| success.materialization_id), Some(made));
    assert_eq!(world.state().current_name(&key("old"), EventId::NIL), key("new"));
    assert_eq!(world.state().former_names(&key("new")).into_iter().collect::<Vec<_>>(), [key("old")]);
    survives(&world);
    let delta = world.engine.state_mut().take_delta();
    assert_eq!((delta.partition_status.len(), delta.gone.partition_status.len()), (1, 1));
    assert_eq!((delta.asset_states.len(), delta.gone.asset_states), (1, vec![key("old")]));
    assert_eq!(delta.asset_renames.len(), 1);
    assert_eq!(delta.appended.audit[0].action, "asset.rename");
    assert_eq!(delta.appended.audit[0].principal.to_string(), "user:zoë");

    let moved = world.step(&[Input::Moved(expected.clone())]);
    assert!(matches!(moved.events[0].data, EventData::AssetMoved(_)));
    assert_eq!(world.step(&[Input::Moved(expected)]).events, [], "it is acknowledged once");
    world.now = world.now.saturating_add(Millis::new(3_601_000));
    world.step(&[]);
    let status = world.state().partition_status(&key("new"), Some(&day("one"))).map(|status| status.status());
    assert_eq!(status, Some(DataStatus::Expired), "it expires as it would have");
    survives(&world);
}

#[test]
fn nothing_that_makes_or_reads_it_is_handed_out_before_its_data_is_there() {
    let mut world = World::new(Settings::default());
    let reader =
        |of: &str| definition("reader", json!({ "deps": [{ "asset": format!("t/{of}"), "parameter": of }] }));
    let other = definition("other", json!({}));
    deploy(&mut world, &[definition("old", json!({})), reader("old"), other.clone()]).expect("deployed");
    make(&mut world, &at("t/old", "one"));
    deploy(&mut world, &[definition("new", json!({})), reader("new"), other]).expect("deployed");
    let step = world.step(&[rename("old", "new")]);
    let moved = moves(&step.effects).remove(0);
    assert_eq!(dispatched(&trigger(&mut world, &at("t/reader", "one"))), None);
    assert_eq!(dispatched(&trigger(&mut world, &at("t/new", "two"))), None);
    for run in world.state().runs().filter(|run| !run.state.is_terminal()) {
        let found = why(world.state(), run.id).expect("a run").tasks.remove(0).waits;
        let expected = WaitReason::Rename { asset: key("new") };
        assert_eq!(found.into_iter().map(|wait| wait.reason).collect::<Vec<_>>(), [expected]);
    }
    assert!(dispatched(&trigger(&mut world, &at("t/other", "one"))).is_some(), "others go on");
    let step = world.step(&[Input::Moved(moved)]);
    assert_eq!(step.effects.iter().filter_map(Effect::dispatch).count(), 2);
}

#[test]
fn a_move_that_was_not_acknowledged_is_found_again_after_a_crash() {
    let mut world = renamed_in_code();
    world.step(&[rename("old", "new")]);
    let restored = State::from_rows(tenant(), workspace(), world.state().rows()).expect("its own rows fit");
    let again = servo_engine::effect::unfinished(&restored);
    assert_eq!(moves(&again).len(), 1);
}

#[test]
fn a_rename_that_makes_no_sense_is_refused_and_changes_nothing() {
    let mut world = renamed_in_code();
    let before = world.state().rows();
    let problem = |world: &mut World, from: &str, to: &str| match world.ask(rename(from, to)) {
        Err(refusal) => refusal.to_string(),
        Ok(reply) => panic!("{reply:?}"),
    };
    assert!(problem(&mut world, "nowhere", "new").contains("there is no asset t.nowhere"));
    assert!(problem(&mut world, "new", "newer").contains("nothing of it was ever made"));
    assert!(problem(&mut world, "old", "old").contains("that is its name already"));
    assert_eq!(world.state().rows().partition_status, before.partition_status);

    make(&mut world, &at("t/new", "two"));
    assert!(problem(&mut world, "old", "new").contains("something was made of t.new already"));
    assert!(problem(&mut world, "new", "newest").contains("declared by the code that is deployed"));
    deploy(&mut world, &[definition("newest", json!({}))]).expect("deployed");
    let attempt = dispatched(&trigger(&mut world, &at("t/newest", "one"))).expect("dispatched");
    assert!(problem(&mut world, "old", "newest").contains("makes t.newest; wait for it"));
    world.ask(Input::Finished(attempt, Report::succeeded())).expect("finished");
    assert!(latest(world.state(), "old", "one").is_some());
}

#[test]
fn an_asset_cannot_be_renamed_while_a_run_reads_it() {
    let mut world = World::new(Settings::default());
    let reader = definition("reader", json!({ "deps": [{ "asset": "t/old", "parameter": "old" }] }));
    deploy(&mut world, &[definition("old", json!({})), reader]).expect("deployed");
    make(&mut world, &at("t/old", "one"));
    let attempt = dispatched(&trigger(&mut world, &at("t/reader", "one"))).expect("dispatched");
    let next = [definition("new", json!({ "renamed_from": "t.old" }))];
    let refused = deploy(&mut world, &next).expect_err("a run reads it");
    assert!(refused.to_string().contains("reads it"), "{refused}");
    assert!(world.state().definition(&key("old")).is_some(), "nothing was deployed");
    world.ask(Input::Finished(attempt, Report::succeeded())).expect("finished");
    deploy(&mut world, &next).expect("deployed");
    assert!(latest(world.state(), "new", "one").is_some());
}

#[test]
fn a_deployment_renames_what_its_code_says_once_and_keeps_the_id_of_the_asset() {
    let mut world = World::new(Settings::default());
    deploy(&mut world, &[definition("old", json!({}))]).expect("deployed");
    let id = world.state().definitions().next().map(|(_, _, id)| id);
    make(&mut world, &at("t/old", "one"));
    let eager = json!({ "renamed_from": "t.old", "automation": { "op": "missing" } });
    let declared = [definition("new", eager)];
    deploy(&mut world, &declared).expect("deployed");
    assert!(latest(world.state(), "new", "one").is_some());
    assert_eq!(world.state().definitions().next().map(|(_, _, id)| id), id);
    let renames = |world: &World| {
        world.events().into_iter().filter(|event| matches!(event.data, EventData::AssetRenamed(_))).count()
    };
    assert_eq!(renames(&world), 1);
    deploy(&mut world, &[declared[0].clone(), definition("other", json!({}))]).expect("deployed");
    assert_eq!(renames(&world), 1, "it may stay in the code");
    survives(&world);
}

#[test]
fn a_name_can_be_taken_back_and_used_again_and_the_past_belongs_to_whoever_made_it() {
    let mut world = renamed_in_code();
    let made = latest(world.state(), "old", "one").expect("made");
    let first = world.state().head().last_event;
    let step = world.step(&[rename("old", "new")]);
    world.step(&[Input::Moved(moves(&step.effects).remove(0))]);
    let second = world.state().head().last_event;
    deploy(&mut world, &[definition("old", json!({}))]).expect("deployed");
    let step = world.step(&[rename("new", "old")]);
    let renamed_back = step.events[0].id;
    world.step(&[Input::Moved(moves(&step.effects).remove(0))]);
    assert_eq!(latest(world.state(), "old", "one"), Some(made));
    let row = world.state().rows().asset_states.remove(0);
    assert_eq!(row.row_version, renamed_back, "it is newer than what removed the row of that name");
    assert_eq!(world.state().current_name(&key("old"), first), key("old"));
    assert_eq!(world.state().current_name(&key("new"), second), key("old"));
    survives(&world);

    deploy(&mut world, &[definition("new", json!({}))]).expect("deployed");
    let third = world.state().head().last_event;
    make(&mut world, &at("t/new", "two"));
    assert_eq!(world.state().current_name(&key("new"), third), key("new"), "another asset with a used name");
    assert_eq!(world.state().current_name(&key("new"), second), key("old"));
    survives(&world);
}

#[test]
fn an_output_that_is_approved_after_a_rename_is_recorded_under_the_new_name() {
    let mut world = World::new(Settings::default());
    deploy(&mut world, &[definition("old", json!({ "quarantine": true }))]).expect("deployed");
    let attempt = dispatched(&trigger(&mut world, &at("t/old", "one"))).expect("dispatched");
    let output = OutputReport {
        format: Some(DataFormat::Json),
        ..OutputReport::new(attempt.task_key.asset(), OutputState::Quarantined)
    };
    let failed = Report::failed(TaskError::new(ErrorCode::CheckFailed, "few"));
    let report = Report { outputs: [output].into(), ..failed };
    world.ask(Input::Finished(attempt, report)).expect("finished");
    deploy(&mut world, &[definition("new", json!({ "quarantine": true }))]).expect("deployed");
    let step = world.step(&[rename("old", "new")]);
    world.step(&[Input::Moved(moves(&step.effects).remove(0))]);
    let materialization_id = world.state().quarantine().next().expect("it waits").materialization_id;
    let (asset, verdict) = (key("new"), Verdict::Approve);
    let review =
        Review { asset, materialization_id, verdict, caller: Caller::user("me"), reason: String::new() };
    let step = world.step(&[Input::Review(review)]);
    let release = step
        .effects
        .iter()
        .find_map(|effect| if let Effect::Release(release) = effect { Some(release.clone()) } else { None });
    world.engine.state_mut().take_delta();
    world.step(&[Input::Released(release.expect("its data is moved"))]);
    let delta = world.engine.state_mut().take_delta();
    assert_eq!(delta.appended.materializations[0].asset_key, key("new"));
    assert_eq!(latest(world.state(), "new", "one"), Some(materialization_id));
}

#[test]
fn a_name_that_is_still_declared_or_claimed_twice_is_a_problem_of_the_definitions() {
    let manifest = |assets: Vec<Value>| -> Manifest {
        serde_json::from_value(json!({ "manifest_version": 1, "project": "p", "assets": assets }))
            .expect("a manifest")
    };
    let from = |name: &str, from: &str| definition(name, json!({ "renamed_from": from }));
    let problems = |assets| Definitions::check(manifest(assets)).expect_err("it is wrong").to_string();
    let both = problems(vec![definition("old", json!({})), from("new", "t/old")]);
    assert!(both.contains("is renamed from t.old, which is declared too"), "{both}");
    let twice = problems(vec![from("new", "t/old"), from("other", "t/old")]);
    assert!(twice.contains("is renamed from t.old, and t.new is too"), "{twice}");
    let bad = problems(vec![from("new", "t/")]);
    assert!(bad.contains("renamed_from:"), "{bad}");
}

#[test]
fn a_task_of_an_ended_run_keeps_the_name_of_its_time() {
    let mut world = renamed_in_code();
    let run: RunId = world.state().runs().next().expect("a run").id;
    world.step(&[rename("old", "new")]);
    let task = TaskKey::parse(&format!("{}:materialize", at("t/old", "one"))).expect("a task key");
    assert_eq!(world.state().task(run, &task).map(|task| task.state), Some(TaskState::Succeeded));
}
