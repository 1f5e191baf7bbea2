//! Those who touch the log without being a node: a version of long ago, one of tomorrow, and slow readers.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use servo_core::{EventId, Timestamp};
use servo_engine::event::encode_batch;
use servo_engine::{Attempt, Engine, Input, Outcome, Report, State, TriggerRun};
use servo_projections::Projection;
use servo_store::{CountingPutIds, ErrorKind, FileLog, Log, PutIds, Record};

use crate::audit::Batch;
use crate::disk;
use crate::faults::Fault;
use crate::graphs;
use crate::judge;
use crate::machine::{Footing, START, true_time};
use crate::scenario::{SECOND, Storage};
use crate::site::Site;

/// What events of the first version did not say.
const CAME_LATER: [&str; 6] = ["outputs", "usage", "progress", "config", "since", "silent_since"];

/// Lets the log begin with a run that an old version wrote, before any node starts.
pub async fn old_version(site: Site) {
    site.faults.count(Fault::OldEvents);
    let process = site.world.process(site.lane, "old version");
    let footing = Footing { world: site.world.clone(), lane: site.lane, process };
    let Ok(stores) = site.stores(&footing, &site.judges_files()) else { return };
    let ids = CountingPutIds::new(7);
    for (payload, seq) in old_batches(&site).into_iter().zip(1..) {
        let record = Record { seq, epoch: 1, put_id: ids.next(), payload };
        while stores.log.append(record.clone()).await.is_err() {
            site.world.sleep(site.lane, SECOND).await;
        }
    }
}

/// One run from its request to its end, in the words of the first version.
fn old_batches(site: &Site) -> Vec<Bytes> {
    let (tenant, workspace) = (site.layout.tenant(), site.layout.workspace());
    let state = State::new(tenant.clone(), workspace.clone(), site.scenario.settings.clone());
    let mut engine = Engine::new(state, *b"an old secret");
    let plan = graphs::plan(tenant, workspace, site.scenario.seed, 500);
    let long_ago = Timestamp::from_millis(START - 3_600_000);
    let mut batches = Vec::new();
    let mut inputs = vec![Input::Trigger(TriggerRun::new("of old", plan, "me"))];
    for _ in 0..40 {
        let step = engine.step(&inputs, long_ago);
        if !step.events.is_empty() {
            let mut payload = Vec::new();
            encode_batch(&step.events, &mut payload);
            batches.push(simplified(&payload));
        }
        inputs = step
            .effects
            .into_iter()
            .flat_map(|servo_engine::Effect::Enqueue(dispatch)| play(dispatch.attempt))
            .collect();
        if inputs.is_empty() {
            break;
        }
    }
    batches
}

fn play(attempt: Attempt) -> [Input; 2] {
    [
        Input::Started(attempt.clone(), "old-worker".into()),
        Input::Finished(attempt, Report::new(Outcome::Succeeded)),
    ]
}

fn simplified(payload: &[u8]) -> Bytes {
    let mut events: Vec<Value> = serde_json::from_slice(payload).unwrap_or_default();
    for event in &mut events {
        if let Some(payload) = event["payload"].as_object_mut() {
            CAME_LATER.iter().for_each(|field| drop(payload.remove(*field)));
        }
    }
    Bytes::from(Value::Array(events).to_string())
}

/// A newer node commits something that nobody here understands.
pub async fn new_version(site: Site) {
    // Files have one writer.
    if site.scenario.storage == Storage::Disk {
        return;
    }
    let process = site.world.process(site.lane, "new version");
    let footing = Footing { world: site.world.clone(), lane: site.lane, process };
    let Ok(stores) = site.stores(&footing, &site.judges_files()) else { return };
    let ids = CountingPutIds::new(9_000_000 + u64::from(process));
    for _ in 0..3 {
        let Some(last) = site.audit.book(&site.prefix()).batches.last().cloned() else { return };
        let Some(event) = last_event(&last).and_then(EventId::next) else { return };
        let payload = json!([{
            "event_id": event.to_string(),
            "event_type": "MoonPhaseChanged",
            "event_version": 3,
            "timestamp": Timestamp::from_millis(true_time(&site.world)).to_string(),
            "source": "tomorrow",
            "tenant_id": site.layout.tenant().as_str(),
            "workspace_id": site.layout.workspace().as_str(),
            "idempotency_key": format!("moon:{event}"),
            "payload": { "phase": "full" },
        }]);
        let record = Record {
            seq: last.seq + 1,
            epoch: last.epoch,
            put_id: ids.next(),
            payload: Bytes::from(payload.to_string()),
        };
        if stores.log.append(record).await.is_ok() {
            site.faults.count(Fault::NewEvents);
            return;
        }
    }
}

fn last_event(batch: &Batch) -> Option<EventId> {
    let events: Vec<Value> = serde_json::from_slice(&batch.payload).ok()?;
    events.last()?["event_id"].as_str()?.parse().ok()
}

/// Reads the whole log and the tables, so slowly that some of it is deleted meanwhile. What is read must be right, or
/// be refused.
pub async fn slow_reader(site: Site) {
    let process = site.world.process(site.lane, "reader");
    let footing = Footing { world: site.world.clone(), lane: site.lane, process };
    let files = site.judges_files();
    let (log, blobs): (Arc<dyn Log>, _) = match site.scenario.storage {
        Storage::Bucket => match site.stores(&footing, &files) {
            Ok(stores) => (stores.log, stores.blobs),
            Err(_) => return,
        },
        Storage::Disk => {
            match FileLog::open_read_only_with(Arc::new(files.clone()), disk::ROOT, &site.layout) {
                Ok(log) => (Arc::new(log), site.file_blobs(&files)),
                Err(_) => return,
            }
        }
    };
    let tables = Projection::open_latest(blobs, site.layout.clone()).await.ok().flatten();
    let mut next = log.boundary().await.unwrap_or(1);
    let mut reading = log.read(next);
    while let Some(read) = reading.next().await {
        let nap = site.world.roll(site.lane, |dice| dice.within(0..8 * SECOND));
        match read {
            Ok(record) => {
                let known = site.audit.book(&site.prefix()).batches;
                // On a disk a reader may see a batch a moment before it is durable.
                let is_right = known.get(next as usize - 1).is_none_or(|batch| *batch == Batch::of(&record));
                if record.seq != next || !is_right {
                    site.audit.complain(format!("a reader was given a wrong batch {}", record.seq));
                }
                next += 1;
            }
            Err(error) => {
                if error.kind() == ErrorKind::Corrupt {
                    site.audit.complain(format!("a reader was told that the log is damaged: {error}"));
                } else if error.kind() == ErrorKind::NotFound {
                    site.faults.count(Fault::DeletedUnderReader);
                }
                break;
            }
        }
        site.world.sleep(site.lane, nap).await;
    }
    let Some(tables) = tables else { return };
    let last = tables.manifest().watermarks.last_seq as usize;
    match tables.hot_rows().await {
        Ok(rows) => {
            let batches = site.audit.book(&site.prefix()).batches;
            let expected =
                batches.get(..last).map(|prefix| judge::fold(&site, prefix).map(|state| state.rows()));
            if expected != Some(Ok(rows)) {
                site.audit
                    .complain(format!("a reader of old tables was shown something else than batch {last}"));
            }
        }
        // Its files are gone, and it was told.
        Err(_) => site.faults.count(Fault::DeletedUnderReader),
    }
}
