//! Runs from trigger to end, through the same dispatch, token and callback path as everything else.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_core::Millis;
use servo_engine::event::decode_batch;
use servo_engine::rows::Name;
use servo_engine::{
    Caller, CancelRun, Change, ErrorCode, Event, EventKind, Refusal, RunReply, RunState, SettingOrigin,
    TaskOptions, TaskState, TriggerRun,
};
use servo_queue::{EnqueueOptions, EnqueueResult, Message, QueueError, QueueErrorKind, TaskQueue};
use servo_runtime::Error;

use crate::support::*;

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
async fn the_beginning_of_a_task_becomes_durable_although_nobody_waits_for_it() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::on(root.path()).await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    harness.script.let_task("long", Behaviour::Gate(gate.clone()));
    let log = harness.stores.log.clone();
    let in_batches = async |wanted: &[EventKind]| {
        let has = |batch: &[Event], kind: &EventKind| batch.iter().any(|event| event.data.kind() == *kind);
        let batches = records(log.as_ref()).await;
        let batches = batches.iter().map(|record| decode_batch(&record.payload).unwrap());
        batches.filter(|batch| wanted.iter().all(|kind| has(batch, kind))).count()
    };
    let long = harness.trigger("long", one("long")).await;
    eventually("its beginning is durable", async || in_batches(&[EventKind::TaskStarted]).await == 1).await;
    assert_eq!(in_batches(&[EventKind::TaskFinished]).await, 0);
    gate.add_permits(1);
    assert_eq!(harness.ended(long).await.run.state, RunState::Succeeded);
    let detail = harness.run("short", chain("short", 40, None)).await;
    assert_eq!(detail.run.state, RunState::Succeeded);
    harness.assert_replay_is_live().await;
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
