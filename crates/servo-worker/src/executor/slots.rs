//! The slots of an executor, and how they end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::Shared;
use servo_store::{Spawner, within};

use super::task_set::TaskSet;
use super::{ActiveAttempts, Executor, STOP_LIMIT};
use crate::slot_pool::SlotShare;

/// How long the last reports may take to be acknowledged.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Running slots of an executor. Dropping it stops running tasks without reports.
pub struct Slots {
    tasks: TaskSet,
    spawner: Arc<dyn Spawner>,
    drain: oneshot::Sender<()>,
    stop: oneshot::Sender<()>,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("running", &self.tasks.len()).finish_non_exhaustive()
    }
}

/// Tells slots that they are to end. First they drain: they finish their task and take no other. Then they stop: they
/// stop their task.
#[derive(Clone)]
pub(super) struct Ending {
    draining: Shared<oneshot::Receiver<()>>,
    stopping: Shared<oneshot::Receiver<()>>,
}

impl Ending {
    /// Waits until slots drain. Never ends if they were dropped.
    pub(super) async fn draining(&self) {
        told(&self.draining).await;
    }

    /// Waits until slots stop. Never ends if they were dropped.
    pub(super) async fn stopping(&self) {
        told(&self.stopping).await;
    }
}

async fn told(phase: &Shared<oneshot::Receiver<()>>) {
    if phase.clone().await.is_err() {
        std::future::pending().await
    }
}

impl Slots {
    pub(super) fn start(executor: Executor, share: Option<SlotShare>) -> Self {
        let (drain, draining) = oneshot::channel();
        let (stop, stopping) = oneshot::channel();
        let ending = Ending { draining: draining.shared(), stopping: stopping.shared() };
        let (executor, active) = (Arc::new(executor), ActiveAttempts::default());
        let spawner = executor.spawner.clone();
        let mut tasks = TaskSet::new(spawner.clone());
        for slot in 0..executor.slots {
            tasks.spawn(executor.clone().serve(slot, share.clone(), active.clone(), ending.clone()));
        }
        Self { tasks, spawner, drain, stop }
    }

    /// Takes no more tasks, gives running ones time to end, then interrupts them: they will be retried without having
    /// used up an attempt.
    pub async fn shutdown(self, drain: Duration) {
        let Self { mut tasks, spawner, drain: draining, stop } = self;
        // Slots that have ended already listen no more.
        let _told = draining.send(());
        if within(spawner.as_ref(), drain, tasks.ended()).await.is_none() {
            let _told = stop.send(());
            if within(spawner.as_ref(), STOP_LIMIT + LAST_WORDS, tasks.ended()).await.is_none() {
                tracing::warn!("the outcome of the last tasks could not be reported to the control plane");
            }
        }
    }

    /// Stops at once and reports nothing, as if this process had ended.
    pub async fn abort(mut self) {
        self.tasks.abort().await;
    }
}
