//! A small workspace in memory: the tables that the targets damage.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use servo_core::{TaskKey, Timestamp};
use servo_engine::rows::RunRow;
use servo_engine::{
    Caller, CancelRun, Engine, HotRows, Input, Plan, SettingOrigin, Settings, StartWith, State, TaskOptions,
    TaskRequest, TriggerRun,
};
use servo_projections::{Compactor, Error, Limits, Manifest, Projection, RunFilter};
use servo_store::{Blobs, CountingPutIds, Layout, MemoryBlobs};

use crate::runtime::wait;

/// The layout of the fuzzed workspace.
pub(crate) fn layout() -> Layout {
    Layout::new("acme".parse().expect("a tenant"), "main".parse().expect("a workspace"))
}

/// Tables with a run that goes on and runs that ended.
pub(crate) struct Tables {
    pub(crate) manifest: Manifest,
    pub(crate) files: BTreeMap<String, Bytes>,
}

/// The rows read from tables.
#[derive(Debug, PartialEq)]
pub(crate) struct Rows {
    hot: HotRows,
    ended: Vec<RunRow>,
}

pub(crate) static TABLES: LazyLock<Tables> = LazyLock::new(|| wait(make()));

/// Reads all that there is.
pub(crate) async fn read(projection: &Projection) -> Result<Rows, Error> {
    let hot = projection.hot_rows().await?;
    let ended = projection.runs_after(None, 100, &RunFilter::default()).await?;
    for run in &ended {
        projection.run(run.run_id).await?;
        projection.tasks_of(run).await?;
        projection.edges_of(run).await?;
    }
    Ok(Rows { hot, ended })
}

/// A store with these files.
pub(crate) async fn store(files: &BTreeMap<String, Bytes>) -> Arc<dyn Blobs> {
    let blobs: Arc<dyn Blobs> = Arc::new(MemoryBlobs::in_memory(&layout()));
    for (name, bytes) in files {
        // A manifest may name a file in a way that no store takes.
        drop(blobs.put(name, bytes.clone()).await);
    }
    blobs
}

async fn make() -> Tables {
    let blobs = store(&BTreeMap::new()).await;
    let put_ids = Arc::new(CountingPutIds::new(1));
    let opened = Compactor::open(Arc::clone(&blobs), layout(), 1, Limits::default(), put_ids).await;
    let mut compactor = opened.expect("an empty workspace");
    // Of runs that ended only the last stays in memory; the others are history.
    let settings = Settings { recent_runs: 1, ..Settings::default() };
    let state = State::new(layout().tenant().clone(), layout().workspace().clone());
    let mut engine = Engine::new(state, *b"secret");
    let mut seq = 0;
    let start = StartWith::differing(&settings, SettingOrigin::Flag);
    advance(&mut engine, &mut seq, Input::StartWith(start));
    for (key, is_cancelled) in [("first", true), ("second", true), ("third", true), ("fourth", false)] {
        let trigger = Input::Trigger(TriggerRun::new(key, plan(), "me"));
        advance(&mut engine, &mut seq, trigger);
        let open = engine.state().runs().find(|run| !run.state.is_terminal()).map(|run| run.id);
        if let (true, Some(run_id)) = (is_cancelled, open) {
            let (caller, reason) = (Caller::user("me"), "enough".to_owned());
            advance(&mut engine, &mut seq, Input::Cancel(CancelRun { run_id, caller, reason, force: false }));
        }
        let delta = engine.state_mut().take_delta();
        compactor.flush(delta, Timestamp::from_millis(9)).await.expect("memory does not fail");
    }
    let projection = Projection::open_latest(Arc::clone(&blobs), layout()).await;
    let projection = projection.expect("good tables").expect("something has been published");
    let manifest = Manifest::clone(projection.manifest());
    let rows = read(&projection).await.expect("good tables");
    assert!(!rows.hot.runs.is_empty() && !rows.ended.is_empty(), "there is something to damage");
    let mut files = BTreeMap::new();
    for (_, file) in manifest.files() {
        files.insert(file.path.clone(), blobs.get(&file.path).await.expect("a file of the manifest"));
    }
    Tables { manifest, files }
}

fn advance(engine: &mut Engine, seq: &mut u64, input: Input) {
    *seq += 1;
    let now = Timestamp::from_millis(seq.cast_signed());
    let step = engine.step(&[input], now);
    assert!(!step.events.is_empty(), "the engine does as it is asked");
}

fn plan() -> Plan {
    let task = |key: &str, upstream: &[&str]| TaskRequest {
        key: TaskKey::parse(key).expect("a key"),
        upstream: upstream.iter().map(|key| TaskKey::parse(key).expect("a key")).collect(),
        options: TaskOptions::default(),
    };
    let tasks = vec![
        task("raw/flights:materialize", &[]),
        task("analytics/delays[date=d:2013-01-15]:materialize", &["raw/flights:materialize"]),
    ];
    Plan::build(layout().tenant(), layout().workspace(), tasks, 100).expect("a plan without cycles")
}
