//! Reads: every run once, newest first, wherever it is kept at that moment, and only what is durable.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use servo_core::RunId;
use servo_engine::rows::RunRow;
use servo_engine::{RunState, SettingOrigin, TaskState, TriggerRun};
use servo_projections::RunFilter;
use servo_runtime::{Config, Workspace};
use servo_store::testing::WrapsBlobs;
use servo_store::{BlobError, Blobs, MemoryFault};

use crate::support::*;

fn forgetful(config: &mut Config) {
    config.start_with.adjust(SettingOrigin::Flag, |settings| settings.recent_runs = 5);
    config.flush_every = Duration::from_millis(5);
}

/// All runs, page by page. Checks the order on the way.
async fn all_pages(workspace: &Workspace, limit: usize, filter: &RunFilter) -> Vec<RunRow> {
    let mut all: Vec<RunRow> = Vec::new();
    loop {
        let before = all.last().map(|run| run.requested_event_id);
        let page = workspace.runs(before, limit, filter.clone()).await.unwrap();
        assert!(page.len() <= limit);
        let end = page.len() < limit;
        for run in page {
            let above = all.last().map(|above| above.requested_event_id);
            assert!(above.is_none_or(|above| run.requested_event_id < above), "newest first, each once");
            assert!(filter.accepts_row(&run));
            all.push(run);
        }
        if end {
            return all;
        }
    }
}

fn ids(runs: &[RunRow]) -> BTreeSet<RunId> {
    runs.iter().map(|run| run.run_id).collect()
}

