//! Runs from trigger to end, through the same dispatch, token and callback path as everything else.

#![allow(clippy::disallowed_methods, reason = "tests wait in real time")]
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use servo_core::{Millis, TenantId, Timestamp, WorkspaceId};
use servo_engine::rows::Name;
use servo_engine::{
    Caller, CancelRun, Change, ErrorCode, EventData, EventKind, Plan, Refusal, Report, RunReply, RunState,
    SettingOrigin, TaskOptions, TaskState, TransitionReason, TriggerRun,
};
use servo_projections::Projection;
use servo_queue::{
    EnqueueOptions, EnqueueResult, Envelope, FinishedReply, Keyring, Message, QueueError, QueueErrorKind,
    StartedReply, TaskClaims, TaskQueue,
};
use servo_runtime::{Error, Host, Stores, SystemClock, Workspace};
use support::*;

#[tokio::test]
async fn inv_6_a_diamond_runs_in_the_order_of_its_edges() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let detail = harness.run("diamond", diamond()).await;
    assert_eq!(detail.run.state, RunState::Succeeded);
    assert!(task_states(&detail).values().all(|state| *state == TaskState::Succeeded));
    assert!(detail.edges.len() == 4 && detail.edges.iter().all(|edge| edge.satisfied));
    let begun = harness.script.begun();
    assert_eq!(begun.len(), 4, "each task ran once: {begun:?}");
    assert_eq!((begun[0].as_str(), begun[3].as_str()), ("top", "bottom"));
    harness.assert_replay_is_live().await;
    harness.close().await;
}

#[tokio::test]
async fn inv_10_a_failure_skips_what_is_downstream_and_names_its_cause() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_task("bad", Behaviour::Fail(u32::MAX));
    let tasks: &[(&str, &[&str])] =
        &[("bad", &[]), ("next", &["bad"]), ("last", &["next"]), ("apart", &[]), ("both", &["apart", "bad"])];
    let detail = harness.run("failing", plan(tasks)).await;
    assert_eq!(detail.run.state, RunState::Failed);
    assert_eq!(task_row(&detail, "bad").state, TaskState::Failed);
    assert_eq!(task_row(&detail, "bad").error_code, Some(Name(ErrorCode::UserCodeException)));
    assert_eq!(task_row(&detail, "apart").state, TaskState::Succeeded);
    for name in ["next", "last", "both"] {
        let row = task_row(&detail, name);
        assert_eq!((row.state, row.caused_by.as_ref()), (TaskState::Skipped, Some(&task("bad"))), "{name}");
    }
    let begun: BTreeSet<String> = harness.script.begun().into_iter().collect();
    assert_eq!(begun, BTreeSet::from(["apart".to_owned(), "bad".to_owned()]));
    harness.close().await;
}

#[tokio::test]
async fn a_flaky_task_is_tried_again_until_it_succeeds() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_task("flaky_1", Behaviour::Fail(3));
    let detail = harness.run("flaky", chain("flaky", 3, Some((1, quick_retries(5))))).await;
    assert_eq!(detail.run.state, RunState::Succeeded);
    let row = task_row(&detail, "flaky_1");
    assert_eq!((row.attempt, row.failures), (4, 3));
    assert_eq!(harness.script.begun().iter().filter(|name| *name == "flaky_1").count(), 4);
    harness.script.assert_no_attempt_ran_twice();
    harness.assert_replay_is_live().await;
    harness.close().await;
}

#[tokio::test]
async fn a_task_that_keeps_failing_fails_after_its_last_attempt() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_task("bad_0", Behaviour::Fail(u32::MAX));
    let detail = harness.run("bad", chain("bad", 2, Some((0, quick_retries(3))))).await;
    assert_eq!(detail.run.state, RunState::Failed);
    assert_eq!(task_row(&detail, "bad_0").attempt, 3);
    assert_eq!(task_row(&detail, "bad_1").state, TaskState::Skipped);
    harness.close().await;
}

