//! Work that is too large for a message is stored, and the worker that begins the attempt fetches it (ADR-310).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use servo_api::views::LeaseBody;
use servo_api::worker_keyring;
use servo_core::{Clock, RunId};
use servo_engine::outputs::OutputReport;
use servo_engine::{OutputState, Progress, Report, RunState};
use servo_queue::{Callbacks, Envelope, MAX_ENVELOPE, PushReply, PushTarget, SignedEnvelope, WorkRef};
use servo_runtime::{SystemClock, ThreadSpawner};
use servo_worker::{Executor, Slots, TaskFunction};
use tokio::sync::watch;

use crate::callback_urls::register;
use crate::called_workers::{self, Listening};
use crate::support::{Harness, Setting, eventually, layout, within};
use crate::workers::by_hand;

const INPUTS: usize = 20_000;

fn asset(key: &str, more: Value) -> Value {
    let mut asset = json!({
        "key": key,
        "location": { "file": "shop/assets.py", "line": 3 },
        "function": format!("shop.assets:{}", key.replace('/', "_")),
    });
    asset.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    asset
}

/// `all/total` reads 20,000 partitions of `raw/parts`; `all/calls` makes 60 in one call.
fn wide_project() -> Value {
    let named = |count: usize| {
        let keys: Vec<String> = (0..count).map(|number| format!("part-{number:05}")).collect();
        json!({ "kind": "static", "keys": keys })
    };
    let retry = json!({
        "max_attempts": 2, "initial_delay_ms": 1, "max_delay_ms": 5, "multiplier_ppm": 1_000_000, "jitter_ppm": 0,
    });
    let all = json!({ "asset": "raw/parts", "parameter": "parts", "mapping": { "kind": "all" } });
    json!({
        "manifest_version": 1,
        "project": "wide",
        "assets": [
            asset("raw/parts", json!({ "partitions": named(INPUTS) })),
            asset("raw/one", json!({})),
            asset("all/total", json!({ "deps": [all], "retry": retry })),
            asset("all/calls", json!({ "partitions": named(60), "single_call": true })),
        ],
    })
}

/// A server with materializations of all that `all/total` reads.
async fn wide(root: &Path) -> Harness {
    let harness = Harness::with(root, by_hand()).await;
    harness.post("deployments", &wide_project()).await.accepted();
    for range in ["part-00000..part-09999", "part-10000..part-19999"] {
        let body = json!({ "partitions": { "ranges": [range] }, "as": "materialized" });
        harness.post("assets/raw/parts/partitions/mark", &body).await.accepted();
    }
    harness
}

/// Notes what the messages are that it is given.
#[derive(Default)]
struct Noted(Mutex<Vec<Envelope>>);

#[async_trait]
impl TaskFunction for Noted {
    async fn run(&self, task: &Envelope, _progress: &watch::Sender<Option<Progress>>) -> Report {
        self.0.lock().unwrap().push(task.clone());
        made(task)
    }
}

/// Success, with everything that an attempt was to make.
fn made(task: &Envelope) -> Report {
    let outputs = task.work.iter().flat_map(|work| &work.outputs);
    let outputs: Vec<OutputReport> =
        outputs.map(|output| OutputReport::new(output.asset.clone(), OutputState::Committed)).collect();
    Report { outputs: outputs.into(), ..Report::succeeded() }
}

fn executor(harness: &Harness, noted: &Arc<Noted>) -> Slots {
    let client = harness.client.clone();
    let executor = Executor {
        source: Arc::new(client.tasks_for("remote-1")),
        queues: vec!["default".into()],
        callbacks: Arc::new(client),
        keys: worker_keyring(harness.api.worker_key.as_deref().unwrap()),
        clock: Arc::new(SystemClock),
        worker: "remote-1".into(),
        slots: 2,
        function: noted.clone(),
        spawner: Arc::new(ThreadSpawner::default()),
        seed: 1,
    };
    executor.start()
}

fn staged(root: &Path, run: RunId) -> PathBuf {
    root.join(layout().prefix()).join(layout().staging_of(run)).join("work")
}

