//! A queue that calls its worker: it keeps messages until the worker has answered for each of them.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use servo_core::Backoff;
use servo_store::{Timers, TokioTimers};

use crate::envelope::SignedEnvelope;
use crate::local::{LocalQueue, LocalQueueOptions};
use crate::push::PushReply;
use crate::queue::{EnqueueOptions, EnqueueResult, Message, QueueError, TaskQueue};
use crate::source::{Delivery, TaskSource};

/// Delays between calls of a worker that does not answer.
const INITIAL_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Messages that are kept at least, beside those that the worker has.
const CAPACITY: usize = 1_024;

/// Where a queue calls its worker.
#[async_trait]
pub trait PushTarget: Send + Sync {
    /// Hands a message to the worker, and waits for what becomes of it. Dropped, the call is broken off.
    async fn push(&self, queue: &Arc<str>, envelope: &SignedEnvelope) -> Result<PushReply, PushError>;
}

/// Why a worker was not reached, or gave an answer that says nothing about the message. It is called again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PushError {
    /// The problem, without any secret.
    pub reason: String,
}

impl PushError {
    /// An error with its reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// How a push queue behaves.
#[derive(Debug, Clone)]
pub struct PushQueueOptions {
    /// Calls at once.
    pub concurrency: usize,
    /// Messages that it holds at most, those that the worker has included.
    pub capacity: usize,
    /// How long the worker may take to say what becomes of a message. Then the call is broken off, and made again.
    pub answer_within: Duration,
    /// Time that passes.
    pub timers: Arc<dyn Timers>,
}

impl PushQueueOptions {
    /// So many calls at once.
    pub fn new(concurrency: usize) -> Self {
        Self {
            concurrency,
            capacity: concurrency.max(CAPACITY),
            answer_within: Duration::from_secs(60),
            timers: Arc::new(TokioTimers::default()),
        }
    }
}

/// A queue that calls one worker. Messages are in memory, bounded, and not durable, as those of a [`LocalQueue`]: what
/// was dispatched is in the log, and is handed out again after a restart. A message is delivered until the worker has
/// acknowledged it or its deadline has passed.
pub struct PushQueue {
    name: Arc<str>,
    messages: Arc<LocalQueue>,
    target: Arc<dyn PushTarget>,
    options: PushQueueOptions,
    health: Mutex<Health>,
}

/// Whether the worker answers.
struct Health {
    backoff: Backoff,
    is_away: bool,
}

impl PushQueue {
    /// The queue of this name. Nothing is called before it runs.
    pub fn new(name: Arc<str>, target: Arc<dyn PushTarget>, options: PushQueueOptions) -> Arc<Self> {
        let messages = LocalQueue::with(LocalQueueOptions {
            capacity: options.capacity,
            // A call that was broken off has given its message back by then.
            visibility_timeout: options.answer_within.saturating_mul(2),
            timers: options.timers.clone(),
        });
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let backoff = Backoff::new(INITIAL_DELAY, MAX_DELAY, hasher.finish());
        let health = Mutex::new(Health { backoff, is_away: false });
        Arc::new(Self { name, messages, target, options, health })
    }

    /// The name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Calls the worker with each message that is due, several at once. Dropped, nobody is called any more; calls that
    /// are on their way are broken off, and their messages stay.
    pub async fn run(&self) -> Infallible {
        let mut calls = FuturesUnordered::new();
        loop {
            let has_room = calls.len() < self.options.concurrency.max(1);
            tokio::select! {
                biased;
                Some(()) = calls.next(), if !calls.is_empty() => {}
                received = self.messages.receive(std::slice::from_ref(&self.name), 1), if has_room => {
                    calls.extend(received.into_iter().flatten().map(|delivery| self.call(delivery)));
                }
            }
        }
    }

    /// Calls the worker with one message, and settles it by the answer.
    async fn call(&self, delivery: Delivery) {
        let limit = self.options.timers.sleep(self.options.answer_within);
        let answered = match select(pin!(self.target.push(&self.name, &delivery.envelope)), limit).await {
            Either::Left((answered, _)) => answered,
            // It has had its time already.
            Either::Right(((), _)) => Ok(PushReply::Nacked { delay: Duration::ZERO }),
        };
        let (settled, pause) = match answered {
            Ok(reply) => {
                self.answers();
                let settled = match reply {
                    PushReply::Acked => delivery.ack().await,
                    PushReply::Nacked { delay } => delivery.nack(delay).await,
                };
                (settled, Duration::ZERO)
            }
            Err(error) => {
                let pause = self.is_away(&error);
                (delivery.nack(pause).await, pause)
            }
        };
        if let Err(error) = settled {
            tracing::debug!(%error, "queue.settle failed, the message will come again");
        }
        // Others are not tried in its place: they would fare no better.
        if !pause.is_zero() {
            self.options.timers.sleep(pause).await;
        }
    }

    fn answers(&self) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        health.backoff.reset();
        if std::mem::take(&mut health.is_away) {
            tracing::info!(queue = &*self.name, "queue.push the worker answers again");
        }
    }

    /// How long to wait before the next call.
    fn is_away(&self, error: &PushError) -> Duration {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut health.is_away, true) {
            tracing::warn!(queue = &*self.name, %error, "queue.push failed, the worker is called until it answers");
        }
        health.backoff.next_delay()
    }
}

#[async_trait]
impl TaskQueue for PushQueue {
    async fn enqueue(&self, message: Message, options: EnqueueOptions) -> Result<EnqueueResult, QueueError> {
        self.messages.enqueue(message, options).await
    }
}
