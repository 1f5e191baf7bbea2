//! Queues that call their workers over HTTP: the call, the endpoint, and what both refuse.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use servo_access::{ControlCommand, Role};
use servo_api::client::{Client, ClientTls};
use servo_api::{CalledWorker, Code, WorkerCredential, WorkerEndpoint, serve_worker, worker_keyring};
use servo_core::{Clock, Millis};
use servo_engine::{Principal, RunState};
use servo_queue::{Keyring, PushError, PushInbox, PushReply, PushTarget, SignedEnvelope, TaskSource};
use servo_runtime::{SystemClock, ThreadSpawner};
use servo_worker::Executor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::callback_urls::register;
use crate::roles::{api_keys, key};
use crate::support::{Actor, Answer, Behaviour, Harness, Script, keys, layout, within};
use crate::workers::by_hand;

const KEY: &str = "a key of a called worker";

/// The endpoint of a worker on the loopback.
pub(crate) struct Listening {
    inbox: Arc<PushInbox>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Listening {
    async fn with(capacity: usize, keys: Keyring) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inbox = PushInbox::new(capacity);
        let workspace = (layout().tenant().clone(), layout().workspace().clone());
        let queues = vec!["default".into()];
        let endpoint = WorkerEndpoint::new(inbox.clone(), keys, workspace, queues, Arc::new(SystemClock));
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve_worker(listener, endpoint, None, async move {
            let _dropped = stopped.await;
        }));
        Self { inbox, address, stop: Some(stop), served }
    }

    pub(crate) async fn start() -> Self {
        Self::with(4, worker_keyring(KEY)).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/push", self.address)
    }

    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        within(self.served).await.unwrap().unwrap();
    }
}

fn called(harness: &Harness, url: &str, credential: WorkerCredential) -> CalledWorker {
    let server = format!("http://{}", harness.address);
    let clock = Arc::new(SystemClock);
    CalledWorker::new(url, &ClientTls::default(), credential, keys(), server, clock).unwrap()
}

pub(crate) fn with_key(harness: &Harness, url: &str) -> CalledWorker {
    called(harness, url, WorkerCredential::Key(KEY.into()))
}

async fn pushed(target: &CalledWorker, envelope: &SignedEnvelope) -> Result<PushReply, PushError> {
    within(target.push(&"default".into(), envelope)).await
}

fn reason(pushed: Result<PushReply, PushError>) -> String {
    pushed.unwrap_err().reason
}

/// Calls a worker with each message of the queue, as a queue that calls does.
fn call_all(harness: &Harness, target: CalledWorker) -> tokio::task::JoinHandle<()> {
    let (queue, target) = (harness.queue.clone(), Arc::new(target));
    tokio::spawn(async move {
        loop {
            for delivery in queue.receive(&["default".into()], 1).await.unwrap() {
                let target = target.clone();
                tokio::spawn(async move {
                    match target.push(&"default".into(), &delivery.envelope).await {
                        Ok(PushReply::Acked) => delivery.ack().await.unwrap(),
                        Ok(PushReply::Nacked { delay }) => delivery.nack(delay).await.unwrap(),
                        Err(_) => delivery.nack(Duration::from_millis(20)).await.unwrap(),
                    }
                });
            }
        }
    })
}

pub(crate) fn executor(harness: &Harness, listening: &Listening, script: &Arc<Script>) -> Executor {
    Executor {
        source: listening.inbox.clone(),
        queues: vec!["default".into()],
        // It has no credential but those of the messages.
        callbacks: Arc::new(Client::new(&format!("http://{}", harness.address)).unwrap().by_callback_urls()),
        keys: worker_keyring(KEY),
        clock: Arc::new(SystemClock),
        worker: "called-1".into(),
        slots: 3,
        function: Arc::new(Actor { script: script.clone(), logs: harness.logs.clone() }),
        spawner: Arc::new(ThreadSpawner::default()),
        seed: 1,
    }
}

