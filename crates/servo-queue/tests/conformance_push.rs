//! A queue that calls its worker keeps every rule of queues, and goes easy on a worker that is away.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use servo_queue::conformance::{ManualTimers, QueueFixture, message, names};
use servo_queue::{
    EnqueueOptions, NamedQueues, PushError, PushInbox, PushQueue, PushQueueOptions, PushReply, PushTarget,
    SignedEnvelope, TaskQueue, TaskSource,
};
use tokio::task::JoinSet;

const ANSWER_WITHIN: Duration = Duration::from_secs(60);
const CAPACITY: usize = 8;

/// A worker in this process: what is pushed to it is received from an inbox.
struct Near(Arc<PushInbox>);

#[async_trait]
impl PushTarget for Near {
    async fn push(&self, queue: &Arc<str>, envelope: &SignedEnvelope) -> Result<PushReply, PushError> {
        Ok(self.0.push(queue.clone(), envelope.clone()).await)
    }
}

fn options(timers: &ManualTimers) -> PushQueueOptions {
    PushQueueOptions {
        capacity: CAPACITY,
        answer_within: ANSWER_WITHIN,
        timers: Arc::new(timers.clone()),
        ..PushQueueOptions::new(64)
    }
}

/// Lets everybody who has something to do do it.
async fn settle_down() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

struct Pushed {
    timers: ManualTimers,
    queues: Arc<NamedQueues>,
    inbox: Arc<PushInbox>,
    _calling: JoinSet<()>,
}

#[async_trait]
impl QueueFixture for Pushed {
    fn queue(&self) -> Arc<dyn TaskQueue> {
        self.queues.clone()
    }

    fn source(&self) -> Arc<dyn TaskSource> {
        self.inbox.clone()
    }

    async fn pass(&self, time: Duration) {
        settle_down().await;
        self.timers.advance(time);
        settle_down().await;
    }

    fn visibility_timeout(&self) -> Duration {
        ANSWER_WITHIN
    }

    fn capacity(&self) -> Option<usize> {
        Some(CAPACITY)
    }
}

async fn fresh() -> Pushed {
    let (timers, inbox) = (ManualTimers::default(), PushInbox::new(64));
    let mut calling = JoinSet::new();
    let queue_of = |name: Arc<str>| PushQueue::new(name, Arc::new(Near(inbox.clone())), options(&timers));
    let queues: Vec<Arc<PushQueue>> =
        names(&["default", "other", "a", "b", "c"]).into_iter().map(queue_of).collect();
    for queue in &queues {
        let queue = queue.clone();
        calling.spawn(async move { match queue.run().await {} });
    }
    let others = queues[0].clone();
    let named = queues.into_iter().map(|queue| (queue.name().clone(), queue as Arc<dyn TaskQueue>));
    let queues = NamedQueues::new(named, others);
    Pushed { timers, queues, inbox, _calling: calling }
}

servo_queue::queue_conformance!(fresh);

/// A worker that may be away, and says nothing else until it is told to.
#[derive(Default)]
struct Far {
    is_there: AtomicBool,
    calls: AtomicUsize,
    at_once: AtomicUsize,
    taken: Mutex<Vec<String>>,
}

#[async_trait]
impl PushTarget for Far {
    async fn push(&self, _: &Arc<str>, envelope: &SignedEnvelope) -> Result<PushReply, PushError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if !self.is_there.load(Ordering::SeqCst) {
            return Err(PushError::new("connection refused"));
        }
        self.at_once.fetch_add(1, Ordering::SeqCst);
        settle_down().await;
        self.taken.lock().unwrap().push(envelope.signature.clone());
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        Ok(PushReply::Acked)
    }
}

#[tokio::test]
async fn a_worker_that_is_away_is_called_now_and_then_and_gets_everything_when_it_comes_back() {
    let (timers, far) = (ManualTimers::default(), Arc::new(Far::default()));
    let options = PushQueueOptions { concurrency: 2, ..options(&timers) };
    let queue = PushQueue::new("gpu".into(), far.clone(), options);
    let running = tokio::spawn({
        let queue = queue.clone();
        async move { queue.run().await }
    });
    for id in 0..6 {
        queue.enqueue(message("gpu", &format!("d_{id}")), EnqueueOptions::default()).await.unwrap();
    }
    settle_down().await;
    assert_eq!(far.calls.load(Ordering::SeqCst), 2, "as many as may be at once, and then a pause");
    for _ in 0..600 {
        timers.advance(Duration::from_millis(100));
        settle_down().await;
    }
    let calls = far.calls.load(Ordering::SeqCst);
    assert!((20..=60).contains(&calls), "{calls} in a minute");
    far.is_there.store(true, Ordering::SeqCst);
    while far.taken.lock().unwrap().len() < 6 {
        assert!(far.at_once.load(Ordering::SeqCst) <= 2);
        timers.advance(Duration::from_millis(100));
        settle_down().await;
    }
    let mut taken = far.taken.lock().unwrap().clone();
    taken.sort();
    assert_eq!(taken, ["d_0", "d_1", "d_2", "d_3", "d_4", "d_5"], "each once");
    running.abort();
}
