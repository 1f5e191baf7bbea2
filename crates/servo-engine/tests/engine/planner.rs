//! Planning of requests: which tasks, in which order, with which inputs, and why.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use servo_core::partitions::PartitionContext;
use servo_core::selection::Selection;
use servo_core::{AssetKey, MaterializationId, PartitionKey, TenantId, Timestamp, WorkspaceId};
use servo_engine::definitions::{Definitions, Manifest};
use servo_engine::planner::{
    Materializations, PartitionChoice, PlanContext, PlanRequest, Planned, PlanningError, Why, plan,
};

mod config;

#[derive(Default)]
struct FixedMaterializations(BTreeMap<String, Vec<&'static str>>);

impl Materializations for FixedMaterializations {
    fn of<'s>(
        &'s self,
        asset: &AssetKey,
    ) -> Box<dyn Iterator<Item = (Option<PartitionKey>, MaterializationId)> + 's> {
        let keys = self.0.get(&asset.to_string()).map_or(&[][..], Vec::as_slice);
        Box::new(keys.iter().map(|key| {
            let key = (!key.is_empty()).then(|| PartitionKey::parse(key).unwrap());
            (key, MaterializationId::from_u128(7))
        }))
    }
}

fn asset(key: &str, more: Value) -> Value {
    let mut asset = json!({ "key": key, "location": { "file": "assets.py", "line": 1 }, "function": format!("assets:{key}") });
    asset.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    asset
}

/// A small project: daily flights, delays, a week of them, a month of them, and what has no partitions.
fn flights() -> Definitions {
    let daily = json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-12-31" } });
    let monthly =
        json!({ "kind": "monthly", "day": 1, "span": { "start": "2013-01-01", "end": "2013-12-01" } });
    let window = json!({ "kind": "window", "from": -6, "to": 0 });
    definitions(json!([
        asset("raw/flights", json!({ "partitions": daily, "deps": [{ "asset": "raw/airline_feed" }] })),
        asset("raw/planes", json!({})),
        asset("raw/airline_feed", json!({ "external": true, "function": null })),
        asset(
            "clean/delays",
            json!({ "partitions": daily, "deps": [{ "asset": "raw/flights", "parameter": "flights" }, { "asset": "raw/planes" }] })
        ),
        asset(
            "report/weekly",
            json!({ "partitions": daily, "deps": [{ "asset": "clean/delays", "mapping": window }] })
        ),
        asset(
            "report/monthly",
            json!({ "partitions": monthly, "deps": [{ "asset": "clean/delays", "mapping": { "kind": "time" } }] })
        ),
        asset("report/everything", json!({ "deps": [{ "asset": "clean/delays" }] })),
    ]))
}

fn definitions(assets: Value) -> Definitions {
    let manifest: Manifest =
        serde_json::from_value(json!({ "manifest_version": 1, "project": "flights", "assets": assets }))
            .unwrap();
    Definitions::check(manifest).unwrap_or_else(|problems| panic!("{problems}"))
}

fn keys(keys: &[&str]) -> PartitionChoice {
    PartitionChoice { keys: keys.iter().map(|key| (*key).to_owned()).collect(), ..PartitionChoice::default() }
}

fn range(range: &str) -> PartitionChoice {
    PartitionChoice { ranges: vec![range.to_owned()], ..PartitionChoice::default() }
}

fn request(
    definitions: &Definitions,
    selection: &str,
    partitions: PartitionChoice,
    known: &FixedMaterializations,
) -> Result<Planned, PlanningError> {
    configured(definitions, selection, partitions, known, &[])
}

fn configured(
    definitions: &Definitions,
    selection: &str,
    partitions: PartitionChoice,
    known: &FixedMaterializations,
    config: &[(&str, &str)],
) -> Result<Planned, PlanningError> {
    let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (selection, operation) = (Selection::parse(selection).unwrap(), servo_core::Operation::Materialize);
    let request = PlanRequest { selection, operation, partitions, config, no_retry: false };
    let (tenant, workspace) = (TenantId::parse("acme").unwrap(), WorkspaceId::parse("prod").unwrap());
    let at = PartitionContext::from(Timestamp::MAX);
    let context = PlanContext {
        tenant: &tenant,
        workspace: &workspace,
        at,
        materializations: known,
        max_tasks: 10_000,
    };
    plan(definitions, &request, &context)
}

