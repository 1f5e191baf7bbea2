//! The worker contract over HTTP: leases, reports, and the guard of attempts.

use std::time::Duration;

use crate::support::{Answer, Harness, Setting, a_moment_later, keys, within};
use serde_json::{Value, json};
use servo_api::client::Client;
use servo_api::views::{LeaseBody, Task};
use servo_api::{Code, worker_keyring};
use servo_core::{Clock, Millis, Timestamp};
use servo_engine::{RunState, Settings, TaskState};
use servo_queue::{Envelope, TaskClaims};
use servo_runtime::SystemClock;

pub(crate) fn by_hand() -> Setting {
    Setting { slots: 0, ..Setting::default() }
}

fn lease(slots: usize, wait_ms: u64) -> LeaseBody {
    LeaseBody { worker_id: "remote-1".to_owned(), queues: vec!["default".to_owned()], slots, wait_ms }
}

/// Reports about one attempt.
pub(crate) struct Attempt(pub(crate) Envelope);

impl Attempt {
    pub(crate) async fn leased(harness: &Harness) -> Self {
        let mut envelopes = within(harness.client.lease(&lease(1, 20_000))).await.unwrap();
        assert_eq!(envelopes.len(), 1);
        let envelope = envelopes.remove(0);
        let keys = worker_keyring(harness.api.worker_key.as_deref().unwrap());
        Self(keys.open(&envelope, SystemClock.now()).unwrap())
    }

    pub(crate) fn task(&self) -> String {
        Task::id_of(&self.0.task_key)
    }

    pub(crate) async fn say(&self, harness: &Harness, what: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {}", self.0.task_token);
        let path = format!("tasks/{}/{what}", self.task());
        harness.post_with(&path, body, &[("authorization", &bearer)]).await
    }
}

#[tokio::test]
async fn an_attempt_goes_from_lease_to_result() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), by_hand()).await;
    let run = harness.trigger("raw.orders").await.run_id;
    let attempt = Attempt::leased(&harness).await;
    assert_eq!((attempt.0.run_id, attempt.0.attempt), (run, 1));
    let started = attempt.say(&harness, "started", &json!({ "worker_id": "remote-1" })).await.accepted();
    assert!(started["accepted_event_id"].is_string());
    let again = attempt.say(&harness, "started", &json!({ "worker_id": "remote-1" })).await.accepted();
    assert!(again.get("accepted_event_id").is_none(), "known");
    let other = attempt.say(&harness, "started", &json!({ "worker_id": "remote-2" })).await.problem();
    assert_eq!((other.status, other.code), (409, Code::AlreadyStarted));
    a_moment_later().await;
    let progress = json!({ "progress": { "ppm": 250_000, "message": "a quarter" } });
    let answer = attempt.say(&harness, "heartbeat", &progress).await.ok();
    assert_eq!(answer, json!({ "should_cancel": false }));
    let shown = harness.task(run, "raw/orders:materialize").await.task;
    assert_eq!((shown.progress.unwrap().ppm, shown.worker_id.as_deref()), (250_000, Some("remote-1")));
    let report = json!({
        "outcome": "SUCCEEDED",
        "outputs": [{ "asset": "raw/orders", "state": "COMMITTED", "format": "none", "row_count": 3 }],
        "usage": { "cpu_ms": 5, "max_rss_bytes": 6, "bytes_read": 7, "bytes_written": 8 },
    });
    let done = attempt.say(&harness, "completed", &report).await.accepted();
    assert!(done["accepted_event_id"].is_string());
    let again = attempt.say(&harness, "completed", &report).await.accepted();
    assert!(again.get("accepted_event_id").is_none(), "safe to repeat");
    assert_eq!(harness.ended(run).await.state, RunState::Succeeded);
    let task = harness.task(run, "raw/orders:materialize").await;
    assert_eq!(task.outputs[0].row_count, Some(3));
    assert_eq!(task.attempts[0].usage.unwrap().cpu_ms, 5);
    let over = attempt.say(&harness, "heartbeat", &json!({})).await.problem();
    assert_eq!((over.status, over.code), (410, Code::AttemptEnded));
    harness.close().await;
}

