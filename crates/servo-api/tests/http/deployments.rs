//! Deployments of before over HTTP: listed, compared, returned to.

use crate::support::{Harness, Setting, project};
use serde_json::{Value, json};
use servo_api::Code;

/// Three deployments: the project, one that changes it, and one in which only a line moved.
async fn deployed(root: &std::path::Path) -> Harness {
    let harness = Harness::with(root, Setting { deploy: false, ..Setting::default() }).await;
    harness.post("deployments", &first()).await.accepted();
    harness.post("deployments", &second()).await.accepted();
    let mut third = second();
    third["assets"][0]["location"]["line"] = json!(99);
    harness.post("deployments", &third).await.accepted();
    harness
}

fn first() -> Value {
    let mut manifest = project();
    manifest["schedules"] = json!([schedule("nightly", "0 3 * * *"), schedule("noon", "0 12 * * *")]);
    manifest
}

fn second() -> Value {
    let mut manifest = first();
    manifest["schedules"] = json!([schedule("nightly", "0 4 * * *")]);
    let assets = manifest["assets"].as_array_mut().unwrap();
    assets[0]["group"] = json!("ingest");
    assets[0]["owners"] = json!(["ops@example.org", "data@example.org"]);
    let mut new = assets[0].clone();
    new["key"] = json!("raw/returns");
    new["function"] = json!("shop.assets:raw_returns");
    assets.push(new);
    assets.retain(|asset| asset["key"] != "shop/stubborn");
    manifest
}

fn schedule(name: &str, cron: &str) -> Value {
    let location = json!({ "file": "shop.py", "line": 1 });
    json!({ "name": name, "cron": cron, "selection": "raw.orders", "location": location })
}

fn changes(diff: &Value) -> Vec<(String, String)> {
    let of = |item: &Value| {
        let text = |field: &str| item[field].as_str().unwrap().to_owned();
        (text("name"), text("change"))
    };
    diff["items"].as_array().unwrap().iter().map(of).collect()
}