/// One line per task: stage, key, and the tasks that it waits for.
fn lines(planned: &Planned) -> Vec<String> {
    let specs = planned.plan.tasks();
    planned
        .tasks
        .iter()
        .zip(specs.iter())
        .map(|(task, spec)| {
            let upstream: Vec<&str> =
                spec.upstream.iter().map(|at| specs[*at as usize].task_key.as_str()).collect();
            format!("{} {} <- {}", task.stage, spec.task_key, upstream.join(" "))
        })
        .collect()
}

#[test]
fn only_what_was_selected_is_planned() {
    let planned =
        request(&flights(), "clean.delays", keys(&["2013-01-05"]), &FixedMaterializations::default())
            .unwrap();
    assert_eq!(lines(&planned), ["0 clean/delays[date=d:2013-01-05]:materialize <- "]);
    let inputs = &planned.tasks[0].inputs;
    assert_eq!(inputs[0].parameter.as_deref(), Some("flights"));
    assert_eq!(inputs[0].never_materialized.as_ref().unwrap().0.as_ref().unwrap().to_string(), "2013-01-05");
    assert_eq!(inputs[1].never_materialized, Some((None, 1)), "planes has no partitions");
}

#[test]
fn what_is_outside_the_run_is_its_latest_good_materialization() {
    let known = FixedMaterializations(BTreeMap::from([
        ("clean.delays".to_owned(), vec!["date=d:2013-01-05", "date=d:2013-01-07", "date=d:2012-01-01"]),
        ("raw.planes".to_owned(), vec![""]),
    ]));
    let planned = request(&flights(), "report.weekly", keys(&["2013-01-08"]), &known).unwrap();
    let input = &planned.tasks[0].inputs[0];
    assert_eq!((input.partitions.len(), input.in_run, input.materialized), (7, 0, 2));
    let (first, count) = input.never_materialized.clone().unwrap();
    assert_eq!((first.unwrap().to_string(), count), ("2013-01-02".to_owned(), 5));

    let planned =
        request(&flights(), "clean.delays or report.weekly", keys(&["2013-01-08"]), &known).unwrap();
    let input = &planned.tasks[1].inputs[0];
    assert_eq!((input.in_run, input.materialized), (1, 2), "the 8th is made in the run");
    assert_eq!(planned.tasks[0].inputs[1].materialized, 1);
}

#[test]
fn tasks_wait_for_the_partitions_that_their_mapping_names() {
    let planned = request(
        &flights(),
        "+report.weekly",
        range("2013-01-01..2013-01-03"),
        &FixedMaterializations::default(),
    )
    .unwrap();
    insta::assert_snapshot!(lines(&planned).join("\n"));
    assert_eq!(planned.stages, 3);
    assert_eq!(planned.external.len(), 1, "the feed is made elsewhere");
}

/// The partitions that are planned of an asset.
fn partitions_of(definitions: &Definitions, planned: &Planned, asset: &str) -> Vec<String> {
    let position = definitions.position(&asset.parse().unwrap()).unwrap();
    let tasks = planned.tasks.iter().filter(|task| task.assets.contains(&position));
    tasks.map(|task| task.partition.as_ref().unwrap().to_string()).collect()
}

#[test]
fn every_asset_reads_a_key_or_range_by_itself() {
    let definitions = flights();
    let months = |selection: &str, partitions: PartitionChoice| {
        let planned =
            request(&definitions, selection, partitions, &FixedMaterializations::default()).unwrap();
        partitions_of(&definitions, &planned, "report.monthly")
    };
    for selection in ["report.monthly", "clean.delays or report.monthly"] {
        assert_eq!(months(selection, keys(&["2013-01-15"])), ["2013-01-01"]);
        assert_eq!(months(selection, keys(&["2013-02"])), ["2013-02-01"]);
        let ends = ["2013-01-01", "2013-02-01", "2013-03-01"];
        assert_eq!(months(selection, range("2013-01-15..2013-03-15")), ends);
        assert_eq!(months(selection, range("2013-11-20..")), ["2013-11-01", "2013-12-01"]);
        assert_eq!(months(selection, range("..2013-01-02")), ["2013-01-01"]);
    }
}

