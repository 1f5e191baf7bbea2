//! The executor: takes tasks from a queue, runs them, and watches over them.

mod slots;

use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use servo_core::{AttemptId, Backoff, Clock};
use servo_engine::{ErrorCode, Outcome, Progress, Report, TaskError};
use servo_queue::{CallbackError, Callbacks, Delivery, Envelope, Keyring, QueueError, TaskSource};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use slots::Phase;
pub use slots::Slots;

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
}

impl Executor {
    /// Starts the slots.
    pub fn start(self) -> Slots {
        Slots::start(self)
    }

    /// Takes tasks one after another, until the slots close. The next begins while the outputs of those before become
    /// durable and their reports are on their way.
    async fn serve(self: Arc<Self>, active: ActiveAttempts, mut phase: watch::Receiver<Phase>) {
        let mut reports = JoinSet::new();
        loop {
            let delivery = tokio::select! {
                biased;
                () = Phase::Draining.reached(&mut phase) => break,
                delivery = self.receive() => delivery,
            };
            if let Some(done) = self.handle(delivery, &active, &mut phase).await {
                while reports.len() >= MAX_UNREPORTED {
                    reports.join_next().await;
                }
                reports.spawn(self.clone().report_outcome(done));
            }
        }
        while reports.join_next().await.is_some() {}
    }

    /// The next message; asks for one until there is one, whatever is wrong with the queue meanwhile.
    async fn receive(&self) -> Delivery {
        let mut backoff = Backoff::new(FIRST_RECEIVE_DELAY, LONGEST_RECEIVE_DELAY, seed());
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
                    sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    /// None if there is nothing to report. The message is acknowledged when it is known who does the attempt.
    async fn handle(
        &self,
        delivery: Delivery,
        active: &ActiveAttempts,
        phase: &mut watch::Receiver<Phase>,
    ) -> Option<Done> {
        let envelope = match self.keys.open(&delivery.envelope, self.clock.now()) {
            Ok(envelope) => envelope,
            Err(error) => {
                tracing::warn!(%error, "worker rejected an invalid message");
                settled(delivery.ack().await);
                return None;
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
                return None;
            }
        };
        let begun = retry_until_heard(|| self.callbacks.started(&envelope.task_token, &self.worker)).await;
        settled(match &begun {
            // A message that was taken before this worker was registered, or after it was lost, is for another one.
            Err(CallbackError::NotRegistered(_)) => delivery.nack(DELIVER_AGAIN).await,
            Err(CallbackError::Refused(_) | CallbackError::Denied(_) | CallbackError::Transient(_))
            | Ok(_) => delivery.ack().await,
        });
        if let Err(error) = begun {
            tracing::debug!(%error, task = envelope.task_key.as_str(), "worker does not run a task");
            return None;
        }
        guard.begun();
        let token = Mutex::new(envelope.task_token.clone());
        let report = self.work(&envelope, &token, phase).await;
        Some(Done { envelope, token, report, guard })
    }

    async fn report_outcome(self: Arc<Self>, done: Done) {
        let Done { envelope, token, report, guard: _guard } = done;
        let mut report = pin!(AssertUnwindSafe(report).catch_unwind());
        let report = tokio::select! {
            report = &mut report => reported(report),
            // It is too late to stop: the control plane knows what to do with the result.
            () = self.heartbeats(&envelope, &token, watch::channel(None).1) => reported(report.await),
        };
        let token = token.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = retry_until_heard(|| self.callbacks.finished(&token, report.clone())).await {
            tracing::debug!(%error, task = envelope.task_key.as_str(), "result was refused");
        }
    }

    /// Runs the function with its heartbeats and its timeout, until it is cancelled or the worker ends.
    async fn work(
        &self,
        envelope: &Envelope,
        token: &Mutex<String>,
        phase: &mut watch::Receiver<Phase>,
    ) -> BoxFuture<'static, Report> {
        let limit = envelope.timeout_ms.map_or(Duration::MAX, |limit| Duration::from_millis(limit.get()));
        let (progress, made) = watch::channel(None);
        let mut run = pin!(AssertUnwindSafe(self.function.run_detached(envelope, &progress)).catch_unwind());
        let outcome = tokio::select! {
            done = &mut run => return done.unwrap_or_else(|panic| std::future::ready(panicked(&*panic)).boxed()),
            () = sleep(limit.min(LONGEST_TIMEOUT)) => Outcome::TimedOut,
            () = self.heartbeats(envelope, token, made) => Outcome::Cancelled,
            () = Phase::Stopping.reached(phase) => Outcome::Interrupted,
        };
        tokio::select! {
            _too_late = &mut run => {}
            _slow = timeout(STOP_LIMIT, self.function.stop(envelope)) => {}
        }
        std::future::ready(Report::new(outcome)).boxed()
    }

    /// Reports regularly, and when there is something new; ends when the work must stop. Keeps the token alive.
    async fn heartbeats(
        &self,
        envelope: &Envelope,
        token: &Mutex<String>,
        mut made: watch::Receiver<Option<Progress>>,
    ) {
        let period = Duration::from_millis(envelope.heartbeat_interval_ms.get().max(1));
        let mut regular = Instant::now() + period;
        let mut earliest = Instant::now();
        loop {
            let progress = tokio::select! {
                () = sleep_until(regular) => None,
                Ok(()) = made.changed() => {
                    sleep_until(earliest.min(regular)).await;
                    made.borrow_and_update().clone()
                }
            };
            let shown = token.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let answer = self.callbacks.heartbeat(&shown, progress).await;
            regular = Instant::now() + period;
            earliest = Instant::now() + PROGRESS_PAUSE;
            let stop = match answer {
                Ok(reply) => {
                    if let Some(renewed) = reply.task_token {
                        *token.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
                    }
                    reply.should_cancel
                }
                Err(error) => {
                    made.mark_changed();
                    !error.is_transient()
                }
            };
            if stop {
                return;
            }
        }
    }
}

/// An attempt that needs its slot no more, and whose report is pending.
struct Done {
    envelope: Envelope,
    /// The newest token of the attempt.
    token: Mutex<String>,
    report: BoxFuture<'static, Report>,
    guard: AttemptGuard,
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
        match self.lock().entry(attempt) {
            Entry::Occupied(taken) => Err(*taken.get()),
            Entry::Vacant(free) => {
                free.insert(AttemptPhase::Asked);
                Ok(AttemptGuard { active: self.clone(), attempt })
            }
        }
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

/// Repeats a report until the control plane has accepted or refused it: a full disk or a restart loses no result.
async fn retry_until_heard<T, F, Fut>(mut call: F) -> Result<T, CallbackError>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, CallbackError>>,
{
    let mut backoff = Backoff::new(FIRST_REPORT_DELAY, LONGEST_REPORT_DELAY, seed());
    loop {
        match call().await {
            Err(CallbackError::Transient(_)) => sleep(backoff.next_delay()).await,
            outcome => return outcome,
        }
    }
}

/// Workers that failed together do not try again together. Where the system has no random numbers, they may.
fn seed() -> u64 {
    getrandom::u64().unwrap_or_default()
}

/// A message whose queue could not be told what became of it comes again, and its attempt is refused then.
fn settled(outcome: Result<(), QueueError>) {
    if let Err(error) = outcome {
        tracing::debug!(%error, "a queue was not told what became of a message");
    }
}
