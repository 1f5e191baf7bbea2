//! The executor: takes tasks from a queue, runs them, and watches over them.

mod slots;
mod stored_work;
mod task_set;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt, stream};
use servo_core::planted::{self, Mistake};
use servo_core::{AttemptId, Backoff, Clock, cloud_task_id};
use servo_engine::{ErrorCode, Outcome, Progress, Report, TaskError};
use servo_queue::{
    CallbackError, Callbacks, Delivery, Envelope, Keyring, QueueError, StartedReply, TaskSource,
};
use servo_store::{Spawner, within};
use tokio::sync::watch;
use tracing::{Instrument, Span};

use slots::Ending;
pub use slots::Slots;
use stored_work::Unfetched;
use task_set::TaskSet;

use crate::slot_pool::{PooledSlot, SlotShare};

/// Delays between tries of a report that was not heard.
const FIRST_REPORT_DELAY: Duration = Duration::from_millis(5);
const LONGEST_REPORT_DELAY: Duration = Duration::from_secs(1);
/// Delays between tries of asking for tasks.
const FIRST_RECEIVE_DELAY: Duration = Duration::from_millis(100);
const LONGEST_RECEIVE_DELAY: Duration = Duration::from_secs(2);
/// After how long a message is delivered again that came while another slot asked to begin the same attempt.
const DELIVER_AGAIN: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// Shortest interval between progress reports.
const PROGRESS_PAUSE: Duration = Duration::from_millis(500);
/// Attempts of one slot whose reports are pending, at most.
const MAX_UNREPORTED: usize = 32;
/// Attempts of one call that are begun at once.
const CALLBACKS_AT_ONCE: usize = 64;
/// How long an attempt that has to stop may take to do so.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// The work itself.
#[async_trait]
pub trait TaskFunction: Send + Sync + 'static {
    /// Does one attempt, without blocking its thread, and says how far it is. A panic is a failure of the task, not of
    /// the executor.
    async fn run(&self, task: &Envelope, progress: &watch::Sender<Option<Progress>>) -> Report;

    /// The same up to where the attempt needs no slot any more: what it made becomes durable in the future that is
    /// given, while the slot is at the next.
    async fn run_detached(
        &self,
        task: &Envelope,
        progress: &watch::Sender<Option<Progress>>,
    ) -> BoxFuture<'static, Report> {
        std::future::ready(self.run(task, progress).await).boxed()
    }

    /// Does attempts of several partitions that one call makes (ADR-210), and gives as many reports. The first leads:
    /// `stop` is told of it alone.
    async fn run_call(
        &self,
        tasks: &[&Envelope],
        progress: &watch::Sender<Option<Progress>>,
    ) -> Vec<BoxFuture<'static, Report>> {
        let mut reports = Vec::with_capacity(tasks.len());
        for task in tasks {
            reports.push(self.run_detached(task, progress).await);
        }
        reports
    }

    /// Ends an attempt that `run` is at, which is dropped when this returns. What needs no time to stop needs no more.
    async fn stop(&self, _task: &Envelope) {}
}

/// Runs tasks of some queues, several at a time.
pub struct Executor {
    /// Where messages come from.
    pub source: Arc<dyn TaskSource>,
    /// Names of the queues that are served.
    pub queues: Vec<Arc<str>>,
    /// The receiver of reports.
    pub callbacks: Arc<dyn Callbacks>,
    /// The keys that verify envelopes.
    pub keys: Keyring,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Name of this worker; begins with the prefix of local workers of its workspace.
    pub worker: Arc<str>,
    /// Tasks at once.
    pub slots: usize,
    /// The work.
    pub function: Arc<dyn TaskFunction>,
    /// The spawner that its slots run on, with its timers (ADR-067).
    pub spawner: Arc<dyn Spawner>,
    /// The seed of the delays between tries. Workers that may fail together have different ones, so that they do not
    /// try again together.
    pub seed: u64,
}

impl Executor {
    /// Starts the slots.
    pub fn start(self) -> Slots {
        Slots::start(self, None)
    }

    /// The same where the slots are those of a pool: a task that was received waits for one before it begins.
    pub fn start_sharing(self, share: SlotShare) -> Slots {
        Slots::start(self, Some(share))
    }

