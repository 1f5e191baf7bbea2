//! Provenance of an attempt: the code it was asked to run, the code that ran, and the exact data it read (ADR-086).

use std::sync::Arc;

use serde_json::{Value, json};
use servo_core::{AssetKey, MaterializationId, TaskKey};
use servo_engine::definitions::AssetDef;
use servo_engine::effect;
use servo_engine::event::{KeyList, encode_batch};
use servo_engine::outputs::{OutputReport, materialization_of};
use servo_engine::requests::PlanBasis;
use servo_engine::rows::MaterializationInputRow;
use servo_engine::work::Work;
use servo_engine::{
    Attempt, AttemptOutcome, Caller, DataFormat, Deploy, Effect, EventData, Input, MarkPartitions,
    NAMED_INPUTS, OutputState, PiecesRead, Report, Settings, TaskOptions, TaskRequest, TaskState, TriggerRun,
};

use crate::support::{self, World, plan_of};

fn asset(key: &str, version: &str, more: Value) -> Value {
    let mut asset = json!({
        "key": key,
        "location": { "file": "assets.py", "line": 1 },
        "function": format!("assets:{}", key.replace('/', "_")),
        "code_version": version,
    });
    asset.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    asset
}

/// `raw/days`, daily for a year; `raw/one`; `day/same` reads one day; `all/days` reads them all, and waits for
/// `raw/one`.
fn project(version: &str) -> Vec<Value> {
    let daily = json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-12-31" } });
    let reads =
        |mapping: &str| json!({ "asset": "raw/days", "parameter": "days", "mapping": { "kind": mapping } });
    vec![
        asset("raw/days", "days 1", json!({ "partitions": daily })),
        asset("raw/one", "one 1", json!({})),
        asset("day/same", version, json!({ "partitions": daily, "deps": [reads("same")] })),
        asset("all/days", version, json!({ "deps": [reads("all"), { "asset": "raw/one" }] })),
    ]
}

fn deploy(world: &mut World, digest: &str, assets: &[Value]) {
    let assets = assets.iter().map(|asset| {
        let def: AssetDef = serde_json::from_value(asset.clone()).expect("an asset");
        Arc::new(def)
    });
    let (digest, project, assets) = (digest.into(), "flights".to_owned(), assets.collect());
    world
        .ask(Input::Deploy(Deploy {
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            digest,
            project,
            assets,
            time_zones: "2026e".into(),
            caller: Caller::user("me"),
        }))
        .expect("deployed");
}

fn world() -> World {
    let mut world = World::new(Settings::default());
    deploy(&mut world, "d1", &project("v1"));
    world
}

fn day(number: u32) -> String {
    format!("raw/days[date=d:{}]", date(number))
}

/// The day of the year 2013 with this number, from 0.
fn date(number: u32) -> String {
    const LENGTHS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut left = number;
    for (month, length) in (1..).zip(LENGTHS) {
        if left < length {
            return format!("2013-{month:02}-{:02}", left + 1);
        }
        left -= length;
    }
    panic!("the year has no day {number}")
}

fn dispatched(world: &mut World, task: &str) -> (Attempt, Arc<Work>) {
    let key = TaskKey::parse(&format!("{task}:materialize")).expect("a task key");
    let plan = plan_of(vec![TaskRequest { key, upstream: vec![], options: TaskOptions::default() }]);
    let run_key = format!("run {}", world.log.len());
    let step = world.step(&[Input::Trigger(TriggerRun::new(run_key, plan, "me"))]);
    let [Effect::Enqueue(dispatch)] = step.effects.as_slice() else { panic!("{:?}", step.effects) };
    (dispatch.attempt.clone(), dispatch.work.clone().expect("there is work"))
}

fn finish(world: &mut World, attempt: Attempt, work: &Work, ran: Option<&str>) -> MaterializationId {
    let outputs = work.outputs.iter().map(|output| OutputReport {
        format: Some(DataFormat::Parquet),
        code_version: ran.map(Arc::from),
        ..OutputReport::new(output.asset.clone(), OutputState::Committed)
    });
    let report = Report { outputs: outputs.collect(), ..Report::succeeded() };
    let id = materialization_of(attempt.attempt_id);
    world.ask(Input::Finished(attempt, report)).expect("finishes");
    world.wait(1);
    id
}

fn materialize(world: &mut World, task: &str) -> MaterializationId {
    let (attempt, work) = dispatched(world, task);
    finish(world, attempt, &work, None)
}

fn key(asset: &str) -> AssetKey {
    asset.parse().expect("an asset")
}

fn inputs_of(world: &mut World, id: MaterializationId) -> Vec<MaterializationInputRow> {
    let rows = world.engine.state_mut().take_delta().appended.materialization_inputs;
    rows.into_iter().filter(|row| row.materialization_id == id).collect()
}