#[tokio::test]
async fn a_worker_that_is_called_does_what_one_does_that_asks() {
    let root = tempfile::tempdir().unwrap();
    let setting = crate::support::Setting { heartbeat_ms: 20, worker_key: None, ..by_hand() };
    let harness = Harness::with(root.path(), setting).await;
    let listening = Listening::start().await;
    let script: Arc<Script> = Arc::default();
    script.let_asset("shop/stubborn", Behaviour::Fail(2));
    let slots = executor(&harness, &listening, &script).start();
    let calling = call_all(&harness, with_key(&harness, &listening.url()));
    // A message that comes before the worker is registered waits for it.
    let waiting = harness.trigger("raw.orders").await.run_id;
    register(&harness, "called-1").await;
    assert_eq!(harness.ended(waiting).await.state, RunState::Succeeded);
    let run = harness.run("+shop.report or shop.stubborn").await;
    assert_eq!((run.state, run.tasks_succeeded), (RunState::Succeeded, 4));
    assert_eq!(script.count("shop/stubborn"), 3);
    let body = json!({ "selection": "+shop.daily", "partitions": { "ranges": ["2013-01-01..2013-01-10"] } });
    let accepted = harness.post("runs", &body).await.accepted();
    let run = accepted["run_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(harness.ended(run).await.tasks_succeeded, 20);
    calling.abort();
    slots.abort().await;
    listening.stop().await;
    harness.close().await;
}

#[tokio::test]
async fn a_message_is_answered_with_what_becomes_of_it() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), by_hand()).await;
    let listening = Listening::with(1, worker_keyring(KEY)).await;
    let target = Arc::new(with_key(&harness, &listening.url()));
    harness.trigger("raw.orders").await;
    let envelope = harness.taken("default").await;
    let call = |envelope: &SignedEnvelope| {
        let (target, envelope) = (target.clone(), envelope.clone());
        tokio::spawn(async move { target.push(&"default".into(), &envelope).await })
    };
    let first = call(&envelope);
    let delivery = within(listening.inbox.receive(&["default".into()], 1)).await.unwrap().remove(0);
    let opened = worker_keyring(KEY).open(&delivery.envelope, SystemClock.now()).unwrap();
    assert_eq!(opened.task_token, "", "it has addresses, and no token");
    let urls = opened.callbacks.unwrap();
    assert!(
        urls.started.reveal().starts_with(&format!("http://{}/api/v1/t/acme/w/main/runs/", harness.address))
    );
    delivery.ack().await.unwrap();
    assert_eq!(within(first).await.unwrap(), Ok(PushReply::Acked));
    let second = call(&envelope);
    let delivery = within(listening.inbox.receive(&["default".into()], 1)).await.unwrap().remove(0);
    delivery.nack(Duration::from_millis(2_500)).await.unwrap();
    assert_eq!(within(second).await.unwrap(), Ok(PushReply::Nacked { delay: Duration::from_secs(3) }));
    // There is room for one that nobody has taken; others are to come again.
    let (third, fourth) = (call(&envelope), call(&envelope));
    let full = tokio::select! {
        full = third => full,
        full = fourth => full,
    };
    assert_eq!(full.unwrap(), Ok(PushReply::Nacked { delay: Duration::from_secs(1) }));
    // Whoever stops gives back what nobody has taken.
    listening.stop().await;
    assert!(reason(pushed(&target, &envelope).await).contains("cannot be reached"));
    harness.close().await;
}

