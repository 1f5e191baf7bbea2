//! Routes that the web UI is made of, and the web UI itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Behaviour, Harness, Setting, project};
use axum::body::Bytes;
use serde_json::{Value, json};
use servo_api::views::RunBody;
use servo_engine::RunState;
use tokio::sync::Semaphore;

async fn days(harness: &Harness, range: &str) -> String {
    let body: RunBody =
        serde_json::from_value(json!({ "selection": "raw.days", "partitions": { "ranges": [range] } }))
            .unwrap();
    let run = harness.client.trigger(&body).await.unwrap().run_id;
    harness.workspace.wait(run).await.unwrap();
    run.to_string()
}

#[tokio::test]
async fn partitions_are_counted_by_the_bucket() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let path = "assets/raw/days/partitions/summary";
    let whole = harness.get(&format!("{path}?buckets=4")).await.ok();
    assert_eq!(
        (&whole["total"], &whole["step"], &whole["dimension"]),
        (&json!(31), &json!(8), &json!("date"))
    );
    let first = json!({ "first": "2013-01-01", "last": "2013-01-08", "partitions": 8 });
    assert_eq!(whole["buckets"][0], first, "nothing was made");
    assert_eq!(whole["buckets"][3]["partitions"], 7, "the last one has the rest");

    days(&harness, "2013-01-01..2013-01-10").await;
    let whole = harness.get(&format!("{path}?buckets=4")).await.ok();
    let counts = |bucket: &Value| (bucket["materialized"].as_u64(), bucket["never_succeeded"].as_u64());
    assert_eq!(counts(&whole["buckets"][0]), (Some(8), None));
    assert_eq!(counts(&whole["buckets"][1]), (Some(2), None));
    let near = harness.get(&format!("{path}?from=8&count=3")).await.ok();
    let shown: Vec<(&str, Option<u64>)> = near["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| (bucket["first"].as_str().unwrap(), bucket["materialized"].as_u64()))
        .collect();
    assert_eq!(shown, [("2013-01-09", Some(1)), ("2013-01-10", Some(1)), ("2013-01-11", None)]);
    assert_eq!(harness.get(&format!("{path}?buckets=0")).await.problem().status, 400);
    assert_eq!(harness.get(&format!("{path}?from=99")).await.ok()["buckets"], json!([]));
    let one = harness.get("assets/raw/orders/partitions/summary").await.ok();
    assert_eq!(
        one["buckets"],
        json!([{ "first": "", "partitions": 1 }]),
        "an asset without partitions is one"
    );
    harness.close().await;
}

#[tokio::test]
async fn materializations_are_listed_newest_first_page_by_page() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let path = "assets/raw/days/materializations";
    assert_eq!(harness.get(path).await.ok(), json!({ "items": [] }));
    let first = days(&harness, "2013-01-01..2013-01-03").await;
    let second = days(&harness, "2013-01-02..2013-01-02").await;
    let newest = harness.get(&format!("{path}?limit=1")).await.ok();
    let item = &newest["items"][0];
    assert_eq!((&item["partition"], &item["run_id"]), (&json!("2013-01-02"), &json!(second)));
    let cursor = newest["next_cursor"].as_str().unwrap();
    let rest = harness.get(&format!("{path}?limit=10&cursor={cursor}")).await.ok();
    let runs: Vec<&Value> = rest["items"].as_array().unwrap().iter().map(|item| &item["run_id"]).collect();
    assert_eq!(runs, [&json!(first), &json!(first), &json!(first)]);
    let count = async |query: &str| {
        let page = harness.get(&format!("{path}?fresh=true&{query}")).await.ok();
        page["items"].as_array().unwrap().len()
    };
    assert_eq!(count("partition=2013-01-02").await, 2);
    assert_eq!(count(&format!("run_id={first}")).await, 3);
    assert_eq!(count(&format!("run_id={first}&partition=2013-01-02")).await, 1);
    let at = item["materialized_at"].as_str().unwrap();
    assert_eq!(
        (count(&format!("created_before={at}")).await, count(&format!("created_after={at}")).await),
        (3, 1)
    );
    assert_eq!(harness.get(&format!("{path}?partition=christmas")).await.problem().status, 400);
    assert_eq!(harness.get("assets/raw/orders/materializations").await.ok(), json!({ "items": [] }));
    assert_eq!(harness.get("assets/raw/nothing/materializations").await.problem().status, 404);
    harness.close().await;
}

