//! One attempt: who may report about it, who begins it, and workers that are lost with it.

#![allow(clippy::disallowed_methods, reason = "tests wait in real time")]

use std::sync::Arc;
use std::time::Duration;

use servo_core::{Millis, TenantId, Timestamp, WorkspaceId};
use servo_engine::{Refusal, Report, RunState, SettingOrigin, TaskOptions, TaskState, TransitionReason};
use servo_queue::{
    EnqueueOptions, Envelope, FinishedReply, Keyring, Message, StartedReply, TaskClaims, TaskQueue,
};
use servo_runtime::{Error, Stores, SystemClock};

use crate::support::*;

/// A harness without workers, and the one envelope that its run put into the queue.
pub(crate) async fn dispatched(stores: Stores) -> (Harness, Envelope) {
    let harness = Harness::open_with(stores, Arc::default(), 0, |_| {}).await.unwrap();
    harness.trigger("one", one("a")).await;
    let sealed = within(taken(&harness.queue, "default")).await;
    let envelope = keys().open(&sealed, servo_core::Clock::now(&SystemClock)).unwrap();
    (harness, envelope)
}

fn claims(envelope: &Envelope) -> TaskClaims {
    TaskClaims {
        tenant: envelope.tenant_id.clone(),
        workspace: envelope.workspace_id.clone(),
        run_id: envelope.run_id,
        task_key: envelope.task_key.clone(),
        attempt: envelope.attempt,
        attempt_id: envelope.attempt_id,
        expires_at: envelope.expires_at,
    }
}

#[tokio::test]
async fn tokens_that_are_wrong_foreign_or_expired_are_denied() {
    let root = tempfile::tempdir().unwrap();
    let (harness, envelope) = dispatched(directory(root.path())).await;
    let good = claims(&envelope);
    let other =
        |workspace: &str| TaskClaims { workspace: WorkspaceId::parse(workspace).unwrap(), ..good.clone() };
    let mut altered = envelope.task_token.clone().into_bytes();
    let middle = altered.len() / 2;
    altered[middle] = if altered[middle] == b'A' { b'B' } else { b'A' };
    let denied = [
        ("garbage", "open sesame".to_owned()),
        ("empty", String::new()),
        ("altered", String::from_utf8(altered).unwrap()),
        ("signed with another key", Keyring::new("test", b"another key").mint(&good)),
        ("signed with an unknown key", Keyring::new("old", b"a key for tests").mint(&good)),
        ("of another workspace", keys().mint(&other("elsewhere"))),
        (
            "of another tenant",
            keys().mint(&TaskClaims { tenant: TenantId::parse("evil").unwrap(), ..good.clone() }),
        ),
        ("expired", keys().mint(&TaskClaims { expires_at: Timestamp::from_millis(1), ..good.clone() })),
    ];
    let before = harness.rows().await;
    for (what, token) in denied {
        for answer in [
            harness.workspace.started(&token, "worker").await.map(drop),
            harness.workspace.heartbeat(&token, None).await.map(drop),
            harness.workspace.finished(&token, Report::succeeded()).await.map(drop),
        ] {
            let error = answer.expect_err(what);
            assert!(matches!(error, Error::Denied(_)), "{what}: {error}");
            assert!(!error.is_transient(), "{what}: a worker must not retry");
        }
    }
    let after = harness.rows().await;
    assert_eq!(before.tasks[0].state, after.tasks[0].state);
    assert!(harness.workspace.started(&envelope.task_token, "worker").await.is_ok());
    harness.close().await;
}

#[tokio::test]
async fn an_attempt_is_started_by_one_worker_only() {
    let root = tempfile::tempdir().unwrap();
    let (harness, envelope) = dispatched(directory(root.path())).await;
    let token = &envelope.task_token;
    let first = harness.workspace.started(token, "first").await.unwrap();
    assert!(matches!(first, StartedReply::Begun { .. }));
    assert_eq!(
        harness.workspace.started(token, "first").await.unwrap(),
        StartedReply::AlreadyBegun,
        "asked again"
    );
    let second = harness.workspace.started(token, "second").await.unwrap_err();
    assert!(matches!(second, Error::Refused(Refusal::AlreadyStarted { .. })), "{second}");
    let done = harness.workspace.finished(token, Report::succeeded()).await.unwrap();
    assert!(matches!(done, FinishedReply::Ended { .. }));
    let again = harness.workspace.finished(token, Report::succeeded()).await.unwrap();
    assert_eq!(again, FinishedReply::AlreadyEnded);
    let late = harness.workspace.heartbeat(token, None).await.unwrap_err();
    assert!(matches!(late, Error::Refused(Refusal::AttemptEnded { .. })), "{late}");
    let detail = harness.ended(envelope.run_id).await;
    assert_eq!(task_row(&detail, "a").worker_id.as_deref(), Some("first"));
    harness.close().await;
}

