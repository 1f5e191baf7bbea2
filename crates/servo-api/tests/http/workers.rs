//! The worker contract over HTTP: leases, reports, and the guard of attempts.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Actor, Answer, Behaviour, Script, Setting, Stage, keys, line, log_name, within};
use serde_json::{Value, json};
use servo_api::client::Client;
use servo_api::views::{LeaseBody, Task};
use servo_api::{Code, worker_keyring};
use servo_core::{Clock, Millis, RunId, Timestamp};
use servo_engine::{RunState, Settings, TaskState};
use servo_queue::{Envelope, TaskClaims};
use servo_runtime::SystemClock;
use servo_worker::{Executor, LogSink, LogTarget};
use tokio::sync::Semaphore;

fn by_hand() -> Setting {
    Setting { slots: 0, ..Setting::default() }
}

fn lease(slots: usize, wait_ms: u64) -> LeaseBody {
    LeaseBody { worker_id: "far-1".to_owned(), queue: "default".to_owned(), slots, wait_ms }
}

/// What is said about an attempt.
struct Attempt(Envelope);

impl Attempt {
    async fn leased(stage: &Stage) -> Self {
        let mut envelopes = within(stage.client.lease(&lease(1, 20_000))).await.unwrap();
        assert_eq!(envelopes.len(), 1);
        let envelope = envelopes.remove(0);
        let keys = worker_keyring(stage.api.worker_key.as_deref());
        Self(keys.open(&envelope, SystemClock.now()).unwrap())
    }

    fn task(&self) -> String {
        Task::id_of(&self.0.task_key)
    }

    async fn say(&self, stage: &Stage, what: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {}", self.0.task_token);
        let path = format!("tasks/{}/{what}", self.task());
        stage.post_with(&path, body, &[("authorization", &bearer)]).await
    }
}

#[tokio::test]
async fn an_attempt_goes_from_lease_to_result() {
    let root = tempfile::tempdir().unwrap();
    let stage = Stage::with(root.path(), by_hand()).await;
    let run = stage.trigger("raw.orders").await.run_id;
    let attempt = Attempt::leased(&stage).await;
    assert_eq!((attempt.0.run_id, attempt.0.attempt), (run, 1));
    let started = attempt.say(&stage, "started", &json!({ "worker_id": "far-1" })).await.accepted();
    assert!(started["accepted_event_id"].is_string());
    let again = attempt.say(&stage, "started", &json!({ "worker_id": "far-1" })).await.accepted();
    assert!(again.get("accepted_event_id").is_none(), "known");
    let other = attempt.say(&stage, "started", &json!({ "worker_id": "far-2" })).await.problem();
    assert_eq!((other.status, other.code), (409, Code::AlreadyStarted));
    let progress = json!({ "progress": { "ppm": 250_000, "message": "a quarter" } });
    let answer = attempt.say(&stage, "heartbeat", &progress).await.ok();
    assert_eq!(answer, json!({ "should_cancel": false }));
    let shown = stage.task(run, "raw/orders:materialize").await.task;
    assert_eq!((shown.progress.unwrap().ppm, shown.worker_id.as_deref()), (250_000, Some("far-1")));
    let report = json!({
        "outcome": "SUCCEEDED",
        "outputs": [{ "asset": "raw/orders", "state": "COMMITTED", "format": "json", "row_count": 3 }],
        "usage": { "cpu_ms": 5, "max_rss_bytes": 6, "bytes_read": 7, "bytes_written": 8 },
    });
    let done = attempt.say(&stage, "completed", &report).await.accepted();
    assert!(done["accepted_event_id"].is_string());
    let again = attempt.say(&stage, "completed", &report).await.accepted();
    assert!(again.get("accepted_event_id").is_none(), "safe to repeat");
    assert_eq!(stage.ended(run).await.state, RunState::Succeeded);
    let task = stage.task(run, "raw/orders:materialize").await;
    assert_eq!(task.outputs[0].row_count, Some(3));
    assert_eq!(task.attempts[0].usage.unwrap().cpu_ms, 5);
    let over = attempt.say(&stage, "heartbeat", &json!({})).await.problem();
    assert_eq!((over.status, over.code), (410, Code::AttemptEnded));
    stage.close().await;
}