#[tokio::test]
async fn the_graph_has_assets_edges_and_states() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    days(&harness, "2013-01-01..2013-01-02").await;
    let graph = harness.get("graph?selection=raw.days%2B").await.ok();
    assert_eq!(graph["nodes"][0]["asset_key"], "raw/days");
    assert_eq!(graph["nodes"][0]["partitions"]["materialized"], 2);
    assert_eq!((&graph["edges"], &graph["has_more"]), (&json!([[0, 1]]), &json!(false)));
    let whole = harness.get("graph").await.ok();
    let nodes = whole["nodes"].as_array().unwrap();
    let orders = nodes.iter().find(|node| node["asset_key"] == "raw/orders").unwrap();
    assert_eq!((nodes.len(), &orders["owner"]), (7, &json!("ops@example.org")));
    assert_eq!(harness.get("graph?selection=raw.%2A%20and").await.problem().status, 400);
    harness.close().await;
}

#[tokio::test]
async fn assets_are_found_by_a_part_of_their_name_and_by_what_is_wrong_with_them() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let keys = async |query: &str| {
        let page = harness.get(&format!("assets?{query}")).await.ok();
        let keys = page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["asset_key"].as_str().unwrap().to_owned());
        keys.collect::<Vec<_>>()
    };
    assert_eq!(keys("contains=P.Cl").await, ["shop/clean"]);
    assert_eq!(keys("contains=nobody").await, [""; 0]);
    assert_eq!(keys("needs_attention=true").await, [""; 0]);
    harness.script.let_asset("shop/stubborn", Behaviour::Fail(9));
    let body: RunBody = serde_json::from_value(json!({ "selection": "shop.stubborn" })).unwrap();
    let run = harness.client.trigger(&body).await.unwrap().run_id;
    harness.workspace.wait(run).await.unwrap();
    assert_eq!(harness.client.run(run).await.unwrap().state, RunState::Failed);
    assert_eq!(keys("needs_attention=true").await, ["shop/stubborn"]);
    let summary = harness.get("assets/shop/stubborn/partitions/summary").await.ok();
    assert_eq!(summary["buckets"][0]["never_succeeded"], 1);
    let shown = harness.get("assets?needs_attention=true").await.ok();
    assert_eq!(shown["items"][0]["health"]["consecutive_failures"], 1);

    // A day that failed is not forgotten because another one was made since.
    harness.script.let_asset("raw/days", Behaviour::Fail(u32::MAX));
    let day = async |key: &str| {
        let body = json!({ "selection": "raw.days", "partitions": { "keys": [key] } });
        let accepted = harness.post("runs", &body).await.accepted();
        harness.ended(accepted["run_id"].as_str().unwrap().parse().unwrap()).await
    };
    assert_eq!(day("2013-01-04").await.state, RunState::Failed);
    harness.script.let_asset("raw/days", Behaviour::Fail(0));
    assert_eq!(day("2013-01-05").await.state, RunState::Succeeded);
    assert_eq!(keys("needs_attention=true").await, ["raw/days", "shop/stubborn"]);
    assert_eq!(day("2013-01-04").await.state, RunState::Succeeded);
    assert_eq!(keys("needs_attention=true").await, ["shop/stubborn"]);
    harness.close().await;
}