#[tokio::test]
async fn deployments_are_listed_by_page_with_what_they_changed() {
    let root = tempfile::tempdir().unwrap();
    let harness = deployed(root.path()).await;
    let page = harness.get("deployments?limit=2").await.ok();
    let numbers = |page: &Value| {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["number"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers(&page), [3, 2]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = harness.get(&format!("deployments?limit=2&cursor={cursor}")).await.ok();
    assert_eq!((numbers(&rest), &rest["next_cursor"]), (vec![1], &Value::Null));
    let shown = harness.get("deployments/2").await.ok();
    assert_eq!(
        (&shown["is_current"], &shown["assets"], &shown["schedules"], &shown["changes"]),
        (&json!(false), &json!(7), &json!(1), &json!({ "added": 1, "changed": 2, "moved": 0, "removed": 2 }))
    );
    assert_eq!(harness.get("deployments/3").await.ok()["is_current"], true);
    assert_eq!(harness.get("deployments/4").await.problem().code, Code::UnknownDeployment);
    assert_eq!(harness.get("deployments/first").await.problem().code, Code::InvalidRequest);
    harness.close().await;
}

#[tokio::test]
async fn differences_are_told_field_by_field_and_what_only_moved_is_told_apart() {
    let root = tempfile::tempdir().unwrap();
    let harness = deployed(root.path()).await;
    let diff = harness.get("deployments/1/diff?to=2").await.ok();
    let expected = [
        ("raw/orders", "CHANGED"),
        ("raw/returns", "ADDED"),
        ("shop/stubborn", "REMOVED"),
        ("nightly", "CHANGED"),
        ("noon", "REMOVED"),
    ];
    assert_eq!(changes(&diff), expected.map(|(name, change)| (name.to_owned(), change.to_owned())));
    let fields = json!([
        { "path": "group", "before": "\"raw\"", "after": "\"ingest\"" },
        { "path": "owners", "before": "[\"ops@example.org\"]",
          "after": "[\"ops@example.org\",\"data@example.org\"]" },
    ]);
    assert_eq!(diff["items"][0]["fields"], fields);
    let page = harness.get("deployments/1/diff?to=2&limit=2").await.ok();
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = harness.get(&format!("deployments/1/diff?to=2&limit=2&cursor={cursor}")).await.ok();
    assert_eq!(
        changes(&rest),
        [("shop/stubborn", "REMOVED"), ("nightly", "CHANGED")].map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
    // Without another it is the current one; back is the other way round.
    let moved = harness.get("deployments/2/diff").await.ok();
    assert_eq!(
        (&moved["to"], changes(&moved)),
        (&json!(3), vec![("raw/orders".to_owned(), "MOVED".to_owned())])
    );
    let back = harness.get("deployments/2/diff?to=1").await.ok();
    assert_eq!(back["counts"], json!({ "added": 2, "changed": 2, "moved": 0, "removed": 1 }));
    assert_eq!(harness.get("deployments/0/diff?to=1").await.ok()["counts"]["added"], 9);
    assert_eq!(harness.get("deployments/3/diff?to=3").await.ok()["items"], json!([]));
    let versions = harness.get("assets/raw/orders/versions").await.ok();
    let told: Vec<_> =
        versions["items"].as_array().unwrap().iter().map(|it| (&it["deployment"], &it["change"])).collect();
    assert_eq!(
        told,
        [(&json!(3), &json!("MOVED")), (&json!(2), &json!("CHANGED")), (&json!(1), &json!("ADDED"))]
    );
    assert_eq!(versions["items"][1]["fields"], fields);
    // Of what is gone, the history stays.
    assert_eq!(harness.get("assets/shop/stubborn/versions").await.ok()["items"][0]["change"], "REMOVED");
    assert_eq!(harness.get("assets/shop/nothing/versions").await.problem().code, Code::UnknownAsset);
    harness.close().await;
}

#[tokio::test]
async fn the_definitions_of_an_earlier_deployment_become_current_by_a_new_one() {
    let root = tempfile::tempdir().unwrap();
    let harness = deployed(root.path()).await;
    let digest = harness.get("deployments/1").await.ok()["digest"].clone();
    let stale = harness.post("deployments/1/rollback", &json!({ "expected_current": 2 })).await.problem();
    assert_eq!(stale.code, Code::VersionConflict);
    let body = json!({ "expected_current": 3 });
    let done =
        harness.post_with("deployments/1/rollback", &body, &[("idempotency-key", "back")]).await.accepted();
    assert_eq!((&done["rolled_back_to"], &done["assets"]), (&json!(1), &json!(7)));
    assert_eq!(done["digest"], digest);
    // Asked again with the same key, nothing happens but the same answer, although another is current by now.
    let again = harness.post_with("deployments/1/rollback", &body, &[("idempotency-key", "back")]).await;
    let repeated = again.accepted();
    assert_eq!(repeated["accepted_event_id"], done["accepted_event_id"]);
    let current = harness.get("deployments/current").await.ok();
    assert_eq!((&current["number"], &current["digest"]), (&json!(4), &digest));
    assert_eq!(harness.get("deployments/1/diff?to=4").await.ok()["items"], json!([]));
    assert_eq!(harness.get("assets/raw/orders").await.ok()["group"], "raw");
    assert_eq!(harness.get("orchestration/schedules/nightly").await.ok()["cron"], "0 3 * * *");
    let nothing = harness.post("deployments/1/rollback", &json!({})).await.accepted();
    assert_eq!(nothing["accepted_event_id"], Value::Null, "it is current already");
    assert_eq!(
        harness.post("deployments/9/rollback", &json!({})).await.problem().code,
        Code::UnknownDeployment
    );
    let acts = harness.get("audit?action=assets").await.ok();
    assert_eq!(acts["items"][0]["action"], "assets.deploy");
    harness.close().await;
}