    /// Takes tasks one after another, until the slots close. The next begins while the outputs of those before become
    /// durable and their reports are on their way.
    async fn serve(
        self: Arc<Self>,
        slot: usize,
        share: Option<SlotShare>,
        active: ActiveAttempts,
        ending: Ending,
    ) {
        let mut reports = TaskSet::new(self.spawner.clone());
        loop {
            let delivery = tokio::select! {
                biased;
                () = ending.draining() => break,
                delivery = self.receive(slot) => delivery,
            };
            // A message that waits long is delivered again, which is noticed where the attempt begins.
            let borrowed = tokio::select! {
                biased;
                () = ending.draining() => {
                    settled(delivery.nack(Duration::ZERO).await);
                    break;
                }
                slot = borrow(share.as_ref()) => slot,
            };
            let ended = self.handle(delivery, &active, &ending).await;
            drop(borrowed);
            while reports.len() >= MAX_UNREPORTED {
                reports.next_end().await;
            }
            for done in ended {
                reports.spawn(self.clone().report_outcome(done));
            }
        }
        reports.ended().await;
    }

    /// The next message; asks for one until there is one, whatever is wrong with the queue meanwhile.
    async fn receive(&self, slot: usize) -> Delivery {
        let seed = self.seed ^ slot as u64;
        let mut backoff = Backoff::new(FIRST_RECEIVE_DELAY, LONGEST_RECEIVE_DELAY, seed);
        let mut is_known = false;
        loop {
            match self.source.receive(&self.queues, 1).await {
                Ok(deliveries) => {
                    if let Some(delivery) = deliveries.into_iter().next() {
                        return delivery;
                    }
                    backoff.reset();
                    is_known = false;
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_known, true) {
                        tracing::warn!(%error, "worker.receive failed, it will be tried again");
                    }
                    self.spawner.sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    /// The attempts of the message that there is something to report of. The message is acknowledged when it is known
    /// who does the attempt that leads it.
    async fn handle(&self, delivery: Delivery, active: &ActiveAttempts, ending: &Ending) -> Vec<Done> {
        let mut envelope = match self.keys.open(&delivery.envelope, self.clock.now()) {
            Ok(envelope) => envelope,
            Err(error) => {
                tracing::warn!(%error, "worker rejected an invalid message");
                settled(delivery.ack().await);
                return Vec::new();
            }
        };
        let guard = match active.take(envelope.attempt_id) {
            Ok(guard) => guard,
            Err(phase) => {
                tracing::debug!(task = envelope.task_key.as_str(), "worker was given the same message twice");
                settled(match phase {
                    // If that slot comes to nothing, somebody else must be able to begin it.
                    AttemptPhase::Asked => delivery.nack(DELIVER_AGAIN).await,
                    AttemptPhase::Begun => delivery.ack().await,
                });
                return Vec::new();
            }
        };
        let begun = self.begin(&envelope).await;
        settled(match &begun {
            // A message that was taken before this worker was registered, or after it was lost, is for another one.
            Err(CallbackError::NotRegistered(_)) => delivery.nack(DELIVER_AGAIN).await,
            Err(CallbackError::Refused(_) | CallbackError::Denied(_) | CallbackError::Transient(_))
            | Ok(_) => delivery.ack().await,
        });
        if let Err(error) = begun
            && !planted::has(Mistake::RefusalIgnored)
        {
            tracing::debug!(%error, task = envelope.task_key.as_str(), "worker does not run a task");
            return Vec::new();
        }
        guard.begun();
        match self.fetch_work(&mut envelope).await {
            Ok(()) => {}
            Err(Unfetched::Refused) => return Vec::new(),
            Err(Unfetched::Unusable(error)) => {
                let report = std::future::ready(Report::failed(error)).boxed();
                return vec![Done { begun: Begun::new(envelope, guard), report }];
            }
        }
        let followers = envelope.take_followers();
        let mut call = vec![Begun::new(envelope, guard)];
        call.extend(self.begin_followers(followers, active).await);
        let reports = self.work(&call, ending).instrument(call[0].span()).await;
        call.into_iter().zip(reports).map(|(begun, report)| Done { begun, report }).collect()
    }

    /// Begins the attempts that the same call makes. One that may not begin is left out of the call.
    async fn begin_followers(&self, followers: Vec<Envelope>, active: &ActiveAttempts) -> Vec<Begun> {
        let begin = |envelope: Envelope| async move {
            let guard = active.take(envelope.attempt_id).ok()?;
            if let Err(error) = self.begin(&envelope).await {
                tracing::debug!(%error, task = envelope.task_key.as_str(), "worker leaves a task out of a call");
                return None;
            }
            guard.begun();
            Some(Begun::new(envelope, guard))
        };
        let begun = stream::iter(followers).map(begin).buffered(CALLBACKS_AT_ONCE);
        begun.filter_map(std::future::ready).collect().await
    }

    /// Asks whether an attempt may begin.
    async fn begin(&self, envelope: &Envelope) -> Result<StartedReply, CallbackError> {
        let credential = envelope.credential();
        let ask = || self.callbacks.started(&credential, &self.worker);
        self.retry_until_heard(envelope.attempt_id, ask).await
    }

    /// Repeats a report until the control plane has accepted or refused it: a full disk or a restart loses no result.
    async fn retry_until_heard<T, F, Fut>(&self, about: AttemptId, mut call: F) -> Result<T, CallbackError>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, CallbackError>>,
    {
        let seed = self.seed ^ about.to_u128() as u64;
        let mut backoff = Backoff::new(FIRST_REPORT_DELAY, LONGEST_REPORT_DELAY, seed);
        loop {
            match call().await {
                Err(CallbackError::Transient(_)) if !planted::has(Mistake::ReportNotRepeated) => {
                    self.spawner.sleep(backoff.next_delay()).await
                }
                outcome => return outcome,
            }
        }
    }

    async fn report_outcome(self: Arc<Self>, done: Done) {
        let Done { begun: Begun { envelope, token, guard: _guard }, report } = done;
        let mut report = pin!(AssertUnwindSafe(report).catch_unwind());
        let report = tokio::select! {
            biased;
            report = &mut report => reported(report),
            // It is too late to stop: the control plane knows what to do with the result.
            _stop = self.heartbeats(&envelope, &token, watch::channel(None).1) => reported(report.await),
        };
        let token = token.into_inner().unwrap_or_else(PoisonError::into_inner);
        let tell = || self.callbacks.finished(&token, report.clone());
        if let Err(error) = self.retry_until_heard(envelope.attempt_id, tell).await {
            tracing::debug!(%error, task = envelope.task_key.as_str(), "result was refused");
        }
    }

    /// Runs the function with its heartbeats and its timeout, until it is cancelled or the worker ends. Gives a report
    /// for each attempt of the call.
    async fn work(&self, call: &[Begun], ending: &Ending) -> Vec<BoxFuture<'static, Report>> {
        let Begun { envelope, token, .. } = &call[0];
        let limit = envelope.timeout_ms.map_or(Duration::MAX, |limit| Duration::from_millis(limit.get()));
        let (progress, made) = watch::channel(None);
        let tasks: Vec<&Envelope> = call.iter().map(|begun| &begun.envelope).collect();
        let mut run = pin!(AssertUnwindSafe(self.function.run_call(&tasks, &progress)).catch_unwind());
        let all = |report: Report| tasks.iter().map(|_| std::future::ready(report.clone()).boxed()).collect();
        let mut follow = pin!(self.follow(&call[1..]));
        let (outcome, of_followers) = tokio::select! {
            biased;
            done = &mut run => return done.unwrap_or_else(|panic| all(panicked(&*panic))),
            () = &mut follow => unreachable!("followers are kept alive until the call ends"),
            () = self.spawner.sleep(limit.min(LONGEST_TIMEOUT)) => (Outcome::TimedOut, Outcome::TimedOut),
            stop = self.heartbeats(envelope, token, made) => match stop {
                Stop::Cancelled => (Outcome::Cancelled, Outcome::Cancelled),
                // The leader alone is not this worker's any more; nothing is said against the others.
                Stop::Refused => (Outcome::Cancelled, Outcome::Interrupted),
            },
            () = ending.stopping() => (Outcome::Interrupted, Outcome::Interrupted),
        };
        tokio::select! {
            biased;
            _too_late = &mut run => {}
            _slow = within(self.spawner.as_ref(), STOP_LIMIT, self.function.stop(envelope)) => {}
        }
        let outcomes = std::iter::once(outcome).chain(std::iter::repeat(of_followers));
        tasks
            .iter()
            .zip(outcomes)
            .map(|(_, outcome)| std::future::ready(Report::new(outcome)).boxed())
            .collect()
    }

    /// Keeps the followers of a call alive. Never ends: whether the call goes on is up to its leader.
    async fn follow<'a>(&'a self, followers: &'a [Begun]) {
        let beat = |begun: &'a Begun| self.heartbeats(&begun.envelope, &begun.token, watch::channel(None).1);
        join_all(followers.iter().map(beat)).await;
        std::future::pending().await
    }

    /// Reports regularly, and when there is something new; ends when the work must stop. Keeps the token alive.
    async fn heartbeats(
        &self,
        envelope: &Envelope,
        token: &Mutex<String>,
        mut made: watch::Receiver<Option<Progress>>,
    ) -> Stop {
        let period = Duration::from_millis(envelope.heartbeat_interval_ms.get().max(1));
        let (timers, mut earliest) = (self.spawner.as_ref(), self.spawner.elapsed());
        let mut regular = earliest + period;
        let until = |at: Duration| timers.sleep(at.saturating_sub(timers.elapsed()));
        loop {
            let progress = tokio::select! {
                biased;
                () = until(regular) => None,
                Ok(()) = made.changed() => {
                    until(earliest.min(regular)).await;
                    made.borrow_and_update().clone()
                }
            };
            let shown = token.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let answer = self.callbacks.heartbeat(&shown, progress).await;
            (regular, earliest) = (timers.elapsed() + period, timers.elapsed() + PROGRESS_PAUSE);
            let stop = match answer {
                Ok(reply) => {
                    if let Some(renewed) = reply.task_token
                        && !planted::has(Mistake::RenewedTokenForgotten)
                    {
                        *token.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
                    }
                    reply.should_cancel.then_some(Stop::Cancelled)
                }
                Err(error) => {
                    made.mark_changed();
                    (!error.is_transient()).then_some(Stop::Refused)
                }
            };
            if let Some(stop) = stop {
                return stop;
            }
        }
    }
}

/// A slot of the pool, where slots are shared.
async fn borrow(share: Option<&SlotShare>) -> Option<PooledSlot> {
    match share {
        Some(share) => Some(share.acquire().await),
        None => None,
    }
}

/// Why an attempt must stop.
enum Stop {
    /// Its run is cancelled.
    Cancelled,
    /// It is not this worker's any more.
    Refused,
}

/// An attempt that is this worker's.
struct Begun {
    envelope: Envelope,
    /// The newest credential of the attempt.
    token: Mutex<String>,
    guard: AttemptGuard,
}

impl Begun {
    fn new(envelope: Envelope, guard: AttemptGuard) -> Self {
        Self { token: Mutex::new(envelope.credential()), envelope, guard }
    }