#[test]
fn a_dispatch_records_the_deployment_the_code_and_the_exact_inputs() {
    let mut world = world();
    let first = materialize(&mut world, &day(4));
    let (attempt, work) = dispatched(&mut world, "day/same[date=d:2013-01-05]");
    let task = world.state().task(attempt.run_id, &attempt.task_key).expect("a task");
    assert_eq!(task.provenance.deployment, 1);
    assert_eq!(task.provenance.code_version(0).map(AsRef::as_ref), Some("v1"));
    assert!(!task.provenance.definition_changed);
    let [read] = task.provenance.inputs.as_slice() else { panic!("{:?}", task.provenance) };
    let PiecesRead::Named(pieces) = &read.pieces else { panic!("{read:?}") };
    assert_eq!((read.asset.clone(), pieces.len(), pieces[0].id), (key("raw/days"), 1, first));
    let as_of = task.inputs_as_of;
    assert!(as_of.is_some());
    let made = finish(&mut world, attempt, &work, None);
    let [row] = inputs_of(&mut world, made).try_into().expect("one row");
    assert_eq!((row.upstream_asset_key, row.upstream_materialization_id), (key("raw/days"), Some(first)));
    assert_eq!((row.inputs_as_of, row.upstream_count), (as_of, 1));
    let latest = world.state().latest(&key("day/same"), row.partition_key.as_ref()).expect("materialized");
    assert_eq!(latest.inputs_as_of(), as_of);
    assert_eq!(world.state().code_version(latest).map(AsRef::as_ref), Some("v1"));
}

#[test]
fn the_code_that_ran_counts_not_the_code_that_is_deployed_when_it_is_reported() {
    let mut world = world();
    let (attempt, work) = dispatched(&mut world, "raw/one");
    let (late, late_work) = dispatched(&mut world, &day(0));
    let changed: Vec<Value> = project("v1")
        .into_iter()
        .map(|asset| match asset["key"].as_str() {
            Some("raw/one" | "raw/days") => {
                let mut asset = asset;
                asset["code_version"] = json!("2");
                asset
            }
            _ => asset,
        })
        .collect();
    deploy(&mut world, "d2", &changed);
    let (one, days) = (attempt.run_id, late.run_id);
    finish(&mut world, attempt, &work, None);
    finish(&mut world, late, &late_work, Some("2"));
    let rows = world.engine.state_mut().take_delta().appended.materializations;
    let version = |asset: &str| {
        let row = rows.iter().find(|row| row.asset_key == key(asset)).expect("a row");
        (row.code_version.clone(), row.deployment_number)
    };
    assert_eq!(version("raw/one"), (Some("one 1".to_owned()), 1), "as it was dispatched");
    assert_eq!(version("raw/days"), (Some("2".to_owned()), 1), "as the runner says");
    let code_changed = |run| world.state().run(run).map(|run| run.code_changed);
    assert_eq!((code_changed(one), code_changed(days)), (Some(false), Some(true)));
}

#[test]
fn a_run_says_that_a_definition_changed_after_it_was_planned() {
    let mut world = world();
    let keys = ["raw/one:materialize", "all/days:materialize"].map(|key| TaskKey::parse(key).expect("a key"));
    let options = TaskOptions::default;
    let plan = plan_of(vec![
        TaskRequest { key: keys[0].clone(), upstream: vec![], options: options() },
        TaskRequest { key: keys[1].clone(), upstream: vec![keys[0].clone()], options: options() },
    ]);
    materialize(&mut world, &day(0));
    let run = world.trigger(TriggerRun::new("k", plan, "me"));
    deploy(&mut world, "d2", &project("v2"));
    let attempt_of = |world: &World, key: &TaskKey| {
        let task = world.state().task(run, key).expect("a task");
        let attempt_id = task.attempt_id.expect("dispatched");
        Attempt { run_id: run, task_key: key.clone(), attempt: task.attempt, attempt_id }
    };
    let attempt = attempt_of(&world, &keys[0]);
    world.ask(Input::Finished(attempt, Report::succeeded())).expect("finishes");
    let provenance = world.state().task(run, &keys[1]).expect("a task").provenance.clone();
    assert_eq!((provenance.deployment, provenance.definition_changed), (2, true));
    assert_eq!(provenance.code_version(0).map(AsRef::as_ref), Some("v2"));
    assert_eq!(world.state().run(run).map(|run| run.deployment), Some(1), "as it was planned");
}

