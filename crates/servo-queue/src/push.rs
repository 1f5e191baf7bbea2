//! Queues that call their workers: what they push is received like anything else.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, oneshot};

use crate::envelope::SignedEnvelope;
use crate::queue::QueueError;
use crate::source::{Delivery, Receipt, TaskSource};

/// After how long a queue should call again that called when nothing more could be taken.
const CALL_AGAIN: Duration = Duration::from_secs(1);

/// The worker's end of a queue that delivers by calling a URL, as Cloud Tasks does. Whoever listens there hands in each
/// request and answers it with what becomes of the message; executors receive from here as from any other queue.
#[derive(Debug)]
pub struct PushInbox {
    capacity: usize,
    waiting: Mutex<VecDeque<Pushed>>,
    news: Notify,
}

#[derive(Debug)]
struct Pushed {
    queue: Arc<str>,
    envelope: SignedEnvelope,
    reply_to: oneshot::Sender<PushReply>,
}

/// The reply to a push queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushReply {
    /// The message was dealt with: a status of success.
    Acked,
    /// It was not: a status that makes the queue call again, after this long if it can be told so.
    Nacked {
        /// After how long.
        delay: Duration,
    },
}

impl PushInbox {
    /// Holds at most `capacity` messages that no executor has received; the queue keeps the others.
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, waiting: Mutex::default(), news: Notify::new() })
    }

    /// Takes what a queue has pushed; answers when an executor has said what becomes of it. Dropped, because the caller
    /// has hung up, the message is given to nobody: the queue will call again.
    pub async fn push(&self, queue: Arc<str>, envelope: SignedEnvelope) -> PushReply {
        let (reply_to, reply) = oneshot::channel();
        {
            let mut waiting = self.lock();
            waiting.retain(|pushed| !pushed.reply_to.is_closed());
            if waiting.len() >= self.capacity {
                return PushReply::Nacked { delay: CALL_AGAIN };
            }
            waiting.push_back(Pushed { queue, envelope, reply_to });
        }
        self.news.notify_waiters();
        // An executor that vanished with it has not dealt with it.
        reply.await.unwrap_or(PushReply::Nacked { delay: Duration::ZERO })
    }

    fn poll(&self, queues: &[Arc<str>], at_most: usize) -> Vec<Delivery> {
        let mut waiting = self.lock();
        waiting.retain(|pushed| !pushed.reply_to.is_closed());
        let mut deliveries = Vec::new();
        while deliveries.len() < at_most.max(1)
            && let Some(at) = waiting.iter().position(|pushed| queues.contains(&pushed.queue))
            && let Some(Pushed { envelope, reply_to, .. }) = waiting.remove(at)
        {
            deliveries.push(Delivery::new(envelope, PushReceipt(reply_to)));
        }
        deliveries
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Pushed>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TaskSource for PushInbox {
    async fn receive(&self, queues: &[Arc<str>], at_most: usize) -> Result<Vec<Delivery>, QueueError> {
        loop {
            // Made before looking: what comes in between is not missed.
            let news = self.news.notified();
            let deliveries = self.poll(queues, at_most);
            if !deliveries.is_empty() {
                return Ok(deliveries);
            }
            news.await;
        }
    }
}

/// Answers the request that a message came with.
struct PushReceipt(oneshot::Sender<PushReply>);

#[async_trait]
impl Receipt for PushReceipt {
    async fn ack(self: Box<Self>) -> Result<(), QueueError> {
        let _hung_up = self.0.send(PushReply::Acked);
        Ok(())
    }

    async fn nack(self: Box<Self>, delay: Duration) -> Result<(), QueueError> {
        let _hung_up = self.0.send(PushReply::Nacked { delay });
        Ok(())
    }
}
