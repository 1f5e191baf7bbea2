//! Costs of attempts over HTTP: grouped, filtered and by the page, from memory and from the tables, each once.

use serde_json::{Value, json};
use servo_access::Role;
use servo_api::client::ListOptions;
use servo_api::views::RunBody;
use servo_engine::outputs::Usage;

use crate::roles::{api_keys, key};
use crate::support::{Answer, Behaviour, Harness, Setting, project};

async fn made(harness: &Harness, selection: &str, partitions: Value) -> String {
    let body: RunBody =
        serde_json::from_value(json!({ "selection": selection, "partitions": partitions })).unwrap();
    let run = harness.client.trigger(&body).await.unwrap().run_id;
    harness.workspace.wait(run).await.unwrap();
    run.to_string()
}

fn seconds(cpu: u64) -> Behaviour {
    Behaviour::Use(Usage { cpu_ms: cpu * 1_000, ..Usage::default() })
}

/// The key, the attempts and the cost of each group.
fn shown(costs: &Value) -> Vec<String> {
    let one = |item: &Value| {
        let key = ["asset_key", "day", "run_id"].into_iter().find_map(|name| item[name].as_str());
        format!("{} {} {}", key.unwrap(), item["attempts"], item["total_cost_micro_usd"])
    };
    costs["items"].as_array().unwrap().iter().map(one).collect()
}

#[tokio::test]
async fn costs_are_grouped_filtered_and_counted_once() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let nothing = harness.get("costs").await.ok();
    assert_eq!((&nothing["items"], &nothing["total"]["total_cost_micro_usd"]), (&json!([]), &json!(0)));
    harness.script.let_asset("raw/orders", seconds(1));
    harness.script.let_asset("raw/days", seconds(2));
    let first = made(&harness, "raw.orders", json!({})).await;
    let second = made(&harness, "raw.days", json!({ "keys": ["2013-01-02", "2013-01-03"] })).await;
    let listed = async |query: &str| shown(&harness.get(&format!("costs?{query}")).await.ok());
    let all = ["raw/days 2 96", "raw/orders 1 24"];
    assert_eq!(listed("").await, all, "the dearest first, as soon as it has ended");
    harness.workspace.write_tables().await.unwrap();
    assert_eq!(listed("").await, all, "and the same when the tables have it");
    harness.script.let_asset("raw/orders", Behaviour::Fail(9));
    made(&harness, "raw.orders", json!({})).await;
    harness.script.let_asset("raw/orders", seconds(1));
    assert_eq!(listed("").await[0], all[0]);

    let total = harness.get("costs").await.ok()["total"].clone();
    assert_eq!((&total["cpu_ms"], &total["compute_cost_micro_usd"]), (&json!(5_000), &json!(120)));
    assert_eq!(listed("by=run").await[..2], [format!("{second} 2 96"), format!("{first} 1 24")]);
    let days = listed("by=day").await;
    assert!(days.len() == 1 && days[0].ends_with(" 120"), "{days:?}");
    assert_eq!(listed("selection=raw.days").await, all[..1]);
    assert_eq!(listed("until=2020-01-01T00:00:00Z").await, [""; 0]);
    let page = harness.get("costs?limit=1").await.ok();
    assert_eq!(
        (shown(&page), &page["total"]),
        (all[..1].iter().map(|it| (*it).to_owned()).collect(), &total)
    );
    let cursor = page["next_cursor"].as_str().unwrap();
    assert!(listed(&format!("limit=1&cursor={cursor}")).await[0].starts_with("raw/orders"));
    for wrong in [
        "by=colour",
        "selection=(",
        "selection=raw.ordrs",
        "since=soon",
        "since=2011-01-01T00:00:00Z",
        "limit=0",
    ] {
        assert_eq!(harness.get(&format!("costs?{wrong}")).await.problem().status, 400, "{wrong}");
    }
    let run = harness.get(&format!("runs/{second}")).await.ok();
    assert_eq!(run["cost_micro_usd"], 96);
    let tasks = harness.get(&format!("runs/{second}/tasks")).await.ok();
    assert_eq!(tasks["items"][0]["cost_micro_usd"], 48);
    let asked = json!({ "selection": "raw.days", "partitions": { "ranges": ["2013-01-05..2013-01-08"] } });
    let preview = harness.post("orchestration/backfills/preview", &asked).await.ok();
    assert_eq!(preview["estimated_cost_micro_usd"], 4 * 48);

    // Under the name that the asset has now.
    let mut manifest = project();
    (manifest["assets"][0]["key"], manifest["assets"][3]["deps"][0]["asset"]) =
        (json!("raw/sales"), json!("raw/sales"));
    harness.post("deployments", &manifest).await.accepted();
    harness.post("assets/raw/orders/rename", &json!({ "to": "raw.sales" })).await.accepted();
    assert!(listed("selection=raw.sales").await[0].starts_with("raw/sales"));
    assert_eq!(harness.client.costs(&ListOptions::default()).await.unwrap().items.len(), 2);
    harness.close().await;
}

#[tokio::test]
async fn a_key_for_some_assets_is_shown_what_these_cost_alone() {
    let root = tempfile::tempdir().unwrap();
    let keys = api_keys(root.path()).await;
    let harness =
        Harness::with(root.path(), Setting { api_keys: Some(keys.clone()), ..Setting::default() }).await;
    harness.script.let_asset("raw/orders", seconds(1));
    harness.script.let_asset("shop/stubborn", seconds(2));
    made(&harness, "raw.orders or shop.stubborn", json!({})).await;
    assert_eq!(shown(&harness.get("costs").await.ok()).len(), 2);
    let shop = key(&keys, 1, Role::Viewer, "acme/main", Some("shop.*")).await;
    let ask = async |query: &str| {
        let url = harness.url(&format!("costs{query}"));
        let response = reqwest::Client::builder().no_proxy().build().unwrap().get(url).bearer_auth(&shop);
        Answer::of(response.send().await.unwrap()).await
    };
    assert_eq!(shown(&ask("").await.ok()), ["shop/stubborn 1 48"]);
    assert_eq!(ask("").await.ok()["total"]["total_cost_micro_usd"], 48);
    assert_eq!(shown(&ask("?selection=raw.orders").await.ok()), [""; 0]);
    assert_eq!(ask("?by=run").await.problem().status, 403);
    harness.close().await;
}