#[tokio::test]
async fn a_lease_waits_for_a_task_and_gives_as_many_as_are_wanted() {
    let root = tempfile::tempdir().unwrap();
    let stage = Stage::with(root.path(), by_hand()).await;
    let nothing = stage.post("worker/leases", &json!({ "worker_id": "w", "queue": "default" })).await;
    assert_eq!((nothing.status, nothing.body), (204, Value::Null));
    let (leased, run) = tokio::join!(Attempt::leased(&stage), stage.trigger("raw.orders"));
    assert_eq!(leased.0.run_id, run.run_id);
    let body = json!({ "selection": "raw.days", "partitions": { "ranges": ["2013-01-01..2013-01-05"] } });
    stage.post("runs", &body).await.accepted();
    crate::support::eventually("five are waiting", async || stage.queue.len() == 5).await;
    let first = stage.client.lease(&lease(3, 0)).await.unwrap();
    let rest = stage.client.lease(&lease(9, 0)).await.unwrap();
    assert_eq!((first.len(), rest.len()), (3, 2));
    assert_eq!(stage.client.lease(&lease(9, 0)).await.unwrap(), []);
    let other = LeaseBody { queue: "gpu".to_owned(), ..lease(1, 0) };
    assert_eq!(stage.client.lease(&other).await.unwrap(), []);
    stage.close().await;
}

#[tokio::test]
async fn a_lease_that_nobody_begins_goes_to_another_worker() {
    let root = tempfile::tempdir().unwrap();
    let settings = Settings { dispatch_ack_timeout: Millis::new(50), ..Settings::default() };
    let stage = Stage::with(root.path(), Setting { settings, ..by_hand() }).await;
    let run = stage.trigger("raw.orders").await.run_id;
    // The worker vanishes with it.
    let lost = Attempt::leased(&stage).await;
    let next = Attempt::leased(&stage).await;
    assert_eq!((lost.0.attempt, next.0.attempt), (1, 2));
    let stale = lost.say(&stage, "started", &json!({ "worker_id": "far-1" })).await.problem();
    assert_eq!((stale.status, stale.code), (409, Code::StaleAttempt));
    // The next one may be lost too before we get to it; some attempt is begun in the end.
    let mut current = next;
    while current.say(&stage, "started", &json!({ "worker_id": "far-2" })).await.status != 202 {
        current = Attempt::leased(&stage).await;
    }
    let stale = lost.say(&stage, "completed", &json!({ "outcome": "SUCCEEDED" })).await.problem();
    assert_eq!((stale.status, stale.code), (409, Code::StaleAttempt));
    let stale = lost.say(&stage, "heartbeat", &json!({})).await.problem();
    assert_eq!(stale.status, 410);
    assert_eq!(stage.task(run, "raw/orders:materialize").await.task.state, TaskState::Running, "unmoved");
    current.say(&stage, "completed", &json!({ "outcome": "SUCCEEDED" })).await.accepted();
    assert_eq!(stage.ended(run).await.state, RunState::Succeeded);
    stage.close().await;
}

#[tokio::test]
async fn a_cancelled_task_is_not_begun_and_one_at_work_is_told_to_stop() {
    let root = tempfile::tempdir().unwrap();
    let stage = Stage::with(root.path(), by_hand()).await;
    let waiting = stage.trigger("raw.orders").await.run_id;
    let attempt = Attempt::leased(&stage).await;
    stage.post(&format!("runs/{waiting}/cancel"), &json!({})).await.accepted();
    let problem = attempt.say(&stage, "started", &json!({ "worker_id": "far-1" })).await.problem();
    assert_eq!((problem.status, problem.code), (409, Code::TaskCancelled));
    assert_eq!(stage.ended(waiting).await.state, RunState::Cancelled);

    let running = stage.trigger("shop.clean").await.run_id;
    let attempt = Attempt::leased(&stage).await;
    attempt.say(&stage, "started", &json!({ "worker_id": "far-1" })).await.accepted();
    stage.post(&format!("runs/{running}/cancel"), &json!({})).await.accepted();
    let answer = attempt.say(&stage, "heartbeat", &json!({})).await.ok();
    assert_eq!(answer, json!({ "should_cancel": true }));
    let late = attempt.say(&stage, "completed", &json!({ "outcome": "SUCCEEDED" })).await.accepted();
    assert_eq!(late["late"], true, "recorded, and does not count");
    assert_eq!(stage.ended(running).await.state, RunState::Cancelled);
    stage.close().await;
}

#[tokio::test]
async fn a_run_that_left_memory_is_gone_for_its_workers() {
    let root = tempfile::tempdir().unwrap();
    let settings = Settings { recent_runs: 1, ..Settings::default() };
    let stage = Stage::with(root.path(), Setting { settings, ..by_hand() }).await;
    let mut first = None;
    for _ in 0..3 {
        let run = stage.trigger("raw.orders").await.run_id;
        let attempt = Attempt::leased(&stage).await;
        attempt.say(&stage, "started", &json!({ "worker_id": "far-1" })).await.accepted();
        attempt.say(&stage, "completed", &json!({ "outcome": "SUCCEEDED" })).await.accepted();
        stage.ended(run).await;
        first.get_or_insert(attempt);
    }
    let first = first.unwrap();
    for (what, body) in [
        ("started", json!({ "worker_id": "far-1" })),
        ("heartbeat", json!({})),
        ("completed", json!({ "outcome": "SUCCEEDED" })),
        ("logs", json!({ "lines": [] })),
    ] {
        let problem = first.say(&stage, what, &body).await.problem();
        assert_eq!((problem.status, problem.code), (410, Code::AttemptEnded), "{what}");
    }
    stage.close().await;
}

