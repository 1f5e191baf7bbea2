//! Results of checks over HTTP: of all assets, filtered and by the page, from memory and from the tables.

use serde_json::{Value, json};
use servo_api::client::ListOptions;
use servo_api::views::RunBody;

use crate::roles::{api_keys, key};
use crate::support::{Behaviour, Harness, Setting, project};
use servo_access::Role;

async fn made(harness: &Harness, selection: &str, partitions: Value) -> String {
    let body: RunBody =
        serde_json::from_value(json!({ "selection": selection, "partitions": partitions })).unwrap();
    let run = harness.client.trigger(&body).await.unwrap().run_id;
    harness.workspace.wait(run).await.unwrap();
    run.to_string()
}

/// Asset, partition, check and outcome of each result.
fn shown(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let one = |item: &Value| {
        let (asset, partition) = (text(item, "asset_key"), text(item, "partition"));
        format!("{asset} {partition} {} {}", text(item, "name"), item["passed"])
    };
    items.map(one).collect()
}

#[tokio::test]
async fn results_of_checks_are_listed_newest_first_and_filtered() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    assert_eq!(harness.get("checks").await.ok(), json!({ "items": [] }));
    harness.script.let_asset("raw/orders", Behaviour::Checks(vec![("rows", true), ("keys", false)]));
    harness.script.let_asset("raw/days", Behaviour::Checks(vec![("rows", true)]));
    let first = made(&harness, "raw.orders", json!({})).await;
    let second = made(&harness, "raw.days", json!({ "keys": ["2013-01-02"] })).await;
    let days = "raw/days 2013-01-02 rows true";
    let all = [days, "raw/orders  rows true", "raw/orders  keys false"];
    let listed = async |query: &str| shown(&harness.get(&format!("checks?{query}")).await.ok());
    // A result is listed as soon as it is reported, and once when the tables have it too.
    assert_eq!(listed("").await, all);
    harness.get("tables").await.ok();
    assert_eq!(listed("").await, all);

    assert_eq!(listed("passed=false").await, all[2..]);
    assert_eq!(listed("asset=raw.orders&passed=true").await, all[1..2]);
    assert_eq!(listed("check=rows").await, all[..2]);
    assert_eq!(listed("partition=2013-01-02").await, all[..1]);
    assert_eq!(listed(&format!("run_id={first}")).await, all[1..]);
    assert_eq!(listed(&format!("run_id={second}&check=keys")).await, [""; 0]);
    let one = harness.get("checks?limit=1&check=keys").await.ok()["items"][0].clone();
    assert_eq!((&one["severity"], &one["message"]), (&json!("warning"), &json!("keys was looked at")));
    assert_eq!((&one["metadata"]["rows"], &one["run_id"]), (&json!(3), &json!(first)));

    // Page by page: one event has brought two of them.
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = harness.get(&format!("checks?limit=1{cursor}")).await.ok();
        found.extend(shown(&page));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, all);
    for wrong in ["passed=maybe", "asset=raw", "run_id=seven", "limit=0", "colour=red"] {
        assert_eq!(harness.get(&format!("checks?{wrong}")).await.problem().status, 400, "{wrong}");
    }
    // Under the name that the asset has now: the old one is not declared any more.
    let mut manifest = project();
    (manifest["assets"][0]["key"], manifest["assets"][3]["deps"][0]["asset"]) =
        (json!("raw/sales"), json!("raw/sales"));
    harness.post("deployments", &manifest).await.accepted();
    harness.post("assets/raw/orders/rename", &json!({ "to": "raw.sales" })).await.accepted();
    assert_eq!(listed("asset=raw.sales").await, ["raw/sales  rows true", "raw/sales  keys false"]);
    assert_eq!(listed("asset=raw.orders").await, [""; 0]);
    assert_eq!(harness.client.checks(&ListOptions::default()).await.unwrap().items.len(), 3);
    harness.close().await;
}

#[tokio::test]
async fn a_key_for_some_assets_is_shown_the_results_of_their_checks_alone() {
    let root = tempfile::tempdir().unwrap();
    let keys = api_keys(root.path()).await;
    let harness =
        Harness::with(root.path(), Setting { api_keys: Some(keys.clone()), ..Setting::default() }).await;
    harness.script.let_asset("raw/orders", Behaviour::Checks(vec![("rows", true)]));
    harness.script.let_asset("shop/stubborn", Behaviour::Checks(vec![("rows", false)]));
    made(&harness, "raw.orders or shop.stubborn", json!({})).await;
    assert_eq!(shown(&harness.get("checks").await.ok()).len(), 2);
    let shop = key(&keys, 1, Role::Viewer, "acme/main", Some("shop.*")).await;
    let ask = async |query: &str| {
        let url = harness.url(&format!("checks{query}"));
        let response = reqwest::Client::builder().no_proxy().build().unwrap().get(url).bearer_auth(&shop);
        crate::support::Answer::of(response.send().await.unwrap()).await.ok()
    };
    assert_eq!(shown(&ask("").await), ["shop/stubborn  rows false"]);
    assert_eq!(shown(&ask("?asset=raw.orders").await), [""; 0]);
    harness.close().await;
}
