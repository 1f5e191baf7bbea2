//! Reports by callback URLs: the address is the credential, for one attempt and one kind of report, until it expires.

use std::path::Path;

use reqwest::Url;
use serde_json::{Value, json};
use servo_api::client::Client;
use servo_api::{Code, callback_urls};
use servo_core::{Clock, RunId, Timestamp};
use servo_engine::{RegisterWorker, Report, RunState, TaskState};
use servo_queue::{
    CallbackError, CallbackUrl, CallbackUrls, CallbackVerb, Callbacks, Envelope, FinishedReply, Keyring,
    StartedReply, TaskClaims,
};
use servo_runtime::SystemClock;
use servo_worker::{LogSink, LogTarget};

use crate::support::{Answer, Harness, Setting, a_moment_later, keys, line, log_name};
use crate::workers::by_hand;

const WORKER: &str = "called-00000001";

/// Registers a worker with the code that is deployed.
pub(crate) async fn register(harness: &Harness, worker: &str) {
    let deployed = harness.get("deployments/current").await.ok();
    let worker = RegisterWorker {
        worker_id: worker.into(),
        name: worker.to_owned(),
        queues: vec!["default".into()],
        slots: 1,
        digest: deployed["digest"].as_str().unwrap().into(),
        storage: "file:///data".to_owned(),
        host: "vm".to_owned(),
        version: "1".to_owned(),
    };
    harness.workspace.register_worker(worker).await.unwrap();
}

/// An attempt as a worker knows it that was called.
struct Called {
    envelope: Envelope,
    urls: CallbackUrls,
}

fn claims(envelope: &Envelope) -> TaskClaims {
    envelope.claims(&envelope.task_key, envelope.attempt, envelope.attempt_id)
}

fn in_minutes(minutes: i64) -> Timestamp {
    Timestamp::from_millis(SystemClock.now().as_millis() + minutes * 60_000)
}

impl Called {
    /// The next attempt of the queue.
    async fn next(harness: &Harness) -> Self {
        let envelope = keys().open(&harness.taken("default").await, SystemClock.now()).unwrap();
        let urls = urls_of(harness, &envelope, &keys(), in_minutes(120));
        Self { envelope, urls }
    }

    async fn say(&self, verb: CallbackVerb, body: &Value) -> Answer {
        post(self.urls.get(verb).reveal(), body).await
    }
}

fn urls_of(harness: &Harness, envelope: &Envelope, keys: &Keyring, expires_at: Timestamp) -> CallbackUrls {
    callback_urls(keys, &format!("http://{}/", harness.address), &claims(envelope), expires_at)
}

/// A server that has called a registered worker for the first attempt of an asset's task.
async fn called_for(root: &Path, setting: Setting, asset: &str) -> (Harness, RunId, Called) {
    let harness = Harness::with(root, setting).await;
    register(&harness, WORKER).await;
    let run = harness.trigger(asset).await.run_id;
    let called = Called::next(&harness).await;
    (harness, run, called)
}

/// Asks without any credential but the address.
async fn post(url: &str, body: &Value) -> Answer {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http.post(url).header("content-type", "application/json").body(body.to_string());
    Answer::of(request.send().await.unwrap()).await
}

fn body_of(verb: CallbackVerb) -> Value {
    match verb {
        CallbackVerb::Started => json!({ "worker_id": WORKER }),
        CallbackVerb::Heartbeat => json!({}),
        CallbackVerb::Finished => json!({ "outcome": "SUCCEEDED" }),
        CallbackVerb::Logs => json!({ "lines": [] }),
    }
}

