//! A running workspace: the handle that callers, workers and servers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use servo_core::{AssetKey, Clock, MaterializationId, Millis, PartitionKey, PutId, RunId, Timestamp};
use servo_engine::rows::{DepSetRow, EdgeRow, RunRow, TaskRow};
use servo_engine::{
    CancelRun, Change, ChangeBackfill, ChangeNamed, ChangePartitions, ChangeSettings, Command, DenyRequest,
    Deploy, Engine, Event, Input, PartitionsReply, Pause, PauseCondition, Refusal, Release, RetryNow, Review,
    Snapshot, State, Verdict,
};
use servo_projections::{Compactor, Manifest, MetadataCache};
use servo_queue::Keyring;
use servo_store::{DataError, Layout, PutIds};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, oneshot, watch};

use crate::attempt_logs::AttemptLogs;
use crate::committer::{CommitGenerations, Committer, Pipeline};
use crate::compaction::{Compaction, FlushTracker};
use crate::config::{Config, Ownership, Stores};
use crate::data::{Data, MARKER};
use crate::effects::{
    Effects, Enqueuer, FileEffects, NotifyEffects, SetAside, StuckPath, StuckPaths, release,
};
use crate::engine_loop::EngineLoop;
use crate::error::Error;
use crate::evaluations::Evaluations;
use crate::health::Vitals;
use crate::messages::{EngineMessage, ReplyTo};
use crate::ownership::{self, OwnershipGuard};
use crate::recovery::{Recovered, rebuild_context, recover};
use crate::retention;
use crate::spawner::{COMPACTOR, Spawner, TaskTracker, TrackedTasks, within};
use crate::workers::SignsOfLife;

/// A running workspace. Cheap to clone; ends with [`Workspace::shutdown`] or when the last clone is dropped.
#[derive(Clone)]
pub struct Workspace {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) inputs: flume::Sender<EngineMessage>,
    pub(crate) stores: Stores,
    pub(crate) flushes: Arc<FlushTracker>,
    pub(crate) cache: Arc<MetadataCache>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) ids: Arc<dyn PutIds>,
    pub(crate) keys: Keyring,
    pub(crate) token_lifetime: Millis,
    /// The secret that run ids are derived with.
    pub(crate) secret: Arc<[u8]>,
    pub(crate) read_only: bool,
    pub(crate) stopping: Arc<AtomicBool>,
    /// Set when no more requests are accepted.
    pub(crate) closed: Arc<AtomicBool>,
    pub(crate) data: Option<Data>,
    pub(crate) logs: Option<Arc<dyn AttemptLogs>>,
    pub(crate) vitals: Arc<Vitals>,
    /// Paths that data could not follow the log to.
    pub(crate) stuck: StuckPaths,
    pub(crate) signs_of_life: Arc<SignsOfLife>,
    pub(crate) work: TrackedTasks,
    /// Calls of functions that workers are asked for.
    pub(crate) evaluations: Arc<Evaluations>,
    /// The newest durable state.
    pub(crate) snapshots: watch::Receiver<Arc<Snapshot>>,
    /// Publishes durable events. The commit thread owns the channel: it closes when that ends.
    pub(crate) followers: broadcast::WeakSender<Arc<[Event]>>,
    /// Closes when the lease was released, after all tasks have ended.
    pub(crate) leased: flume::Receiver<()>,
}

/// How long whoever approves waits until the data is where readers look for it.
const LONGEST_RELEASE: Duration = Duration::from_secs(10);

/// Batches that a slow subscriber may lag behind before it misses some.
const SUBSCRIBER_LAG: usize = 64;

/// Closes the workspace when the engine thread ends, however it ends, so that no caller waits for it in vain.
pub(crate) struct CloseOnExit {
    pub(crate) closed: Arc<AtomicBool>,
    pub(crate) inputs: flume::Receiver<EngineMessage>,
}

impl Drop for CloseOnExit {
    fn drop(&mut self) {
        // In this order: a request that comes into the queue after it was emptied finds it closed.
        self.closed.store(true, Ordering::SeqCst);
        drop(self.inputs.drain());
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        let _full = self.inputs.try_send(EngineMessage::Wake);
    }
}

/// The state a workspace starts from.
struct Loaded {
    state: State,
    epoch: u64,
    compactor: Compactor,
    set_aside: SetAside,
    cache: Arc<MetadataCache>,
}