#[tokio::test]
async fn inv_8_a_result_of_a_superseded_attempt_is_refused_and_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (harness, envelope) = dispatched(directory(root.path())).await;
    let foreign = TaskClaims { attempt_id: servo_core::AttemptId::from_u128(7), ..claims(&envelope) };
    let token = keys().mint(&foreign);
    let refused = harness.workspace.finished(&token, Report::succeeded()).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::StaleAttempt { .. })), "{refused}");
    let detail = harness.workspace.run(envelope.run_id).await.unwrap().unwrap();
    assert_ne!(task_row(&detail, "a").state, TaskState::Succeeded);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_4_a_message_that_is_delivered_twice_runs_once() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    harness.script.let_task("a", Behaviour::Gate(gate.clone()));
    // Nobody reads the other queue: the message is carried over, twice.
    let options = TaskOptions { worker_queue: Some("other".into()), ..TaskOptions::default() };
    let run = harness.trigger("one", plan_of(vec![request("a", &[], options)])).await;
    let envelope = within(taken(&harness.queue, "other")).await;
    for id in ["first", "second", "third"] {
        let message = Message { queue: "default".into(), id: id.to_owned(), envelope: envelope.clone() };
        harness.queue.enqueue(message, EnqueueOptions::default()).await.unwrap();
    }
    eventually("all of them have been looked at", async || harness.queue.is_empty()).await;
    eventually("it runs", async || !harness.script.begun().is_empty()).await;
    // Whoever was to run it again has asked by now: the workspace answers in order.
    for _ in 0..20 {
        harness.rows().await;
        tokio::task::yield_now().await;
    }
    gate.add_permits(3);
    assert_eq!(harness.ended(run).await.run.state, RunState::Succeeded);
    assert_eq!(harness.script.begun(), ["a"]);
    harness.close().await;
}

#[tokio::test]
async fn a_worker_that_dies_with_its_process_is_noticed_at_the_next_start() {
    let root = tempfile::tempdir().unwrap();
    let script: Arc<Script> = Arc::default();
    script.let_task("a", Behaviour::Hang);
    let harness = Harness::open_with(directory(root.path()), script.clone(), 1, |_| {}).await.unwrap();
    let run = harness.trigger("one", one("a")).await;
    eventually("the task runs", async || !script.begun().is_empty()).await;
    harness.close().await;
    script.let_task("a", Behaviour::Succeed);
    let harness = Harness::open_with(directory(root.path()), script, 1, |_| {}).await.unwrap();
    let detail = harness.ended(run).await;
    let row = task_row(&detail, "a");
    assert_eq!((detail.run.state, row.attempt, row.failures), (RunState::Succeeded, 2, 0));
    harness.close().await;
}

#[tokio::test]
async fn a_worker_that_falls_silent_loses_its_task() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::open_with(directory(root.path()), Arc::default(), 0, |config| {
        config
            .start_with
            .adjust(SettingOrigin::Flag, |settings| settings.heartbeat_timeout = Millis::new(20));
        config.start_with.adjust(SettingOrigin::Flag, |settings| settings.heartbeat_grace = Millis::new(5));
    })
    .await
    .unwrap();
    let options = quick_retries(2);
    let run = harness.trigger("one", plan_of(vec![request("a", &[], options)])).await;
    for _ in 0..2 {
        let sealed = within(taken(&harness.queue, "default")).await;
        let envelope = keys().open(&sealed, servo_core::Clock::now(&SystemClock)).unwrap();
        harness.workspace.started(&envelope.task_token, "silent").await.unwrap();
    }
    let detail = within(harness.ended(run)).await;
    let row = task_row(&detail, "a");
    assert_eq!((row.state, row.transition_reason), (TaskState::Failed, TransitionReason::HeartbeatTimeout));
    tokio::time::timeout(Duration::ZERO, taken(&harness.queue, "default"))
        .await
        .expect_err("no third attempt");
    harness.close().await;
}