#[tokio::test]
async fn an_attempt_is_reported_at_its_callback_urls_without_any_other_credential() {
    let root = tempfile::tempdir().unwrap();
    let (harness, run, called) = called_for(root.path(), by_hand(), "raw.orders").await;
    let stranger = called.say(CallbackVerb::Started, &json!({ "worker_id": "stranger" })).await.problem();
    assert_eq!((stranger.status, stranger.code), (409, Code::UnknownWorker), "it has not registered");
    let started = called.say(CallbackVerb::Started, &body_of(CallbackVerb::Started)).await.accepted();
    assert!(started["accepted_event_id"].is_string());
    let again = called.say(CallbackVerb::Started, &body_of(CallbackVerb::Started)).await.accepted();
    assert!(again.get("accepted_event_id").is_none(), "asked again, it is known");
    register(&harness, "called-00000002").await;
    let other = called.say(CallbackVerb::Started, &json!({ "worker_id": "called-00000002" })).await.problem();
    assert_eq!((other.status, other.code), (409, Code::AlreadyStarted));
    a_moment_later().await;
    let progress = json!({ "progress": { "ppm": 250_000, "message": "a quarter" } });
    let answer = called.say(CallbackVerb::Heartbeat, &progress).await.ok();
    assert_eq!(answer, json!({ "should_cancel": false }), "the addresses are good for long enough");
    let lines =
        json!({ "lines": [{ "at": "2025-01-15T10:30:00.123Z", "stream": "stdout", "text": "hello" }] });
    called.say(CallbackVerb::Logs, &lines).await.ok();
    let done = called.say(CallbackVerb::Finished, &body_of(CallbackVerb::Finished)).await.accepted();
    assert!(done["accepted_event_id"].is_string());
    let again = called.say(CallbackVerb::Finished, &body_of(CallbackVerb::Finished)).await.accepted();
    assert!(again.get("accepted_event_id").is_none(), "safe to repeat");
    assert_eq!(harness.ended(run).await.state, RunState::Succeeded);
    let task = harness.task(run, "raw/orders:materialize").await;
    assert_eq!(task.task.worker_id.as_deref(), Some(WORKER));
    let log = harness.client.log(run, &task.task.task_id, 1, 0, None).await.unwrap();
    assert_eq!(log.lines[0].text, "hello");
    let over = called.say(CallbackVerb::Heartbeat, &json!({})).await.problem();
    assert_eq!((over.status, over.code), (410, Code::AttemptEnded));
    harness.close().await;
}

#[tokio::test]
async fn a_url_that_is_altered_anywhere_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (harness, _, called) = called_for(root.path(), by_hand(), "raw.orders").await;
    let head = harness.head().await;
    let other_run = "run_aaaaaaaaaaaaaaaaaaaaaaaaaa";
    for verb in CallbackVerb::ALL {
        let good = called.urls.get(verb).reveal();
        let parsed: Url = good.parse().unwrap();
        let query: Vec<(String, String)> = parsed.query_pairs().into_owned().collect();
        let [(_, attempt_id), (_, expires), (_, sig)] = &query[..] else { panic!("{good}") };
        let task = &servo_api::views::Task::id_of(&called.envelope.task_key);
        let run = &called.envelope.run_id.to_string();
        let next = CallbackVerb::ALL.iter().find(|other| **other != verb).unwrap().name();
        let at = sig.len() - 2..sig.len() - 1;
        let mut flipped = sig.clone();
        flipped.replace_range(at.clone(), if &sig[at] == "A" { "E" } else { "A" });
        let bare = good.split('?').next().unwrap();
        let altered = [
            good.replace("/t/acme/", "/t/zeta/"),
            good.replace("/w/main/", "/w/other/"),
            good.replace(run, other_run),
            good.replace(task, "t_aaaaaaaaaaaaaaaaaaaaaaaaaa"),
            good.replace("/attempts/1/", "/attempts/2/"),
            good.replace(attempt_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            good.replace(&format!("/callbacks/{}?", verb.name()), &format!("/callbacks/{next}?")),
            good.replace(expires, &format!("{}", expires.parse::<i64>().unwrap() + 3_600)),
            good.replace(sig, &flipped),
            good.replace(sig, ""),
            good.replace(sig, "test.YQ"),
            good.replace(sig, &sig.replace("test.", "rotated-out.")),
            format!("{good}&more=1"),
            format!("{good}&sig={sig}"),
            bare.to_owned(),
        ];
        for url in altered {
            assert_ne!(url, good);
            let asked = if url.contains(&format!("/callbacks/{next}?")) {
                CallbackVerb::find(next).unwrap()
            } else {
                verb
            };
            let problem = post(&url, &body_of(asked)).await.problem();
            assert_eq!((problem.status, problem.code), (401, Code::Unauthenticated), "{url}");
            assert!(!problem.detail.contains(sig.as_str()), "{}", problem.detail);
        }
    }
    assert_eq!(harness.head().await, head, "nothing was written");
    // As it was given it is good.
    called.say(CallbackVerb::Started, &body_of(CallbackVerb::Started)).await.accepted();
    harness.close().await;
}