impl Workspace {
    /// Recovers the state and starts the workspace.
    pub async fn open(stores: Stores, config: Config) -> Result<Self, Error> {
        let held = ownership::acquire(&stores, &config).await?;
        match Self::load(&stores, &config, &held).await {
            Ok(loaded) => Ok(Self::begin(stores, config, held, loaded)),
            Err(error) => {
                held.release(config.clock.as_ref()).await;
                Err(error)
            }
        }
    }

    async fn load(stores: &Stores, config: &Config, held: &OwnershipGuard) -> Result<Loaded, Error> {
        let (state, epoch) = loop {
            let Recovered { mut state, epoch: seen, .. } = recover(stores, config).await?.writable(stores)?;
            let epoch = held.epoch_after(seen, config.clock.as_ref()).await?;
            if held.begin(stores, config, &mut state, epoch).await? {
                break (state, epoch);
            }
        };
        let cache: Arc<MetadataCache> = Arc::default();
        let compactor = Compactor::open_with_cache(
            stores.blobs.clone(),
            stores.layout.clone(),
            epoch,
            config.limits.clone(),
            config.put_ids.clone(),
            cache.clone(),
        )
        .await?;
        let set_aside = SetAside::load(stores.blobs.clone(), &state).await;
        let set_aside = set_aside.map_err(DataError::from)?;
        Ok(Loaded { state, epoch, compactor, set_aside, cache })
    }

    fn begin(stores: Stores, config: Config, held: OwnershipGuard, loaded: Loaded) -> Self {
        let Loaded { state, epoch, compactor, set_aside, cache } = loaded;
        let stuck = StuckPaths::default();
        let vitals: Arc<Vitals> = Arc::default();
        let flushes = Arc::new(FlushTracker::default());
        flushes.adopt(compactor.manifest().cloned());
        let stopping = Arc::new(AtomicBool::new(false));
        let generations = Arc::new(CommitGenerations::default());
        let (inputs, input_queue) = flume::bounded(config.input_capacity);
        let (compactor_queue, flush_queue) = flume::unbounded();
        let (waiting, dispatch_queue) = tokio::sync::mpsc::unbounded_channel();
        let followers = broadcast::Sender::new(SUBSCRIBER_LAG);
        let (snapshots, newest) = watch::channel(Arc::new(state.snapshot()));
        let weak_followers = followers.downgrade();
        let config = Arc::new(config);
        let spawner = config.spawner.clone();

        let seed = || config.put_ids.next().to_u128() as u64;
        let data = stores.data.clone().map(|root| Data { root, layout: stores.layout.clone() });
        let enqueuer = Arc::new(Enqueuer {
            queue: config.queue.clone(),
            keys: config.keys.clone(),
            clock: config.clock.clone(),
            layout: stores.layout.clone(),
            data: data.clone(),
            heartbeat_interval: config.heartbeat_interval,
            envelope_lifetime: config.envelope_lifetime,
            spawner: spawner.clone(),
            engine: inputs.downgrade(),
        });
        spawner.spawn(enqueuer.clone().run(dispatch_queue).boxed());
        let file_effects = FileEffects {
            data: data.clone(),
            logs: config.logs.clone(),
            spawner: spawner.clone(),
            linger: config.flush_every,
            stopping: stopping.clone(),
            engine: inputs.downgrade(),
            seed: seed(),
            clock: config.clock.clone(),
            set_aside,
            stuck: stuck.clone(),
        };
        let (files, following) = file_effects.start();
        let evaluations: Arc<Evaluations> = Arc::default();
        let notifications = NotifyEffects::new(config.notifier.clone(), spawner.clone(), inputs.downgrade());
        let (pipeline, committing) = Pipeline::new(Committer {
            log: stores.log.clone(),
            epoch,
            put_ids: config.put_ids.clone(),
            spawner: spawner.clone(),
            generations: generations.clone(),
            effects: Effects {
                enqueuer,
                waiting,
                files: files.clone(),
                evaluations: evaluations.clone(),
                notifications,
            },
            compactor: compactor_queue,
            flushes: flushes.clone(),
            engine: inputs.downgrade(),
            snapshots,
            followers,
            vitals: vitals.clone(),
        });
        let compaction = Compaction {
            compactor,
            blobs: stores.blobs.clone(),
            shared: config.ownership == Ownership::ByLog,
            engine: inputs.downgrade(),
            effects: files,
            seed: seed(),
            log: stores.log.clone(),
            clock: config.clock.clone(),
            spawner: spawner.clone(),
            flushes: flushes.clone(),
            keep_log_batches: config.keep_log_batches,
            stopping: stopping.clone(),
            unswept: Some(rebuild_context(&stores, &config)),
            vitals: vitals.clone(),
        };
        let signs_of_life: Arc<SignsOfLife> = Arc::default();
        let closed = Arc::new(AtomicBool::new(false));
        let close_on_exit = CloseOnExit { closed: closed.clone(), inputs: input_queue.clone() };
        let engine = EngineLoop::new(
            Engine::new(state, config.secret.clone()),
            stores.clone(),
            config.clone(),
            input_queue,
            pipeline,
            generations,
            flushes.clone(),
            stopping.clone(),
            signs_of_life.clone(),
            epoch,
        );
        let (tracker, work) = TaskTracker::new(spawner.clone());
        let (lease, leased) = flume::bounded::<()>(1);
        let deposed = {
            let (stopping, inputs) = (stopping.clone(), inputs.downgrade());
            move || {
                stopping.store(true, Ordering::Release);
                if let Some(inputs) = inputs.upgrade() {
                    let _full = inputs.try_send(EngineMessage::Wake);
                }
            }
        };
        let kept = held.keep(config.clock.clone(), spawner.clone(), work.running.clone(), deposed);
        spawner.spawn(kept.map(move |()| drop(lease)).boxed());
        tracker.thread("servo-engine", async move {
            let _last_out = close_on_exit;
            engine.run().await;
        });
        tracker.thread("servo-commit", committing);
        tracker.thread("servo-files", following);
        tracker.thread(COMPACTOR, compaction.run(flush_queue));
        let workspace = Self {
            inner: Arc::new(Inner {
                inputs,
                flushes,
                cache,
                clock: config.clock.clone(),
                spawner,
                ids: config.put_ids.clone(),
                keys: config.keys.clone(),
                token_lifetime: config.token_lifetime,
                secret: config.secret.clone(),
                read_only: false,
                stopping,
                data,
                logs: config.logs.clone(),
                vitals,
                stuck,
                signs_of_life,
                closed,
                work,
                evaluations,
                snapshots: newest,
                followers: weak_followers,
                leased,
                stores,
            }),
        };
        if config.retention {
            let applied =
                retention::apply_regularly(Arc::downgrade(&workspace.inner), config.spawner.clone());
            config.spawner.spawn(applied.boxed());
        }
        workspace
    }

