//! Workers become known: they prove their storage and their code, are heard of, and leave.

use serde_json::{Value, json};
use servo_api::Code;
use servo_core::Millis;
use servo_engine::{RunState, Settings};
use servo_store::DataRoot;

use crate::support::{Harness, Setting, eventually, layout, project};
use crate::workers::{Attempt, by_hand};

/// Workers ask, and nobody is there yet.
fn pulled() -> Setting {
    let settings = Settings { push_limit: 0, worker_timeout: Millis::from_secs(60), ..Settings::default() };
    Setting { settings, ..by_hand() }
}

async fn body(harness: &Harness) -> Value {
    let deployed = harness.get("deployments/current").await.ok();
    json!({
        "name": "remote", "nonce": "00000001", "tenant": "acme", "workspace": "main", "queues": ["default"],
        "slots": 2, "digest": deployed["digest"], "storage": "file:///data", "host": "vm", "version": "1",
    })
}

fn with(body: &Value, field: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[field] = value;
    body
}

/// Registers the worker `remote-00000001`.
async fn registered(harness: &Harness, root: &std::path::Path) -> Value {
    let body = body(harness).await;
    let asked = harness.post("worker/register", &body).await.ok();
    assert_eq!(asked, json!({ "worker_id": "remote-00000001", "registered": false }));
    let data = DataRoot::directory(root, &layout()).unwrap();
    let proof = data.answer_challenge(&layout(), "remote-00000001").await.unwrap();
    let proven = harness.post("worker/register", &with(&body, "proof", json!(proof))).await.ok();
    assert_eq!(proven, json!({ "worker_id": "remote-00000001", "registered": true }));
    body
}

async fn lease(harness: &Harness) -> crate::support::Answer {
    let body = json!({ "worker_id": "remote-00000001", "queues": ["default"] });
    harness.post("worker/leases", &body).await
}

#[tokio::test]
async fn a_worker_that_has_proven_itself_is_given_tasks_and_one_that_has_not_is_given_none() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), pulled()).await;
    let run = harness.trigger("raw.orders").await.run_id;
    let unknown = lease(&harness).await.problem();
    assert_eq!((unknown.status, unknown.code), (409, Code::UnknownWorker));
    let shown = harness.client.run(run).await.unwrap();
    assert!(shown.notices[0].starts_with("no worker serves queue default; 1 task waits since"), "{shown:?}");
    assert_eq!(harness.queue.len(), 0, "nothing is dispatched while nobody asks");
    registered(&harness, root.path()).await;
    let given = lease(&harness).await.ok();
    assert_eq!(given["envelopes"].as_array().unwrap().len(), 1);
    let listed = harness.client.workers().await.unwrap().items.remove(0);
    assert_eq!((listed.name.as_str(), listed.slots, listed.is_current), ("remote", 2, true));
    assert_eq!(harness.client.run(run).await.unwrap().notices, [""; 0]);
    harness.close().await;
}

#[tokio::test]
async fn what_a_worker_does_not_share_with_the_workspace_is_named() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), pulled()).await;
    let body = body(&harness).await;
    harness.post("worker/register", &body).await.ok();
    let own = tempfile::tempdir().unwrap();
    let data = DataRoot::directory(own.path(), &layout()).unwrap();
    assert_eq!(data.answer_challenge(&layout(), "remote-00000001").await.unwrap(), None);
    for proof in ["", "a guess"] {
        let refused = harness.post("worker/register", &with(&body, "proof", json!(proof))).await.problem();
        assert_eq!((refused.status, refused.code), (409, Code::OtherStorage), "{proof:?}");
        harness.post("worker/register", &body).await.ok();
    }
    // One who was told the contents, and has another disk.
    let data = DataRoot::directory(root.path(), &layout()).unwrap();
    let known = data.answer_challenge(&layout(), "remote-00000001").await.unwrap().unwrap();
    harness.post("worker/register", &body).await.ok();
    let refused = harness.post("worker/register", &with(&body, "proof", json!(known))).await.problem();
    assert_eq!(refused.code, Code::OtherStorage, "a challenge is good for one proof");
    let other = harness.post("worker/register", &with(&body, "workspace", json!("other"))).await.problem();
    assert_eq!((other.status, other.code), (409, Code::OtherWorkspace));
    for (field, value) in [("name", json!("local-1")), ("nonce", json!("short")), ("slots", json!(0))] {
        let bad = harness.post("worker/register", &with(&body, field, value)).await.problem();
        assert_eq!((bad.status, bad.violations[0].field.as_str()), (400, field));
    }
    assert_eq!(harness.client.workers().await.unwrap().items, []);
    harness.close().await;
}

