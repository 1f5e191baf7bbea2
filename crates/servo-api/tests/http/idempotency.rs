//! The same request again: the same answer, and nothing done twice.

use std::sync::Arc;

use crate::support::{Behaviour, Harness};
use serde_json::json;
use servo_api::Code;
use tokio::sync::Semaphore;

const KEY: &str = "idempotency-key";

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
    assert_eq!((problem.status, problem.code), (409, Code::RunKeyConflict), "also after a restart");
    let again = harness.post_with("runs", &body, &[(KEY, "k-1")]).await.accepted();
    assert_eq!(again, first);
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