    /// Cancels a run; returns when the request is durable.
    pub async fn cancel(&self, request: CancelRun) -> Result<Change, Error> {
        self.ask(request).await
    }

    /// Tries at once the tasks of a run that wait to be tried again; returns when that is durable. `Duplicate` if none
    /// does.
    pub async fn retry_now(&self, request: RetryNow) -> Result<Change, Error> {
        self.ask(request).await
    }

    /// Deploys definitions; returns when they are durable. `Duplicate` if they are deployed already.
    pub async fn deploy(&self, request: Deploy) -> Result<Change, Error> {
        self.ask(request).await
    }

    /// Adds and removes keys of dynamic partitions; returns when that is durable. `Duplicate` if nothing differs.
    pub async fn change_partitions(&self, request: ChangePartitions) -> Result<PartitionsReply, Error> {
        self.ask(request).await
    }

    /// Gives settings other values; returns when that is durable. `Duplicate` if nothing differs.
    pub async fn change_settings(&self, request: ChangeSettings) -> Result<Change, Error> {
        self.ask(request).await
    }

    /// Pauses or resumes dispatching; returns when that is durable. `Duplicate` if nothing differs.
    pub async fn pause(&self, request: Pause) -> Result<Change, Error> {
        self.ask(request).await
    }

    /// Defines, pauses, resumes or removes a schedule, a sensor or a notification rule; returns when that is durable.
    /// `Duplicate` if nothing differs.
    pub async fn change_named<C>(&self, request: ChangeNamed<C>) -> Result<Change, Error>
    where
        ChangeNamed<C>: Command<Reply = Change>,
    {
        self.ask(request).await
    }

    /// Pauses, resumes or cancels a backfill; returns when that is durable. `Duplicate` if it is so already.
    pub async fn change_backfill(&self, request: ChangeBackfill) -> Result<Change, Error> {
        self.ask(request).await
    }

    /// Pauses or resumes the automation of an asset; returns when that is durable. `Duplicate` if it is so already.
    pub async fn pause_condition(&self, request: PauseCondition) -> Result<Change, Error> {
        self.ask(request).await
    }

