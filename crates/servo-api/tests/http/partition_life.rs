//! Partitions are wiped, marked and given back what they were, over HTTP.

use std::sync::Arc;

use serde_json::json;
use servo_api::Code;
use servo_core::AssetKey;
use tokio::sync::Semaphore;

use crate::support::{Behaviour, Harness};

const WIPE: &str = "assets/raw/orders/partitions/wipe";
const MARK: &str = "assets/raw/orders/partitions/mark";
const UNDO: &str = "assets/raw/orders/partitions/undo";

fn key(text: &str) -> AssetKey {
    AssetKey::parse(text).unwrap()
}

#[tokio::test]
async fn a_wipe_is_carried_out_once_and_can_be_undone_if_it_kept_the_data() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.run("raw.orders").await;
    let preview = harness.post(&format!("{WIPE}/preview"), &json!({})).await.ok();
    assert_eq!(preview["count"], 1, "{preview}");
    let head = harness.head().await;
    let monday = [("idempotency-key", "monday")];
    let body = json!({ "keep_data": true, "reason": "wrong source" });
    let wiped = harness.post_with(WIPE, &body, &monday).await.accepted();
    assert_eq!(wiped["count"], 1, "{wiped}");
    let again = harness.post_with(WIPE, &body, &monday).await.accepted();
    assert_eq!(again["accepted_event_id"], wiped["accepted_event_id"]);
    assert_eq!(harness.head().await, head + 1);
    let other = json!({ "reason": "another" });
    assert_eq!(harness.post_with(WIPE, &other, &monday).await.problem().code, Code::IdempotencyConflict);
    let shown = harness.client.asset(&key("raw.orders")).await.unwrap();
    assert_eq!(shown.asset.partitions.materialized, 0);
    assert!(shown.latest.is_none());

    let undone = harness.post(UNDO, &json!({ "change": wiped["accepted_event_id"] })).await.accepted();
    assert_eq!(undone["count"], 1);
    let shown = harness.client.asset(&key("raw.orders")).await.unwrap();
    assert_eq!(shown.asset.partitions.materialized, 1);
    assert_eq!(harness.post(UNDO, &json!({})).await.problem().code, Code::NothingToUndo);

    let marked = harness.post(MARK, &json!({ "as": "failed" })).await.accepted();
    assert_eq!(marked["count"], 1);
    let shown = harness.client.asset(&key("raw.orders")).await.unwrap();
    assert_eq!(shown.asset.partitions.last_attempt_failed, 1);
    let acts = harness.get("audit?action=partitions").await.ok();
    assert_eq!(acts["items"].as_array().unwrap().len(), 4, "three changes and a refusal: {acts}");
    harness.close().await;
}

#[tokio::test]
async fn a_wipe_of_what_is_being_made_is_refused_and_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("raw/orders", Behaviour::Gate(gate.clone()));
    let run = harness.trigger("raw.orders").await.run_id;
    harness.until(run, "raw/orders:materialize", servo_engine::TaskState::Running).await;
    let busy = harness.post(WIPE, &json!({})).await.problem();
    assert_eq!((busy.status, busy.code), (409, Code::PartitionBusy));
    assert!(busy.detail.contains(&format!("servo run cancel {run}")), "{}", busy.detail);
    let forced = harness.post(WIPE, &json!({ "force": true })).await.accepted();
    assert_eq!(forced["count"], 1);
    gate.add_permits(1);
    harness.ended(run).await;
    let shown = harness.client.asset(&key("raw.orders")).await.unwrap();
    assert_eq!(shown.asset.partitions.materialized, 0, "the wipe holds");
    harness.close().await;
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_with_the_reason() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let unknown = harness.post("assets/raw/nothing/partitions/wipe", &json!({})).await.problem();
    assert_eq!((unknown.status, unknown.code), (404, Code::UnknownAsset));
    let keys = json!({ "partitions": { "keys": ["2013-01-01"] } });
    let without = harness.post(WIPE, &keys).await.problem();
    assert_eq!(without.code, Code::InvalidRequest);
    assert!(without.detail.contains("raw.orders has no partitions"), "{}", without.detail);
    assert_eq!(harness.post(MARK, &json!({ "as": "fine" })).await.problem().status, 400);
    assert_eq!(harness.post(MARK, &json!({})).await.problem().status, 400);
    assert_eq!(harness.post(WIPE, &json!({ "everything": true })).await.problem().status, 400);
    let nothing = harness.post(WIPE, &json!({})).await.accepted();
    assert_eq!(nothing, json!({ "count": 0, "with_data": 0, "outside": 0 }), "nothing is known of it yet");
    harness.close().await;
}