#[tokio::test]
async fn changes_are_told_as_they_happen() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let mut stream = harness.http.get(harness.url("changes")).send().await.unwrap();
    let mut text = String::new();
    let mut read_until = async |text: &mut String, wanted: &str| {
        while !text.contains(wanted) {
            let chunk: Option<Bytes> =
                tokio::time::timeout(crate::support::PATIENCE, stream.chunk()).await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(&chunk.expect("the stream goes on")).unwrap());
        }
    };
    read_until(&mut text, "event: changed").await;
    let run = days(&harness, "2013-01-01..2013-01-01").await;
    read_until(&mut text, &run).await;
    read_until(&mut text, "\"assets\":true").await;
    harness.post("pauses", &json!({ "scope": "all" })).await.accepted();
    read_until(&mut text, "\"settings\":true").await;
    harness.close().await;
}

#[tokio::test]
async fn a_step_of_the_clock_is_told_to_whoever_shows_something() {
    let root = tempfile::tempdir().unwrap();
    let set_forward = Arc::new(AtomicU64::new(0));
    let setting = Setting { set_forward: set_forward.clone(), ..Setting::default() };
    let harness = Harness::with(root.path(), setting).await;
    harness.script.let_asset("raw/orders", Behaviour::Gate(Arc::new(Semaphore::new(0))));
    harness.trigger("raw.orders").await;
    let mut stream = harness.http.get(harness.url("changes")).send().await.unwrap();
    set_forward.store(3_600, Ordering::SeqCst);
    let mut text = String::new();
    while !text.contains("\"more_runs\":true") {
        let chunk = tokio::time::timeout(crate::support::PATIENCE, stream.chunk()).await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk.expect("the stream goes on")).unwrap());
    }
    harness.close().await;
}

#[tokio::test]
async fn pages_are_served_to_browsers_and_problems_to_programs() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let get = async |path: &str| {
        harness.http.get(format!("http://{}{path}", harness.address)).send().await.unwrap()
    };
    for path in ["/", "/runs", "/assets/raw/orders", "/settings/audit"] {
        let page = get(path).await;
        assert_eq!(page.status(), 200, "{path}");
        assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8", "{path}");
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.headers()["x-frame-options"], "DENY");
        let text = page.text().await.unwrap();
        // With the pages built it is they, and without them how to build them.
        assert!(text.contains("id=\"root\"") || text.contains("make ui"), "{text}");
    }
    for path in ["/api/v1/nothing", "/api", "/static/nothing.js", "/nothing.js"] {
        let nothing = get(path).await;
        assert_eq!(nothing.status(), 404, "{path}");
        assert_eq!(nothing.headers()["content-type"], "application/problem+json", "{path}");
    }
    let posted = harness.http.post(format!("http://{}/runs", harness.address)).send().await.unwrap();
    assert_eq!(posted.status(), 405);
    harness.close().await;
}

/// Days, hours and regions, and a plane of two thousand by two thousand.
fn project_of_planes() -> Value {
    let mut manifest = project();
    let regions: Vec<String> = (0..5).map(|number| format!("r{number}")).collect();
    let names = |prefix: &str| (0..2_000).map(|number| format!("{prefix}{number:04}")).collect::<Vec<_>>();
    let dims = |dims: Value| json!({ "kind": "multi", "dims": dims });
    let cube = dims(json!({
        "date": { "kind": "daily", "span": { "start": "2013-01-01", "end": "2013-01-31" } },
        "region": { "kind": "static", "keys": regions },
        "size": { "kind": "static", "keys": ["large", "small"] },
    }));
    let plane = dims(json!({
        "a": { "kind": "static", "keys": names("a") },
        "b": { "kind": "static", "keys": names("b") },
    }));
    for (key, partitions) in [("big/cube", cube), ("big/plane", plane)] {
        let mut asset = manifest["assets"][0].clone();
        let function = format!("shop.assets:{}", key.replace('/', "_"));
        (asset["key"], asset["partitions"], asset["function"]) = (json!(key), partitions, json!(function));
        manifest["assets"].as_array_mut().unwrap().push(asset);
    }
    manifest
}

