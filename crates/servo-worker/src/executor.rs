//! The executor: takes tasks of a queue, and watches over whoever does them.

mod slots;

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use servo_core::{AttemptId, Clock};
use servo_engine::{ErrorCode, Outcome, Progress, Report, TaskError};
use servo_queue::{Envelope, Keyring, SignedEnvelope, TaskSource};
use servo_runtime::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::callbacks::Callbacks;
use slots::Phase;
pub use slots::Slots;

const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// New progress is told at once, but not more often than this.
const PROGRESS_PAUSE: Duration = Duration::from_millis(500);
/// How long an attempt that has to stop may take to do so.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// The work itself.
#[async_trait]
pub trait TaskFunction: Send + Sync + 'static {
    /// Does one attempt, without blocking its thread, and says how far it is. A panic is a failure of the task, not of the
    /// executor.
    async fn run(&self, task: &Envelope, progress: &watch::Sender<Option<Progress>>) -> Report;

    /// Ends an attempt that `run` is at, which is dropped when this returns. What needs no time to stop needs no more.
    async fn stop(&self, _task: &Envelope) {}
}

/// Runs tasks of one queue, several at a time.
pub struct Executor {
    /// Where messages come from.
    pub queue: Arc<dyn TaskSource>,
    /// Name of the queue.
    pub queue_name: Arc<str>,
    /// Who is told.
    pub callbacks: Arc<dyn Callbacks>,
    /// Who may send work.
    pub keys: Keyring,
    /// The time.
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

    /// Takes tasks one after another, until the slots close. The next begins while the report of the one before is on
    /// its way.
    async fn serve(self: Arc<Self>, at_work: AtWork, mut phase: watch::Receiver<Phase>) {
        let mut reports = JoinSet::new();
        loop {
            let message = tokio::select! {
                biased;
                () = Phase::Draining.reached(&mut phase) => break,
                message = self.queue.take(&self.queue_name) => message,
            };
            if let Some(done) = self.handle(&message, &at_work, &mut phase).await {
                reports.join_next().await;
                reports.spawn(self.clone().tell(done));
            }
        }
        while reports.join_next().await.is_some() {}
    }

    /// None if there is nothing to report.
    async fn handle(
        &self,
        message: &SignedEnvelope,
        at_work: &AtWork,
        phase: &mut watch::Receiver<Phase>,
    ) -> Option<Done> {
        let envelope = match self.keys.open(message, self.clock.now()) {
            Ok(envelope) => envelope,
            Err(error) => {
                tracing::warn!(%error, "worker refused a message");
                return None;
            }
        };
        let Some(mine) = at_work.begin(envelope.attempt_id) else {
            tracing::debug!(task = envelope.task_key.as_str(), "worker was given the same message twice");
            return None;
        };
        let begun = insist(|| self.callbacks.started(&envelope.task_token, &self.worker)).await;
        if let Err(error) = begun {
            tracing::debug!(%error, task = envelope.task_key.as_str(), "worker does not run a task");
            return None;
        }
        let report = self.work(&envelope, phase).await;
        Some(Done { envelope, report, _mine: mine })
    }

    async fn tell(self: Arc<Self>, done: Done) {
        let Done { envelope, report, _mine } = done;
        let token = envelope.task_token.as_str();
        if let Err(error) = insist(|| self.callbacks.finished(token, report.clone())).await {
            tracing::debug!(%error, task = envelope.task_key.as_str(), "result was not wanted");
        }
    }

    /// Runs the function beside its heartbeats, its timeout, the wish to cancel and the end of the worker.
    async fn work(&self, envelope: &Envelope, phase: &mut watch::Receiver<Phase>) -> Report {
        let limit = envelope.timeout_ms.map_or(Duration::MAX, |limit| Duration::from_millis(limit.get()));
        let (progress, made) = watch::channel(None);
        let mut run = pin!(AssertUnwindSafe(self.function.run(envelope, &progress)).catch_unwind());
        let outcome = tokio::select! {
            done = &mut run => return reported(done),
            () = sleep(limit.min(LONGEST_TIMEOUT)) => Outcome::TimedOut,
            () = self.heartbeats(envelope, made) => Outcome::Cancelled,
            () = Phase::Stopping.reached(phase) => Outcome::Interrupted,
        };
        tokio::select! {
            _too_late = &mut run => {}
            _slow = timeout(STOP_LIMIT, self.function.stop(envelope)) => {}
        }
        Report::new(outcome)
    }

    /// Reports regularly, and when there is something new; ends when the work must stop.
    async fn heartbeats(&self, envelope: &Envelope, mut made: watch::Receiver<Option<Progress>>) {
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
            let answer = self.callbacks.heartbeat(&envelope.task_token, progress).await;
            regular = Instant::now() + period;
            earliest = Instant::now() + PROGRESS_PAUSE;
            let stop = match answer {
                Ok(reply) => reply.should_cancel,
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

/// An attempt that has ended and is to be reported.
struct Done {
    envelope: Envelope,
    report: Report,
    _mine: Mine,
}

/// Attempts in the hands of some slot. The control plane knows the worker by its name alone, so a message that comes
/// twice must be noticed here.
#[derive(Debug, Clone, Default)]
struct AtWork(Arc<Mutex<BTreeSet<AttemptId>>>);

impl AtWork {
    /// None if another slot has it.
    fn begin(&self, attempt: AttemptId) -> Option<Mine> {
        let is_new = self.lock().insert(attempt);
        is_new.then(|| Mine { at_work: self.clone(), attempt })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<AttemptId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until it is dropped, an attempt belongs to one slot.
struct Mine {
    at_work: AtWork,
    attempt: AttemptId,
}

impl Drop for Mine {
    fn drop(&mut self) {
        self.at_work.lock().remove(&self.attempt);
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    format!("the task panicked: {}", text.unwrap_or("without a message"))
}

fn reported(done: Result<Report, Box<dyn Any + Send>>) -> Report {
    done.unwrap_or_else(|panic| {
        Report::failed(TaskError::new(ErrorCode::UserCodeException, panic_message(&*panic)))
    })
}

/// Repeats a report until the control plane has taken or refused it: a full disk or a restart loses no result.
async fn insist<T, F, Fut>(mut call: F) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    let mut pause = Duration::from_millis(5);
    loop {
        match call().await {
            Err(error) if error.is_transient() => {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            outcome => return outcome,
        }
    }
}