    /// Decides about what a check had blocked; answers when the decision is durable. What is approved counts by then,
    /// unless its data cannot be moved for the moment: then it counts as soon as it was.
    pub async fn review(&self, review: Review) -> Result<Change, Error> {
        match review.verdict {
            Verdict::Approve => self.approve(review).await,
            Verdict::Reject => self.ask(review).await,
        }
    }

    async fn approve(&self, review: Review) -> Result<Change, Error> {
        let (asset, id) = (review.asset.clone(), review.materialization_id);
        let of = asset.clone();
        let waiting = self.read(move |state| {
            let found = state.quarantine().find(|row| row.asset_key == of && row.materialization_id == id);
            found.map(|row| row.partition_key.clone())
        });
        if let (Some(partition), Some(data)) = (waiting.await?, &self.inner.data) {
            let release = Release { asset: asset.clone(), partition, materialization_id: id };
            if !release::is_there(data, &release).await? {
                return Err(Error::NothingToRelease { asset, materialization_id: id });
            }
        }
        let followed = self.subscribe();
        let reply = self.ask(review).await?;
        let _counts =
            within(self.inner.spawner.as_ref(), LONGEST_RELEASE, self.released(followed, asset, id)).await;
        Ok(reply)
    }

    /// Waits until what was approved is released.
    async fn released(
        &self,
        mut followed: broadcast::Receiver<Arc<[Event]>>,
        asset: AssetKey,
        id: MaterializationId,
    ) -> Result<(), Error> {
        loop {
            let of = asset.clone();
            let waits = self.read(move |state| {
                state.approved().any(|row| row.asset_key == of && row.materialization_id == id)
            });
            if !waits.await? {
                return Ok(());
            }
            if followed.recv().await == Err(RecvError::Closed) {
                return Err(Error::Stopped);
            }
        }
    }

    /// Where the files of a materialization are, and the record of its commit; nothing of one that stored none.
    pub async fn commit_record(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        id: MaterializationId,
    ) -> Result<Option<(String, Bytes)>, Error> {
        let Some(data) = &self.inner.data else { return Ok(None) };
        let directory = data.layout.materialization(asset, partition, id);
        let record = data.root.get(&format!("{directory}/{MARKER}")).await?;
        Ok(record.map(|record| (data.root.uri(&directory), record)))
    }

    /// A file beside the data of a materialization: none if it is not there, or larger than `most` bytes. `name` is the
    /// name of a file, never a path.
    pub async fn committed_file(
        &self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        id: MaterializationId,
        name: &str,
        most: u64,
    ) -> Result<Option<Bytes>, Error> {
        let Some(data) = &self.inner.data else { return Ok(None) };
        let path = format!("{}/{name}", data.layout.materialization(asset, partition, id));
        match data.root.size(&path).await? {
            Some(size) if size <= most => Ok(data.root.get(&path).await?),
            Some(_) | None => Ok(None),
        }
    }

    /// Waits until a run has ended. None if it is not in memory: unknown, or ended long ago.
    pub async fn wait(&self, run: RunId) -> Result<Option<RunRow>, Error> {
        loop {
            let (sender, answer) = oneshot::channel();
            self.send(EngineMessage::Watch(run, sender)).await?;
            // A closed channel means that the state was reloaded meanwhile: ask again.
            if let Some(row) = self.answered(answer).await {
                return Ok(row);
            }
        }
    }