const RUNS: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_show_every_run_once_and_newest_first_at_every_moment() {
    let root = tempfile::tempdir().unwrap();
    let harness = Arc::new(Harness::open(directory(root.path()), forgetful).await.unwrap());
    harness.script.let_task("b", Behaviour::Fail(u32::MAX));
    let acknowledged: Arc<Mutex<BTreeSet<RunId>>> = Arc::default();
    let finished = Arc::new(AtomicBool::new(false));
    let pagers: Vec<_> = [3, 50]
        .into_iter()
        .map(|limit| {
            let (harness, acknowledged, finished) = (harness.clone(), acknowledged.clone(), finished.clone());
            tokio::spawn(async move {
                let mut passes = 0;
                while !finished.load(Ordering::Acquire) {
                    let known = acknowledged.lock().unwrap().clone();
                    let shown = ids(&all_pages(&harness.workspace, limit, &RunFilter::default()).await);
                    let missed: Vec<_> = known.difference(&shown).collect();
                    assert!(missed.is_empty(), "{} of {} runs are missing", missed.len(), known.len());
                    passes += 1;
                }
                passes
            })
        })
        .collect();
    for chunk in (0..RUNS).collect::<Vec<_>>().chunks(6) {
        let work = chunk.iter().map(|i| {
            let (harness, acknowledged) = (harness.clone(), acknowledged.clone());
            async move {
                let name = if i % 10 == 0 { "b" } else { "a" };
                let run = harness.trigger(&format!("run {i}"), one(name)).await;
                acknowledged.lock().unwrap().insert(run);
                harness.ended(run).await
            }
        });
        futures::future::join_all(work).await;
    }
    finished.store(true, Ordering::Release);
    for pager in pagers {
        assert!(within(pager).await.unwrap() > 3, "pages were read while runs were finishing");
    }
    let all = all_pages(&harness.workspace, 7, &RunFilter::default()).await;
    assert_eq!(all.len(), RUNS);
    assert_eq!(ids(&all), *acknowledged.lock().unwrap());
    let failed = RunFilter { states: vec![RunState::Failed], ..RunFilter::default() };
    assert_eq!(all_pages(&harness.workspace, 7, &failed).await.len(), RUNS / 10);
    let in_memory = harness.workspace.read(|state| state.runs().count()).await.unwrap();
    assert!(in_memory <= 5, "memory is bounded by active work");
    assert!(
        harness
            .workspace
            .runs(Some(all[RUNS - 1].requested_event_id), 7, RunFilter::default())
            .await
            .unwrap()
            .is_empty()
    );
    assert!(harness.workspace.runs(None, 0, RunFilter::default()).await.unwrap().is_empty());
    harness.assert_replay_is_live().await;
    Arc::into_inner(harness).unwrap().close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_found_with_its_tasks_and_edges_wherever_it_is() {
    let root = tempfile::tempdir().unwrap();
    let harness = Arc::new(Harness::open(directory(root.path()), forgetful).await.unwrap());
    let acknowledged: Arc<Mutex<Vec<RunId>>> = Arc::default();
    let finished = Arc::new(AtomicBool::new(false));
    let looking = tokio::spawn({
        let (harness, acknowledged, finished) = (harness.clone(), acknowledged.clone(), finished.clone());
        async move {
            let mut looked = 0;
            while !finished.load(Ordering::Acquire) {
                let known = acknowledged.lock().unwrap().clone();
                // The youngest are in memory, those after them on their way to history, the rest there.
                for run in known.iter().rev().take(12).chain(known.first()) {
                    let detail = harness.workspace.run(*run).await.unwrap().expect("it was acknowledged");
                    assert_eq!((detail.tasks.len(), detail.edges.len()), (4, 4));
                    assert!(detail.tasks.iter().all(|task| task.run_id == *run));
                    looked += 1;
                }
            }
            looked
        }
    });
    for chunk in (0..60).collect::<Vec<_>>().chunks(3) {
        let work = chunk.iter().map(|i| {
            let (harness, acknowledged) = (harness.clone(), acknowledged.clone());
            async move {
                let run = harness.trigger(&format!("run {i}"), diamond()).await;
                acknowledged.lock().unwrap().push(run);
                harness.ended(run).await
            }
        });
        for detail in futures::future::join_all(work).await {
            assert!(task_states(&detail).values().all(|state| *state == TaskState::Succeeded));
            assert!(detail.edges.iter().all(|edge| edge.satisfied));
        }
    }
    finished.store(true, Ordering::Release);
    assert!(within(looking).await.unwrap() > 50);
    let runs = acknowledged.lock().unwrap().clone();
    let before: Vec<_> = futures::future::join_all(runs.iter().map(|run| harness.workspace.run(*run))).await;
    assert!(
        harness.workspace.run(RunId::from_u128(1)).await.unwrap().is_none(),
        "what never was is not found"
    );
    Arc::into_inner(harness).unwrap().close().await;
    let harness = Harness::open(directory(root.path()), forgetful).await.unwrap();
    for (run, before) in runs.iter().zip(before) {
        assert_eq!(harness.workspace.run(*run).await.unwrap(), before.unwrap(), "the same after a restart");
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_waits_for_no_commit_and_never_shows_what_is_not_durable() {
    let (log, stores) = memory();
    let harness = Harness::open(stores, |_| {}).await.unwrap();
    let before = harness.run("durable", one("a")).await.run.run_id;
    // The first request is held back in the log and then taken, the second is refused.
    let (reached, is_reached) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let mut requests = 0;
    log.choose(move |record| {
        let requested = record.payload.windows(12).any(|text| text == b"RunRequested");
        requests += usize::from(requested);
        match (requested, requests) {
            (true, 1) => {
                reached.send(()).unwrap();
                may_go_on.recv().unwrap();
                None
            }
            (true, 2) => Some(MemoryFault::Full),
            (_, _) => None,
        }
    });
    let trigger = |key: &str| Box::pin(harness.workspace.trigger(TriggerRun::new(key, one("a"), "test")));
    let page = || Box::pin(harness.workspace.runs(None, 10, RunFilter::default()));
    // Polling a request puts it into the queue, in this order.
    let mut held = trigger("held");
    assert!(futures::poll!(&mut held).is_pending());
    tokio::task::spawn_blocking(move || is_reached.recv_timeout(PATIENCE).unwrap()).await.unwrap();
    let mut refused = trigger("refused");
    assert!(futures::poll!(&mut refused).is_pending());
    let early = within(page()).await.unwrap();
    assert_eq!(ids(&early), BTreeSet::from([before]), "what was decided is not shown before it is durable");
    let earlier = harness.workspace.snapshot();
    go_on.send(()).unwrap();
    let held = within(held).await.unwrap().run_id;
    let runs = harness.workspace.runs(None, 10, RunFilter::default()).await.unwrap();
    assert_eq!(ids(&runs), BTreeSet::from([before, held]), "whoever was answered sees what they asked for");
    let error = within(refused).await.unwrap_err();
    assert!(error.to_string().contains("no space left"), "{error}");
    assert!(error.is_transient());
    let runs = harness.workspace.runs(None, 10, RunFilter::default()).await.unwrap();
    assert_eq!(ids(&runs), BTreeSet::from([before, held]), "what was refused never was");
    harness.assert_replay_is_live().await;
    assert_eq!(harness.run("refused", one("a")).await.run.state, RunState::Succeeded, "asking again is safe");
    let in_earlier: BTreeSet<_> = earlier.state().runs().map(|run| run.id).collect();
    assert_eq!(in_earlier, BTreeSet::from([before]), "a snapshot does not change");
    harness.close().await;
}

/// Blobs that hold writes of tables back while a gate is closed.
struct Gated {
    inner: Arc<dyn Blobs>,
    gate: tokio::sync::watch::Receiver<bool>,
    held: tokio::sync::watch::Sender<u64>,
}

#[async_trait]
impl WrapsBlobs for Gated {
    fn inside(&self) -> &Arc<dyn Blobs> {
        &self.inner
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        let mut gate = self.gate.clone();
        // Looked at once: whoever is held back is counted.
        let is_open = *gate.borrow();
        if !is_open {
            self.held.send_modify(|held| *held += 1);
            gate.wait_for(|open| *open).await.unwrap();
        }
        self.inner.put(name, bytes).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_during_a_flush_hides_no_run() {
    let (log, mut stores) = memory();
    let (open_gate, gate) = tokio::sync::watch::channel(true);
    let (held, mut is_held) = tokio::sync::watch::channel(0);
    stores.blobs = Arc::new(Gated { inner: stores.blobs.clone(), gate, held });
    let harness = Harness::open(stores, |config| {
        config.start_with.adjust(SettingOrigin::Flag, |settings| settings.recent_runs = 1);
        config.flush_every = Duration::from_millis(1);
    })
    .await
    .unwrap();
    let mut runs = BTreeSet::new();
    for round in 0..15 {
        let seen = *is_held.borrow_and_update();
        open_gate.send(false).unwrap();
        // Runs leave memory; the flush that takes them along is held back half way.
        for i in 0..3 {
            runs.insert(harness.run(&format!("run {round} {i}"), one("a")).await.run.run_id);
        }
        within(is_held.wait_for(|held| *held > seen)).await.unwrap();
        // Meanwhile the log refuses once, and everything is loaded again.
        log.plan([Some(MemoryFault::Full)]);
        let request = || TriggerRun::new(format!("refused {round}"), one("a"), "test");
        assert!(within(harness.workspace.trigger(request())).await.is_err());
        runs.insert(harness.run(&format!("refused {round}"), one("a")).await.run.run_id);
        let check = async |when: &str| {
            let shown = ids(&all_pages(&harness.workspace, 4, &RunFilter::default()).await);
            assert_eq!(shown, runs, "round {round}, {when}");
        };
        check("while the flush is held back").await;
        let revision = || harness.workspace.manifest().map(|manifest| manifest.revision);
        let held_at = revision();
        open_gate.send(true).unwrap();
        for _ in 0..20 {
            check("while the flush ends").await;
        }
        // Whoever is held back must see the gate open before it closes again.
        eventually("the flush has ended", async || revision() > held_at).await;
    }
    let stores = harness.stores.clone();
    harness.close().await;
    assert_tables_verify(&stores).await;
}

/// The last batch that the tables have.
fn written(workspace: &Workspace) -> u64 {
    workspace.manifest().map_or(0, |manifest| manifest.watermarks.last_seq)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_written_when_somebody_waits_for_them() {
    let root = tempfile::tempdir().unwrap();
    let never = |config: &mut Config| config.flush_every = Duration::from_secs(3_600);
    let harness = Harness::open(directory(root.path()), never).await.unwrap();
    for name in ["first", "second"] {
        let run = harness.trigger(name, one("a")).await;
        harness.ended(run).await;
        let durable = harness.workspace.read(|state| state.head().seq).await.unwrap();
        assert!(written(&harness.workspace) < durable, "nobody has asked yet");
        harness.workspace.write_tables().await.unwrap();
        eventually("they are written", async || written(&harness.workspace) >= durable).await;
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_changes_wait_less_long_for_the_tables_than_a_few() {
    let root = tempfile::tempdir().unwrap();
    let patient = |config: &mut Config| {
        config.flush_every = Duration::from_millis(5);
        config.flush_patience = 1_000_000;
    };
    let harness = Harness::open(directory(root.path()), patient).await.unwrap();
    let first = harness.trigger("first", one("a")).await;
    harness.ended(first).await;
    let (before, few) = (written(&harness.workspace), harness.workspace.read(|state| state.head().seq));
    assert!(before < few.await.unwrap(), "a few changes wait");
    for number in 0..32 {
        let run = harness.trigger(&format!("run {number}"), one("a")).await;
        harness.ended(run).await;
    }
    eventually("many do not", async || written(&harness.workspace) > before).await;
    harness.close().await;
}