#[tokio::test]
async fn reports_need_the_token_of_their_attempt() {
    let root = tempfile::tempdir().unwrap();
    let stage = Stage::with(root.path(), by_hand()).await;
    stage.trigger("raw.orders").await;
    let attempt = Attempt::leased(&stage).await;
    let head = stage.head().await;
    let claims = |expires_at: Timestamp| TaskClaims {
        tenant: crate::support::layout().tenant().clone(),
        workspace: crate::support::layout().workspace().clone(),
        run_id: attempt.0.run_id,
        task_key: attempt.0.task_key.clone(),
        attempt: attempt.0.attempt,
        attempt_id: attempt.0.attempt_id,
        expires_at,
    };
    let expired = keys().mint(&claims(Timestamp::from_millis(1)));
    let forged = servo_queue::Keyring::new("test", b"a guess").mint(&claims(Timestamp::MAX));
    let elsewhere = keys().mint(&TaskClaims {
        workspace: servo_core::WorkspaceId::parse("other").unwrap(),
        ..claims(Timestamp::MAX)
    });
    let mut tampered = attempt.0.task_token.clone();
    tampered.replace_range(20..21, if &tampered[20..21] == "A" { "B" } else { "A" });
    for (what, body) in [
        ("started", json!({ "worker_id": "w" })),
        ("heartbeat", json!({})),
        ("completed", json!({ "outcome": "SUCCEEDED" })),
        ("logs", json!({ "lines": [] })),
    ] {
        let path = format!("tasks/{}/{what}", attempt.task());
        let answer = stage.post(&path, &body).await;
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        assert_eq!(answer.problem().code, Code::Unauthenticated, "{what} without a token");
        for token in ["", "x", &expired, &forged, &tampered] {
            let bearer = format!("Bearer {token}");
            let problem = stage.post_with(&path, &body, &[("authorization", &bearer)]).await.problem();
            assert_eq!((problem.status, problem.code), (401, Code::Unauthenticated), "{what} {token}");
            assert!(!problem.detail.contains("a guess"));
        }
        let bearer = format!("Bearer {elsewhere}");
        let problem = stage.post_with(&path, &body, &[("authorization", &bearer)]).await.problem();
        assert!(matches!(problem.status, 401 | 410), "{what} of another workspace: {problem:?}");
        let bearer = format!("Bearer {}", attempt.0.task_token);
        let other = format!("tasks/t_aaaaaaaaaaaaaaaaaaaaaaaaaa/{what}");
        let problem = stage.post_with(&other, &body, &[("authorization", &bearer)]).await.problem();
        assert_eq!((problem.status, problem.code), (403, Code::Forbidden), "{what} for another task");
    }
    assert_eq!(stage.head().await, head, "nothing was written");
    stage.close().await;
}

#[tokio::test]
async fn a_server_with_a_worker_key_gives_tasks_to_those_who_have_it() {
    let root = tempfile::tempdir().unwrap();
    let stage = Stage::with(root.path(), Setting { worker_key: Some("a worker key"), ..by_hand() }).await;
    stage.trigger("raw.orders").await;
    let error = stage.client.lease(&lease(1, 0)).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::Unauthenticated));
    let wrong = stage.client.clone().with_worker_key("a worker kez");
    assert_eq!(wrong.lease(&lease(1, 0)).await.unwrap_err().code(), Some(Code::Unauthenticated));
    let right = stage.client.clone().with_worker_key("a worker key");
    let envelopes = within(right.lease(&lease(1, 20_000))).await.unwrap();
    let now = SystemClock.now();
    assert!(worker_keyring(Some("a worker key")).open(&envelopes[0], now).is_ok());
    assert!(worker_keyring(None).open(&envelopes[0], now).is_err(), "signed with the key");
    assert!(keys().open(&envelopes[0], now).is_err(), "the keys of the server stay there");
    stage.close().await;
}

/// The same executor, on the other side of HTTP.
fn far_executor(stage: &Stage, client: &Client, script: &Arc<Script>, slots: usize) -> Executor {
    Executor {
        queue: Arc::new(client.tasks_for("far-1")),
        queue_name: "default".into(),
        callbacks: Arc::new(client.clone()),
        keys: worker_keyring(Some("k")),
        clock: Arc::new(SystemClock),
        worker: "far-1".into(),
        slots,
        function: Arc::new(Actor { script: script.clone(), logs: stage.logs.clone() }),
    }
}

