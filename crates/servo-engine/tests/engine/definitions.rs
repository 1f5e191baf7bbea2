//! Every problem of a manifest is reported, all at once, each with its place and what to do.

use serde_json::{Value, json};
use servo_engine::definitions::{Definitions, Manifest};

fn manifest(assets: Value) -> Manifest {
    serde_json::from_value(json!({ "manifest_version": 1, "project": "test", "assets": assets })).unwrap()
}

fn asset(key: &str, line: u32, more: Value) -> Value {
    let mut asset = json!({
        "key": key,
        "location": { "file": "assets.py", "line": line },
        "function": format!("assets:{}", key.replace('/', "_")),
    });
    asset.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    asset
}

fn daily() -> Value {
    json!({ "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-12-31" } })
}

fn problems(manifest: Manifest) -> String {
    let problems = Definitions::check(manifest).unwrap_err();
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn all_problems_are_reported_at_once_in_order_of_place() {
    let monthly = json!({ "kind": "monthly", "day": 1, "span": { "start": "2013-01-01" } });
    let found = problems(manifest(json!([
        asset("raw/flights", 1, json!({ "partitions": daily() })),
        asset("raw/flights", 5, json!({})),
        asset("raw/2fast", 9, json!({})),
        asset("analytics/delays", 13, json!({ "deps": [{ "asset": "raw/flihgts" }] })),
        asset("analytics/carriers", 17, json!({ "deps": [{ "parameter": "carrier_names" }] })),
        asset(
            "analytics/running",
            21,
            json!({ "partitions": daily(), "deps": [{ "asset": "analytics/running" }] })
        ),
        asset("analytics/report", 25, json!({ "partitions": monthly, "deps": [{ "parameter": "flights" }] })),
        asset(
            "analytics/zoned",
            29,
            json!({ "partitions": { "kind": "daily", "span": { "start": "2013-02-30", "timezone": "Europe/Amsterdm" } } })
        ),
        asset(
            "analytics/ticks",
            33,
            json!({ "partitions": { "kind": "cron", "cron": "61 * * * *", "span": { "start": "2013-01-01T00:00" } } })
        ),
        asset(
            "analytics/slow",
            37,
            json!({ "timeout_ms": 0, "retry": { "max_attempts": 0, "jitter_ppm": 2_000_000 } })
        ),
        asset("analytics/stored", 41, json!({ "io": "warehouse", "resources": ["api"] })),
        asset(
            "analytics/checked",
            45,
            json!({ "checks": [
            { "name": "rows", "type": "row_count", "spec": { "min": 5, "max": 1 } },
            { "name": "rows", "type": "not_null", "spec": { "columns": ["a"] } },
        ] })
        ),
        asset("loop/a", 49, json!({ "deps": [{ "asset": "loop/c" }] })),
        asset("loop/b", 53, json!({ "deps": [{ "asset": "loop/a" }] })),
        asset("loop/c", 57, json!({ "deps": [{ "asset": "loop/b" }] })),
    ])));
    insta::assert_snapshot!(found);
}

#[test]
fn a_check_has_no_floats_because_what_a_worker_is_sent_has_a_canonical_form() {
    let check = |spec: Value| {
        let checks = json!([{ "name": "few", "type": "python", "spec": spec }]);
        manifest(json!([asset("raw/flights", 7, json!({ "checks": checks }))]))
    };
    let found = problems(check(json!({ "deep": [{ "ratio": 0.5 }] })));
    assert!(found.starts_with("assets.py:7"), "{found}");
    assert!(found.contains("check few has no canonical JSON: at $.deep[0].ratio: 0.5 is a float"), "{found}");
    assert!(Definitions::check(check(json!({ "deep": [{ "ratio_ppm": 500_000 }] }))).is_ok());
}

#[test]
fn a_check_is_not_nested_so_deep_that_the_log_could_not_be_read_again() {
    let check = |levels: usize| {
        let value = (0..levels).fold(json!(1), |inner, _| json!([inner]));
        let checks = json!([{ "name": "deep", "type": "python", "spec": { "values": value } }]);
        Definitions::check(manifest(json!([asset("raw/a", 1, json!({ "checks": checks }))])))
    };
    assert!(check(32).is_ok());
    let refused = check(33).expect_err("too deep").to_string();
    assert!(refused.contains("check deep nests values deeper than 32 levels"), "{refused}");
}

#[test]
fn schedules_and_sensors_are_checked_with_the_assets() {
    let manifest: Manifest = serde_json::from_value(json!({
        "manifest_version": 1,
        "project": "test",
        "assets": [asset("raw/flights", 1, json!({}))],
        "schedules": [
            { "name": "morning", "location": { "file": "jobs.py", "line": 3 }, "cron": "0 6 * *", "selection": "raw.*" },
            { "name": "noon", "location": { "file": "jobs.py", "line": 7 }, "cron": "0 12 * * *", "timezone": "Mars/Olympus", "selection": "raw.flight" },
            { "name": "noon", "location": { "file": "jobs.py", "line": 11 }, "cron": "0 12 * * *", "selection": "raw.flights and" },
            { "name": "idle", "location": { "file": "jobs.py", "line": 15 }, "cron": "0 0 30 2 *" },
        ],
        "sensors": [{ "name": "in box", "location": { "file": "jobs.py", "line": 19 }, "interval_ms": 10, "selection": "*" }],
    }))
    .unwrap();
    insta::assert_snapshot!(problems(manifest));
}

#[test]
fn an_unknown_version_and_too_many_assets_are_refused_with_the_figure() {
    let mut other = manifest(json!([]));
    other.manifest_version = 2;
    let many: Vec<Value> = (0..10_001).map(|i| asset(&format!("raw/a{i}"), i, json!({}))).collect();
    insta::assert_snapshot!(problems(other) + &problems(manifest(many.into())));
}

#[test]
fn parameters_find_assets_of_their_namespace_first() {
    let definitions = Definitions::check(manifest(json!([
        asset("raw/flights", 1, json!({})),
        asset("clean/flights", 5, json!({ "deps": [{ "asset": "raw/flights" }] })),
        asset("clean/delays", 9, json!({ "deps": [{ "parameter": "flights" }] })),
        asset("report/delays_by_day", 13, json!({ "deps": [{ "parameter": "delays" }] })),
    ])))
    .unwrap();
    let reads = |key: &str| {
        let asset = &definitions.assets()[definitions.position(&key.parse().unwrap()).unwrap() as usize];
        definitions.asset(asset.deps[0].asset).key.to_string()
    };
    assert_eq!(reads("clean/delays"), "clean.flights");
    assert_eq!(reads("report/delays_by_day"), "clean.delays", "the only one of that name");

    let found = problems(manifest(json!([
        asset("raw/flights", 1, json!({})),
        asset("clean/flights", 5, json!({})),
        asset("report/late", 9, json!({ "deps": [{ "parameter": "flights" }] })),
    ])));
    assert_eq!(
        found,
        "assets.py:9: asset report.late: parameter flights could be clean.flights or raw.flights; say which: \
         servo.dep(\"clean.flights\", parameter=\"flights\")\n"
    );
}

#[test]
fn an_asset_may_read_its_own_earlier_partitions() {
    let window = json!({ "kind": "window", "from": -1, "to": -1 });
    let own = json!({ "partitions": daily(), "deps": [{ "asset": "analytics/running", "mapping": window }] });
    Definitions::check(manifest(json!([asset("analytics/running", 1, own)]))).unwrap();
}

#[test]
fn outputs_of_one_function_share_partitions_and_form_no_cycle_with_each_other() {
    let output = |key: &str, line, more: Value| {
        let mut output = asset(key, line, more);
        output["function"] = "assets:both".into();
        output["multi"] = json!({ "can_subset": false });
        output
    };
    let fine = Definitions::check(manifest(json!([
        output("multi/a", 1, json!({})),
        output("multi/b", 2, json!({ "deps": [{ "asset": "multi/a" }] })),
    ])))
    .unwrap();
    assert_eq!(fine.made_with(1).collect::<Vec<_>>(), [0, 1]);

    let found = problems(manifest(json!([
        output("multi/a", 1, json!({ "partitions": daily() })),
        output("multi/b", 2, json!({})),
        asset("other/c", 3, json!({ "deps": [{ "asset": "multi/a", "mapping": { "kind": "all" } }] })),
        output("multi/d", 4, json!({ "partitions": daily(), "deps": [{ "asset": "other/c" }] })),
    ])));
    insta::assert_snapshot!(found);
}

#[test]
fn a_chain_of_ten_thousand_is_checked_without_deep_recursion() {
    let chain: Vec<Value> = (0..10_000u32)
        .map(|i| {
            let upstream = (i + 1) % 10_000;
            asset(
                &format!("chain/a{i:05}"),
                i,
                json!({ "deps": [{ "asset": format!("chain/a{upstream:05}") }] }),
            )
        })
        .collect();
    let found = problems(manifest(chain.into()));
    assert!(found.contains("waits for itself: chain.a00000 → chain.a09999 → "), "{}", &found[..200]);
}