/// The only stored work of a run, when it is there.
async fn stored(root: &Path, run: RunId) -> PathBuf {
    let dir = staged(root, run);
    let files =
        || fs::read_dir(&dir).map(|files| files.flatten().map(|file| file.path()).collect::<Vec<_>>());
    eventually("the work is stored", async || files().is_ok_and(|files| files.len() == 1)).await;
    files().unwrap().remove(0)
}

async fn leased(harness: &Harness) -> (SignedEnvelope, Envelope) {
    let body = LeaseBody {
        worker_id: "remote-1".to_owned(),
        queues: vec!["default".into()],
        slots: 1,
        wait_ms: 20_000,
    };
    let sealed = within(harness.client.lease(&body)).await.unwrap().remove(0);
    let keys = worker_keyring(harness.api.worker_key.as_deref().unwrap());
    let envelope = keys.open(&sealed, SystemClock.now()).unwrap();
    (sealed, envelope)
}

#[tokio::test]
async fn twenty_thousand_inputs_reach_a_remote_worker_by_reference() {
    let root = tempfile::tempdir().unwrap();
    let harness = wide(root.path()).await;
    let run = harness.trigger("all.total").await.run_id;
    let (sealed, mut envelope) = leased(&harness).await;
    assert!(sealed.body.len() <= MAX_ENVELOPE, "{} bytes", sealed.body.len());
    let wanted = envelope.work_ref.clone().expect("it refers to its work");
    assert_eq!(envelope.work, None);
    let provenance = harness.workspace.read(move |state| {
        let task = &state.run(run).unwrap().tasks[0];
        serde_json::to_string(&*task.provenance).unwrap().len()
    });
    assert!(provenance.await.unwrap() < 1_000, "the event counts what is read");
    // Nothing but the token of the attempt opens it, and nothing but its own hash is answered.
    let token = envelope.credential();
    harness.client.started(&token, "remote-1").await.unwrap();
    harness.client.work(&token, "remote-2", &wanted).await.expect_err("another worker has begun it");
    let fetched = harness.client.work(&token, "remote-1", &wanted).await.unwrap().expect("it is there");
    for name in ["../../../ledger", &"0".repeat(64), "x"] {
        let other = WorkRef { sha256: name.to_owned(), bytes: 1 };
        assert_eq!(harness.client.work(&token, "remote-1", &other).await.unwrap(), None, "{name}");
    }
    envelope.attach_work(fetched).unwrap();
    let pieces = &envelope.work.as_ref().unwrap().inputs[0].pieces;
    let read: std::collections::BTreeSet<_> = pieces.iter().filter_map(|it| it.materialization_id).collect();
    assert_eq!((pieces.len(), read.len()), (INPUTS, INPUTS), "each with a materialization of its own");
    // A process that ends between storing work and handing out its message leaves what goes with the run.
    fs::write(staged(root.path(), run).join(format!("{}.json", "f".repeat(64))), "left behind").unwrap();
    harness.client.finished(&token, made(&envelope)).await.unwrap();
    assert_eq!(harness.ended(run).await.state, RunState::Succeeded);
    let dir = staged(root.path(), run);
    eventually("nothing is left of it", async || !dir.exists()).await;
    harness.close().await;
}

#[tokio::test]
async fn an_executor_puts_stored_work_back_and_small_work_is_never_stored() {
    let root = tempfile::tempdir().unwrap();
    let harness = wide(root.path()).await;
    let noted: Arc<Noted> = Arc::default();
    let slots = executor(&harness, &noted);
    assert_eq!(harness.run("all.total or raw.one").await.tasks_succeeded, 2);
    let ran = std::mem::take(&mut *noted.0.lock().unwrap());
    let inputs = |task: &Envelope| task.work.as_ref().unwrap().inputs.first().map_or(0, |it| it.pieces.len());
    let mut read: Vec<usize> = ran.iter().map(inputs).collect();
    read.sort_unstable();
    assert_eq!(read, [0, INPUTS]);
    assert!(ran.iter().all(|task| task.work_ref.is_none()));
    slots.abort().await;
    harness.close().await;
}

