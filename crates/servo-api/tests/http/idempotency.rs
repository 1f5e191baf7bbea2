//! The same request again: the same answer, and nothing done twice.

use std::sync::Arc;

use crate::support::{Behaviour, Harness, layout, project_with_customers};
use serde_json::json;
use servo_api::Code;
use tokio::sync::Semaphore;

const KEY: &str = "idempotency-key";
const PARTITIONS: &str = "dynamic-partitions/customers";

#[tokio::test]
async fn a_run_is_asked_for_once_whatever_the_answer_met_on_its_way() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let body = json!({ "selection": "raw.orders", "priority": 2 });
    let first = harness.post_with("runs", &body, &[(KEY, "k-1")]).await;
    assert!(!first.headers.contains_key("idempotency-replayed"));
    let first = first.accepted();
    // The order of fields is not part of a request.
    let again = "{\"priority\": 2, \"selection\": \"raw.orders\"}".to_owned();
    let again = harness.post_text("runs", again, &[(KEY, "k-1")]).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.accepted(), first);
    let other = json!({ "selection": "raw.orders", "priority": 3 });
    let problem = harness.post_with("runs", &other, &[(KEY, "k-1")]).await.problem();
    assert_eq!((problem.status, problem.code), (409, Code::IdempotencyConflict));
    let elsewhere =
        harness.post_with("deployments", &crate::support::project(), &[(KEY, "k-1")]).await.problem();
    assert_eq!(elsewhere.code, Code::IdempotencyConflict, "a key is for one request, wherever it goes");
    let run = first["run_id"].as_str().unwrap().parse().unwrap();
    harness.ended(run).await;
    assert_eq!(harness.script.count("raw/orders"), 1);
    harness.close().await;

    let harness = Harness::on(root.path()).await;
    let problem = harness.post_with("runs", &other, &[(KEY, "k-1")]).await.problem();
    assert_eq!((problem.status, problem.code), (409, Code::IdempotencyConflict), "also after a restart");
    let again = harness.post_with("runs", &body, &[(KEY, "k-1")]).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.accepted(), first);
    assert_eq!(harness.get("runs").await.ok()["items"].as_array().unwrap().len(), 1);
    harness.close().await;
}

#[tokio::test]
async fn the_key_may_be_in_the_body() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let body = json!({ "selection": "raw.orders", "client_request_id": "k-2" });
    let first = harness.post("runs", &body).await.accepted();
    assert_eq!(harness.post("runs", &body).await.accepted(), first);
    assert_eq!(harness.post_with("runs", &body, &[(KEY, "k-2")]).await.accepted(), first);
    let problem = harness.post_with("runs", &body, &[(KEY, "k-3")]).await.problem();
    assert_eq!(problem.violations[0].field, "client_request_id");
    for key in ["", "with space", &"k".repeat(256)] {
        let problem = harness.post_with("runs", &body, &[(KEY, key)]).await.problem();
        assert_eq!(problem.violations[0].field, "Idempotency-Key", "{key:?}");
    }
    harness.close().await;
}

#[tokio::test]
async fn cancel_and_retry_are_done_once_too() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("raw/orders", Behaviour::Gate(gate.clone()));
    let run = harness.trigger("raw.orders").await.run_id;
    let path = format!("runs/{run}/cancel");
    let first = harness.post_with(&path, &json!({}), &[(KEY, "c")]).await.accepted();
    assert!(first["accepted_event_id"].is_string());
    assert_eq!(harness.post_with(&path, &json!({}), &[(KEY, "c")]).await.accepted(), first);
    let reason = json!({ "reason": "another" });
    assert_eq!(
        harness.post_with(&path, &reason, &[(KEY, "c")]).await.problem().code,
        Code::IdempotencyConflict
    );
    gate.add_permits(1);
    harness.ended(run).await;

    let path = format!("runs/{run}/retry");
    gate.add_permits(1);
    let first = harness.post_with(&path, &json!({}), &[(KEY, "r")]).await.accepted();
    assert_eq!(harness.post_with(&path, &json!({}), &[(KEY, "r")]).await.accepted(), first);
    assert_eq!(harness.get("runs").await.ok()["items"].as_array().unwrap().len(), 2);
    harness.close().await;
}

