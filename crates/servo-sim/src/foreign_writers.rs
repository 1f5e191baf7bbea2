//! Foreign processes that touch the log: an older version, a newer version, and slow readers.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use servo_core::{EventId, Millis, Timestamp};
use servo_engine::event::encode_batch;
use servo_engine::outputs::Usage;
use servo_engine::{
    Attempt, Caller, CancelRun, Effect, Engine, Event, EventData, Input, Outcome, Progress, Report, State,
    TriggerRun,
};
use servo_projections::Projection;
use servo_runtime::Error;
use servo_store::{CountingPutIds, ErrorKind, FileLog, Log, PutIds, Record};

use crate::audit::Batch;
use crate::cluster::Cluster;
use crate::disk;
use crate::faults::{Fault, Faults};
use crate::graphs;
use crate::machine::true_time;
use crate::scenario::{SECOND, Storage};
use crate::verification;

/// Writes the beginning of the log as an old version would, before any node starts.
pub async fn old_version(cluster: Cluster) {
    let spawner = cluster.spawner("old version");
    let Ok(stores) = cluster.stores(&spawner, &cluster.checkers_files()) else { return };
    let ids = CountingPutIds::new(7);
    for (payload, seq) in old_batches(&cluster).into_iter().zip(1..) {
        let record = Record { seq, epoch: 1, put_id: ids.next(), payload };
        while stores.log.append(record.clone()).await.is_err() {
            cluster.world.sleep(cluster.domain, SECOND).await;
        }
    }
}

/// A run whose first workers fell silent, and one that was cancelled by force, as the first version wrote them.
fn old_batches(cluster: &Cluster) -> Vec<Bytes> {
    let (tenant, workspace) = (cluster.layout.tenant(), cluster.layout.workspace());
    let state = State::new(tenant.clone(), workspace.clone());
    let plan = |number| graphs::plan(tenant, workspace, cluster.scenario.seed, number);
    let mut old = OldNode {
        faults: cluster.faults.clone(),
        engine: Engine::new(state, *b"an old secret"),
        now: Timestamp::from_millis(cluster.world.start() - 24 * 3_600_000),
        batches: Vec::new(),
    };
    let silent = old.step(&[Input::Trigger(TriggerRun::new("of old", plan(500), "me"))]);
    old.step(&silent.iter().flat_map(|attempt| old.begin(attempt)).collect::<Vec<_>>());
    let mut waiting = Vec::new();
    for _ in 0..40 {
        old.now = old.now.saturating_add(Millis::from_minutes(10));
        let ended: Vec<Input> = waiting.iter().flat_map(|attempt| old.do_all(attempt)).collect();
        waiting = old.step(&ended);
    }
    let stopped = old.step(&[Input::Trigger(TriggerRun::new("stopped", plan(501), "me"))]);
    old.step(&stopped.iter().flat_map(|attempt| old.begin(attempt)).collect::<Vec<_>>());
    if let Some(Attempt { run_id, .. }) = stopped.first() {
        let (caller, reason) = (Caller::user("me"), String::new());
        old.step(&[Input::Cancel(CancelRun { run_id: *run_id, caller, reason, force: true })]);
    }
    old.batches
}

/// A node of an older version.
struct OldNode {
    faults: Faults,
    engine: Engine,
    now: Timestamp,
    batches: Vec<Bytes>,
}

impl OldNode {
    /// Decides inputs and appends the events; returns the attempts it gave to queues.
    fn step(&mut self, inputs: &[Input]) -> Vec<Attempt> {
        let mut step = self.engine.step(inputs, self.now);
        if step.events.iter_mut().map(simplify).filter(|simpler| *simpler).count() > 0 {
            self.faults.count(Fault::OldEvents);
        }
        if !step.events.is_empty() {
            let mut payload = Vec::new();
            encode_batch(&step.events, &mut payload);
            self.batches.push(Bytes::from(payload));
        }
        step.effects.iter().filter_map(Effect::dispatch).map(|dispatch| dispatch.attempt.clone()).collect()
    }

    fn begin(&self, attempt: &Attempt) -> [Input; 2] {
        let progress = Some(Progress { ppm: 1, message: "soon".to_owned() });
        [
            Input::Started(attempt.clone(), "old-worker".into()),
            Input::Heartbeat(attempt.clone(), self.now, progress),
        ]
    }

    fn do_all(&self, attempt: &Attempt) -> Vec<Input> {
        let report = Report { usage: Some(Usage::default()), ..Report::new(Outcome::Succeeded) };
        let end = Input::Finished(attempt.clone(), report);
        self.begin(attempt).into_iter().chain([end]).collect()
    }
}

/// Removes fields that events of the first version did not have; whether there were any.
fn simplify(event: &mut Event) -> bool {
    let before = event.data.clone();
    if let EventData::TaskHeartbeat(heartbeat) = &mut event.data {
        heartbeat.progress = None;
    } else if let EventData::TaskFinished(finished) = &mut event.data {
        finished.outputs = Arc::default();
        finished.usage = None;
    } else if let EventData::TimerFired(fired) = &mut event.data {
        fired.since = None;
    } else if let EventData::RunCancelRequested(cancel) = &mut event.data {
        cancel.silent_since = None;
    }
    event.idempotency_key = event.data.idempotency_key();
    event.data != before
}