#[tokio::test]
async fn a_lease_waits_for_a_task_and_gives_as_many_as_are_wanted() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), by_hand()).await;
    let nothing = harness.post("worker/leases", &json!({ "worker_id": "w", "queues": ["default"] })).await;
    assert_eq!((nothing.status, nothing.body), (204, Value::Null));
    let (leased, run) = tokio::join!(Attempt::leased(&harness), harness.trigger("raw.orders"));
    assert_eq!(leased.0.run_id, run.run_id);
    let body = json!({ "selection": "raw.days", "partitions": { "ranges": ["2013-01-01..2013-01-05"] } });
    harness.post("runs", &body).await.accepted();
    crate::support::eventually("five wait beside the one that is leased", async || harness.queue.len() == 6)
        .await;
    let first = harness.client.lease(&lease(3, 0)).await.unwrap();
    let rest = harness.client.lease(&lease(9, 0)).await.unwrap();
    assert_eq!((first.len(), rest.len()), (3, 2));
    assert_eq!(harness.client.lease(&lease(9, 0)).await.unwrap(), []);
    let other = LeaseBody { queues: vec!["gpu".to_owned()], ..lease(1, 0) };
    assert_eq!(harness.client.lease(&other).await.unwrap(), []);
    harness.close().await;
}

#[tokio::test]
async fn a_lease_that_nobody_begins_goes_to_another_worker() {
    let root = tempfile::tempdir().unwrap();
    let settings =
        Settings { dispatch_ack_timeout: Millis::new(50), max_interruptions: 10_000, ..Settings::default() };
    let harness = Harness::with(root.path(), Setting { settings, ..by_hand() }).await;
    let run = harness.trigger("raw.orders").await.run_id;
    // The worker vanishes with it.
    let lost = Attempt::leased(&harness).await;
    let next = Attempt::leased(&harness).await;
    assert_eq!((lost.0.attempt, next.0.attempt), (1, 2));
    let stale = lost.say(&harness, "started", &json!({ "worker_id": "remote-1" })).await.problem();
    assert_eq!((stale.status, stale.code), (409, Code::StaleAttempt));
    // The next one may be lost too before we get to it; some attempt is begun in the end.
    let mut current = next;
    while current.say(&harness, "started", &json!({ "worker_id": "remote-2" })).await.status != 202 {
        current = Attempt::leased(&harness).await;
    }
    let stale = lost.say(&harness, "completed", &json!({ "outcome": "SUCCEEDED" })).await.problem();
    assert_eq!((stale.status, stale.code), (409, Code::StaleAttempt));
    let stale = lost.say(&harness, "heartbeat", &json!({})).await.problem();
    assert_eq!(stale.status, 410);
    assert_eq!(harness.task(run, "raw/orders:materialize").await.task.state, TaskState::Running, "unmoved");
    current.say(&harness, "completed", &json!({ "outcome": "SUCCEEDED" })).await.accepted();
    assert_eq!(harness.ended(run).await.state, RunState::Succeeded);
    harness.close().await;
}

#[tokio::test]
async fn what_a_worker_was_given_and_has_not_begun_in_time_is_offered_again() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { lease: Duration::from_millis(20), ..by_hand() }).await;
    let run = harness.trigger("raw.orders").await.run_id;
    // The worker vanishes with it; the attempt is the same.
    let lost = Attempt::leased(&harness).await;
    let next = Attempt::leased(&harness).await;
    assert_eq!(lost.0.attempt_id, next.0.attempt_id);
    next.say(&harness, "started", &json!({ "worker_id": "remote-2" })).await.accepted();
    let second = lost.say(&harness, "started", &json!({ "worker_id": "remote-1" })).await.problem();
    assert_eq!((second.status, second.code), (409, Code::AlreadyStarted));
    next.say(&harness, "completed", &json!({ "outcome": "SUCCEEDED" })).await.accepted();
    assert_eq!(harness.ended(run).await.state, RunState::Succeeded);
    harness.close().await;
}

#[tokio::test]
async fn a_cancelled_task_is_not_begun_and_one_at_work_is_told_to_stop() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), by_hand()).await;
    let waiting = harness.trigger("raw.orders").await.run_id;
    let attempt = Attempt::leased(&harness).await;
    harness.post(&format!("runs/{waiting}/cancel"), &json!({})).await.accepted();
    let problem = attempt.say(&harness, "started", &json!({ "worker_id": "remote-1" })).await.problem();
    assert_eq!((problem.status, problem.code), (409, Code::TaskCancelled));
    assert_eq!(harness.ended(waiting).await.state, RunState::Cancelled);

    let running = harness.trigger("shop.clean").await.run_id;
    let attempt = Attempt::leased(&harness).await;
    attempt.say(&harness, "started", &json!({ "worker_id": "remote-1" })).await.accepted();
    harness.post(&format!("runs/{running}/cancel"), &json!({})).await.accepted();
    let answer = attempt.say(&harness, "heartbeat", &json!({})).await.ok();
    assert_eq!(answer, json!({ "should_cancel": true }));
    let late = attempt.say(&harness, "completed", &json!({ "outcome": "SUCCEEDED" })).await.accepted();
    assert_eq!(late["late"], true, "recorded, and does not count");
    assert_eq!(harness.ended(running).await.state, RunState::Cancelled);
    harness.close().await;
}