#[tokio::test]
async fn a_key_is_for_one_path_also_where_the_bodies_are_the_same() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("raw/orders", Behaviour::Gate(gate));
    let (first, second) = (harness.trigger("raw.orders").await, harness.trigger("raw.orders").await);
    let cancel =
        async |run, key| harness.post_with(&format!("runs/{run}/cancel"), &json!({}), &[(KEY, key)]).await;
    let told = cancel(first.run_id, "c").await.accepted();
    let problem = cancel(second.run_id, "c").await.problem();
    assert_eq!((problem.status, problem.code), (409, Code::IdempotencyConflict));
    let state = harness.get(&format!("runs/{}", second.run_id)).await.ok()["state"].clone();
    assert!(state != "CANCELLING" && state != "CANCELLED", "{state}: nobody has cancelled it");
    assert_ne!(cancel(second.run_id, "d").await.accepted(), told);
    assert_eq!(cancel(first.run_id, "c").await.accepted(), told, "the key is still that of the first");
    harness.close().await;
}

#[tokio::test]
async fn every_change_gets_the_same_answer_after_a_restart_and_after_many_others() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    harness.script.let_asset("raw/orders", Behaviour::Gate(gate.clone()));
    let run = harness.trigger("raw.orders").await.run_id;
    let partitions = json!({ "add": ["acme", "bolt"] });
    let mut asked = vec![
        ("deployments".to_owned(), project_with_customers()),
        (PARTITIONS.to_owned(), partitions.clone()),
        (format!("runs/{run}/cancel"), json!({ "reason": "enough" })),
    ];
    let mut told = Vec::new();
    for (path, body) in &asked {
        told.push(harness.post_with(path, body, &[(KEY, path)]).await.accepted());
    }
    assert_eq!((&told[1]["added"], &told[1]["removed"]), (&json!(2), &json!(0)));
    gate.add_permits(1);
    harness.ended(run).await;
    asked.push((format!("runs/{run}/retry"), json!({})));
    gate.add_permits(1);
    told.push(harness.post_with(&asked[3].0, &asked[3].1, &[(KEY, &asked[3].0)]).await.accepted());
    harness.ended(told[3]["run_id"].as_str().unwrap().parse().unwrap()).await;
    for number in 0..200 {
        harness.post_with(PARTITIONS, &partitions, &[(KEY, &number.to_string())]).await.accepted();
    }
    harness.close().await;

    let harness = Harness::on(root.path()).await;
    harness.post(PARTITIONS, &json!({ "remove": ["acme"] })).await.accepted();
    for ((path, body), told) in asked.iter().zip(&told) {
        let again = harness.post_with(path, body, &[(KEY, path)]).await;
        assert_eq!(again.headers["idempotency-replayed"], "true", "{path}");
        assert_eq!(again.accepted(), *told, "{path}");
        let other = harness.post_with(path, &json!({ "client_request_id": path }), &[(KEY, path)]).await;
        assert_eq!(other.problem().code, Code::IdempotencyConflict, "{path}");
    }
    assert_eq!(harness.get("runs").await.ok()["items"].as_array().unwrap().len(), 2, "one retry, one run");
    let left = harness.post(PARTITIONS, &json!({ "add": ["bolt"] })).await.accepted();
    assert_eq!(left["added"], 0, "acme was removed after it was added, and is not added again");
    harness.close().await;
}

/// Lets a check block an asset, and gives the route of its review.
async fn blocked(harness: &Harness, root: &std::path::Path) -> String {
    harness.script.let_asset("shop/clean", Behaviour::Quarantine);
    harness.run("shop.clean").await;
    let waiting = harness.get("quarantine").await.ok();
    let id: servo_core::MaterializationId =
        waiting["items"][0]["materialization_id"].as_str().unwrap().parse().unwrap();
    let clean = servo_core::AssetKey::parse("shop.clean").unwrap();
    let kept = root.join(layout().prefix()).join(layout().quarantine(&clean, None, id));
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::write(kept.join("_reason.json"), "{}").unwrap();
    format!("quarantine/shop/clean/{id}")
}