#[tokio::test]
async fn a_far_executor_does_what_a_near_one_does() {
    let root = tempfile::tempdir().unwrap();
    let setting = Setting { worker_key: Some("k"), heartbeat_ms: 20, ..by_hand() };
    let stage = Stage::with(root.path(), setting).await;
    let client = stage.client.clone().with_worker_key("k");
    let script: Arc<Script> = Arc::default();
    script.let_asset("shop/stubborn", Behaviour::Fail(2));
    let slots = far_executor(&stage, &client, &script, 3).start();
    let run = stage.run("+shop.report or shop.stubborn").await;
    assert_eq!((run.state, run.tasks_succeeded), (RunState::Succeeded, 4));
    assert_eq!(script.count("shop/stubborn"), 3);
    let body = json!({ "selection": "+shop.daily", "partitions": { "ranges": ["2013-01-01..2013-01-20"] } });
    let accepted = stage.post("runs", &body).await.accepted();
    let run: RunId = accepted["run_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(stage.ended(run).await.tasks_succeeded, 40);

    // Told to stop with a heartbeat.
    script.let_asset("raw/orders", Behaviour::Gate(Arc::new(Semaphore::new(0))));
    let run = stage.trigger("raw.orders").await.run_id;
    stage.until(run, "raw/orders:materialize", TaskState::Running).await;
    stage.post(&format!("runs/{run}/cancel"), &json!({})).await.accepted();
    assert_eq!(stage.ended(run).await.state, RunState::Cancelled);
    slots.abort().await;
    stage.close().await;
}

#[tokio::test]
async fn a_far_executor_waits_for_a_server_that_is_away_and_loses_no_result() {
    let root = tempfile::tempdir().unwrap();
    let setting = Setting { worker_key: Some("k"), ..by_hand() };
    let mut stage = Stage::with(root.path(), setting).await;
    let client = stage.client.clone().with_worker_key("k").with_patience(Duration::ZERO);
    let script: Arc<Script> = Arc::default();
    let gate = Arc::new(Semaphore::new(0));
    script.let_asset("raw/orders", Behaviour::Gate(gate.clone()));
    let slots = far_executor(&stage, &client, &script, 1).start();
    let run = stage.trigger("+shop.clean").await.run_id;
    stage.until(run, "raw/orders:materialize", TaskState::Running).await;
    stage.stop_server().await;
    gate.add_permits(1);
    crate::support::eventually("the result is ready", async || gate.available_permits() == 0).await;
    stage.start_server().await;
    let run = stage.ended(run).await;
    assert_eq!((run.state, run.tasks_succeeded), (RunState::Succeeded, 2));
    assert_eq!((script.count("raw/orders"), script.count("shop/clean")), (1, 1));
    slots.abort().await;
    stage.close().await;
}

#[tokio::test]
async fn lines_of_a_far_worker_are_kept_where_others_are() {
    let root = tempfile::tempdir().unwrap();
    let stage = Stage::with(root.path(), by_hand()).await;
    let run = stage.trigger("raw.orders").await.run_id;
    let attempt = Attempt::leased(&stage).await;
    attempt.say(&stage, "started", &json!({ "worker_id": "far-1" })).await.accepted();
    let target = LogTarget { name: log_name(&attempt.0), task_token: attempt.0.task_token.clone() };
    let mut tail = stage.client.follow_log(run, &attempt.task(), 1, 0);
    let sink = stage.client.log_sink();
    sink.write(&target, vec![line("one"), line("two")]).await.unwrap();
    // More than fits into one request.
    let long: Vec<_> = (0..40).map(|_| line(&"x".repeat(60_000))).collect();
    sink.write(&target, long).await.unwrap();
    // The same lines again, because the answer was lost: they are there already.
    let again = json!({ "offset": 0, "lines": [{ "at": "2025-01-15T10:30:00.123Z", "stream": "stdout", "text": "one" }] });
    attempt.say(&stage, "logs", &again).await.ok();
    sink.end(&target).await;
    attempt.say(&stage, "completed", &json!({ "outcome": "SUCCEEDED" })).await.accepted();
    let mut texts = Vec::new();
    while let Some(event) = within(tail.next()).await.unwrap() {
        if let servo_api::client::LogEvent::Line(line) = event {
            texts.push(line.text);
        }
    }
    assert_eq!(texts.len(), 42);
    assert_eq!(&texts[..2], ["one", "two"]);
    let page = stage.client.log(run, &attempt.task(), 1, 0, Some(2)).await.unwrap();
    assert_eq!(page.lines[1].text, "two");
    stage.close().await;
}