#[tokio::test]
async fn the_endpoint_takes_nothing_that_it_does_not_believe() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), by_hand()).await;
    let listening = Listening::start().await;
    harness.trigger("raw.orders").await;
    let sealed = harness.taken("default").await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = async |body: String| {
        let request = http.post(listening.url()).header("content-type", "application/json").body(body);
        Answer::of(request.send().await.unwrap()).await.problem()
    };
    let call =
        |queue: &str, envelope: &SignedEnvelope| json!({ "queue": queue, "envelope": envelope }).to_string();
    // Signed with the keys of the workspace, and not with that of the worker.
    let foreign = ask(call("default", &sealed)).await;
    assert_eq!((foreign.status, foreign.code), (401, Code::Unauthenticated));
    let envelope = keys().open(&sealed, SystemClock.now()).unwrap();
    let ring = worker_keyring(KEY);
    let without = ask(call("default", &ring.seal(&envelope))).await;
    assert!(without.detail.contains("has nowhere to report"), "{}", without.detail);
    let claims = envelope.claims(&envelope.task_key, envelope.attempt, envelope.attempt_id);
    let later = SystemClock.now().saturating_add(Millis::from_hours(1));
    let urls = servo_api::callback_urls(&keys(), "http://127.0.0.1:1", &claims, later);
    let mut good = envelope.clone();
    good.callbacks = Some(urls);
    let mut elsewhere = good.clone();
    elsewhere.workspace_id = "other".parse().unwrap();
    let other = ask(call("default", &ring.seal(&elsewhere))).await;
    assert_eq!((other.status, other.code), (409, Code::OtherWorkspace));
    let mut old = good.clone();
    old.expires_at = servo_core::Timestamp::from_millis(1);
    let expired = ask(call("default", &ring.seal(&old))).await;
    assert!(expired.detail.contains("expired at"), "{}", expired.detail);
    let unserved = ask(call("gpu", &ring.seal(&good))).await;
    assert!(unserved.status == 404 && unserved.detail.contains("--queue"), "{}", unserved.detail);
    let mut altered = ring.seal(&good);
    altered.body = altered.body.replace("\"attempt\":1", "\"attempt\":2").into();
    assert_eq!(ask(call("default", &altered)).await.code, Code::Unauthenticated);
    assert_eq!(ask("{".to_owned()).await.code, Code::MalformedJson);
    assert_eq!(ask(json!({ "queue": "default" }).to_string()).await.code, Code::InvalidRequest);
    let mut stream = TcpStream::connect(listening.address).await.unwrap();
    let head = "POST /push HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 16777217\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut chunk = [0; 64];
    let length = within(stream.read(&mut chunk)).await.unwrap();
    assert!(chunk[..length].starts_with(b"HTTP/1.1 413 "), "before anything is read");
    let other = Answer::of(http.get(listening.url()).send().await.unwrap()).await.problem();
    assert_eq!(other.code, Code::MethodNotAllowed);
    let base = format!("http://{}", listening.address);
    let healthy = Answer::of(http.get(format!("{base}/healthz")).send().await.unwrap()).await;
    assert_eq!((healthy.status, healthy.body), (204, Value::Null));
    assert_eq!(Answer::of(http.get(base).send().await.unwrap()).await.problem().code, Code::NotFound);
    listening.stop().await;
    harness.close().await;
}

/// Something that is no worker, and answers every request alike.
async fn answering(head: String) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut read, mut chunk) = (Vec::new(), [0; 4096]);
            while !read.ends_with(b"\"}}") {
                let length = stream.read(&mut chunk).await.unwrap();
                assert_ne!(length, 0, "a whole request");
                read.extend_from_slice(&chunk[..length]);
            }
            let answer = format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (at, answering)
}