#[test]
fn the_same_key_is_another_day_in_another_zone() {
    let days = |zone: &str| {
        let span = json!({ "start": "2013-01-01", "end": "2013-12-31", "timezone": zone });
        json!({ "partitions": { "kind": "daily", "span": span } })
    };
    let hours = json!({ "start": "2013-01-01T00:00", "end": "2013-12-31T00:00", "timezone": "Asia/Tokyo" });
    let definitions = definitions(json!([
        asset("a/utc", days("UTC")),
        asset("a/tokyo", days("Asia/Tokyo")),
        asset("a/hours", json!({ "partitions": { "kind": "hourly", "span": hours } })),
    ]));
    let planned =
        request(&definitions, "a.*", keys(&["2013-06-05"]), &FixedMaterializations::default()).unwrap();
    assert_eq!(partitions_of(&definitions, &planned, "a.utc"), ["2013-06-05"]);
    assert_eq!(partitions_of(&definitions, &planned, "a.tokyo"), ["2013-06-05"]);
    let hours = partitions_of(&definitions, &planned, "a.hours");
    assert_eq!((hours.len(), hours[0].as_str()), (24, "2013-06-04T15:00:00Z"));
}

#[test]
fn an_asset_that_is_named_and_reached_keeps_both_reasons() {
    let daily = json!({ "kind": "daily", "span": { "start": "2024-01-01", "end": "2024-01-31" } });
    let before = json!({ "kind": "window", "from": -1, "to": -1 });
    let definitions = definitions(json!([
        asset("a/flights", json!({ "partitions": daily })),
        asset("a/delays", json!({ "partitions": daily, "deps": [{ "asset": "a/flights" }] })),
        asset(
            "a/first",
            json!({ "partitions": daily, "deps": [{ "asset": "a/delays", "mapping": before }] })
        ),
    ]));
    let plan = |selection: &str| {
        request(&definitions, selection, keys(&["2024-01-10"]), &FixedMaterializations::default()).unwrap()
    };
    let planned = plan("a.flights+ or +a.first");
    assert_eq!(lines(&planned), lines(&plan("+a.first or a.flights+")));
    assert_eq!(partitions_of(&definitions, &planned, "a.flights"), ["2024-01-09", "2024-01-10"]);
    assert_eq!(partitions_of(&definitions, &planned, "a.delays"), ["2024-01-09", "2024-01-10"]);
    assert_eq!(partitions_of(&definitions, &planned, "a.first"), ["2024-01-10", "2024-01-11"]);
    let why: Vec<Vec<Why>> = planned
        .tasks
        .iter()
        .map(|task| planned.reasons(task).map(|reason| reason.why.clone()).collect())
        .collect();
    let upstream = || Why::Upstream { of: "a.first".into() };
    let downstream = || Why::Downstream { of: "a.flights".into() };
    let selected = |part: &str| Why::Selected { part: part.into() };
    assert_eq!(
        why,
        [
            vec![upstream()],
            vec![downstream()],
            vec![selected("a.first")],
            vec![downstream()],
            vec![upstream()],
            vec![selected("a.flights")],
        ]
    );
    // Adding "+" adds tasks.
    assert_eq!(plan("(a.flights or a.first)+").tasks.len(), 4);
    assert_eq!(plan("+(a.flights or a.first)+").tasks.len(), 6);
}

#[test]
fn parts_with_plus_say_which_partitions_and_other_parts_of_and_filter() {
    let planned = request(
        &flights(),
        "raw.* and +report.weekly",
        keys(&["2013-01-08"]),
        &FixedMaterializations::default(),
    )
    .unwrap();
    assert_eq!(planned.tasks.len(), 8, "seven days of flights, and planes");
    let without = request(
        &flights(),
        "+report.weekly and not report.*",
        keys(&["2013-01-08"]),
        &FixedMaterializations::default(),
    )
    .unwrap();
    assert_eq!(without.tasks.len(), 15);
}

#[test]
fn where_nothing_named_has_partitions_the_request_speaks_of_what_is_reached_first() {
    let definitions = flights();
    let plan = |selection: &str| {
        request(&definitions, selection, keys(&["2013-01-08"]), &FixedMaterializations::default()).unwrap()
    };
    let planned = plan("raw.planes+");
    assert_eq!(partitions_of(&definitions, &planned, "clean.delays"), ["2013-01-08"]);
    assert_eq!(partitions_of(&definitions, &planned, "report.weekly").len(), 7, "as of clean.delays+");
    assert_eq!(partitions_of(&definitions, &plan("+report.everything"), "raw.flights"), ["2013-01-08"]);
}

