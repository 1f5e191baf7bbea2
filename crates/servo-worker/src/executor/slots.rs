//! The slots of an executor, and how they end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{ActiveAttempts, Executor, STOP_LIMIT};

/// How long the last reports may take to be acknowledged.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Running slots of an executor. Dropping it stops running tasks without reports.
#[derive(Debug)]
pub struct Slots {
    tasks: JoinSet<()>,
    phase: watch::Sender<Phase>,
}

/// The phase of a pool of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Slots take tasks and run them.
    Open,
    /// Slots finish their task and take no other.
    Draining,
    /// Slots stop their task.
    Stopping,
}

impl Phase {
    /// Waits until this phase has begun. Never, if the slots were dropped.
    pub(super) async fn reached(self, phase: &mut watch::Receiver<Phase>) {
        if phase.wait_for(|phase| *phase >= self).await.is_err() {
            std::future::pending().await
        }
    }
}

impl Slots {
    pub(super) fn start(executor: Executor) -> Self {
        let phase = watch::Sender::new(Phase::Open);
        let (executor, active) = (Arc::new(executor), ActiveAttempts::default());
        let mut tasks = JoinSet::new();
        for _ in 0..executor.slots {
            tasks.spawn(executor.clone().serve(active.clone(), phase.subscribe()));
        }
        Self { tasks, phase }
    }

    /// Takes no more tasks, gives running ones time to end, then interrupts them: they will be retried without having
    /// used up an attempt.
    pub async fn shutdown(mut self, drain: Duration) {
        self.phase.send_replace(Phase::Draining);
        if timeout(drain, self.ended()).await.is_err() {
            self.phase.send_replace(Phase::Stopping);
            if timeout(STOP_LIMIT + LAST_WORDS, self.ended()).await.is_err() {
                tracing::warn!("the outcome of the last tasks could not be reported to the control plane");
            }
        }
    }

    /// Stops at once and reports nothing, as if this process had ended.
    pub async fn abort(mut self) {
        self.tasks.shutdown().await;
    }

    async fn ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}
