//! Work of attempts: resolved at dispatch, from deployed definitions and existing materializations (ADR-061).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use servo_core::{AssetKey, MaterializationId, TaskKey, Timestamp};
use servo_engine::definitions::{AssetDef, Isolation};
use servo_engine::effect;
use servo_engine::outputs::{OutputReport, materialization_of};
use servo_engine::work::{Work, WorkInput};
use servo_engine::{
    Attempt, Caller, ChangePartitions, DataFormat, Deploy, Effect, Input, OutputState, Report, Settings,
    State, TaskOptions, TaskRequest, TriggerRun,
};

use crate::support;
use crate::support::{World, fold, plan_of, tenant, workspace};

fn asset(key: &str, more: Value) -> Value {
    let mut asset = json!({
        "key": key,
        "location": { "file": "assets.py", "line": 1 },
        "function": format!("assets:{}", key.replace('/', "_")),
    });
    asset.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    asset
}

fn reads(upstream: &str, mapping: Value) -> Value {
    json!([{ "asset": upstream, "parameter": "given", "mapping": mapping }])
}

fn daily() -> Value {
    json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-12-31" } })
}

fn monthly() -> Value {
    json!({ "kind": "monthly", "day": 1, "span": { "start": "2013-01-01", "end": "2013-12-01" } })
}

fn regional(time: Value) -> Value {
    json!({ "kind": "multi", "dims": { "date": time, "region": { "kind": "static", "keys": ["eu", "us"] } } })
}

/// Days of flights, planes, and what can be made of them.
fn flights() -> Vec<Value> {
    let window = |from: i64, to: i64| json!({ "kind": "window", "from": from, "to": to });
    let part = |partitions: Value, upstream: &str, mapping: Value| json!({ "partitions": partitions, "deps": reads(upstream, mapping) });
    let whole = |upstream: &str, mapping: Value| json!({ "deps": reads(upstream, mapping) });
    let dims = |dims: Value| json!({ "kind": "dims", "dims": dims });
    let time = || json!({ "kind": "time" });
    vec![
        asset("raw/flights", json!({ "partitions": daily() })),
        asset("raw/planes", json!({})),
        asset("raw/months", json!({ "partitions": monthly() })),
        asset("raw/sales", json!({ "partitions": regional(daily()) })),
        asset("raw/monthly_sales", json!({ "partitions": regional(monthly()) })),
        asset("raw/feed", json!({ "external": true, "function": null, "io": "lake" })),
        asset("day/same", part(daily(), "raw/flights", json!({ "kind": "same" }))),
        asset("day/week", part(daily(), "raw/flights", window(-6, 0))),
        asset("day/before", part(daily(), "raw/flights", window(-1, -1))),
        asset(
            "day/planes",
            json!({ "partitions": daily(), "deps": [{ "asset": "raw/planes", "parameter": "given" }] }),
        ),
        asset("day/of_month", part(daily(), "raw/months", time())),
        asset(
            "day/fed",
            json!({ "partitions": daily(), "deps": [{ "asset": "raw/feed", "parameter": "given" }] }),
        ),
        asset("month/of_days", part(monthly(), "raw/flights", time())),
        asset("all/last", whole("raw/flights", json!({ "kind": "last" }))),
        asset("all/every", whole("raw/flights", json!({ "kind": "all" }))),
        asset(
            "all/two",
            whole("raw/flights", json!({ "kind": "specific", "keys": ["2013-01-01", "2013-01-03"] })),
        ),
        asset("sales/same", part(regional(daily()), "raw/sales", dims(json!({})))),
        asset("sales/regions", part(daily(), "raw/sales", dims(json!({ "date": {} })))),
        asset(
            "sales/yesterday",
            part(regional(daily()), "raw/sales", dims(json!({ "date": { "mapping": window(-1, -1) } }))),
        ),
        asset(
            "sales/last_eu",
            part(regional(daily()), "raw/sales", dims(json!({ "date": { "mapping": { "kind": "last" } } }))),
        ),
        asset(
            "sales/of_month",
            part(regional(daily()), "raw/monthly_sales", dims(json!({ "date": { "mapping": time() } }))),
        ),
        asset("wait/only", json!({ "deps": [{ "asset": "raw/planes" }] })),
    ]
}