/// `a` is read by `balance`, which reads itself of the day before and is read by `c`.
fn balances() -> Definitions {
    let daily = json!({ "kind": "daily", "span": { "start": "2024-01-01", "end": "2024-01-31" } });
    let before = json!({ "kind": "window", "from": -1, "to": -1 });
    let balance = json!([{ "asset": "m/a" }, { "asset": "m/balance", "mapping": before }]);
    definitions(json!([
        asset("m/a", json!({ "partitions": daily })),
        asset("m/balance", json!({ "partitions": daily, "deps": balance })),
        asset("m/c", json!({ "partitions": daily, "deps": [{ "asset": "m/balance" }] })),
    ]))
}

#[test]
fn a_self_dependency_is_followed_back_to_what_is_materialized() {
    let definitions = balances();
    let known = FixedMaterializations(BTreeMap::from([("m.balance".to_owned(), vec!["date=d:2024-01-02"])]));
    for (known, days) in [
        (
            &FixedMaterializations::default(),
            vec!["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"],
        ),
        (&known, vec!["2024-01-03", "2024-01-04", "2024-01-05"]),
    ] {
        let planned = request(&definitions, "+m.c", keys(&["2024-01-05"]), known).unwrap();
        assert_eq!(partitions_of(&definitions, &planned, "m.balance"), days);
        assert_eq!(partitions_of(&definitions, &planned, "m.a"), days, "as many as balance needs");
        assert_eq!(partitions_of(&definitions, &planned, "m.c"), ["2024-01-05"]);
        let mut inputs = planned.tasks.iter().flat_map(|task| &task.inputs);
        assert!(inputs.all(|input| input.never_materialized.is_none()), "everything is there to be read");
    }
}

#[test]
fn a_self_dependency_is_followed_on_through_what_is_materialized() {
    let definitions = balances();
    let days = vec!["date=d:2024-01-04", "date=d:2024-01-05", "date=d:2024-01-06", "date=d:2024-01-08"];
    let known = FixedMaterializations(BTreeMap::from([("m.balance".to_owned(), days)]));
    let planned = request(&definitions, "m.a+", keys(&["2024-01-04"]), &known).unwrap();
    assert_eq!(
        partitions_of(&definitions, &planned, "m.balance"),
        ["2024-01-04", "2024-01-05", "2024-01-06"]
    );
    assert_eq!(partitions_of(&definitions, &planned, "m.a"), ["2024-01-04"]);
}

#[test]
fn what_the_function_of_an_asset_reads_for_its_other_outputs_is_upstream_too() {
    let output = |key: &str, deps: Value| {
        let mut output = asset(key, json!({ "multi": { "can_subset": false }, "deps": deps }));
        output["function"] = "assets:both".into();
        output
    };
    let definitions = definitions(json!([
        asset("m/source", json!({})),
        output("m/a", json!([{ "asset": "m/source" }])),
        output("m/b", json!([])),
    ]));
    let planned = request(&definitions, "+m.b", keys(&[]), &FixedMaterializations::default()).unwrap();
    assert_eq!(lines(&planned), ["1 m/a:materialize <- m/source:materialize", "0 m/source:materialize <- "]);
}

#[test]
fn what_plus_adds_takes_the_partitions_that_mappings_name() {
    let definitions = flights();
    let count = |selection: &str, partitions: PartitionChoice, asset: &str| {
        let planned =
            request(&definitions, selection, partitions, &FixedMaterializations::default()).unwrap();
        let prefix = format!("{asset}[");
        planned.plan.tasks().iter().filter(|task| task.task_key.as_str().starts_with(&prefix)).count()
    };
    // A week of days for one day, and the days of a month for the first of them.
    assert_eq!(count("+report.weekly", keys(&["2013-01-08"]), "clean/delays"), 7);
    assert_eq!(count("+report.weekly", keys(&["2013-01-08"]), "raw/flights"), 7);
    assert_eq!(count("+report.monthly", keys(&["2013-01-01"]), "raw/flights"), 31);
    // The seven days, and the one month, that a day is part of.
    assert_eq!(count("clean.delays+", keys(&["2013-01-08"]), "report/weekly"), 7);
    assert_eq!(count("clean.delays+", keys(&["2013-01-08"]), "report/monthly"), 1);
    assert_eq!(count("clean.delays+", keys(&["2013-01-08"]), "raw/flights"), 0);
}

#[test]
fn a_function_that_is_made_in_a_loop_is_a_task_each_time() {
    let output = |key: &str, first: &str, deps: Value| {
        let mut output =
            asset(key, json!({ "multi": { "can_subset": false, "first": first }, "deps": deps }));
        output["function"] = "assets:make.<locals>.both".into();
        output
    };
    let definitions = definitions(json!([
        output("one/x", "one/x", json!([])),
        output("one/y", "one/x", json!([])),
        output("two/x", "two/x", json!([{ "asset": "one/x" }])),
        output("two/y", "two/x", json!([])),
    ]));
    let planned = request(&definitions, "*", keys(&[]), &FixedMaterializations::default()).unwrap();
    assert_eq!(lines(&planned), ["0 one/x:materialize <- ", "1 two/x:materialize <- one/x:materialize"]);
}