    /// The span of its work: lines of the log name the run and the task.
    fn span(&self) -> Span {
        let Envelope { run_id, task_key, attempt, .. } = &self.envelope;
        let task_id = || cloud_task_id('t', task_key.as_str());
        tracing::info_span!("task", %run_id, task_id = task_id(), asset_key = task_key.asset_str(), attempt)
    }
}

/// An attempt that needs its slot no more, and whose report is pending.
struct Done {
    begun: Begun,
    report: BoxFuture<'static, Report>,
}

/// Attempts held by some slot. The control plane knows the worker by its name alone, so a duplicate message must be
/// noticed here.
#[derive(Debug, Clone, Default)]
struct ActiveAttempts(Arc<Mutex<BTreeMap<AttemptId, AttemptPhase>>>);

/// How far a slot is with an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptPhase {
    /// The control plane was asked whether it may begin.
    Asked,
    /// It has begun.
    Begun,
}

impl ActiveAttempts {
    /// Gives an attempt to a slot, unless another has it.
    fn take(&self, attempt: AttemptId) -> Result<AttemptGuard, AttemptPhase> {
        let mut active = self.lock();
        if let Some(phase) = active.get(&attempt)
            && !planted::has(Mistake::DuplicateMessageRun)
        {
            return Err(*phase);
        }
        active.insert(attempt, AttemptPhase::Asked);
        Ok(AttemptGuard { active: self.clone(), attempt })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AttemptId, AttemptPhase>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard that assigns an attempt to one slot until it is dropped.
struct AttemptGuard {
    active: ActiveAttempts,
    attempt: AttemptId,
}

impl AttemptGuard {
    fn begun(&self) {
        self.active.lock().insert(self.attempt, AttemptPhase::Begun);
    }
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        self.active.lock().remove(&self.attempt);
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    format!("the task panicked: {}", text.unwrap_or("without a message"))
}

fn reported(done: Result<Report, Box<dyn Any + Send>>) -> Report {
    done.unwrap_or_else(|panic| panicked(&*panic))
}

fn panicked(panic: &(dyn Any + Send)) -> Report {
    Report::failed(TaskError::new(ErrorCode::UserCodeException, panic_message(panic)))
}

/// A message whose queue could not be told what became of it comes again, and its attempt is refused then.
fn settled(outcome: Result<(), QueueError>) {
    if let Err(error) = outcome {
        tracing::debug!(%error, "a queue was not told what became of a message");
    }
}
