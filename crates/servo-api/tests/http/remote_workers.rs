//! Remote workers: the same executor, the same contract, over HTTP.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_api::client::{Client, LogEvent};
use servo_api::worker_keyring;
use servo_core::RunId;
use servo_engine::{RunState, TaskState};
use servo_runtime::{SystemClock, ThreadSpawner};
use servo_worker::{Executor, LogSink, LogTarget};
use tokio::sync::Semaphore;

use crate::support::{Actor, Behaviour, Harness, Script, Setting, line, log_name, within};
use crate::workers::{Attempt, by_hand};

/// The same executor, connected over HTTP.
fn far_executor(harness: &Harness, client: &Client, script: &Arc<Script>, slots: usize) -> Executor {
    Executor {
        source: Arc::new(client.tasks_for("remote-1")),
        queues: vec!["default".into()],
        callbacks: Arc::new(client.clone()),
        keys: worker_keyring("k"),
        clock: Arc::new(SystemClock),
        worker: "remote-1".into(),
        slots,
        function: Arc::new(Actor { script: script.clone(), logs: harness.logs.clone() }),
        spawner: Arc::new(ThreadSpawner::default()),
        seed: 1,
    }
}

#[tokio::test]
async fn a_far_executor_does_what_a_near_one_does() {
    let root = tempfile::tempdir().unwrap();
    let setting = Setting { worker_key: Some("k"), heartbeat_ms: 20, ..by_hand() };
    let harness = Harness::with(root.path(), setting).await;
    let client = harness.client.clone().with_worker_key("k");
    let script: Arc<Script> = Arc::default();
    script.let_asset("shop/stubborn", Behaviour::Fail(2));
    let slots = far_executor(&harness, &client, &script, 3).start();
    let run = harness.run("+shop.report or shop.stubborn").await;
    assert_eq!((run.state, run.tasks_succeeded), (RunState::Succeeded, 4));
    assert_eq!(script.count("shop/stubborn"), 3);
    let body = json!({ "selection": "+shop.daily", "partitions": { "ranges": ["2013-01-01..2013-01-20"] } });
    let accepted = harness.post("runs", &body).await.accepted();
    let run: RunId = accepted["run_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(harness.ended(run).await.tasks_succeeded, 40);

    // Told to stop with a heartbeat.
    script.let_asset("raw/orders", Behaviour::Gate(Arc::new(Semaphore::new(0))));
    let run = harness.trigger("raw.orders").await.run_id;
    harness.until(run, "raw/orders:materialize", TaskState::Running).await;
    harness.post(&format!("runs/{run}/cancel"), &json!({})).await.accepted();
    assert_eq!(harness.ended(run).await.state, RunState::Cancelled);
    slots.abort().await;
    harness.close().await;
}

#[tokio::test]
async fn a_far_executor_waits_for_a_server_that_is_away_and_loses_no_result() {
    let root = tempfile::tempdir().unwrap();
    let setting = Setting { worker_key: Some("k"), ..by_hand() };
    let mut harness = Harness::with(root.path(), setting).await;
    let client = harness.client.clone().with_worker_key("k").with_patience(Duration::ZERO);
    let script: Arc<Script> = Arc::default();
    let gate = Arc::new(Semaphore::new(0));
    script.let_asset("raw/orders", Behaviour::Gate(gate.clone()));
    let slots = far_executor(&harness, &client, &script, 1).start();
    let run = harness.trigger("+shop.clean").await.run_id;
    harness.until(run, "raw/orders:materialize", TaskState::Running).await;
    harness.stop_server().await;
    gate.add_permits(1);
    crate::support::eventually("the result is ready", async || gate.available_permits() == 0).await;
    harness.start_server().await;
    let run = harness.ended(run).await;
    assert_eq!((run.state, run.tasks_succeeded), (RunState::Succeeded, 2));
    assert_eq!((script.count("raw/orders"), script.count("shop/clean")), (1, 1));
    slots.abort().await;
    harness.close().await;
}

#[tokio::test]
async fn lines_of_a_far_worker_are_kept_where_others_are() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), by_hand()).await;
    let run = harness.trigger("raw.orders").await.run_id;
    let attempt = Attempt::leased(&harness).await;
    attempt.say(&harness, "started", &json!({ "worker_id": "remote-1" })).await.accepted();
    let target = LogTarget { name: log_name(&attempt.0), task_token: attempt.0.task_token.clone() };
    let mut tail = harness.client.follow_log(run, &attempt.task(), 1, 0);
    let sink = harness.client.log_sink();
    sink.write(&target, vec![line("one"), line("two")]).await.unwrap();
    // More than fits into one request.
    let long: Vec<_> = (0..40).map(|_| line(&"x".repeat(60_000))).collect();
    sink.write(&target, long).await.unwrap();
    // The same lines again, because the answer was lost: they are there already.
    let again = json!({ "offset": 0, "lines": [{ "at": "2025-01-15T10:30:00.123Z", "stream": "stdout", "text": "one" }] });
    attempt.say(&harness, "logs", &again).await.ok();
    sink.end(&target).await;
    attempt.say(&harness, "completed", &json!({ "outcome": "SUCCEEDED" })).await.accepted();
    let mut texts = Vec::new();
    while let Some(event) = within(tail.next()).await.unwrap() {
        if let LogEvent::Line(line) = event {
            texts.push(line.text);
        }
    }
    assert_eq!(texts.len(), 42);
    assert_eq!(&texts[..2], ["one", "two"]);
    let page = harness.client.log(run, &attempt.task(), 1, 0, Some(2)).await.unwrap();
    assert_eq!(page.lines[1].text, "two");
    harness.close().await;
}