#[tokio::test]
async fn other_code_is_refused_with_what_differs_and_a_worker_hears_of_a_deployment() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), pulled()).await;
    let before = registered(&harness, root.path()).await;
    let sign = json!({ "worker_id": "remote-00000001" });
    let heard = harness.post("worker/heartbeat", &sign).await.ok();
    assert_eq!((&heard["registered"], &heard["digest"]), (&json!(true), &before["digest"]));
    assert_eq!(heard["timeout_ms"], 60_000);
    let mut changed = project();
    changed["assets"][0]["description"] = json!("What was sold.");
    harness.post("deployments", &changed).await.accepted();
    let heard = harness.post("worker/heartbeat", &sign).await.ok();
    assert_ne!(heard["digest"], before["digest"]);
    let outdated = lease(&harness).await.problem();
    assert_eq!((outdated.status, outdated.code), (409, Code::OtherCode));
    let data = DataRoot::directory(root.path(), &layout()).unwrap();
    harness.post("worker/register", &before).await.ok();
    let proof = data.answer_challenge(&layout(), "remote-00000001").await.unwrap();
    let again = with(&before, "proof", json!(proof));
    let again = with(&again, "assets", json!({ "raw/orders": "another", "raw/more": "one" }));
    let refused = harness.post("worker/register", &again).await.problem();
    assert_eq!(refused.code, Code::OtherCode);
    for expected in ["raw.orders differs", "raw.days is missing there", "and 3 more"] {
        assert!(refused.detail.contains(expected), "{expected:?} is not in {}", refused.detail);
    }
    harness.close().await;
}

#[tokio::test]
async fn a_worker_that_leaves_is_given_nothing_more() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), pulled()).await;
    registered(&harness, root.path()).await;
    let run = harness.trigger("raw.orders").await.run_id;
    let envelope = lease(&harness).await.ok()["envelopes"][0].clone();
    let keys = servo_api::worker_keyring(harness.api.worker_key.as_deref().unwrap());
    let envelope = serde_json::from_value(envelope).unwrap();
    let attempt = Attempt(keys.open(&envelope, servo_core::Clock::now(&servo_runtime::SystemClock)).unwrap());
    let stranger = attempt.say(&harness, "started", &json!({ "worker_id": "stranger" })).await.problem();
    assert_eq!((stranger.status, stranger.code), (409, Code::UnknownWorker));
    let again = lease(&harness).await.ok();
    assert_eq!(
        again["envelopes"].as_array().map(Vec::len),
        Some(1),
        "what it may not begin is there for others"
    );
    attempt.say(&harness, "started", &json!({ "worker_id": "remote-00000001" })).await.accepted();
    let leave = |draining: bool| json!({ "worker_id": "remote-00000001", "draining": draining });
    harness.post("worker/leave", &leave(true)).await.ok();
    assert_eq!(lease(&harness).await.problem().code, Code::UnknownWorker);
    attempt.say(&harness, "completed", &json!({ "outcome": "SUCCEEDED" })).await.accepted();
    assert_eq!(harness.ended(run).await.state, RunState::Succeeded);
    harness.post("worker/leave", &leave(false)).await.ok();
    eventually("it has left", async || {
        harness.client.workers().await.unwrap().items[0].state == servo_engine::WorkerState::Left
    })
    .await;
    let heard = harness.post("worker/heartbeat", &json!({ "worker_id": "remote-00000001" })).await.ok();
    assert_eq!(heard["registered"], false);
    harness.close().await;
}
