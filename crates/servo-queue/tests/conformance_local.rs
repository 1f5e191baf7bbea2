//! The queue of one process keeps every rule, whether workers ask for messages or are called with them.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use servo_queue::conformance::{ManualTimers, QueueFixture};
use servo_queue::{LocalQueue, LocalQueueOptions, TaskQueue, TaskSource};

const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(60);
const CAPACITY: usize = 8;

struct Local {
    timers: ManualTimers,
    queue: Arc<LocalQueue>,
}

impl Local {
    fn new() -> Self {
        let timers = ManualTimers::default();
        let queue = LocalQueue::with(LocalQueueOptions {
            capacity: CAPACITY,
            visibility_timeout: VISIBILITY_TIMEOUT,
            timers: Arc::new(timers.clone()),
        });
        Self { timers, queue }
    }
}

/// Lets everybody who has something to do do it.
async fn settle_down() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl QueueFixture for Local {
    fn queue(&self) -> Arc<dyn TaskQueue> {
        self.queue.clone()
    }

    fn source(&self) -> Arc<dyn TaskSource> {
        self.queue.clone()
    }

    async fn pass(&self, time: Duration) {
        settle_down().await;
        self.timers.advance(time);
        settle_down().await;
    }

    fn visibility_timeout(&self) -> Duration {
        VISIBILITY_TIMEOUT
    }

    fn capacity(&self) -> Option<usize> {
        Some(CAPACITY)
    }
}

async fn fresh() -> Local {
    Local::new()
}

servo_queue::queue_conformance!(fresh);

mod pushed {
    use futures::future::{Either, select};
    use servo_queue::conformance::names;
    use servo_queue::{Delivery, PushInbox, PushReply};
    use servo_store::Timers;
    use tokio::task::JoinSet;

    use super::*;

    /// A queue that calls its workers: what a service such as Cloud Tasks does, done with a local queue.
    struct Pushed {
        local: Local,
        inbox: Arc<PushInbox>,
        _calling: JoinSet<()>,
    }

    /// Calls the worker, and hangs up when there is no answer in time.
    async fn call(queue: Arc<str>, delivery: Delivery, inbox: Arc<PushInbox>, timers: ManualTimers) {
        let pushed = Box::pin(inbox.push(queue, delivery.envelope.clone()));
        let settled = match select(pushed, timers.sleep(VISIBILITY_TIMEOUT)).await {
            Either::Left((PushReply::Acked, _)) => delivery.ack().await,
            Either::Left((PushReply::Nacked { delay }, _)) => delivery.nack(delay).await,
            Either::Right(((), _)) => Ok(()),
        };
        settled.unwrap();
    }

    #[async_trait]
    impl QueueFixture for Pushed {
        fn queue(&self) -> Arc<dyn TaskQueue> {
            self.local.queue()
        }

        fn source(&self) -> Arc<dyn TaskSource> {
            self.inbox.clone()
        }

        async fn pass(&self, time: Duration) {
            self.local.pass(time).await;
        }

        fn visibility_timeout(&self) -> Duration {
            VISIBILITY_TIMEOUT
        }

        fn capacity(&self) -> Option<usize> {
            Some(CAPACITY)
        }
    }

    async fn fresh() -> Pushed {
        let (local, inbox) = (Local::new(), PushInbox::new(64));
        let mut calling = JoinSet::new();
        for queue in names(&["default", "other", "a", "b", "c"]) {
            let (source, timers, inbox) = (local.queue.clone(), local.timers.clone(), inbox.clone());
            calling.spawn(async move {
                loop {
                    for delivery in source.receive(std::slice::from_ref(&queue), 1).await.unwrap() {
                        tokio::spawn(call(queue.clone(), delivery, inbox.clone(), timers.clone()));
                    }
                }
            });
        }
        Pushed { local, inbox, _calling: calling }
    }

    servo_queue::queue_conformance!(fresh);
}