#[tokio::test]
async fn a_panic_is_a_failure_of_the_task_and_not_of_the_executor() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_task("wild", Behaviour::Panic);
    for round in 0..6 {
        let detail = harness.run(&format!("wild {round}"), one("wild")).await;
        assert_eq!(detail.run.state, RunState::Failed);
        let error = task_row(&detail, "wild").error.clone().unwrap();
        assert!(error.message.contains("panic"), "{error:?}");
    }
    let detail = harness.run("tame", one("tame")).await;
    assert_eq!(detail.run.state, RunState::Succeeded, "more panics than slots, and it still works");
    harness.close().await;
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_times_out() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.script.let_task("slow", Behaviour::Hang);
    let options = TaskOptions { timeout_ms: Some(Millis::new(20)), ..quick_retries(2) };
    let detail = harness.run("slow", plan_of(vec![request("slow", &[], options)])).await;
    let row = task_row(&detail, "slow");
    assert_eq!((detail.run.state, row.state, row.attempt), (RunState::Failed, TaskState::Failed, 2));
    assert_eq!(row.error_code, Some(Name(ErrorCode::Timeout)), "{row:?}");
    assert_eq!(harness.script.stopped().len(), 2, "the work itself was stopped, both times");
    harness.close().await;
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_stopped() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::open(directory(root.path()), |config| {
        config.heartbeat_interval = Millis::new(10);
        config.start_with.adjust(SettingOrigin::Flag, |settings| settings.max_run_duration = Millis::new(40));
    })
    .await
    .unwrap();
    harness.script.let_task("slow", Behaviour::Hang);
    let detail = harness.run("slow", plan(&[("slow", &[]), ("after", &["slow"])])).await;
    assert_eq!(detail.run.state, RunState::TimedOut);
    assert_eq!(task_row(&detail, "after").state, TaskState::Cancelled);
    harness.close().await;
}

#[tokio::test]
async fn a_cancelled_run_stops_its_worker_through_the_heartbeat() {
    let root = tempfile::tempdir().unwrap();
    let script: Arc<Script> = Arc::default();
    let harness = Harness::open_with(directory(root.path()), script.clone(), 1, |config| {
        config.heartbeat_interval = Millis::new(10);
    })
    .await
    .unwrap();
    script.let_task("long", Behaviour::Hang);
    // One slot: `queued` waits in the queue while `long` runs, `after` waits for it.
    let high = TaskOptions { priority: 1, ..TaskOptions::default() };
    let tasks = vec![
        request("long", &[], high),
        request("queued", &[], TaskOptions::default()),
        request("after", &["long"], TaskOptions::default()),
    ];
    let run = harness.trigger("long", plan_of(tasks)).await;
    eventually("the task runs", async || script.begun() == ["long"]).await;
    let cancel = CancelRun { run_id: run, caller: Caller::user("me"), reason: "enough".into(), force: false };
    let answer = harness.workspace.cancel(cancel.clone()).await.unwrap();
    assert!(matches!(answer, Change::Accepted { .. }), "{answer:?}");
    let detail = harness.ended(run).await;
    assert_eq!(detail.run.state, RunState::Cancelled);
    assert_eq!(detail.run.cancel_reason.as_deref(), Some("enough"));
    assert!(task_states(&detail).values().all(|state| *state == TaskState::Cancelled), "{detail:?}");
    assert_eq!(script.stopped(), ["long"]);
    assert_eq!(script.begun(), ["long"], "what was in the queue did not run");
    let again = harness.workspace.cancel(cancel).await.unwrap_err();
    assert!(matches!(again, Error::Refused(Refusal::RunEnded { .. })), "{again}");
    harness.close().await;
}

