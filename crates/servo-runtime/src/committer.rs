//! Commits: batches are made durable in order, then their consequences happen (P4).
//!
//! Under load the commit thread syncs batch n while the engine thread decides n + 1. A small batch with nothing behind
//! it is committed where it was decided, which saves two context switches per link of a chain (ADR-041).

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use servo_core::Backoff;
use servo_core::planted::{self, Mistake};
use servo_engine::event::encode_batch;
use servo_engine::{Event, Snapshot};
use servo_store::{AppendError, ErrorKind, Log, PutIds, Record};
use tokio::sync::{broadcast, watch};

use crate::compaction::{Flush, FlushTracker};
use crate::effects::Effects;
use crate::error::Error;
use crate::health::Vitals;
use crate::messages::{Commit, EngineMessage};
use crate::spawner::Spawner;

const RETRIES: u32 = 8;
const INITIAL_DELAY: Duration = Duration::from_millis(20);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// Batches decided but not yet durable: the one being synced and the one after it.
const DEPTH: usize = 2;

/// Events in a batch that is too small to hand to another thread.
const SMALL: usize = 16;

/// Tracks which generations of commits have failed.
#[derive(Debug, Default)]
pub(crate) struct CommitGenerations {
    /// Generation up to which commits are void; 0 for none.
    void: AtomicU64,
    /// Newest generation of which a batch became durable.
    durable: AtomicU64,
}

impl CommitGenerations {
    pub(crate) fn voids(&self, generation: u64) -> bool {
        self.void.load(Ordering::Acquire) >= generation
    }

    fn void(&self, generation: u64) {
        self.void.fetch_max(generation, Ordering::AcqRel);
    }

    /// Whether a batch of this generation became durable before it failed.
    pub(crate) fn made_progress(&self, generation: u64) -> bool {
        self.durable.load(Ordering::Acquire) >= generation
    }
}

pub(crate) struct Committer {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) epoch: u64,
    pub(crate) put_ids: Arc<dyn PutIds>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) generations: Arc<CommitGenerations>,
    pub(crate) effects: Effects,
    pub(crate) compactor: flume::Sender<Flush>,
    pub(crate) flushes: Arc<FlushTracker>,
    /// To wake the engine thread after a failure.
    pub(crate) engine: flume::WeakSender<EngineMessage>,
    /// For readers: the newest durable state.
    pub(crate) snapshots: watch::Sender<Arc<Snapshot>>,
    /// Subscribers of durable events.
    pub(crate) followers: broadcast::Sender<Arc<[Event]>>,
    pub(crate) vitals: Arc<Vitals>,
}

/// The engine thread's end of the pipeline: commits pass in the order in which they were decided.
pub(crate) struct Pipeline {
    committer: Arc<Committer>,
    commits: flume::Sender<Commit>,
    /// Commits handed to the commit thread that have not come out of it.
    in_flight: Arc<AtomicUsize>,
    buffer: Vec<u8>,
}

impl Pipeline {
    /// A pipeline, and the work of its commit thread: it ends when the pipeline is dropped.
    pub(crate) fn new(committer: Committer) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (commits, queue) = flume::bounded::<Commit>(DEPTH);
        let committer = Arc::new(committer);
        let in_flight = Arc::new(AtomicUsize::new(0));
        let work = {
            let (committer, in_flight) = (committer.clone(), in_flight.clone());
            async move {
                let mut buffer = Vec::new();
                while let Ok(commit) = queue.recv_async().await {
                    committer.commit(commit, &mut buffer).await;
                    in_flight.fetch_sub(1, Ordering::AcqRel);
                }
            }
        };
        (Self { committer, commits, in_flight, buffer: Vec::new() }, work)
    }

    /// Commits inline if nothing is in flight and `alone` says that nothing waits; else on the commit thread.
    pub(crate) async fn send(&mut self, commit: Commit, alone: bool) {
        if alone && commit.events.len() <= SMALL && self.in_flight.load(Ordering::Acquire) == 0 {
            self.committer.commit(commit, &mut self.buffer).await;
            return;
        }
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        // Without a commit thread there is nobody left to answer: the callers see their channels close.
        let _stopping = self.commits.send_async(commit).await;
    }
}