#[test]
fn an_attempt_that_is_handed_out_again_reads_what_it_was_first_told() {
    let mut world = world();
    let first = materialize(&mut world, &day(4));
    let (attempt, work) = dispatched(&mut world, "day/same[date=d:2013-01-05]");
    let second = materialize(&mut world, &day(4));
    assert_ne!(first, second);
    let again = effect::outstanding(world.state());
    let [again] = again.as_slice() else { panic!("{again:?}") };
    assert_eq!(again.attempt, attempt);
    let again = again.work.clone().expect("there is work");
    assert_eq!(again.inputs[0].pieces[0].materialization_id, Some(first));
    assert_eq!(work.inputs[0].pieces[0].materialization_id, Some(first));
}

#[test]
fn what_is_only_waited_for_is_an_input_too() {
    let mut world = world();
    let one = materialize(&mut world, "raw/one");
    let days: Vec<_> = (0..3).map(|number| materialize(&mut world, &day(number))).collect();
    let made = materialize(&mut world, "all/days");
    let read: Vec<_> =
        inputs_of(&mut world, made).into_iter().filter_map(|row| row.upstream_materialization_id).collect();
    assert_eq!(read, [days, vec![one]].concat());
}

#[test]
fn very_many_inputs_are_counted_and_an_attempt_that_cannot_be_repeated_is_replaced() {
    let mut world = world();
    let many = NAMED_INPUTS as u32 + 10;
    for number in 0..many {
        materialize(&mut world, &day(number));
    }
    let (attempt, work) = dispatched(&mut world, "all/days");
    let provenance =
        world.state().task(attempt.run_id, &attempt.task_key).expect("a task").provenance.clone();
    let [read] = provenance.inputs.as_slice() else { panic!("{provenance:?}") };
    assert!(
        matches!(&read.pieces, PiecesRead::Counted { count, .. } if *count == u64::from(many)),
        "{read:?}"
    );
    let size = serde_json::to_string(&*provenance).expect("plain data").len();
    assert!(size < 1_000, "{size} bytes");
    // The same data is there: the attempt is handed out again as it was.
    world.ask(Input::WorkersLost("local".into())).expect("noted");
    assert_eq!(world.state().task(attempt.run_id, &attempt.task_key).map(|task| task.attempt), Some(1));
    // One of them was made again: what was recorded would not be what is read.
    materialize(&mut world, &day(7));
    world.ask(Input::WorkersLost("local".into())).expect("noted");
    let task = world.state().task(attempt.run_id, &attempt.task_key).expect("a task");
    assert_eq!((task.state, task.attempt), (TaskState::Ready, 2));
    assert_ne!(task.provenance, provenance);
    drop(work);
}

#[test]
fn more_inputs_without_partitions_than_are_named_of_one_are_all_recorded() {
    let many = NAMED_INPUTS + 10;
    let names: Vec<String> = (0..many).map(|number| format!("wide/part_{number:03}")).collect();
    let mut assets: Vec<Value> = names.iter().map(|name| asset(name, "1", json!({}))).collect();
    let deps: Vec<Value> = names
        .iter()
        .zip(0..)
        .map(|(name, n)| json!({ "asset": name, "parameter": format!("p{n}") }))
        .collect();
    assets.push(asset("wide/sink", "1", json!({ "deps": deps })));
    let mut world = World::new(Settings::default());
    deploy(&mut world, "d1", &assets);
    for name in &names {
        materialize(&mut world, name);
    }
    let (attempt, _) = dispatched(&mut world, "wide/sink");
    let task = world.state().task(attempt.run_id, &attempt.task_key).expect("a task");
    assert_eq!(task.provenance.inputs.len(), many);
}

#[test]
fn a_task_with_more_inputs_without_partitions_than_can_be_counted_names_them_all() {
    let mut world = World::new(Settings::default());
    let count = NAMED_INPUTS + 44;
    let name = |number: usize| format!("raw/n{number:03}");
    let mut assets: Vec<Value> = (0..count).map(|number| asset(&name(number), "1", json!({}))).collect();
    let reads: Vec<Value> = (0..count)
        .map(|number| json!({ "asset": name(number), "parameter": format!("p{number}") }))
        .collect();
    let daily = json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-01-03" } });
    assets.push(asset("raw/days", "1", json!({ "partitions": daily })));
    let days = json!({ "asset": "raw/days", "parameter": "days", "mapping": { "kind": "all" } });
    let deps: Vec<Value> = reads.into_iter().chain([days]).collect();
    assets.push(asset("all/wide", "1", json!({ "deps": deps })));
    deploy(&mut world, "d1", &assets);
    let made: Vec<MaterializationId> =
        (0..count).map(|number| materialize(&mut world, &name(number))).collect();
    for number in 0..3 {
        materialize(&mut world, &day(number));
    }
    world.engine.state_mut().take_delta();
    let (attempt, work) = dispatched(&mut world, "all/wide");
    let task = world.state().task(attempt.run_id, &attempt.task_key).expect("a task");
    let inputs = &task.provenance.inputs;
    assert_eq!(inputs.len(), count + 1);
    assert!(
        inputs[..count].iter().all(|read| matches!(&read.pieces, PiecesRead::Named(one) if one.len() == 1))
    );
    let counted = &inputs[count].pieces;
    assert!(
        matches!(counted, PiecesRead::Counted { count: 3, .. }),
        "there is no room for names: {counted:?}"
    );
    let wide = finish(&mut world, attempt, &work, None);
    let rows = inputs_of(&mut world, wide);
    let read: Vec<_> = rows.iter().filter_map(|row| row.upstream_materialization_id).collect();
    assert_eq!(read.len(), count);
    assert!(made.iter().all(|id| read.contains(id)));
}