#[test]
fn several_requests_are_all_named_and_an_asset_that_lacks_one_says_why() {
    let days = |start: &str| json!({ "kind": "daily", "span": { "start": start, "end": "2013-12-31" } });
    let definitions = definitions(json!([
        asset("a/early", json!({ "partitions": days("2013-01-01") })),
        asset("a/late", json!({ "partitions": days("2013-06-01") })),
    ]));
    let both = request(
        &definitions,
        "a.early",
        keys(&["2013-01-01", "2013-01-03"]),
        &FixedMaterializations::default(),
    )
    .unwrap();
    assert_eq!(both.tasks.len(), 2);
    let error = request(&definitions, "a.*", keys(&["2013-01-05"]), &FixedMaterializations::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("a.late: no partition 2013-01-05: the first partition is 2013-06-01"), "{error}");
}

#[test]
fn a_month_of_its_upstream_is_planned_with_it() {
    let planned =
        request(&flights(), "1+report.monthly", keys(&["2013-02"]), &FixedMaterializations::default())
            .unwrap();
    assert_eq!(planned.tasks.len(), 29);
    assert_eq!(planned.plan.tasks()[28].upstream.len(), 28);
}

#[test]
fn every_asset_says_why_it_is_planned() {
    let definitions = flights();
    let planned = request(
        &definitions,
        "+report.weekly or raw.pl*",
        keys(&["2013-01-08"]),
        &FixedMaterializations::default(),
    )
    .unwrap();
    let whys: Vec<(String, Vec<Why>)> = planned
        .assets
        .iter()
        .map(|asset| {
            let whys = asset.reasons.iter().map(|reason| reason.why.clone());
            (definitions.asset(asset.asset).key.to_string(), whys.collect())
        })
        .collect();
    let upstream = || Why::Upstream { of: "report.weekly".into() };
    let selected = |part: &str| Why::Selected { part: part.into() };
    assert_eq!(
        whys,
        [
            ("clean.delays".to_owned(), vec![upstream()]),
            ("raw.flights".to_owned(), vec![upstream()]),
            ("raw.planes".to_owned(), vec![selected("raw.pl*"), upstream()]),
            ("report.weekly".to_owned(), vec![selected("report.weekly")]),
        ]
    );
}

#[test]
fn requests_that_cannot_be_planned_say_why_and_what_to_do() {
    let definitions = flights();
    let known = FixedMaterializations::default();
    let error = |selection: &str, partitions: PartitionChoice| {
        request(&definitions, selection, partitions, &known).unwrap_err().to_string() + "\n"
    };
    let mut told = String::new();
    told += &error("clean.delay", keys(&[]));
    told += &error("tag:team=nobody", keys(&[]));
    told += &error("raw.airline_feed", keys(&[]));
    told += &error("clean.delays or report.monthly", keys(&[]));
    told += &error("clean.delays", keys(&["2014-01-01"]));
    told += &error("clean.delays", keys(&["yesterday"]));
    told += &error("clean.delays", range("2013-02-01..2013-01-01"));
    told += &error("raw.planes", keys(&["2013-01-01"]));
    insta::assert_snapshot!(told);
}

#[test]
fn more_tasks_than_a_run_may_have_are_refused_before_they_are_made() {
    let hourly =
        json!({ "kind": "hourly", "span": { "start": "1970-01-01T00:00", "end": "2100-01-01T00:00" } });
    let definitions = definitions(json!([asset("raw/ticks", json!({ "partitions": hourly }))]));
    let error =
        request(&definitions, "raw.ticks", range("1970-01-01T00:00.."), &FixedMaterializations::default())
            .unwrap_err();
    assert_eq!(error, PlanningError::TooManyTasks { count: 1_139_569, limit: 10_000 });
}

#[test]
fn an_upstream_partition_that_does_not_exist_is_named_with_the_reason() {
    let days = |start: &str| json!({ "kind": "daily", "span": { "start": start, "end": "2013-12-31" } });
    let definitions = definitions(json!([
        asset("raw/flights", json!({ "partitions": days("2013-01-10") })),
        asset(
            "clean/delays",
            json!({ "partitions": days("2013-01-01"), "deps": [{ "asset": "raw/flights" }] })
        ),
    ]));
    let error = request(
        &definitions,
        "clean.delays",
        range("2013-01-08..2013-01-10"),
        &FixedMaterializations::default(),
    )
    .unwrap_err();
    insta::assert_snapshot!(error);
}

