//! Attempts of a task, as responses show them.

use serde_json::json;
use servo_engine::{RunState, TaskState};

use crate::support::{Behaviour, Harness, Setting};

#[tokio::test]
async fn attempts_are_told_one_by_one() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_asset("shop/stubborn", Behaviour::Fail(2));
    let run = harness.run("shop.stubborn").await;
    assert_eq!(run.state, RunState::Succeeded);
    let task = harness.task(run.run_id, "shop/stubborn:materialize").await;
    let numbers: Vec<u32> = task.attempts.iter().map(|attempt| attempt.attempt).collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert!(task.attempts.iter().all(|attempt| attempt.ended_at.is_some() && attempt.worker_id.is_some()));
    let errors: Vec<bool> = task.attempts.iter().map(|attempt| attempt.error.is_some()).collect();
    assert_eq!(errors, [false, true, true]);
    harness.close().await;
}

#[tokio::test]
async fn an_attempt_that_waits_to_be_tried_again_is_told_once() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { deploy: false, ..Setting::default() }).await;
    let retry = json!({ "max_attempts": 3, "initial_delay_ms": 3_600_000, "max_delay_ms": 3_600_000 });
    let project = json!({ "manifest_version": 1, "project": "patient", "assets": [
        { "key": "shop/patient", "function": "a:b", "location": { "file": "a.py", "line": 1 }, "retry": retry },
    ] });
    harness.post("deployments", &project).await.accepted();
    harness.script.let_asset("shop/patient", Behaviour::Fail(u32::MAX));
    let run = harness.trigger("shop.patient").await.run_id;
    let task = harness.until(run, "shop/patient:materialize", TaskState::RetryWait).await;
    assert!(task.task.retry_at.is_some());
    let [attempt] = task.attempts.as_slice() else { panic!("{:?}", task.attempts) };
    assert_eq!(attempt.attempt, 1);
    assert!(attempt.error.is_some() && attempt.ended_at.is_some());
    harness.close().await;
}