#[tokio::test]
async fn approvals_and_rejections_are_done_once_across_a_restart() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let body = json!({ "reason": "looked at" });
    let mut told = Vec::new();
    for verdict in ["approve", "reject"] {
        let path = format!("{}/{verdict}", blocked(&harness, root.path()).await);
        let first = harness.post_with(&path, &body, &[(KEY, verdict)]).await.accepted();
        assert!(first["accepted_event_id"].is_string());
        let again = harness.post_with(&path, &body, &[(KEY, verdict)]).await;
        assert_eq!(again.headers["idempotency-replayed"], "true");
        assert_eq!(again.accepted(), first);
        told.push((path, verdict, first));
    }
    harness.close().await;

    let harness = Harness::on(root.path()).await;
    for (path, verdict, first) in &told {
        let again = harness.post_with(path, &body, &[(KEY, verdict)]).await;
        assert_eq!(again.headers["idempotency-replayed"], "true", "{verdict}");
        assert_eq!(again.accepted(), *first, "{verdict}");
        let other = harness.post_with(path, &json!({ "reason": "another" }), &[(KEY, verdict)]).await;
        assert_eq!(other.problem().code, Code::IdempotencyConflict, "{verdict}");
        let anew = harness.post_with(path, &body, &[(KEY, &format!("{verdict}-anew"))]).await;
        assert_eq!(anew.problem().code, Code::NotInQuarantine, "{verdict}");
        let acts = harness.get(&format!("audit?action=quarantine.{verdict}&outcome=ALLOWED")).await.ok();
        assert_eq!(acts["items"].as_array().unwrap().len(), 1, "{verdict} took effect once");
    }
    harness.close().await;
}

#[tokio::test]
async fn a_run_key_that_was_used_for_two_requests_is_listed() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let body = |priority: i32| json!({ "selection": "raw.orders", "run_key": "daily", "priority": priority });
    let first = harness.post("runs", &body(0)).await.accepted();
    assert_eq!(harness.get("conflicts").await.ok()["items"], json!([]));
    for priority in 1..=3 {
        let refused = harness.post("runs", &body(priority)).await.problem();
        assert_eq!(refused.code, Code::RunKeyConflict);
    }
    let all = harness.get("conflicts").await.ok()["items"].as_array().unwrap().clone();
    assert_eq!(all.len(), 3);
    for conflict in &all {
        assert_eq!((&conflict["run_id"], &conflict["run_key"]), (&first["run_id"], &json!("daily")));
        assert_ne!(conflict["existing_fingerprint"], conflict["conflicting_fingerprint"]);
        assert_eq!(conflict["requested_by"], "user:local");
    }
    harness.close().await;

    let harness = Harness::on(root.path()).await;
    assert_eq!(
        harness.post("runs", &body(1)).await.problem().code,
        Code::RunKeyConflict,
        "it was told before"
    );
    let first = harness.get("conflicts?limit=2").await.ok();
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = harness.get(&format!("conflicts?limit=2&cursor={cursor}")).await.ok();
    let mut paged = first["items"].as_array().unwrap().clone();
    paged.extend(rest["items"].as_array().unwrap().clone());
    assert_eq!(paged, all, "the newest first, also after a restart");
    harness.close().await;
}

#[tokio::test]
async fn what_was_refused_is_asked_anew() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let wrong = json!({ "selection": "raw.ordres" });
    assert_eq!(harness.post_with("runs", &wrong, &[(KEY, "k")]).await.problem().code, Code::Unplannable);
    harness.post_with("runs", &json!({ "selection": "raw.orders" }), &[(KEY, "k")]).await.accepted();
    harness.close().await;
}

#[tokio::test]
async fn requests_at_the_same_time_make_one_run() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let body = json!({ "selection": "raw.orders" });
    let requests = (0..8).map(|_| harness.post_with("runs", &body, &[(KEY, "k")]));
    let answers = futures::future::join_all(requests).await;
    let runs: std::collections::BTreeSet<String> =
        answers.into_iter().map(|answer| answer.accepted()["run_id"].to_string()).collect();
    assert_eq!(runs.len(), 1);
    harness.close().await;
}