#[tokio::test]
async fn damaged_or_missing_work_fails_its_attempt_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let harness = wide(root.path()).await;
    let damaged = harness.trigger("all.total").await.run_id;
    let path = stored(root.path(), damaged).await;
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("raw/parts", "raw/party", 1)).unwrap();
    let cut = harness.trigger("all.total").await.run_id;
    let path = stored(root.path(), cut).await;
    fs::write(&path, &text.as_bytes()[..text.len() / 2]).unwrap();
    let missing = harness.trigger("all.total").await.run_id;
    fs::remove_file(stored(root.path(), missing).await).unwrap();
    let well = harness.trigger("raw.one").await.run_id;
    let noted: Arc<Noted> = Arc::default();
    let slots = executor(&harness, &noted);
    assert_eq!(harness.ended(well).await.state, RunState::Succeeded);
    for (run, why) in [(damaged, "with the hash"), (cut, "with the hash"), (missing, "it is not there")] {
        assert_eq!(harness.ended(run).await.state, RunState::Succeeded, "the next attempt is stored anew");
        let task = harness.task(run, "all/total:materialize").await;
        assert_eq!(task.attempts.len(), 2);
        let error = serde_json::to_value(&task.attempts).unwrap().to_string();
        assert!(error.contains("INTERNAL_ERROR") && error.contains("the stored work"), "{error}");
        assert!(error.contains(why), "{error}");
    }
    slots.abort().await;
    harness.close().await;
}

#[tokio::test]
async fn a_message_that_is_handed_out_again_after_a_restart_refers_to_the_same_work() {
    let root = tempfile::tempdir().unwrap();
    let harness = wide(root.path()).await;
    let run = harness.trigger("all.total").await.run_id;
    let (_, first) = leased(&harness).await;
    fs::remove_file(stored(root.path(), run).await).unwrap();
    harness.close().await;
    let harness = Harness::with(root.path(), Setting { deploy: false, ..by_hand() }).await;
    let (_, mut again) = leased(&harness).await;
    assert_eq!((&again.work_ref, again.attempt_id), (&first.work_ref, first.attempt_id));
    let wanted = again.work_ref.clone().unwrap();
    let token = again.credential();
    let fetched = harness.client.work(&token, "remote-1", &wanted).await.unwrap().expect("it is there again");
    again.attach_work(fetched).unwrap();
    harness.close().await;
}

#[tokio::test]
async fn a_called_worker_gets_the_addresses_of_every_partition_of_a_call_with_its_work() {
    let root = tempfile::tempdir().unwrap();
    let harness = wide(root.path()).await;
    let body = json!({ "selection": "all.calls", "partitions": { "ranges": ["part-00000..part-00059"] } });
    let accepted = harness.post("runs", &body).await.accepted();
    let run: RunId = accepted["run_id"].as_str().unwrap().parse().unwrap();
    let message = harness.taken("default").await;
    assert!(message.body.len() <= MAX_ENVELOPE, "{} bytes", message.body.len());
    register(&harness, "called-1").await;
    let listening = Listening::start().await;
    let noted: Arc<Noted> = Arc::default();
    let function: Arc<dyn TaskFunction> = noted.clone();
    let slots =
        Executor { function, ..called_workers::executor(&harness, &listening, &Arc::default()) }.start();
    let called = called_workers::with_key(&harness, &listening.url());
    assert_eq!(within(called.push(&"default".into(), &message)).await, Ok(PushReply::Acked));
    let ended = harness.ended(run).await;
    assert_eq!((ended.state, ended.tasks_succeeded), (RunState::Succeeded, 60));
    let ran = std::mem::take(&mut *noted.0.lock().unwrap());
    assert_eq!(ran.len(), 60);
    assert!(
        ran.iter().all(|task| task.work.is_some() && task.callbacks.is_some() && task.task_token.is_empty())
    );
    slots.abort().await;
    listening.stop().await;
    harness.close().await;
}