#[tokio::test]
async fn the_same_request_made_many_times_at_once_is_one_run() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let request = || TriggerRun::new("same", diamond(), "test");
    let asked = (0..50).map(|_| {
        let workspace = harness.workspace.clone();
        tokio::spawn(async move { workspace.trigger(request()).await.unwrap() })
    });
    let mut runs = BTreeSet::new();
    let mut accepted = 0;
    for answer in asked.collect::<Vec<_>>() {
        let RunReply { run_id: run, accepted: event } = within(answer).await.unwrap();
        runs.insert(run);
        accepted += usize::from(event.is_some());
    }
    assert_eq!((runs.len(), accepted), (1, 1));
    let detail = harness.ended(*runs.first().unwrap()).await;
    assert_eq!(detail.run.state, RunState::Succeeded);
    assert_eq!(
        harness.workspace.trigger(request()).await.unwrap(),
        RunReply { run_id: detail.run.run_id, accepted: None }
    );
    assert_eq!(harness.script.begun().len(), 4);
    harness.close().await;
}

#[tokio::test]
async fn a_run_key_reused_for_something_else_is_refused_and_recorded_once() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.run("key", one("a")).await;
    for _ in 0..3 {
        let refused = harness.workspace.trigger(TriggerRun::new("key", one("b"), "test")).await.unwrap_err();
        assert!(matches!(refused, Error::Refused(Refusal::RunKeyConflict { .. })), "{refused}");
        assert!(!refused.is_transient());
    }
    let requested = events(harness.stores.log.as_ref()).await;
    let count = |kind| requested.iter().filter(|event| event.data.kind() == kind).count();
    assert_eq!((count(EventKind::RunRequested), count(EventKind::RunKeyConflicted)), (1, 1));
    assert_eq!(harness.script.begun(), ["a"]);
    harness.close().await;
}

/// A harness without workers, and the one envelope that its run put into the queue.
async fn dispatched(stores: Stores) -> (Harness, Envelope) {
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

#[tokio::test]
async fn hundreds_of_callers_behind_a_tiny_queue_are_all_answered() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::open(directory(root.path()), |config| {
        config.input_capacity = 1;
        config.batch_inputs = 8;
        config.start_with.adjust(SettingOrigin::Flag, |settings| settings.recent_runs = 10);
    })
    .await
    .unwrap();
    let asked = (0..300).map(|i| {
        let workspace = harness.workspace.clone();
        let request = TriggerRun::new(format!("run {i}"), one("a"), "test");
        tokio::spawn(async move { workspace.trigger(request).await })
    });
    let mut runs = BTreeSet::new();
    for answer in asked.collect::<Vec<_>>() {
        runs.insert(within(answer).await.unwrap().unwrap().run_id);
    }
    assert_eq!(runs.len(), 300);
    for run in runs {
        assert_eq!(harness.ended(run).await.run.state, RunState::Succeeded);
    }
    harness.assert_replay_is_live().await;
    let stores = harness.stores.clone();
    harness.close().await;
    assert_tables_verify(&stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_shutdown_answers_everyone_and_leaves_complete_tables() {
    for round in 0..12 {
        let root = tempfile::tempdir().unwrap();
        let harness =
            Harness::open(directory(root.path()), |config| config.input_capacity = 4).await.unwrap();
        let callers: Vec<_> = (0..40)
            .map(|i| {
                let workspace = harness.workspace.clone();
                tokio::spawn(async move {
                    let mut accepted = Vec::new();
                    for j in 0.. {
                        let request = TriggerRun::new(format!("run {i} {j}"), one("a"), "test");
                        match workspace.trigger(request).await {
                            Ok(reply) => accepted.extend(reply.accepted),
                            Err(Error::Stopped) => return accepted,
                            Err(Error::Refused(Refusal::Quota { .. })) => tokio::task::yield_now().await,
                            Err(error) => panic!("neither accepted nor stopped: {error}"),
                        }
                    }
                    unreachable!("callers go on until the workspace stops")
                })
            })
            .collect();
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let workspace = harness.workspace.clone();
                tokio::spawn(
                    async move { while workspace.runs(None, 5, Default::default()).await.is_ok() {} },
                )
            })
            .collect();
        let log = harness.stores.log.clone();
        eventually("work is under way", async || log.next_seq().await.unwrap() > 3 + round % 5).await;
        let stores = harness.stores.clone();
        harness.close().await;
        let mut accepted = BTreeSet::new();
        for caller in callers {
            accepted.extend(within(caller).await.unwrap());
        }
        for reader in readers {
            within(reader).await.unwrap();
        }
        let logged = events(stores.log.as_ref()).await.into_iter();
        let logged: BTreeSet<_> = logged
            .filter(|event| matches!(event.data, EventData::RunRequested(_)))
            .map(|event| event.id)
            .collect();
        assert_eq!(accepted, logged, "what was accepted was answered, and the other way round");
        let projection =
            Projection::open_latest(stores.blobs.clone(), stores.layout.clone()).await.unwrap().unwrap();
        let rows = projection.hot_rows().await.unwrap();
        assert_eq!(rows.head.seq + 1, stores.log.next_seq().await.unwrap(), "recovery reads no tail");
        let replayed = replay(stores.log.as_ref(), rows.head.seq).await;
        assert_same_rows(&rows, &replayed.rows());
    }
}

