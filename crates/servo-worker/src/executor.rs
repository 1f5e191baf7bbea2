//! The in-process executor: for tests, benchmarks, and work that needs no interpreter.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use servo_core::{AttemptId, Clock};
use servo_engine::{ErrorCode, Outcome, Reply, Report, TaskError};
use servo_queue::{Envelope, Keyring, SignedEnvelope, TaskSource};
use servo_runtime::Error;
use tokio::task::JoinSet;

use crate::callbacks::Callbacks;

const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The work itself.
#[async_trait]
pub trait TaskFunction: Send + Sync + 'static {
    /// Does one attempt, without blocking its thread. A panic is a failure of the task, not of the executor.
    async fn run(&self, task: &Envelope) -> Report;
}

/// Runs tasks of one queue inside this process, several at a time.
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
    /// Starts the slots. They end when the set is dropped.
    pub fn start(self) -> JoinSet<()> {
        let shared = Arc::new((self, AtWork::default()));
        let mut slots = JoinSet::new();
        for _ in 0..shared.0.slots {
            let shared = shared.clone();
            slots.spawn(async move {
                let (executor, at_work) = &*shared;
                loop {
                    let message = executor.queue.take(&executor.queue_name).await;
                    executor.handle(&message, at_work).await;
                }
            });
        }
        slots
    }

    async fn handle(&self, message: &SignedEnvelope, at_work: &AtWork) {
        let envelope = match self.keys.open(message, self.clock.now()) {
            Ok(envelope) => envelope,
            Err(error) => {
                tracing::warn!(%error, "worker refused a message");
                return;
            }
        };
        let Some(_mine) = at_work.begin(envelope.attempt_id) else {
            tracing::debug!(task = envelope.task_key.as_str(), "worker was given the same message twice");
            return;
        };
        let token = envelope.task_token.as_str();
        let begun = insist(|| self.callbacks.started(token, &self.worker)).await;
        if let Err(error) = begun {
            tracing::debug!(%error, task = envelope.task_key.as_str(), "worker does not run a task");
            return;
        }
        let report = self.work(&envelope).await;
        if let Err(error) = insist(|| self.callbacks.finished(token, report.clone())).await {
            tracing::debug!(%error, task = envelope.task_key.as_str(), "result was not wanted");
        }
    }

    /// Runs the function beside its heartbeats, its timeout and the wish to cancel.
    async fn work(&self, envelope: &Envelope) -> Report {
        let limit = envelope.timeout_ms.map_or(Duration::MAX, |limit| Duration::from_millis(limit.get()));
        tokio::select! {
            done = AssertUnwindSafe(self.function.run(envelope)).catch_unwind() => done.unwrap_or_else(|panic| {
                Report::failed(TaskError::new(ErrorCode::UserCodeException, panic_message(&*panic)))
            }),
            () = tokio::time::sleep(limit.min(LONGEST_TIMEOUT)) => ended(Outcome::TimedOut),
            () = self.heartbeats(envelope) => ended(Outcome::Cancelled),
        }
    }

    /// Reports regularly; ends when the work must stop.
    async fn heartbeats(&self, envelope: &Envelope) {
        let period = Duration::from_millis(envelope.heartbeat_interval_ms.get().max(1));
        loop {
            tokio::time::sleep(period).await;
            let stop = match self.callbacks.heartbeat(&envelope.task_token, None).await {
                Ok(Reply::Heartbeat { should_cancel }) => should_cancel,
                Ok(_) => false,
                Err(error) => !error.is_transient(),
            };
            if stop {
                return;
            }
        }
    }
}

/// Attempts in the hands of some slot. The control plane knows the worker by its name alone, so a message that comes
/// twice must be noticed here.
#[derive(Debug, Default)]
struct AtWork(Mutex<BTreeSet<AttemptId>>);

impl AtWork {
    /// None if another slot has it.
    fn begin(&self, attempt: AttemptId) -> Option<Mine<'_>> {
        let is_new = self.lock().insert(attempt);
        is_new.then(|| Mine { at_work: self, attempt })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<AttemptId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until it is dropped, an attempt belongs to one slot.
struct Mine<'a> {
    at_work: &'a AtWork,
    attempt: AttemptId,
}

impl Drop for Mine<'_> {
    fn drop(&mut self) {
        self.at_work.lock().remove(&self.attempt);
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    format!("the task panicked: {}", text.unwrap_or("without a message"))
}

fn ended(outcome: Outcome) -> Report {
    Report::new(outcome)
}

/// Repeats a report until the control plane has taken or refused it: a full disk or a restart loses no result.
async fn insist<F, Fut>(mut call: F) -> Result<Reply, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Reply, Error>>,
{
    let mut pause = Duration::from_millis(5);
    loop {
        match call().await {
            Err(error) if error.is_transient() => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            outcome => return outcome,
        }
    }
}
