//! Hands messages to a queue until it has taken them, each queue at its own pace.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use servo_core::Backoff;
use servo_store::Timers;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::queue::{EnqueueOptions, Message, TaskQueue};

const INITIAL_DELAY: Duration = Duration::from_millis(20);
const MAX_DELAY: Duration = Duration::from_secs(2);

/// A message to enqueue, and what to hand back when a queue has it.
#[derive(Debug, Clone)]
pub struct EnqueueRequest<T> {
    /// The message.
    pub message: Message,
    /// When it may be delivered, counted from now.
    pub options: EnqueueOptions,
    /// The tag to hand back.
    pub tag: T,
}

/// Enqueues messages until they are taken. There is one lane for each queue: one that is full or does not answer holds
/// up its own messages and no others.
pub struct EnqueueLanes {
    queue: Arc<dyn TaskQueue>,
    timers: Arc<dyn Timers>,
    is_closing: AtomicBool,
}

impl EnqueueLanes {
    /// Enqueues into these queues.
    pub fn new(queue: Arc<dyn TaskQueue>, timers: Arc<dyn Timers>) -> Self {
        Self { queue, timers, is_closing: AtomicBool::new(false) }
    }

    /// Takes requests until there will be no more, then tries each that is left once. `taken` is called with the tag of
    /// each message that a queue has, and waited for before the next message of the same queue.
    pub async fn run<T, F>(self, mut requests: UnboundedReceiver<EnqueueRequest<T>>, taken: impl Fn(T) -> F)
    where
        F: Future<Output = ()>,
    {
        let mut lanes: BTreeMap<Arc<str>, UnboundedSender<EnqueueRequest<T>>> = BTreeMap::new();
        let mut running = FuturesUnordered::new();
        loop {
            let request = tokio::select! {
                biased;
                request = requests.recv() => request,
                // A lane never ends while it can be given more.
                Some(()) = running.next() => continue,
            };
            let Some(request) = request else { break };
            let lane = lanes.entry(request.message.queue.clone()).or_insert_with(|| {
                let (sender, receiver) = unbounded_channel();
                running.push(self.lane(receiver, &taken));
                sender
            });
            let _ended = lane.send(request);
        }
        self.is_closing.store(true, Ordering::Release);
        drop(lanes);
        while running.next().await.is_some() {}
    }

    async fn lane<T, F>(&self, mut requests: UnboundedReceiver<EnqueueRequest<T>>, taken: &impl Fn(T) -> F)
    where
        F: Future<Output = ()>,
    {
        let mut is_blocked = false;
        while let Some(EnqueueRequest { message, options, tag }) = requests.recv().await {
            if self.enqueue(message, options, &mut is_blocked).await {
                taken(tag).await;
            }
        }
    }

    /// Whether the queue has taken it. One that it refuses, or has not taken when there is no more time, is dropped:
    /// its dispatch stays unacknowledged and is made again.
    async fn enqueue(&self, message: Message, options: EnqueueOptions, is_blocked: &mut bool) -> bool {
        let begun = self.timers.elapsed();
        let mut backoff = Backoff::new(INITIAL_DELAY, MAX_DELAY, seed_of(&message));
        loop {
            let passed = self.timers.elapsed().saturating_sub(begun);
            let options = EnqueueOptions {
                delay: options.delay.saturating_sub(passed),
                deadline: options.deadline.map(|deadline| deadline.saturating_sub(passed)),
            };
            let error = match self.queue.enqueue(message.clone(), options).await {
                Ok(_) => {
                    *is_blocked = false;
                    return true;
                }
                Err(error) => error,
            };
            if !error.kind().is_transient() {
                tracing::error!(%error, id = message.id, "queue.enqueue was refused");
                return false;
            }
            if !std::mem::replace(is_blocked, true) {
                tracing::warn!(%error, "queue.enqueue failed, it will be tried again");
            }
            if self.is_closing.load(Ordering::Acquire) {
                return false;
            }
            self.timers.sleep(backoff.next_delay()).await;
        }
    }
}

/// Differs between messages and is the same each time: nothing here depends on a random number.
fn seed_of(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.id.hash(&mut hasher);
    hasher.finish()
}