#[tokio::test]
async fn partitions_are_counted_over_any_two_dimensions() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.post("deployments", &project_of_planes()).await.accepted();
    let path = "assets/big/cube/partitions/summary";
    let body = json!({ "selection": "big.cube", "partitions": { "keys": [
        "date=2013-01-01,region=r0,size=large", "date=2013-01-01,region=r0,size=small",
        "date=2013-01-09,region=r4,size=small",
    ] } });
    let body: RunBody = serde_json::from_value(body).unwrap();
    let run = harness.client.trigger(&body).await.unwrap().run_id;
    harness.workspace.wait(run).await.unwrap();

    let whole = harness.get(&format!("{path}?x=date&y=region&x_buckets=4")).await.ok();
    let shape = ["total", "step", "row_total", "row_step", "dimension", "row_dimension"];
    let shape = shape.map(|name| whole[name].clone());
    let expected = [json!(31), json!(8), json!(5), json!(1), json!("date"), json!("region")];
    assert_eq!(shape, expected);
    assert_eq!(whole["summed"], json!(["size"]), "the third dimension is summed");
    assert_eq!(whole["rows"], json!(["r0", "r1", "r2", "r3", "r4"]));
    assert_eq!(whole["columns"][0], "2013-01-01..2013-01-08");
    let cells = whole["buckets"].as_array().unwrap();
    assert_eq!(cells.len(), 4 * 5);
    assert_eq!((&cells[0]["partitions"], &cells[0]["materialized"]), (&json!(16), &json!(2)));
    assert_eq!(cells[5 + 4]["materialized"], 1, "the second column, the last row");
    let made: u64 = cells.iter().filter_map(|cell| cell["materialized"].as_u64()).sum();
    let all: u64 = cells.iter().filter_map(|cell| cell["partitions"].as_u64()).sum();
    assert_eq!((made, all), (3, 31 * 5 * 2), "every partition is in one cell");
    assert_eq!(cells[0]["first"], "date=2013-01-01,region=r0,size=large");
    assert_eq!(cells[0]["last"], "date=2013-01-08,region=r0,size=small");

    // The same by other dimensions, by one, and a part of it.
    let turned = harness.get(&format!("{path}?x=size&y=date&y_buckets=1")).await.ok();
    let counts = |answer: &Value| {
        let cells = answer["buckets"].as_array().unwrap().iter();
        cells.map(|cell| cell["materialized"].as_u64().unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!((counts(&turned), &turned["rows"]), (vec![1, 2], &json!(["2013-01-01..2013-01-31"])));
    assert_eq!(counts(&harness.get(&format!("{path}?x=region")).await.ok()), [2, 0, 0, 0, 1]);
    let near = harness.get(&format!("{path}?x=date&from=8&count=1&y=region&row_from=3")).await.ok();
    assert_eq!((counts(&near), &near["rows"]), (vec![0, 1], &json!(["r3", "r4"])));

    // Four million partitions of two large dimensions: as many buckets as were asked for.
    let plane = harness.get("assets/big/plane/partitions/summary?x=b&y=a").await.ok();
    let cells = plane["buckets"].as_array().unwrap();
    assert_eq!((cells.len(), &cells[0]["partitions"]), (400, &json!(10_000)));
    assert_eq!((&plane["columns"][19], &plane["rows"][0]), (&json!("b1900..b1999"), &json!("a0000..a0099")));

    let wrong =
        ["x=date&y=date", "y=date", "x=colour", "x=date&y=region&x_buckets=500", "x=date&x_buckets=0"];
    for wrong in wrong {
        assert_eq!(harness.get(&format!("{path}?{wrong}")).await.problem().status, 400, "{wrong}");
    }
    let none = harness.get("assets/raw/orders/partitions/summary?x=date").await.problem();
    assert!(none.detail.contains("has no partitions"), "{}", none.detail);
    harness.close().await;
}