impl Committer {
    async fn commit(&self, commit: Commit, buffer: &mut Vec<u8>) {
        if planted::has(Mistake::EffectsBeforeDurability) {
            self.effects.begin(commit.effects.clone());
        }
        if self.generations.voids(commit.generation) {
            self.drop_delta(&commit);
            for (reply_to, _) in commit.replies {
                let _gone = reply_to.send(Err(Error::Recovering));
            }
            return;
        }
        // Beside the commit, not borrowing it: what it delivers is not to be shared.
        let durable = if commit.events.is_empty() {
            Ok(())
        } else {
            buffer.clear();
            encode_batch(&commit.events, buffer);
            self.make_durable(commit.seq, Bytes::copy_from_slice(buffer)).await
        };
        match durable {
            Ok(()) => {
                if !commit.events.is_empty() {
                    self.vitals.appended(commit.seq, self.spawner.elapsed());
                    self.generations.durable.fetch_max(commit.generation, Ordering::AcqRel);
                }
                self.release(commit);
            }
            Err(error) => self.fail(commit, error),
        }
    }

    async fn make_durable(&self, seq: u64, payload: Bytes) -> Result<(), AppendError> {
        let record = Record { seq, epoch: self.epoch, put_id: self.put_ids.next(), payload };
        let seed = record.put_id.to_u128() as u64;
        let mut backoff = Backoff::new(INITIAL_DELAY, MAX_DELAY, seed);
        for _ in 0..RETRIES {
            match self.log.append(record.clone()).await {
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    tracing::warn!(%error, seq, "log.append will be tried again");
                    self.spawner.sleep(backoff.next_delay()).await;
                }
                outcome => return outcome,
            }
        }
        self.log.append(record).await
    }

    fn release(&self, commit: Commit) {
        // First of all: whoever is answered below may look for what left memory with these changes.
        if let Some(delta) = &commit.delta {
            self.flushes.begin(delta);
        }
        // Then whoever is answered below reads what it has written.
        if let Some(snapshot) = commit.snapshot {
            self.snapshots.send_replace(snapshot);
        }
        // Then the work that can go on, which matters more than the news that some has ended.
        self.effects.begin(commit.effects);
        for (reply_to, reply) in commit.replies {
            let _gone = reply_to.send(reply.map_err(Error::Refused));
        }
        for deliver in commit.deliveries {
            deliver();
        }
        if let Some(delta) = commit.delta {
            let _stopping = self.compactor.send(Flush { delta, effects: self.effects.barrier() });
        }
        if !commit.events.is_empty() {
            self.publish(commit.events);
        }
    }

    /// Publishes events to subscribers. Costs nothing without any.
    fn publish(&self, events: Vec<Event>) {
        if self.followers.receiver_count() > 0 {
            let _gone = self.followers.send(events.into());
        }
    }

    fn drop_delta(&self, commit: &Commit) {
        if commit.delta.is_some() {
            self.flushes.abandon();
        }
    }

    fn fail(&self, commit: Commit, error: AppendError) {
        self.drop_delta(&commit);
        tracing::error!(%error, seq = commit.seq, "log.append failed, the state will be reloaded");
        self.generations.void(commit.generation);
        self.vitals.append_failed(error.to_string());
        let error = Arc::new(error);
        for (reply_to, _) in commit.replies {
            let _gone = reply_to.send(Err(Error::NotDurable(error.clone())));
        }
        // If its queue is full the engine thread is about to look anyway.
        if let Some(engine) = self.engine.upgrade() {
            let _full = engine.try_send(EngineMessage::Wake);
        }
        // The batch may have landed although its answer was lost: those who follow look at what is loaded.
        self.publish(Vec::new());
    }
}