/// Appends an event of a newer version to a log at rest, and starts a node: it must refuse the log and leave it alone.
pub async fn new_version(cluster: Cluster) -> Option<String> {
    let spawner = cluster.spawner("new version");
    let stores = cluster.stores(&spawner, &cluster.checkers_files()).ok()?;
    let batches = cluster.audit.workspace(&cluster.prefix()).batches;
    let last = batches.last()?;
    let event = batches.iter().rev().find_map(last_event).and_then(EventId::next)?;
    let payload = json!([{
        "event_id": event.to_string(),
        "event_type": "MoonPhaseChanged",
        "event_version": 3,
        "timestamp": Timestamp::from_millis(true_time(&cluster.world)).to_string(),
        "source": "tomorrow",
        "tenant_id": cluster.layout.tenant().as_str(),
        "workspace_id": cluster.layout.workspace().as_str(),
        "idempotency_key": format!("moon:{event}"),
        "payload": { "phase": "full" },
    }]);
    let record = Record {
        seq: last.seq + 1,
        epoch: last.epoch,
        put_id: CountingPutIds::new(9_000_000 + u64::from(spawner.process)).next(),
        payload: Bytes::from(payload.to_string()),
    };
    stores.log.append(record).await.ok()?;
    drop(stores);
    cluster.faults.count(Fault::NewEvents);
    let opened = cluster.open_once().await;
    let after = cluster.audit.workspace(&cluster.prefix()).batches.len();
    match opened {
        Err(Error::NewerLog { event, .. }) if event.event_type == "MoonPhaseChanged" => {
            (after != batches.len() + 1).then(|| "a node that refused the log has written to it".to_owned())
        }
        Err(error) => Some(format!("a log of a newer version was refused for another reason: {error}")),
        Ok(()) => Some("a node has opened a log of a newer version to write to it".to_owned()),
    }
}

fn last_event(batch: &Batch) -> Option<EventId> {
    let events: Vec<Value> = serde_json::from_slice(&batch.payload).ok()?;
    events.last()?["event_id"].as_str()?.parse().ok()
}

/// Reads the whole log and the tables, so slowly that parts are deleted meanwhile. Every read must be right, or
/// refused.
pub async fn slow_reader(cluster: Cluster) {
    let spawner = cluster.spawner("reader");
    let files = cluster.checkers_files();
    let (log, blobs): (Arc<dyn Log>, _) = match cluster.scenario.storage {
        Storage::Bucket => match cluster.stores(&spawner, &files) {
            Ok(stores) => (stores.log, stores.blobs),
            Err(_) => return,
        },
        Storage::Disk => {
            match FileLog::open_read_only_with(Arc::new(files.clone()), disk::ROOT, &cluster.layout) {
                Ok(log) => (Arc::new(log), cluster.file_blobs(&files)),
                Err(_) => return,
            }
        }
    };
    let tables = Projection::open_latest(blobs.clone(), cluster.layout.clone()).await.ok().flatten();
    let mut next = log.boundary().await.unwrap_or(1);
    let mut reading = log.read(next);
    while let Some(read) = reading.next().await {
        let nap = cluster.world.roll(cluster.domain, |rng| rng.within(0..8 * SECOND));
        match read {
            Ok(record) => {
                let known = cluster.audit.workspace(&cluster.prefix()).batches;
                // On a disk a reader may see a batch a moment before it is durable.
                let is_right = known.get(next as usize - 1).is_none_or(|batch| *batch == Batch::of(&record));
                if record.seq != next || !is_right {
                    cluster.audit.report(format!("a reader was given a wrong batch {}", record.seq));
                }
                next += 1;
            }
            Err(error) => {
                if error.kind() == ErrorKind::Corrupt {
                    cluster.audit.report(format!("a reader was told that the log is damaged: {error}"));
                } else if error.kind() == ErrorKind::NotFound {
                    cluster.faults.count(Fault::DeletedUnderReader);
                }
                break;
            }
        }
        cluster.world.sleep(cluster.domain, nap).await;
    }
    let Some(tables) = tables else { return };
    let last = tables.manifest().watermarks.last_seq as usize;
    match tables.hot_rows().await {
        Ok(rows) => {
            let batches = cluster.audit.workspace(&cluster.prefix()).batches;
            let expected = batches
                .get(..last)
                .map(|prefix| verification::fold(&cluster, prefix).map(|state| state.rows()));
            if expected != Some(Ok(rows)) {
                cluster
                    .audit
                    .report(format!("a reader of old tables was shown something else than batch {last}"));
            }
        }
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            let newest = Projection::open_latest(blobs, cluster.layout.clone()).await.ok().flatten();
            if newest.is_some_and(|newest| tables.manifest().revision <= newest.manifest().boundary) {
                // Its files are gone, and it was told.
                cluster.faults.count(Fault::DeletedUnderReader);
            } else {
                cluster.audit.report(format!("a reader was told that tables are damaged: {error}"));
            }
        }
        Err(_) => {}
    }
}