#[tokio::test]
async fn a_url_that_has_expired_says_so_and_a_task_token_opens_none() {
    let root = tempfile::tempdir().unwrap();
    let (harness, _, called) = called_for(root.path(), by_hand(), "raw.orders").await;
    let head = harness.head().await;
    let expired = urls_of(&harness, &called.envelope, &keys(), in_minutes(-1));
    for verb in CallbackVerb::ALL {
        let problem = post(expired.get(verb).reveal(), &body_of(verb)).await.problem();
        assert_eq!((problem.status, problem.code), (401, Code::Unauthenticated));
        assert!(problem.detail.starts_with("the callback URL expired at "), "{}", problem.detail);
        // Whoever has the address alone has nothing, whatever else is shown.
        let bearer = format!("Bearer {}", called.envelope.task_token);
        let path = called.urls.get(verb).address().split("/api/v1/").nth(1).unwrap();
        let answer = harness.post_with(path, &body_of(verb), &[("authorization", &bearer)]).await;
        assert_eq!(answer.problem().code, Code::Unauthenticated);
    }
    assert_eq!(harness.head().await, head, "nothing was written");
    harness.close().await;
}

#[tokio::test]
async fn urls_of_a_key_that_was_rotated_are_good_until_the_key_is_gone() {
    let root = tempfile::tempdir().unwrap();
    let (harness, _, called) = called_for(root.path(), by_hand(), "raw.orders").await;
    let rotated = keys().rotated("newer", b"another key for tests");
    harness.api.keys.replace(&rotated);
    called.say(CallbackVerb::Started, &body_of(CallbackVerb::Started)).await.accepted();
    let newer = urls_of(&harness, &called.envelope, &rotated, in_minutes(120));
    assert!(newer.heartbeat.reveal().contains("sig=newer."));
    post(newer.heartbeat.reveal(), &json!({})).await.ok();
    called.say(CallbackVerb::Heartbeat, &json!({})).await.ok();
    harness.api.keys.replace(&rotated.without("test"));
    let gone = called.say(CallbackVerb::Heartbeat, &json!({})).await.problem();
    assert_eq!((gone.status, gone.code), (401, Code::Unauthenticated));
    assert!(gone.detail.contains("may have been rotated out"), "{}", gone.detail);
    post(newer.finished.reveal(), &body_of(CallbackVerb::Finished)).await.accepted();
    harness.close().await;
}

