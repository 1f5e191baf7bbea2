//! The queue of one process: in memory, bounded, not durable (ADR-046).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use flume::TrySendError;
use tokio::sync::Notify;

use crate::envelope::SignedEnvelope;
use crate::queue::{EnqueueResult, Message, QueueError, TaskQueue};

/// Ids remembered for deduplication; far more than can be outstanding at once.
const REMEMBERED: usize = 100_000;

/// An in-memory queue per name; workers of this process take from it.
#[derive(Debug)]
pub struct LocalQueue {
    capacity: usize,
    inner: Mutex<Inner>,
    /// Somebody took a message.
    room: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    channels: BTreeMap<Arc<str>, Channel>,
    seen: BTreeSet<String>,
    order: VecDeque<String>,
}

type Channel = (flume::Sender<SignedEnvelope>, flume::Receiver<SignedEnvelope>);

impl LocalQueue {
    /// Queues that hold at most `capacity` messages each; senders wait beyond that.
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, inner: Mutex::default(), room: Notify::new() })
    }

    /// The next message of a queue; waits for one.
    pub async fn take(&self, queue: &str) -> SignedEnvelope {
        let (_, receiver) = self.channel(queue);
        let message = receiver.recv_async().await.expect("the queue keeps a sender of its own");
        // A permit is kept for a sender that is about to wait; one that finds the queue full again waits again.
        self.room.notify_one();
        message
    }

    /// Offers a message again that was taken by somebody who may have vanished with it.
    pub async fn put_back(&self, queue: &str, message: SignedEnvelope) {
        let (sender, _) = self.channel(queue);
        sender.send_async(message).await.expect("the queue keeps a receiver of its own");
    }

    /// Messages waiting, over all queues.
    pub fn len(&self) -> usize {
        self.lock().channels.values().map(|(sender, _)| sender.len()).sum()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn channel(&self, queue: &str) -> Channel {
        let mut inner = self.lock();
        if let Some(channel) = inner.channels.get(queue) {
            return channel.clone();
        }
        let channel = flume::bounded(self.capacity);
        inner.channels.insert(queue.into(), channel.clone());
        channel
    }
}

#[async_trait]
impl TaskQueue for LocalQueue {
    /// Looking, sending and remembering are one step unless the queue is full; a sender that gives up waiting for room
    /// leaves no trace.
    async fn enqueue(&self, message: Message) -> Result<EnqueueResult, QueueError> {
        let Message { queue, id, mut envelope } = message;
        let (sender, _) = self.channel(&queue);
        loop {
            let outcome = {
                let mut inner = self.lock();
                if inner.seen.contains(&id) {
                    return Ok(EnqueueResult::Deduplicated);
                }
                let outcome = sender.try_send(envelope);
                if outcome.is_ok() {
                    inner.remember(id.clone());
                }
                outcome
            };
            match outcome {
                Ok(()) => return Ok(EnqueueResult::Enqueued),
                Err(TrySendError::Disconnected(_)) => return Err(QueueError::Closed { queue }),
                Err(TrySendError::Full(returned)) => envelope = returned,
            }
            self.room.notified().await;
        }
    }
}

impl Inner {
    fn remember(&mut self, id: String) {
        self.order.push_back(id.clone());
        self.seen.insert(id);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str) -> Message {
        let envelope = SignedEnvelope { body: "{}".into(), key_id: "k".into(), signature: id.to_owned() };
        Message { queue: "default".into(), id: id.to_owned(), envelope }
    }

    #[tokio::test]
    async fn inv_4_enqueuing_twice_delivers_once() {
        let queue = LocalQueue::new(8);
        assert_eq!(queue.enqueue(message("d_1")).await, Ok(EnqueueResult::Enqueued));
        assert_eq!(queue.enqueue(message("d_1")).await, Ok(EnqueueResult::Deduplicated));
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.take("default").await.signature, "d_1");
        assert_eq!(
            queue.enqueue(message("d_1")).await,
            Ok(EnqueueResult::Deduplicated),
            "also once it was taken"
        );
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn what_was_put_back_is_delivered_again() {
        let queue = LocalQueue::new(8);
        queue.enqueue(message("d_1")).await.unwrap();
        let taken = queue.take("default").await;
        queue.put_back("default", taken.clone()).await;
        assert_eq!(queue.take("default").await, taken);
    }

    #[tokio::test]
    async fn a_full_queue_makes_the_sender_wait() {
        let queue = LocalQueue::new(1);
        queue.enqueue(message("d_1")).await.unwrap();
        let second = tokio::spawn({
            let queue = queue.clone();
            async move { queue.enqueue(message("d_2")).await }
        });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        assert_eq!(queue.take("default").await.signature, "d_1");
        assert_eq!(second.await.unwrap(), Ok(EnqueueResult::Enqueued));
        assert_eq!(queue.take("default").await.signature, "d_2");
    }
}