#[tokio::test]
async fn a_call_follows_no_redirect_and_tells_no_secret_of_its_address() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), by_hand()).await;
    let listening = Listening::start().await;
    let there = listening.url();
    let (at, elsewhere) = answering(format!("307 Temporary Redirect\r\nLocation: {there}")).await;
    let (before, proxy) = answering("503 Service Unavailable".to_owned()).await;
    harness.trigger("raw.orders").await;
    let envelope = harness.taken("default").await;
    let target = with_key(&harness, &format!("http://{at}/push?token=hush"));
    assert_eq!(reason(pushed(&target, &envelope).await), format!("http://{at}/push answered 307"));
    // Something before the worker says nothing about the message.
    let busy = with_key(&harness, &format!("http://{before}"));
    assert_eq!(reason(pushed(&busy, &envelope).await), format!("http://{before}/ answered 503"));
    for server in [elsewhere, proxy] {
        server.abort();
        let _gone = server.await;
    }
    let told = reason(pushed(&target, &envelope).await);
    assert!(told.contains("cannot be reached") && !told.contains("hush"), "{told}");
    for bad in ["ftp://a.example/", "https://me:hush@a.example/", "a.example", "file:///etc/passwd"] {
        let credential = WorkerCredential::Key(KEY.into());
        let clock = Arc::new(SystemClock);
        let refused = CalledWorker::new(bad, &ClientTls::default(), credential, keys(), "http://a", clock);
        let told = refused.map(drop).unwrap_err().to_string();
        assert!(!told.contains("hush"), "{told}");
    }
    listening.stop().await;
    harness.close().await;
}

#[tokio::test]
async fn a_worker_is_called_with_an_api_key_while_that_is_one_of_a_worker_of_the_workspace() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::with(root.path(), by_hand()).await;
    let ledger = api_keys(root.path()).await;
    let workspace = || (layout().tenant().clone(), layout().workspace().clone());
    let text = key(&ledger, 3, Role::Worker, "acme/main", None).await;
    key(&ledger, 4, Role::Viewer, "acme/main", None).await;
    key(&ledger, 5, Role::Worker, "zeta/*", None).await;
    let listening = Listening::with(4, worker_keyring(&text)).await;
    let with = |id: &str| {
        let credential = WorkerCredential::ApiKey {
            keys: ledger.clone(),
            id: id.parse().unwrap(),
            workspace: workspace(),
        };
        assert!(!format!("{credential:?}").contains(&text));
        called(&harness, &listening.url(), credential)
    };
    harness.trigger("raw.orders").await;
    let envelope = harness.taken("default").await;
    let taking = tokio::spawn({
        let inbox = listening.inbox.clone();
        async move { inbox.receive(&["default".into()], 1).await.unwrap().remove(0).ack().await }
    });
    let worker = with("030303030303");
    assert_eq!(pushed(&worker, &envelope).await, Ok(PushReply::Acked));
    taking.await.unwrap().unwrap();
    for (id, said) in [
        ("040404040404", "no role worker"),
        ("050505050505", "no role worker"),
        ("060606060606", "there is no key"),
    ] {
        let told = reason(pushed(&with(id), &envelope).await);
        assert!(told.contains(said), "{id}: {told}");
    }
    let revoke = ControlCommand::RevokeKey("030303030303".parse().unwrap());
    ledger.control().ask(&Principal::system(), &revoke).await.unwrap();
    assert!(reason(pushed(&worker, &envelope).await).contains("was revoked"));
    listening.stop().await;
    harness.close().await;
}

#[tokio::test]
async fn a_worker_that_waits_to_be_called_is_refused_where_queues_wait_to_be_asked() {
    let root = tempfile::tempdir().unwrap();
    let settings = servo_engine::Settings {
        push_limit: 0,
        push_limits: [("gpu".to_owned(), 4)].into(),
        ..servo_engine::Settings::default()
    };
    let harness = Harness::with(root.path(), crate::support::Setting { settings, ..by_hand() }).await;
    let deployed = harness.get("deployments/current").await.ok();
    let body = |queues: Value| {
        json!({
            "name": "called", "nonce": "00000001", "tenant": "acme", "workspace": "main", "queues": queues,
            "slots": 2, "digest": deployed["digest"], "listens": true,
        })
    };
    let refused = harness.post("worker/register", &body(json!(["gpu", "default"]))).await.problem();
    assert_eq!((refused.status, refused.code), (400, Code::InvalidRequest));
    assert!(refused.detail.contains("queue default does not call its workers"), "{}", refused.detail);
    harness.post("worker/register", &body(json!(["gpu"]))).await.ok();
    harness.close().await;
}
