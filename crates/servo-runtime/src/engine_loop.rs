//! The engine thread: drains what is waiting, steps, and hands the batch to the commit thread.
//!
//! The loop decides nothing: [`Engine::step`] does. It waits for inputs or for the next deadline, whichever is first,
//! and after a failed commit it throws its state away and loads the durable one (ADR-040).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use servo_core::{Backoff, RunId, Timestamp};
use servo_engine::controllers::Dispatching;
use servo_engine::rows::RunRow;
use servo_engine::{Engine, EventData, Input, Snapshot, effect};
use tokio::sync::oneshot;

use crate::clock_steps::ClockSteps;
use crate::committer::{CommitGenerations, Pipeline};
use crate::compaction::FlushTracker;
use crate::config::{Config, Ownership, Stores};
use crate::error::Error;
use crate::messages::{Commit, EngineMessage, OnDurable, ReplyTo};
use crate::recovery::recover;
use crate::spawner::within;
use crate::stall_detector::StallDetector;
use crate::workers::SignsOfLife;

/// Upper bound of every wait, in case the clock is moved.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// Longest backoff while a store does not answer.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Waits about this long before it loads the state, twice as long after each further failure in a row, up to so many.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const MOST_FAILURES_COUNTED: u32 = 7;

/// Longest linger of what nobody waits for before it is committed on its own.
const MAX_LINGER: Duration = Duration::from_millis(5);

/// Events that may wait `flush_patience` times longer for the tables, at most.
const FEW_EVENTS: usize = 64;
/// Events of a batch that lingers, at most.
const MAX_LINGERING: usize = 64;

pub(crate) struct EngineLoop {
    pub(crate) engine: Engine,
    pub(crate) stores: Stores,
    pub(crate) config: Arc<Config>,
    pub(crate) inputs: flume::Receiver<EngineMessage>,
    pub(crate) pipeline: Pipeline,
    pub(crate) generations: Arc<CommitGenerations>,
    pub(crate) flushes: Arc<FlushTracker>,
    pub(crate) stopping: Arc<AtomicBool>,
    signs_of_life: Arc<SignsOfLife>,
    /// The epoch of this node's lease.
    epoch: u64,
    generation: u64,
    failures_in_a_row: u32,
    watchers: BTreeMap<RunId, Vec<oneshot::Sender<Option<RunRow>>>>,
    lingering: Option<Lingering>,
    events_since_flush: usize,
    /// Whether somebody waits for the next flush.
    is_flush_wanted: bool,
    /// Elapsed time of the spawner's timers.
    last_flush: Duration,
    last_sweep: Duration,
    stall_detector: StallDetector,
    clock_steps: ClockSteps,
    /// Revision of the tables whose run keys need not be in memory.
    published: u64,
    /// Whether the state was told what this process was started with.
    has_started: bool,
}

/// A batch that was decided and that nobody waits for: the next one is added to it, and becomes durable with it
/// (ADR-241).
struct Lingering {
    commit: Commit,
    /// When it is committed on its own.
    until: Duration,
}

/// The working set of one round of the loop.
#[derive(Default)]
struct Round {
    inputs: Vec<Input>,
    reply_to: Vec<Option<ReplyTo>>,
    /// Callers that are answered as soon as it is decided, by the number of their input.
    early: Vec<(usize, ReplyTo)>,
    deliveries: Vec<OnDurable>,
    /// Whether somebody waits for any of this to become durable.
    is_urgent: bool,
    /// Whether it is the first of this process, before which nobody ran the workspace.
    is_first: bool,
}