    /// The newest durable state. Waits for nobody and holds up nobody; whoever was answered before finds in it what
    /// they have asked for.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.inner.snapshots.borrow().clone()
    }

    /// Reads the newest durable state, see [`Workspace::snapshot`].
    pub async fn read<T>(&self, read: impl FnOnce(&State) -> T) -> Result<T, Error> {
        if !self.is_open() {
            return Err(Error::Stopped);
        }
        // Nothing here waits, so that whoever reads again and again must be made to let others run.
        tokio::task::coop::consume_budget().await;
        Ok(read(self.snapshot().state()))
    }

    /// Reads the engine's own state, with its indexes, on its own thread. Answered when everything that was asked for
    /// before is durable: for those who want to know whether the engine answers, or whether it is sound. Others read
    /// snapshots.
    pub async fn inspect<T: Send + 'static>(
        &self,
        read: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, answer) = oneshot::channel();
        let query = Box::new(move |state: &State| -> Box<dyn FnOnce() + Send> {
            let value = read(state);
            Box::new(move || drop(sender.send(value)))
        });
        self.send(EngineMessage::Query(query)).await?;
        self.answered(answer).await.ok_or_else(|| self.unanswered())
    }

    /// The names of everything in its stores, and its own.
    pub fn layout(&self) -> &Layout {
        &self.inner.stores.layout
    }

    /// Records a request that was refused for want of a permission; returns the refusal when that is durable.
    pub async fn deny(&self, request: DenyRequest) -> Result<(), Error> {
        match self.ask(request).await {
            Ok(_) | Err(Error::Refused(Refusal::Forbidden { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The spawner that it runs on, with its timers.
    pub fn spawner(&self) -> &Arc<dyn Spawner> {
        &self.inner.spawner
    }

    /// The time, by the clock of this workspace.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// An unused id.
    pub(crate) fn new_id(&self) -> PutId {
        self.inner.ids.next()
    }

    /// Subscribes to durable events, one batch at a time and in order. An empty batch means that the state was
    /// reloaded. A slow subscriber misses batches and gets an error: the state has everything, read it again. Closes
    /// when the workspace ends.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<[Event]>> {
        match self.inner.followers.upgrade() {
            Some(followers) => followers.subscribe(),
            None => broadcast::channel(1).1,
        }
    }

    /// Whether it was opened to be read: nothing happens in it, and nothing will.
    pub fn is_read_only(&self) -> bool {
        self.inner.read_only
    }

    /// Whether it accepts requests.
    pub fn is_open(&self) -> bool {
        !self.inner.stopping.load(Ordering::Acquire)
    }

    /// Files and directories that data could not follow the log to. They are tried again all the time.
    pub fn stuck_paths(&self) -> Vec<StuckPath> {
        self.inner.stuck.list()
    }

    /// Wakes the engine to look at its clock. For clocks that are moved by hand.
    pub async fn wake(&self) -> Result<(), Error> {
        self.send(EngineMessage::Wake).await
    }

    /// Has everything that is decided by now written to the tables soon.
    pub async fn write_tables(&self) -> Result<(), Error> {
        self.send(EngineMessage::Flush).await
    }

    /// The newest manifest this process has published or found.
    pub fn manifest(&self) -> Option<Arc<Manifest>> {
        self.inner.flushes.manifest()
    }

    /// Stops accepting requests, makes accepted ones durable, writes the tables, and ends.
    pub async fn shutdown(self) -> Result<(), Error> {
        self.inner.stopping.store(true, Ordering::Release);
        let _full = self.inner.inputs.try_send(EngineMessage::Wake);
        let well = self.inner.work.clone().ended().await;
        let _closed = self.inner.leased.recv_async().await;
        if well { Ok(()) } else { Err(Error::Stopped) }
    }

    pub(crate) async fn ask<C: Command>(&self, command: C) -> Result<C::Reply, Error> {
        self.ask_by(command, |input, reply_to| EngineMessage::Input(input, Some(reply_to))).await
    }

    pub(crate) async fn ask_by<C: Command>(
        &self,
        command: C,
        message: impl FnOnce(Input, ReplyTo) -> EngineMessage,
    ) -> Result<C::Reply, Error> {
        let (reply_to, answer) = oneshot::channel();
        self.send(message(command.into(), reply_to)).await?;
        self.answered(answer).await.ok_or(Error::Stopped)?.map(C::reply)
    }

    pub(crate) async fn send(&self, message: EngineMessage) -> Result<(), Error> {
        if self.inner.stopping.load(Ordering::Acquire) {
            return Err(Error::Stopped);
        }
        self.inner.inputs.send_async(message).await.map_err(|_| Error::Stopped)
    }

    /// The reply to a sent message, or none if the engine is gone.
    pub(crate) async fn answered<T>(&self, mut answer: oneshot::Receiver<T>) -> Option<T> {
        if !self.inner.closed.load(Ordering::SeqCst) {
            return answer.await.ok();
        }
        // The engine thread has ended. What it took is answered before the other threads end; the rest never is.
        tokio::select! {
            biased;
            value = &mut answer => value.ok(),
            _ = self.inner.work.running.recv_async() => answer.try_recv().ok(),
        }
    }

    /// The error of a dropped request: its state was discarded, or the engine is gone.
    fn unanswered(&self) -> Error {
        if self.inner.closed.load(Ordering::SeqCst) { Error::Stopped } else { Error::Recovering }
    }
}

/// Details of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDetail {
    /// The run.
    pub run: RunRow,
    /// Its tasks, by key.
    pub tasks: Vec<TaskRow>,
    /// Its edges.
    pub edges: Vec<EdgeRow>,
    /// Its sets of dependencies.
    pub sets: Vec<DepSetRow>,
}
