//! Freshness over HTTP: which assets have a policy, how old they are, and what is refused.

use crate::support::{Harness, Setting, project};
use serde_json::{Value, json};
use servo_api::Code;
use servo_api::client::ListOptions;
use servo_core::AssetKey;
use servo_engine::FreshnessStatus;

/// The project, with a policy for two of its assets.
fn with_policies() -> Value {
    let mut project = project();
    for asset in project["assets"].as_array_mut().unwrap() {
        match asset["key"].as_str().unwrap() {
            "raw/orders" => asset["freshness"] = json!({ "max_lag_ms": 3_600_000 }),
            "shop/clean" => {
                asset["freshness"] = json!({ "max_lag_ms": 7_200_000, "warn_before_ms": 7_200_000 })
            }
            _ => {}
        }
    }
    project
}

#[tokio::test]
async fn assets_with_a_policy_are_listed_with_how_old_they_are() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { deploy: false, ..Setting::default() }).await;
    assert_eq!(harness.get("freshness").await.ok(), json!({ "items": [] }));
    harness.post("deployments", &with_policies()).await.accepted();
    let listed = async |options: &ListOptions| {
        let page = harness.client.freshness(options).await.unwrap();
        page.items.into_iter().map(|it| (it.asset_key.to_string(), it.status)).collect::<Vec<_>>()
    };
    let (orders, clean) =
        (("raw.orders".to_owned(), FreshnessStatus::Pass), ("shop.clean".to_owned(), FreshnessStatus::Warn));
    assert_eq!(listed(&ListOptions::default()).await, [orders.clone(), clean.clone()]);
    let warned = ListOptions { state: Some("warn".to_owned()), ..ListOptions::default() };
    assert_eq!(listed(&warned).await, std::slice::from_ref(&clean));
    let selected = vec![("selection", "raw.*".to_owned())];
    assert_eq!(listed(&ListOptions { filters: selected, ..ListOptions::default() }).await, [orders]);
    let first = ListOptions { limit: Some(1), ..ListOptions::default() };
    let cursor = harness.client.freshness(&first).await.unwrap().next_cursor;
    assert!(cursor.is_some());
    assert_eq!(listed(&ListOptions { cursor, ..first }).await, [clean]);

    let asset = AssetKey::parse("raw.orders").unwrap();
    let never = harness.client.asset(&asset).await.unwrap().asset.freshness.unwrap();
    assert_eq!((never.data_as_of, never.lag_ms), (None, None));
    harness.run("raw.orders").await;
    let made = harness.client.asset(&asset).await.unwrap();
    let at = made.latest.unwrap().materialized_at;
    let freshness = made.asset.freshness.unwrap();
    assert_eq!((freshness.status, freshness.data_as_of), (FreshnessStatus::Pass, Some(at)));
    assert_eq!(freshness.fails_at.since(at).get(), 3_600_000);
    let unmanaged = harness.client.asset(&AssetKey::parse("raw.feed").unwrap()).await.unwrap();
    assert_eq!(unmanaged.asset.freshness, None);
    harness.close().await;
}

#[tokio::test]
async fn a_status_or_a_selection_that_does_not_exist_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { deploy: false, ..Setting::default() }).await;
    harness.post("deployments", &with_policies()).await.accepted();
    for (query, expected) in [
        ("status=late", "there is no status \"late\""),
        ("selection=shop.clena", "did you mean shop.clean?"),
        ("limit=0", "limit"),
        ("colour=red", "colour"),
    ] {
        let problem = harness.get(&format!("freshness?{query}")).await.problem();
        assert_eq!(problem.code, Code::InvalidRequest, "{query}");
        let told = serde_json::to_string(&problem).unwrap().replace("\\\"", "\"");
        assert!(told.contains(expected), "{query}: {told}");
    }
    harness.close().await;
}