impl EngineLoop {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        mut engine: Engine,
        stores: Stores,
        config: Arc<Config>,
        inputs: flume::Receiver<EngineMessage>,
        pipeline: Pipeline,
        generations: Arc<CommitGenerations>,
        flushes: Arc<FlushTracker>,
        stopping: Arc<AtomicBool>,
        signs_of_life: Arc<SignsOfLife>,
        epoch: u64,
    ) -> Self {
        engine.set_automation(config.automation);
        engine.set_backfills(config.backfills);
        engine.set_notifying(config.notifying());
        engine.set_dispatching(config.dispatching);
        engine.liveness_mut().set_local(config.local_workers.clone());
        let now = config.spawner.elapsed();
        let stall_detector =
            StallDetector::new(config.heartbeat_interval, config.clock.as_ref(), config.spawner.as_ref());
        let clock_steps = ClockSteps::new(engine.state().head().last_event_at, config.spawner.as_ref());
        Self {
            engine,
            stores,
            config,
            inputs,
            pipeline,
            generations,
            flushes,
            stopping,
            signs_of_life,
            epoch,
            generation: 1,
            failures_in_a_row: 0,
            watchers: BTreeMap::new(),
            lingering: None,
            // What recovery folded from the log's tail is not in the tables yet.
            events_since_flush: 1,
            is_flush_wanted: false,
            last_flush: now,
            last_sweep: now,
            stall_detector,
            clock_steps,
            published: 0,
            has_started: false,
        }
    }

    /// Runs until told to stop and nothing is left to do.
    pub(crate) async fn run(mut self) {
        self.start().await;
        loop {
            let (messages, stop) = self.wait().await;
            if self.generations.voids(self.generation) && !self.reload().await {
                return;
            }
            self.round(messages, stop).await;
            if stop {
                return;
            }
        }
    }

    /// After a start the local queue is empty and the local workers are gone (ADR-046).
    async fn start(&mut self) {
        let lost = Input::WorkersLost(self.config.local_workers.clone());
        let mut messages = vec![EngineMessage::Input(lost, None)];
        if self.config.dispatching != Dispatching::All {
            messages.push(EngineMessage::Input(Input::MessagesLost, None));
        }
        self.round(messages, false).await;
        let effects = self.engine.recovered_effects();
        self.send(Commit { effects, ..self.empty_commit() }).await;
    }

    /// Waits for the messages of one round; also returns whether it is the last.
    async fn wait(&mut self) -> (Vec<EngineMessage>, bool) {
        let mut messages = Vec::new();
        self.observe_stalls(Duration::ZERO);
        let lingers = self.lingering.as_ref().map(|lingering| self.until(lingering.until));
        let planned = self.time_to_wait().min(lingers.unwrap_or(MAX_WAIT));
        let mut wait = planned;
        while let Some(message) = self.receive(wait).await {
            // Nobody waits for an acknowledgement, nor for the worker of this process: they become durable with the next
            // message that somebody does wait for.
            let is_acknowledgement = message.is_acknowledgement();
            messages.push(message);
            if !is_acknowledgement || messages.len() >= self.config.batch_inputs {
                break;
            }
            wait = wait.min(MAX_LINGER);
        }
        while messages.len() < self.config.batch_inputs {
            let Ok(next) = self.inputs.try_recv() else { break };
            messages.push(next);
        }
        let stop = (self.stopping.load(Ordering::Acquire) || self.inputs.is_disconnected())
            && self.inputs.is_empty();
        self.observe_stalls(planned);
        (messages, stop)
    }

    fn observe_stalls(&mut self, planned: Duration) {
        self.stall_detector.observe(planned, self.config.clock.as_ref(), self.config.spawner.as_ref());
    }

    /// The next message. Spins for a moment before it sleeps: the response to the last commit is often on its way.
    async fn receive(&mut self, wait: Duration) -> Option<EngineMessage> {
        let spawner = self.config.spawner.as_ref();
        let patience = wait.min(spawner.spin_time());
        let give_up = spawner.elapsed() + patience;
        loop {
            if let Ok(message) = self.inputs.try_recv() {
                return Some(message);
            }
            if patience.is_zero() || spawner.elapsed() >= give_up {
                break;
            }
            for _ in 0..64 {
                std::hint::spin_loop();
            }
        }
        if wait.is_zero() {
            return None;
        }
        within(spawner, wait, self.inputs.recv_async()).await?.ok()
    }

    fn time_to_wait(&self) -> Duration {
        if self.stopping.load(Ordering::Acquire) {
            return Duration::ZERO;
        }
        let mut wait = MAX_WAIT.min(self.until(self.last_sweep + self.config.sweep_every));
        let now = self.config.clock.now();
        if let Some(due) = self.engine.next_deadline(now) {
            wait = wait.min(Duration::from_millis(due.since(now).get()));
        }
        if let Some(left) = self.stall_detector.until_reliable(self.config.spawner.as_ref()) {
            wait = wait.min(left);
        }
        // The compactor says when a flush under way has ended.
        if self.events_since_flush > 0 && !self.flushes.is_broken() && !self.flushes.is_busy() {
            wait = wait.min(self.until_flush());
        }
        wait
    }

    async fn round(&mut self, messages: Vec<EngineMessage>, stop: bool) {
        self.drop_published_keys();
        // What comes by itself, of the clock and of timers, is not kept waiting.
        let is_urgent = stop || messages.is_empty();
        let mut round = Round { is_urgent, is_first: !self.has_started, ..Round::default() };
        // First, so that everything else is judged by the clock as it is now.
        if let Some(step) = self.clock_steps.look(self.config.clock.as_ref(), self.config.spawner.as_ref()) {
            round.inputs.push(step);
            round.reply_to.push(None);
            round.is_urgent = true;
        }
        if !self.has_started {
            self.has_started = true;
            round.is_urgent = true;
            round.inputs.push(Input::StartWith(self.config.start_with.clone()));
            round.reply_to.push(None);
        }
        let now = self.config.clock.now();
        for message in messages {
            round.is_urgent |= !message.is_acknowledgement() && !matches!(message, EngineMessage::Early(..));
            match message {
                EngineMessage::Input(input, reply_to) => {
                    round.inputs.push(input);
                    round.reply_to.push(reply_to);
                }
                EngineMessage::Early(input, reply_to) => {
                    round.inputs.push(input);
                    round.reply_to.push(None);
                    round.early.push((round.inputs.len() - 1, reply_to));
                }
                EngineMessage::Query(query) => {
                    // A query sees what was asked for before it.
                    self.step(&mut round, now).await;
                    round.deliveries.push(query(self.engine.state()));
                }
                EngineMessage::Watch(run, sender) => {
                    self.step(&mut round, now).await;
                    self.watch(run, sender, &mut round);
                }
                EngineMessage::Flush => self.is_flush_wanted = true,
                EngineMessage::Wake => {}
            }
        }
        if self.until(self.last_sweep + self.config.sweep_every).is_zero() {
            self.last_sweep = self.config.spawner.elapsed();
            round.inputs.push(Input::Sweep);
            round.reply_to.push(None);
            round.is_urgent = true;
        }
        self.step(&mut round, now).await;
        if round.is_urgent {
            self.commit_lingering().await;
        }
        let mut commit = self.empty_commit();
        commit.deliveries = round.deliveries;
        if stop {
            // Workers of this process have come to their end before it does.
            commit.effects = effect::abandoned(self.engine.state());
        }
        commit.delta = self.delta(stop);
        self.send(commit).await;
    }

    /// Decides the gathered inputs; always runs controllers and timers.
    async fn step(&mut self, round: &mut Round, now: Timestamp) {
        let inputs = std::mem::take(&mut round.inputs);
        let reply_to = std::mem::take(&mut round.reply_to);
        self.engine.set_freshness(self.stall_detector.freshness(self.config.spawner.as_ref()));
        self.signs_of_life.pass_on(&mut self.engine, self.config.spawner.as_ref(), now);
        let step = match self.lingering {
            Some(_) => self.engine.step_on(&inputs, now),
            None => self.engine.step(&inputs, now),
        };
        for (at, reply_to) in std::mem::take(&mut round.early) {
            let _gone = reply_to.send(step.replies[at].clone().map_err(Error::Refused));
        }
        for event in &step.events {
            if let EventData::ClockStepped(stepped) = &event.data
                && !round.is_first
            {
                let (by_ms, expected) = (stepped.by_ms, stepped.expected.to_string());
                tracing::warn!(
                    by_ms,
                    expected,
                    "clock.step: it was set, or this machine slept; deadlines of what is at work move along"
                );
            }
        }
        self.events_since_flush += step.events.len();
        let replies =
            reply_to.into_iter().zip(step.replies).filter_map(|(to, reply)| Some((to?, reply))).collect();
        let mut commit = self.empty_commit();
        commit.snapshot = (!step.events.is_empty()).then(|| self.snapshot());
        commit.events = step.events;
        commit.effects = step.effects;
        commit.replies = replies;
        commit.deliveries = std::mem::take(&mut round.deliveries);
        for run in step.ended {
            for watcher in self.watchers.remove(&run).unwrap_or_default() {
                let row = self.row(run);
                commit.deliveries.push(Box::new(move || drop(watcher.send(row))));
            }
        }
        if round.is_urgent || !self.linger(&mut commit) {
            self.send(commit).await;
        }
    }

    /// Keeps a batch that nobody waits for until the next one; false if there is a reason not to.
    fn linger(&mut self, commit: &mut Commit) -> bool {
        let lingering = self.lingering.as_ref();
        let events = lingering.map_or(0, |lingering| lingering.commit.events.len()) + commit.events.len();
        let is_over = lingering.is_some_and(|lingering| self.until(lingering.until).is_zero());
        let is_awaited = !commit.replies.is_empty() || !commit.deliveries.is_empty();
        if is_over || is_awaited || !commit.effects.is_empty() || !(1..=MAX_LINGERING).contains(&events) {
            return false;
        }
        let commit = std::mem::replace(commit, self.empty_commit());
        let until = self.config.spawner.elapsed() + MAX_LINGER;
        self.lingering = Some(match self.lingering.take() {
            Some(Lingering { commit: before, until }) => Lingering { commit: before.then(commit), until },
            None => Lingering { commit, until },
        });
        true
    }

    async fn commit_lingering(&mut self) {
        if let Some(Lingering { commit, .. }) = self.lingering.take() {
            self.send(commit).await;
        }
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::new(self.engine.state().snapshot())
    }

    fn watch(&mut self, run: RunId, sender: oneshot::Sender<Option<RunRow>>, round: &mut Round) {
        if self.engine.state().run(run).is_some_and(|found| !found.state.is_terminal()) {
            self.watchers.entry(run).or_default().push(sender);
        } else {
            let row = self.row(run);
            round.deliveries.push(Box::new(move || drop(sender.send(row))));
        }
    }

    /// The row of a run that is in memory, or has just left it.
    fn row(&self, run: RunId) -> Option<RunRow> {
        let state = self.engine.state();
        let leaving = || state.ended_unwritten().find(|ended| ended.id == run);
        state.run(run).or_else(leaving).map(servo_engine::Run::row)
    }

    /// Run keys that published tables have need not be in memory: whoever asks looks them up there.
    fn drop_published_keys(&mut self) {
        let newer = self.flushes.manifest().filter(|manifest| manifest.revision > self.published);
        if let Some(manifest) = newer {
            self.published = manifest.revision;
            self.engine.state_mut().run_keys_published(manifest.watermarks.events_processed_through);
        }
    }

    /// How long the changes may wait for the tables. A few wait longer: a flush costs the same for one as for a
    /// thousand, and whoever reads the tables through Servo asks for it.
    fn until_flush(&self) -> Duration {
        if self.is_flush_wanted || self.events_since_flush >= self.config.flush_events {
            return Duration::ZERO;
        }
        let is_few = self.events_since_flush < FEW_EVENTS;
        let patience = if is_few { self.config.flush_patience } else { 1 };
        self.until(self.last_flush + self.config.flush_every * patience)
    }

    /// Takes the changes for the tables, when a flush is due and the compactor is free.
    fn delta(&mut self, stop: bool) -> Option<Box<servo_engine::Delta>> {
        let due = stop || self.until_flush().is_zero();
        if self.events_since_flush == 0 || !due || self.flushes.is_broken() {
            return None;
        }
        if self.flushes.is_busy() && !stop {
            return None;
        }
        self.events_since_flush = 0;
        self.is_flush_wanted = false;
        self.last_flush = self.config.spawner.elapsed();
        let delta = self.engine.state_mut().take_delta();
        let written = self.flushes.manifest().map_or(0, |manifest| manifest.watermarks.last_seq);
        // Batches that change no row move the watermark all the same, or the tables would seem to lag for ever.
        if delta.is_empty() && delta.head.seq <= written {
            return None;
        }
        self.flushes.taken();
        Some(Box::new(delta))
    }

    /// Loads the durable state; false if told to stop meanwhile.
    async fn reload(&mut self) -> bool {
        // Decided on a state that is void.
        self.lingering = None;
        let made_progress = self.generations.made_progress(self.generation);
        self.failures_in_a_row = if made_progress { 1 } else { self.failures_in_a_row + 1 };
        // A store that keeps failing is not hammered: full disks and outages last longer than milliseconds.
        let failures = self.failures_in_a_row.min(MOST_FAILURES_COUNTED);
        let first = FIRST_PAUSE * 2u32.saturating_pow(failures);
        let mut backoff = Backoff::new(first, MAX_BACKOFF, self.config.put_ids.next().to_u128() as u64);
        self.config.spawner.sleep(backoff.next_delay()).await;
        loop {
            if self.stopping.load(Ordering::Acquire) {
                return false;
            }
            if self.stores.log.is_lost() {
                tracing::error!(
                    log = self.stores.log.describe(),
                    "the lock of the log is gone, so that another process may write: this one stops"
                );
                self.stopping.store(true, Ordering::Release);
                return false;
            }
            match recover(&self.stores, &self.config).await {
                Ok(recovered) if self.is_deposed_by(recovered.epoch) => {
                    tracing::error!(
                        epoch = recovered.epoch,
                        "another node has the lease and writes, this one stops"
                    );
                    self.stopping.store(true, Ordering::Release);
                    return false;
                }
                Ok(recovered) if recovered.state.newer_event().is_some() => {
                    let event = recovered.state.newer_event();
                    tracing::error!(?event, "a newer version writes to the log, this one stops");
                    self.stopping.store(true, Ordering::Release);
                    return false;
                }
                Ok(recovered) => {
                    self.has_started = false;
                    let dispatching = self.engine.dispatching();
                    self.engine = Engine::new(recovered.state, self.config.secret.clone());
                    self.published = 0;
                    self.engine.set_automation(self.config.automation);
                    self.engine.set_backfills(self.config.backfills);
                    self.engine.set_notifying(self.config.notifying());
                    self.engine.set_dispatching(dispatching);
                    self.engine.liveness_mut().set_local(self.config.local_workers.clone());
                    self.flushes.adopt(recovered.manifest);
                    break;
                }
                Err(error) => {
                    tracing::error!(%error, "recovery failed, it will be tried again");
                    self.reject_pending();
                    self.config.spawner.sleep(backoff.next_delay()).await;
                }
            }
        }
        self.generation += 1;
        self.events_since_flush = 1;
        tracing::info!(seq = self.engine.state().head().seq, "the durable state is loaded");
        for (run, senders) in std::mem::take(&mut self.watchers) {
            let ended = self.engine.state().run(run).is_none_or(|run| run.state.is_terminal());
            if !ended {
                self.watchers.insert(run, senders);
            }
        }
        let effects = self.engine.recovered_effects();
        let snapshot = Some(self.snapshot());
        self.send(Commit { effects, snapshot, ..self.empty_commit() }).await;
        true
    }

    /// Whether a newer epoch in the log means that another node took the lease.
    fn is_deposed_by(&self, epoch: u64) -> bool {
        epoch > self.epoch && matches!(self.config.ownership, Ownership::ByLease { .. })
    }

    /// Rejects all pending requests: there is no state to decide on for now.
    fn reject_pending(&self) {
        for message in self.inputs.drain() {
            if let EngineMessage::Input(_, Some(reply_to)) | EngineMessage::Early(_, reply_to) = message {
                let _gone = reply_to.send(Err(Error::Recovering));
            }
        }
    }

    fn until(&self, at: Duration) -> Duration {
        at.saturating_sub(self.config.spawner.elapsed())
    }

    fn empty_commit(&self) -> Commit {
        Commit {
            generation: self.generation,
            seq: self.engine.state().head().seq,
            events: Vec::new(),
            effects: Vec::new(),
            replies: Vec::new(),
            deliveries: Vec::new(),
            snapshot: None,
            delta: None,
        }
    }

    async fn send(&mut self, commit: Commit) {
        if !commit.is_empty() {
            let commit = match self.lingering.take() {
                Some(lingering) => lingering.commit.then(commit),
                None => commit,
            };
            self.pipeline.send(commit, self.inputs.is_empty()).await;
        }
    }
}