#[tokio::test]
async fn a_run_that_left_memory_is_gone_for_its_workers() {
    let root = tempfile::tempdir().unwrap();
    let settings = Settings { recent_runs: 1, ..Settings::default() };
    let harness = Harness::with(root.path(), Setting { settings, ..by_hand() }).await;
    let mut first = None;
    for _ in 0..3 {
        let run = harness.trigger("raw.orders").await.run_id;
        let attempt = Attempt::leased(&harness).await;
        attempt.say(&harness, "started", &json!({ "worker_id": "remote-1" })).await.accepted();
        attempt.say(&harness, "completed", &json!({ "outcome": "SUCCEEDED" })).await.accepted();
        harness.ended(run).await;
        first.get_or_insert(attempt);
    }
    let first = first.unwrap();
    for (what, body) in [
        ("started", json!({ "worker_id": "remote-1" })),
        ("heartbeat", json!({})),
        ("completed", json!({ "outcome": "SUCCEEDED" })),
        ("logs", json!({ "lines": [] })),
    ] {
        let problem = first.say(&harness, what, &body).await.problem();
        assert_eq!((problem.status, problem.code), (410, Code::AttemptEnded), "{what}");
    }
    harness.close().await;
}

#[tokio::test]
async fn reports_need_the_token_of_their_attempt() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), by_hand()).await;
    harness.trigger("raw.orders").await;
    let attempt = Attempt::leased(&harness).await;
    let head = harness.head().await;
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
        let answer = harness.post(&path, &body).await;
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        assert_eq!(answer.problem().code, Code::Unauthenticated, "{what} without a token");
        for token in ["", "x", &expired, &forged, &tampered] {
            let bearer = format!("Bearer {token}");
            let problem = harness.post_with(&path, &body, &[("authorization", &bearer)]).await.problem();
            assert_eq!((problem.status, problem.code), (401, Code::Unauthenticated), "{what} {token}");
            assert!(!problem.detail.contains("a guess"));
        }
        let bearer = format!("Bearer {elsewhere}");
        let problem = harness.post_with(&path, &body, &[("authorization", &bearer)]).await.problem();
        assert!(matches!(problem.status, 401 | 410), "{what} of another workspace: {problem:?}");
        let bearer = format!("Bearer {}", attempt.0.task_token);
        let other = format!("tasks/t_aaaaaaaaaaaaaaaaaaaaaaaaaa/{what}");
        let problem = harness.post_with(&other, &body, &[("authorization", &bearer)]).await.problem();
        assert_eq!((problem.status, problem.code), (403, Code::Forbidden), "{what} for another task");
    }
    assert_eq!(harness.head().await, head, "nothing was written");
    harness.close().await;
}

#[tokio::test]
async fn a_server_with_a_worker_key_gives_tasks_to_those_who_have_it() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), Setting { worker_key: Some("a worker key"), ..by_hand() }).await;
    harness.trigger("raw.orders").await;
    let without = Client::new(&format!("http://{}", harness.address)).unwrap();
    let error = without.lease(&lease(1, 0)).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::Unauthenticated));
    let wrong = harness.client.clone().with_worker_key("a worker kez");
    assert_eq!(wrong.lease(&lease(1, 0)).await.unwrap_err().code(), Some(Code::Unauthenticated));
    let right = harness.client.clone().with_worker_key("a worker key");
    let envelopes = within(right.lease(&lease(1, 20_000))).await.unwrap();
    let now = SystemClock.now();
    let envelope = worker_keyring("a worker key").open(&envelopes[0], now).unwrap();
    assert!(worker_keyring("another").open(&envelopes[0], now).is_err(), "signed with the key");
    let token = keys().verify_token(&envelope.task_token, now).unwrap();
    assert!(token.expires_at.since(now) <= Millis::from_hours(2), "a worker's token lives two hours");
    assert!(keys().open(&envelopes[0], now).is_err(), "the keys of the server stay there");
    harness.close().await;
}