#[test]
fn a_self_dependency_makes_a_chain_of_its_partitions() {
    let daily = json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-12-31" } });
    let window = json!({ "kind": "window", "from": -1, "to": -1 });
    let own = json!({ "partitions": daily, "deps": [{ "asset": "analytics/running", "mapping": window }] });
    let definitions = definitions(json!([asset("analytics/running", own)]));
    let planned =
        request(&definitions, "*", range("2013-01-01..2013-01-04"), &FixedMaterializations::default())
            .unwrap();
    assert_eq!(planned.stages, 4);
    assert!(planned.tasks[0].inputs[0].partitions.is_empty(), "nothing is before the first");
}

#[test]
fn a_function_with_several_outputs_is_one_task() {
    let output = |key: &str, can_subset: bool| {
        let mut output = asset(key, json!({ "multi": { "can_subset": can_subset } }));
        output["function"] = "assets:both".into();
        output
    };
    let reader = asset("multi/reader", json!({ "deps": [{ "asset": "multi/b" }] }));
    let whole = definitions(json!([output("multi/a", false), output("multi/b", false), reader.clone()]));
    let planned = request(&whole, "multi.b+", keys(&[]), &FixedMaterializations::default()).unwrap();
    assert_eq!(
        lines(&planned),
        ["0 multi/a:materialize <- ", "1 multi/reader:materialize <- multi/a:materialize"]
    );
    assert_eq!(planned.assets[0].reasons[0].why, Why::SameFunction { of: 1 });
    assert_eq!(planned.plan.tasks()[0].options.outputs, ["multi/b".parse().unwrap()]);

    let parts = definitions(json!([output("multi/a", true), output("multi/b", true), reader]));
    let planned = request(&parts, "multi.b", keys(&[]), &FixedMaterializations::default()).unwrap();
    assert_eq!(lines(&planned), ["0 multi/b:materialize <- "]);
}

#[test]
fn the_same_request_gives_the_same_fingerprint_and_another_gives_another() {
    let definitions = flights();
    let fingerprint = |selection: &str, day: &str| {
        request(&definitions, selection, keys(&[day]), &FixedMaterializations::default())
            .unwrap()
            .plan
            .fingerprint()
            .to_string()
    };
    let first = fingerprint("+report.weekly", "2013-01-08");
    assert!(first.starts_with("v1:sha256:"));
    assert_eq!(first, fingerprint("report.weekly or +report.weekly", "date=d:2013-01-08"));
    assert_ne!(first, fingerprint("+report.weekly", "2013-01-09"));
}

#[test]
fn only_what_was_never_made_is_planned_if_that_is_asked_for() {
    let days = json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-01-04" } });
    let definitions = definitions(json!([
        asset("raw/days", json!({ "partitions": days })),
        asset("raw/plain", json!({})),
        asset("raw/new", json!({})),
    ]));
    let known = FixedMaterializations(BTreeMap::from([
        ("raw.days".to_owned(), vec!["date=d:2013-01-02", "date=d:2013-01-03"]),
        ("raw.plain".to_owned(), vec![""]),
    ]));
    let missing = |keys: &[&str]| PartitionChoice {
        ranges: keys.iter().map(|key| (*key).to_owned()).collect(),
        missing: true,
        ..PartitionChoice::default()
    };
    let tasks = |selection: &str, choice: PartitionChoice| {
        let planned = request(&definitions, selection, choice, &known)?;
        Ok::<_, PlanningError>(
            planned.plan.tasks().iter().map(|task| task.task_key.to_string()).collect::<Vec<_>>(),
        )
    };
    assert_eq!(
        tasks("raw.*", missing(&[])).unwrap(),
        [
            "raw/days[date=d:2013-01-01]:materialize",
            "raw/days[date=d:2013-01-04]:materialize",
            "raw/new:materialize"
        ]
    );
    assert_eq!(tasks("raw.days", missing(&["2013-01-01..2013-01-03"])).unwrap().len(), 1);
    assert_eq!(
        tasks("raw.plain", missing(&[])).unwrap_err().to_string(),
        "nothing that raw.plain selects is missing; leave out --missing to make it again"
    );
}