fn deploy(world: &mut World, digest: &str, assets: &[Value]) {
    let assets = assets.iter().map(|asset| {
        let def: AssetDef = serde_json::from_value(asset.clone()).expect("an asset");
        Arc::new(def)
    });
    let deploy = Deploy {
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        time_zones: "2026e".into(),
        digest: digest.into(),
        project: "flights".to_owned(),
        assets: assets.collect(),
        caller: Caller::user("me"),
    };
    world.ask(Input::Deploy(deploy)).expect("deployed");
    assert!(world.state().checked_definitions().is_some(), "what is deployed makes sense");
}

fn world() -> World {
    let mut world = World::new(Settings::default());
    deploy(&mut world, "d1", &flights());
    world
}

fn key(asset: &str) -> AssetKey {
    asset.parse().expect("an asset")
}

/// Dispatches one task, such as `day/same[date=d:2013-01-05]`, in a run of its own.
fn dispatched(world: &mut World, task: &str, options: TaskOptions) -> (Attempt, Option<Arc<Work>>) {
    let task_key = TaskKey::parse(&format!("{task}:materialize")).expect("a task key");
    let plan = plan_of(vec![TaskRequest { key: task_key, upstream: vec![], options }]);
    let run_key = format!("run {}", world.log.len());
    let step = world.step(&[Input::Trigger(TriggerRun::new(run_key, plan, "me"))]);
    let dispatches: Vec<_> = step.effects.iter().filter_map(Effect::dispatch).collect();
    let [dispatch] = dispatches.as_slice() else { panic!("{:?}", step.effects) };
    (dispatch.attempt.clone(), dispatch.work.clone())
}

fn work(world: &mut World, task: &str) -> Arc<Work> {
    dispatched(world, task, TaskOptions::default()).1.expect("there is work")
}

fn input(world: &mut World, task: &str) -> WorkInput {
    let mut inputs = work(world, task).inputs.clone();
    assert_eq!(inputs.len(), 1);
    inputs.remove(0)
}

/// Makes a partition, such as `raw/flights[date=d:2013-01-05]`.
fn materialize(world: &mut World, task: &str) -> MaterializationId {
    let (attempt, work) = dispatched(world, task, TaskOptions::default());
    let work = work.expect("there is work");
    let outputs = work.outputs.iter().map(|output| OutputReport {
        format: Some(DataFormat::Parquet),
        ..OutputReport::new(output.asset.clone(), OutputState::Committed)
    });
    let report = Report { outputs: outputs.collect(), ..Report::succeeded() };
    let id = materialization_of(attempt.attempt_id);
    world.ask(Input::Finished(attempt, report)).expect("finishes");
    world.wait(1);
    id
}

/// The partitions of an input and what is read of each, as text.
fn pieces(input: &WorkInput) -> Vec<(String, Option<MaterializationId>)> {
    let text = |piece: &servo_engine::work::WorkPiece| {
        piece.partition.as_ref().map_or_else(String::new, ToString::to_string)
    };
    input.pieces.iter().map(|piece| (text(piece), piece.materialization_id)).collect()
}

