//! The queue of one process keeps every rule.

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