#[tokio::test]
async fn after_shutdown_everything_is_refused_and_nothing_hangs() {
    let root = tempfile::tempdir().unwrap();
    let (harness, envelope) = dispatched(directory(root.path())).await;
    let workspace = harness.workspace.clone();
    let run = envelope.run_id;
    let waiting = tokio::spawn({
        let workspace = workspace.clone();
        async move { workspace.wait(run).await }
    });
    tokio::task::yield_now().await;
    harness.close().await;
    assert!(matches!(within(waiting).await.unwrap(), Err(Error::Stopped)), "the run did not end");
    assert!(matches!(within(workspace.wait(run)).await, Err(Error::Stopped)));
    assert!(matches!(within(workspace.run(run)).await, Err(Error::Stopped)));
    let late = within(workspace.started(&envelope.task_token, "worker")).await;
    assert!(matches!(late, Err(Error::Stopped)));
    assert!(within(workspace.shutdown()).await.is_ok(), "shutting down again is fine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_who_shut_it_down_at_once_both_wait_until_it_is_done() {
    for _ in 0..10 {
        let root = tempfile::tempdir().unwrap();
        let harness = Harness::on(root.path()).await;
        harness.run("one", diamond()).await;
        let stores = harness.stores.clone();
        let second = tokio::spawn({
            let workspace = harness.workspace.clone();
            async move {
                // The first has the threads by now.
                while workspace.wake().await.is_ok() {
                    tokio::task::yield_now().await;
                }
                within(workspace.shutdown()).await.unwrap();
                let report = assert_tables_verify(&stores).await;
                assert_eq!(
                    report.through + 1,
                    stores.log.next_seq().await.unwrap(),
                    "nothing is left to write"
                );
            }
        });
        harness.close().await;
        within(second).await.unwrap();
    }
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
async fn a_workspace_that_is_dropped_lets_go_of_its_directory() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    harness.run("one", one("a")).await;
    assert!(Stores::open_directory(root.path(), tenant(), workspace_id()).is_err(), "one writer");
    drop(harness);
    eventually("the lock is free", async || {
        Stores::open_directory(root.path(), tenant(), workspace_id()).is_ok()
    })
    .await;
}

/// The log of a workspace, without times: acknowledgements of the queue arrive in any order.
async fn history(stores: &Stores) -> Vec<String> {
    let mut keys: Vec<String> =
        events(stores.log.as_ref()).await.into_iter().map(|event| event.idempotency_key).collect();
    keys.sort();
    keys
}

async fn closed(_: servo_runtime::WorkspaceKey, workspace: Arc<Workspace>) {
    Workspace::clone(&workspace).shutdown().await.unwrap();
}

async fn open_in(host: &Host<Workspace>, root: &std::path::Path, workspace: &str) -> (Harness, Stores) {
    let id = WorkspaceId::parse(workspace).unwrap();
    let stores = Stores::open_directory(root, tenant(), id.clone()).unwrap();
    let harness = Harness::open_in(host, stores.clone()).await;
    (harness, stores)
}

fn plan_in(workspace: &str) -> Plan {
    let tasks = ["a", "b", "c"].map(|name| request(name, &[], TaskOptions::default()));
    Plan::build(&tenant(), &WorkspaceId::parse(workspace).unwrap(), tasks.into(), 10).unwrap()
}

#[tokio::test]
async fn workspaces_in_one_process_do_not_meet() {
    let (alone, together) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let host = Host::default();
    let (harness, stores_alone) = open_in(&host, alone.path(), "first").await;
    for i in 0..5 {
        harness.run(&format!("run {i}"), plan_in("first")).await;
    }
    harness.close_workers().await;
    host.close_all(closed).await;

    let names = ["first", "second", "third"];
    let mut harnesses = Vec::new();
    for name in names {
        harnesses.push(open_in(&host, together.path(), name).await);
    }
    for i in 0..5 {
        let work = names
            .iter()
            .zip(&harnesses)
            .map(|(name, (harness, _))| async move { harness.run(&format!("run {i}"), plan_in(name)).await });
        let details = futures::future::join_all(work).await;
        let runs: BTreeSet<_> = details.iter().map(|detail| detail.run.run_id).collect();
        assert_eq!(runs.len(), names.len(), "the same run key names another run in another workspace");
        let first = details[0].run.run_id;
        assert!(
            harnesses[1].0.workspace.run(first).await.unwrap().is_none(),
            "and cannot be seen from there"
        );
    }
    assert_eq!(host.all_open().len(), names.len());
    let second = (tenant(), WorkspaceId::parse("second").unwrap());
    let now = harnesses[1].0.workspace.now();
    let reopened = host.open(&second, now, async || Err::<Workspace, _>("it is opened again")).await;
    assert!(reopened.is_ok(), "an open workspace is handed out again");
    drop(reopened);
    for (harness, _) in &mut harnesses {
        assert_eq!(harness.script.begun().len(), 15);
    }
    let stores: Vec<Stores> = harnesses.iter().map(|(_, stores)| stores.clone()).collect();
    for (harness, _) in harnesses {
        harness.close_workers().await;
    }
    host.close_all(closed).await;
    assert_eq!(
        history(&stores_alone).await,
        history(&stores[0]).await,
        "the same with and without neighbours"
    );
    assert_ne!(history(&stores[0]).await, history(&stores[1]).await);
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

/// A queue that has no room for some tasks.
struct NoRoomForGpu(Arc<dyn TaskQueue>);

#[async_trait::async_trait]
impl TaskQueue for NoRoomForGpu {
    async fn enqueue(&self, message: Message, options: EnqueueOptions) -> Result<EnqueueResult, QueueError> {
        if &*message.queue == "gpu" {
            return Err(QueueError::new(QueueErrorKind::Full, "gpu", "nobody takes anything from it"));
        }
        self.0.enqueue(message, options).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_holds_up_no_task_of_another() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::open(directory(root.path()), |config| {
        config.queue = Arc::new(NoRoomForGpu(config.queue.clone()));
    })
    .await
    .unwrap();
    let gpu = || TaskOptions { worker_queue: Some("gpu".into()), ..TaskOptions::default() };
    let stuck =
        harness.trigger("stuck", plan_of(vec![request("a", &[], gpu()), request("b", &[], gpu())])).await;
    // More than are tried where the batch is committed.
    let names: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    let many = names.iter().map(|name| request(name, &[], TaskOptions::default())).collect();
    let run = harness.trigger("many", plan_of(many)).await;
    assert_eq!(harness.ended(run).await.run.state, RunState::Succeeded);
    let detail = harness.workspace.run(stuck).await.unwrap().unwrap();
    assert!(detail.tasks.iter().all(|task| task.state == TaskState::Ready), "they wait for room");
    harness.close().await;
}