#[tokio::test]
async fn a_replayed_report_of_an_older_attempt_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (harness, run, first) = called_for(root.path(), by_hand(), "shop.stubborn").await;
    first.say(CallbackVerb::Started, &body_of(CallbackVerb::Started)).await.accepted();
    let failure = json!({ "outcome": "FAILED", "error": { "code": "USER_CODE_EXCEPTION", "message": "no" } });
    first.say(CallbackVerb::Finished, &failure).await.accepted();
    let second = Called::next(&harness).await;
    assert_eq!((first.envelope.attempt, second.envelope.attempt), (1, 2));
    second.say(CallbackVerb::Started, &body_of(CallbackVerb::Started)).await.accepted();
    for (verb, status) in
        [(CallbackVerb::Started, 409), (CallbackVerb::Heartbeat, 410), (CallbackVerb::Finished, 409)]
    {
        let problem = first.say(verb, &body_of(verb)).await.problem();
        assert_eq!(problem.status, status, "{verb:?} {problem:?}");
    }
    assert_eq!(harness.task(run, "shop/stubborn:materialize").await.task.state, TaskState::Running);
    second.say(CallbackVerb::Finished, &body_of(CallbackVerb::Finished)).await.accepted();
    assert_eq!(harness.ended(run).await.state, RunState::Succeeded);
    harness.close().await;
}

#[tokio::test]
async fn a_heartbeat_renews_urls_that_have_little_time_left() {
    let root = tempfile::tempdir().unwrap();
    let setting = Setting { worker_key: None, ..by_hand() };
    let (harness, run, called) = called_for(root.path(), setting, "raw.orders").await;
    let urls = urls_of(&harness, &called.envelope, &keys(), in_minutes(10));
    let credential = urls.to_credential();
    // A client that shows no credential of any other kind.
    let client = Client::new(&format!("http://{}", harness.address)).unwrap().by_callback_urls();
    assert!(matches!(client.started(&credential, WORKER).await, Ok(StartedReply::Begun { .. })));
    let reply = client.heartbeat(&credential, None).await.unwrap();
    let renewed = CallbackUrls::of_credential(&reply.task_token.unwrap()).unwrap();
    let expires = |url: &CallbackUrl| {
        let url: Url = url.reveal().parse().unwrap();
        let found = url.query_pairs().find(|(name, _)| name == "expires").unwrap();
        found.1.parse::<i64>().unwrap() * 1_000
    };
    for verb in CallbackVerb::ALL {
        assert_eq!(renewed.get(verb).address(), urls.get(verb).address());
        assert!(expires(renewed.get(verb)) > in_minutes(110).as_millis(), "{verb:?}");
    }
    let reply = client.heartbeat(&renewed.to_credential(), None).await.unwrap();
    assert_eq!(reply.task_token, None, "there is time enough");
    // Lines are sent with the newest ones, although the sink knows the first ones alone.
    let target = LogTarget { name: log_name(&called.envelope), task_token: credential };
    client.write(&target, vec![line("one"), line("two")]).await.unwrap();
    client.end(&target).await;
    let ended = client.finished(&renewed.to_credential(), Report::succeeded()).await;
    assert!(matches!(ended, Ok(FinishedReply::Ended { .. })), "{ended:?}");
    assert_eq!(harness.ended(run).await.state, RunState::Succeeded);
    let token = client.started("st1.k.a.b", WORKER).await.unwrap_err();
    assert!(matches!(token, CallbackError::Denied(_)));
    harness.close().await;
}

#[tokio::test]
async fn no_error_about_a_url_has_its_signature() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), by_hand()).await;
    harness.trigger("raw.orders").await;
    let called = Called::next(&harness).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let urls = callback_urls(&keys(), &format!("http://{nobody}"), &claims(&called.envelope), in_minutes(1));
    let sig = urls.started.reveal().split("sig=").nth(1).unwrap();
    let client = Client::new(&format!("http://{nobody}")).unwrap();
    let client = client.with_patience(std::time::Duration::ZERO).by_callback_urls();
    let error = client.started(&urls.to_credential(), WORKER).await.unwrap_err();
    assert!(matches!(&error, CallbackError::Transient(_)), "{error}");
    for text in
        [error.to_string(), format!("{error:?} {urls:?} {} {:?}", urls.started, called.envelope.callbacks)]
    {
        assert!(!text.contains(sig) && !text.contains("sig="), "{text}");
    }
    harness.close().await;
}