/// Bytes of the newest event of a dispatch.
fn event_size(world: &World) -> usize {
    let mut dispatches =
        world.log.iter().flatten().filter(|event| matches!(event.data, EventData::DispatchRequested(_)));
    let newest = dispatches.next_back().expect("one was dispatched").clone();
    let mut bytes = Vec::new();
    encode_batch(&[newest], &mut bytes);
    bytes.len()
}

#[test]
fn the_event_of_a_dispatch_is_small_however_long_the_names_of_its_inputs_are() {
    let keys: Vec<String> =
        (0..NAMED_INPUTS).map(|number| format!("{number:03}{}", "é".repeat(250))).collect();
    let parts = json!({ "kind": "static", "keys": keys });
    let reads = json!({ "asset": "long/parts", "parameter": "parts", "mapping": { "kind": "all" } });
    let assets = [
        asset("long/parts", "1", json!({ "partitions": parts })),
        asset("long/all", "1", json!({ "deps": [reads] })),
    ];
    let mut world = World::new(Settings::default());
    deploy(&mut world, "d1", &assets);
    let definitions = world.state().checked_definitions().expect("deployed");
    let asset = AssetKey::parse("long.parts").expect("a key");
    let position = definitions.position(&asset).expect("it is there");
    let partitions = definitions.asset(position).partitions.clone().expect("it has some");
    let marked = MarkPartitions {
        asset,
        partitions: KeyList::new(partitions.page(0, NAMED_INPUTS, world.now)),
        outcome: AttemptOutcome::Succeeded,
        reason: String::new(),
        basis: PlanBasis::default(),
        caller: Caller::user("me"),
    };
    world.ask(Input::MarkPartitions(marked)).expect("marked");
    let (_, work) = dispatched(&mut world, "long/all");
    assert_eq!(work.inputs[0].pieces.len(), NAMED_INPUTS);
    assert!(event_size(&world) < 4_000, "{} bytes", event_size(&world));
}

#[test]
fn inputs_without_partitions_that_an_event_cannot_name_are_found_when_it_is_folded() {
    const MANY: usize = 3_000;
    let names: Vec<String> = (0..MANY).map(|number| format!("wide/part_{number:04}")).collect();
    let mut assets: Vec<Value> = names.iter().map(|name| asset(name, "1", json!({}))).collect();
    let deps: Vec<Value> = names.iter().map(|name| json!({ "asset": name })).collect();
    assets.push(asset("wide/sink", "1", json!({ "deps": deps })));
    let mut world = World::new(Settings::default());
    deploy(&mut world, "d1", &assets);
    for name in &names {
        let marked = MarkPartitions {
            asset: AssetKey::parse(&name.replace('/', ".")).expect("a key"),
            partitions: KeyList::default(),
            outcome: AttemptOutcome::Succeeded,
            reason: String::new(),
            basis: PlanBasis::default(),
            caller: Caller::user("me"),
        };
        world.ask(Input::MarkPartitions(marked)).expect("marked");
    }
    let (attempt, work) = dispatched(&mut world, "wide/sink");
    assert!(event_size(&world) <= 64 << 10, "{} bytes", event_size(&world));
    let task = world.state().task(attempt.run_id, &attempt.task_key).expect("a task");
    assert_eq!((task.provenance.inputs.len(), &task.provenance.unnamed), (MANY, &None));
    let mut replayed = support::empty_state(&Settings::default());
    for (seq, batch) in (1u64..).zip(&world.log) {
        replayed.apply_batch(seq, batch);
    }
    let again = replayed.task(attempt.run_id, &attempt.task_key).expect("a task");
    assert_eq!(again.provenance, task.provenance);
    world.engine.state_mut().take_delta();
    let made = finish(&mut world, attempt, &work, None);
    assert_eq!(inputs_of(&mut world, made).len(), MANY, "lineage has them all");
}