fn names(input: &WorkInput) -> Vec<String> {
    pieces(input).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn work_says_what_to_call_for_which_partition_and_what_it_makes() {
    let mut world = World::new(Settings::default());
    let check = json!({ "name": "some rows", "type": "row_count", "spec": { "min": 1 } });
    let secret = json!({ "name": "token", "provider": "env", "path": "TOKEN" });
    let made = json!({
        "partitions": daily(), "io": "lake", "quarantine": true, "checks": [check], "secrets": [secret],
        "resources": ["lake"], "isolation": "process",
    });
    deploy(&mut world, "d1", &[asset("raw/flights", made)]);
    let config = BTreeMap::from([("limit".to_owned(), "5".to_owned())]);
    let options = TaskOptions { config: config.clone(), ..TaskOptions::default() };
    let (attempt, work) = dispatched(&mut world, "raw/flights[date=d:2013-01-05]", options);
    let work = work.expect("there is work");
    assert_eq!(work.function, "assets:raw_flights");
    assert_eq!((work.config.clone(), work.isolation), (config, Isolation::Process));
    assert_eq!(work.secrets.len(), 1);
    let partition = work.partition.clone().expect("a partition");
    assert_eq!(partition.key.canonical(), "date=d:2013-01-05");
    let day = Timestamp::from_millis(1_357_344_000_000);
    assert_eq!(partition.window, Some((day, Timestamp::from_millis(day.as_millis() + 86_400_000))));
    let [output] = work.outputs.as_slice() else { panic!("{:?}", work.outputs) };
    assert_eq!(output.asset, key("raw/flights"));
    assert_eq!(output.materialization_id, materialization_of(attempt.attempt_id), "named after the attempt");
    assert_eq!((output.io.as_deref(), output.quarantine, output.previous), (Some("lake"), true, None));
    assert_eq!(output.checks.len(), 1);
    let written = serde_json::to_string(&*work).expect("plain data");
    assert_eq!(serde_json::from_str::<Work>(&written).expect("reads back"), *work);
}

#[test]
fn the_good_materialization_before_is_named_with_each_output() {
    let mut world = world();
    let first = materialize(&mut world, "raw/planes");
    let next = work(&mut world, "raw/planes");
    assert_eq!(next.outputs[0].previous, Some(first));
    assert_ne!(next.outputs[0].materialization_id, first);
}

#[test]
fn an_input_is_the_latest_good_materialization_at_the_time_of_the_dispatch() {
    let mut world = world();
    let task = "day/same[date=d:2013-01-05]";
    let before = input(&mut world, task);
    assert_eq!(pieces(&before), [("2013-01-05".to_owned(), None)], "never materialized");
    assert_eq!(before.pieces[0].format, None);
    let first = materialize(&mut world, "raw/flights[date=d:2013-01-05]");
    let (attempt, work) = dispatched(&mut world, task, TaskOptions::default());
    let read = work.expect("there is work").inputs[0].clone();
    assert_eq!(
        (read.parameter.as_str(), read.asset.clone(), read.single),
        ("given", key("raw/flights"), true)
    );
    assert_eq!(pieces(&read), [("2013-01-05".to_owned(), Some(first))]);
    assert_eq!(read.pieces[0].format, Some(DataFormat::Parquet));
    // What is made afterwards is read by what is dispatched afterwards.
    let second = materialize(&mut world, "raw/flights[date=d:2013-01-05]");
    assert_eq!(read.pieces[0].materialization_id, Some(first));
    assert_eq!(pieces(&input(&mut world, task)), [("2013-01-05".to_owned(), Some(second))]);
    // A failure in between does not hide it.
    let failed = dispatched(&mut world, "raw/flights[date=d:2013-01-05]", TaskOptions::default()).0;
    world.ask(Input::Finished(failed, support::user_error())).expect("fails");
    assert_eq!(pieces(&input(&mut world, task)), [("2013-01-05".to_owned(), Some(second))]);
    assert_eq!(attempt.attempt, 1);
}

#[test]
fn an_input_of_the_same_run_is_what_the_run_has_just_made() {
    let mut world = world();
    let old = materialize(&mut world, "raw/planes");
    let request = |name: &str, upstream: &[&str]| {
        let key = |name: &str| TaskKey::parse(&format!("{name}:materialize")).expect("a task key");
        TaskRequest {
            key: key(name),
            upstream: upstream.iter().map(|name| key(name)).collect(),
            options: TaskOptions::default(),
        }
    };
    let reader = "day/planes[date=d:2013-01-05]";
    let plan = plan_of(vec![request("raw/planes", &[]), request(reader, &["raw/planes"])]);
    let step = world.step(&[Input::Trigger(TriggerRun::new("both", plan, "me"))]);
    let [Effect::Enqueue(first)] = step.effects.as_slice() else { panic!("{:?}", step.effects) };
    let output = OutputReport::new(key("raw/planes"), OutputState::Committed);
    let report = Report { outputs: [output].into(), ..Report::succeeded() };
    let step = world.step(&[Input::Finished(first.attempt.clone(), report)]);
    let [Effect::Enqueue(second)] = step.effects.as_slice() else { panic!("{:?}", step.effects) };
    let read = second.work.clone().expect("there is work").inputs[0].pieces[0].materialization_id;
    assert_eq!(read, Some(materialization_of(first.attempt.attempt_id)));
    assert_ne!(read, Some(old));
}

#[test]
fn a_mapping_names_the_pieces_in_order_and_whether_there_is_always_one() {
    let mut world = world();
    let mut read = |task: &str| {
        let input = input(&mut world, task);
        (names(&input), input.single)
    };
    let days = |days: &[&str]| days.iter().map(|day| (*day).to_owned()).collect::<Vec<_>>();
    let week =
        ["2013-01-04", "2013-01-05", "2013-01-06", "2013-01-07", "2013-01-08", "2013-01-09", "2013-01-10"];
    assert_eq!(read("day/week[date=d:2013-01-10]"), (days(&week), false));
    assert_eq!(read("day/week[date=d:2013-01-02]"), (days(&["2013-01-01", "2013-01-02"]), false));
    let first = read("day/week[date=d:2013-01-01]");
    assert_eq!(first, (days(&["2013-01-01"]), false), "a table of one, as on every other day");
    assert_eq!(read("day/before[date=d:2013-01-05]"), (days(&["2013-01-04"]), true));
    assert_eq!(read("day/before[date=d:2013-01-01]"), (vec![], true), "nothing is before the first");
    assert_eq!(read("day/planes[date=d:2013-01-05]"), (vec![String::new()], true), "it has no partitions");
    assert_eq!(
        read("day/of_month[date=d:2013-02-05]"),
        (days(&["2013-02-01"]), true),
        "the month around a day"
    );
    let (february, single) = read("month/of_days[month=d:2013-02-01]");
    assert_eq!((february.len(), single), (28, false));
    assert_eq!(read("all/last"), (days(&["2013-12-31"]), true));
    assert_eq!(read("all/two"), (days(&["2013-01-01", "2013-01-03"]), false));
    let (every, single) = read("all/every");
    assert_eq!((every.len(), single), (365, false));
}

#[test]
fn each_dimension_is_mapped_by_itself_and_all_must_give_one() {
    let mut world = world();
    let mut read = |task: &str| {
        let input = input(&mut world, task);
        (names(&input), input.single)
    };
    let both = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let day = "date=d:2013-01-05,region=s:ZXU";
    assert_eq!(read(&format!("sales/same[{day}]")), (both(&["date=2013-01-05,region=eu"]), true));
    assert_eq!(
        read("sales/regions[date=d:2013-01-05]"),
        (both(&["date=2013-01-05,region=eu", "date=2013-01-05,region=us"]), false),
        "all regions"
    );
    assert_eq!(read(&format!("sales/yesterday[{day}]")), (both(&["date=2013-01-04,region=eu"]), true));
    assert_eq!(read(&format!("sales/last_eu[{day}]")), (both(&["date=2013-12-31,region=eu"]), true));
    assert_eq!(read(&format!("sales/of_month[{day}]")), (both(&["date=2013-01-01,region=eu"]), true));
}

#[test]
fn pieces_that_were_never_made_are_named_without_a_materialization() {
    let mut world = world();
    let second = materialize(&mut world, "raw/flights[date=d:2013-01-02]");
    let read = input(&mut world, "day/week[date=d:2013-01-03]");
    let expected = [("2013-01-01", None), ("2013-01-02", Some(second)), ("2013-01-03", None)];
    assert_eq!(pieces(&read), expected.map(|(day, id)| (day.to_owned(), id)));
}

#[test]
fn what_is_made_elsewhere_is_marked_and_has_no_materialization() {
    let mut world = world();
    let read = input(&mut world, "day/fed[date=d:2013-01-05]");
    assert!(read.external && read.single);
    assert_eq!(read.io.as_deref(), Some("lake"));
    assert_eq!(pieces(&read), [(String::new(), None)]);
}

#[test]
fn what_is_only_waited_for_is_no_input() {
    assert!(work(&mut world(), "wait/only").inputs.is_empty());
}

#[test]
fn a_part_of_the_outputs_of_a_function_reads_what_that_part_needs() {
    let output = |name: &str, deps: Value| {
        let mut output = asset(name, json!({ "multi": { "can_subset": true }, "deps": deps }));
        output["function"] = "assets:both".into();
        output
    };
    let of = |upstream: &str, parameter: &str| json!([{ "asset": upstream, "parameter": parameter }]);
    let mut world = World::new(Settings::default());
    deploy(
        &mut world,
        "d1",
        &[
            asset("raw/x", json!({})),
            asset("raw/y", json!({})),
            output("made/a", of("raw/x", "x")),
            output("made/b", of("raw/y", "y")),
            output(
                "made/c",
                json!([{ "asset": "raw/x", "parameter": "x" }, { "asset": "made/a", "parameter": "a" }]),
            ),
        ],
    );
    let mut made = |task: &str, others: &[&str]| {
        let outputs = others.iter().map(|name| key(name)).collect();
        let options = TaskOptions { outputs, ..TaskOptions::default() };
        let work = dispatched(&mut world, task, options).1.expect("there is work");
        let inputs: Vec<String> = work.inputs.iter().map(|input| input.parameter.clone()).collect();
        let outputs: Vec<String> = work.outputs.iter().map(|output| output.asset.to_string()).collect();
        (outputs.join(" "), inputs.join(" "))
    };
    assert_eq!(made("made/b", &[]), ("made.b".to_owned(), "y".to_owned()));
    assert_eq!(made("made/a", &["made/b"]), ("made.a made.b".to_owned(), "x y".to_owned()));
    let together = made("made/a", &["made/c"]);
    assert_eq!(together, ("made.a made.c".to_owned(), "x".to_owned()), "outputs do not read each other");
    assert_eq!(made("made/c", &[]), ("made.c".to_owned(), "x a".to_owned()), "alone it does");
}

#[test]
fn what_is_not_deployed_or_does_not_fit_gives_no_work() {
    let mut world = World::new(Settings::default());
    let none = |world: &mut World, task: &str, options: TaskOptions| {
        assert_eq!(dispatched(world, task, options).1, None, "{task}");
    };
    none(&mut world, "raw/planes", TaskOptions::default());
    deploy(&mut world, "d1", &flights());
    work(&mut world, "raw/planes");
    none(&mut world, "raw/nobody", TaskOptions::default());
    none(&mut world, "raw/feed", TaskOptions::default());
    none(&mut world, "raw/planes[date=d:2013-01-05]", TaskOptions::default());
    none(&mut world, "raw/flights", TaskOptions::default());
    none(&mut world, "raw/flights[date=d:2014-01-05]", TaskOptions::default());
    none(&mut world, "raw/flights[region=s:ZXU]", TaskOptions::default());
    let with_nobody = TaskOptions { outputs: vec![key("raw/nobody")], ..TaskOptions::default() };
    none(&mut world, "raw/planes", with_nobody);
    // A run that was planned before its asset was removed.
    deploy(&mut world, "d2", &[asset("raw/flights", json!({ "partitions": daily() }))]);
    none(&mut world, "raw/planes", TaskOptions::default());
    work(&mut world, "raw/flights[date=d:2013-01-05]");
}

#[test]
fn partitions_are_those_of_the_moment_at_which_the_run_was_asked_for() {
    let mut world = World::new(Settings::default());
    let open = json!({ "kind": "daily", "span": { "start": "2025-01-10" } });
    let every = json!({ "deps": reads("raw/days", json!({ "kind": "all" })) });
    deploy(&mut world, "d1", &[asset("raw/days", json!({ "partitions": open })), asset("all/days", every)]);
    let retried = TaskOptions { retry: Some(servo_engine::RetryPolicy::default()), ..TaskOptions::default() };
    let (attempt, first) = dispatched(&mut world, "all/days", retried);
    let first = first.expect("there is work");
    assert_eq!(first.inputs[0].pieces.len(), 5, "the 10th to the 14th have ended");
    world.ask(Input::Finished(attempt, support::user_error())).expect("fails");
    let step = world.pass(86_400 / 2);
    let [Effect::Enqueue(second)] = step.effects.as_slice() else { panic!("{:?}", step.effects) };
    assert_eq!(second.work.as_ref().map(|work| &work.inputs), Some(&first.inputs), "the next attempt");
    world.wait(86_400);
    assert_eq!(input(&mut world, "all/days").pieces.len(), 6, "another run");
}

#[test]
fn keys_of_dynamic_partitions_are_read_as_they_are() {
    let mut world = World::new(Settings::default());
    let customers = json!({ "kind": "dynamic", "name": "customers" });
    let every = json!({ "deps": reads("raw/customers", json!({ "kind": "all" })) });
    deploy(
        &mut world,
        "d1",
        &[asset("raw/customers", json!({ "partitions": customers })), asset("all/c", every)],
    );
    let change = |add: &[&str], remove: &[&str]| {
        let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        let (add, remove) = (owned(add), owned(remove));
        Input::ChangePartitions(ChangePartitions {
            name: "customers".to_owned(),
            add,
            remove,
            caller: Caller::user("me"),
        })
    };
    assert!(names(&input(&mut world, "all/c")).is_empty());
    world.ask(change(&["zenith", "acme"], &[])).expect("added");
    assert_eq!(names(&input(&mut world, "all/c")), ["acme", "zenith"]);
    work(&mut world, "raw/customers[partition=s:YWNtZQ]");
    world.ask(change(&[], &["acme"])).expect("removed");
    let gone = dispatched(&mut world, "raw/customers[partition=s:YWNtZQ]", TaskOptions::default());
    assert_eq!(gone.1, None, "a key that is gone is not made");
}

#[test]
fn a_dependency_on_what_is_available_leaves_out_what_was_never_made() {
    let mut world = World::new(Settings::default());
    let days = json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-01-05" } });
    let dep = json!({
        "asset": "raw/days", "parameter": "days", "mapping": { "kind": "all" }, "available": true
    });
    deploy(
        &mut world,
        "d1",
        &[asset("raw/days", json!({ "partitions": days })), asset("all/model", json!({ "deps": [dep] }))],
    );
    let none = input(&mut world, "all/model");
    assert_eq!((none.pieces.len(), none.single), (0, false));
    assert!(none.missing > 2);
    for day in ["2013-01-02", "2013-01-01"] {
        materialize(&mut world, &format!("raw/days[date=d:{day}]"));
    }
    let some = input(&mut world, "all/model");
    assert_eq!(
        (names(&some), some.missing),
        (vec!["2013-01-01".to_owned(), "2013-01-02".to_owned()], none.missing - 2)
    );
}

#[test]
fn what_is_handed_out_again_after_a_start_is_the_same_work() {
    let mut world = world();
    materialize(&mut world, "raw/flights[date=d:2013-01-05]");
    let (attempt, work) = dispatched(&mut world, "day/week[date=d:2013-01-08]", TaskOptions::default());
    let settings = Settings::default();
    let restored = State::from_rows(tenant(), workspace(), world.state().rows());
    for state in [restored.expect("rows fit"), fold(&settings, &world.events())] {
        let again = effect::outstanding(&state);
        let again: Vec<_> = again.into_iter().filter(|dispatch| dispatch.attempt == attempt).collect();
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].work, work);
    }
}
