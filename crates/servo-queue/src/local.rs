//! The queue of one process: in memory, bounded, not durable (ADR-046).

mod lane;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{BoxFuture, select_all};
use servo_store::{Timers, TokioTimers};

use crate::queue::{EnqueueOptions, EnqueueResult, Message, QueueError, QueueErrorKind, TaskQueue};
use crate::source::{Delivery, Receipt, TaskSource};
use lane::{Lane, Ticket};

/// Ids remembered for deduplication; far more than can be outstanding at once.
const REMEMBERED: usize = 100_000;

/// How a local queue behaves.
#[derive(Debug, Clone)]
pub struct LocalQueueOptions {
    /// Messages that each queue holds at most, those in the hands of workers included.
    pub capacity: usize,
    /// A message that nobody has said anything about for so long is delivered again. Longer than the lease of remote
    /// workers, who have the time of a lease to begin.
    pub visibility_timeout: Duration,
    /// Time that passes.
    pub timers: Arc<dyn Timers>,
}

impl Default for LocalQueueOptions {
    fn default() -> Self {
        Self {
            capacity: 1_024,
            visibility_timeout: Duration::from_secs(120),
            timers: Arc::new(TokioTimers::default()),
        }
    }
}

/// A queue in memory for each name; workers of this process take from it, and through it those that ask over HTTP.
#[derive(Debug)]
pub struct LocalQueue {
    options: LocalQueueOptions,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    lanes: BTreeMap<Arc<str>, Lane>,
    /// Number of the next message: those that are due at the same time are delivered in the order of their numbers.
    next: u64,
    seen: BTreeSet<String>,
    order: VecDeque<String>,
}

impl LocalQueue {
    /// Queues that hold at most `capacity` messages each.
    pub fn new(capacity: usize) -> Arc<Self> {
        Self::with(LocalQueueOptions { capacity, ..LocalQueueOptions::default() })
    }

    /// Queues that behave as told.
    pub fn with(options: LocalQueueOptions) -> Arc<Self> {
        Arc::new(Self { options, inner: Arc::default() })
    }

    /// Messages that were not acknowledged, over all queues.
    pub fn len(&self) -> usize {
        lock(&self.inner).lanes.values().map(Lane::len).sum()
    }

    /// Whether every message was acknowledged.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The messages that are due, in order; else what to wait for.
    fn poll(&self, queues: &[Arc<str>], at_most: usize) -> Result<Vec<Delivery>, Pause> {
        let now = self.options.timers.elapsed();
        let mut inner = lock(&self.inner);
        let mut deliveries = Vec::new();
        while deliveries.len() < at_most.max(1) {
            let due = queues.iter().filter_map(|queue| Some((inner.lanes.get_mut(queue)?.due(now)?, queue)));
            let Some((_, queue)) = due.min() else { break };
            let lane = inner.lanes.entry(queue.clone()).or_default();
            let Some((ticket, envelope)) = lane.hand_out(now, self.options.visibility_timeout) else { break };
            let receipt = LocalReceipt {
                inner: Arc::downgrade(&self.inner),
                timers: self.options.timers.clone(),
                queue: queue.clone(),
                ticket,
            };
            deliveries.push(Delivery::new(envelope, receipt));
        }
        if !deliveries.is_empty() {
            return Ok(deliveries);
        }
        // Whoever holds a message now may vanish with it later: nobody waits longer than that takes to be noticed.
        let mut pause = Pause { until: now + self.options.visibility_timeout, news: Vec::new() };
        for queue in queues {
            let lane = inner.lanes.entry(queue.clone()).or_default();
            pause.until = lane.next_due().into_iter().fold(pause.until, Duration::min);
            // Listens from here on: whatever comes after the lock is released wakes somebody who can take it.
            let mut news = Box::pin(lane.news.clone().notified_owned());
            news.as_mut().enable();
            pause.news.push(news);
        }
        Err(pause)
    }
}

/// The condition that a receiver without messages waits for.
struct Pause {
    until: Duration,
    news: Vec<BoxFuture<'static, ()>>,
}

impl Pause {
    async fn over(self, timers: &dyn Timers) {
        let timer = timers.sleep(self.until.saturating_sub(timers.elapsed()));
        select_all(self.news.into_iter().chain([timer])).await;
    }
}

#[async_trait]
impl TaskQueue for LocalQueue {
    async fn enqueue(&self, message: Message, options: EnqueueOptions) -> Result<EnqueueResult, QueueError> {
        let now = self.options.timers.elapsed();
        let mut inner = lock(&self.inner);
        if inner.seen.contains(&message.id) {
            return Ok(EnqueueResult::Deduplicated);
        }
        let number = inner.next;
        let lane = inner.lanes.entry(message.queue.clone()).or_default();
        if lane.len() >= self.options.capacity {
            let reason =
                format!("it holds {} messages and has no room for more; start workers for it", lane.len());
            return Err(QueueError::new(QueueErrorKind::Full, &*message.queue, reason));
        }
        lane.add(number, message.envelope, now, options);
        inner.next += 1;
        inner.remember(message.id);
        Ok(EnqueueResult::Enqueued)
    }
}

#[async_trait]
impl TaskSource for LocalQueue {
    async fn receive(&self, queues: &[Arc<str>], at_most: usize) -> Result<Vec<Delivery>, QueueError> {
        loop {
            match self.poll(queues, at_most) {
                Ok(deliveries) => return Ok(deliveries),
                Err(pause) => pause.over(self.options.timers.as_ref()).await,
            }
        }
    }
}

/// Settles one delivery of a queue that may be gone by then.
struct LocalReceipt {
    inner: Weak<Mutex<Inner>>,
    timers: Arc<dyn Timers>,
    queue: Arc<str>,
    ticket: Ticket,
}

impl LocalReceipt {
    fn settle(&self, settle: impl FnOnce(&mut Lane, Ticket)) {
        if let Some(inner) = self.inner.upgrade()
            && let Some(lane) = lock(&inner).lanes.get_mut(&self.queue)
        {
            settle(lane, self.ticket);
        }
    }
}

#[async_trait]
impl Receipt for LocalReceipt {
    async fn ack(self: Box<Self>) -> Result<(), QueueError> {
        self.settle(Lane::ack);
        Ok(())
    }

    async fn nack(self: Box<Self>, delay: Duration) -> Result<(), QueueError> {
        let due = self.timers.elapsed() + delay;
        self.settle(|lane, ticket| lane.nack(ticket, due, delay.is_zero()));
        Ok(())
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

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}
