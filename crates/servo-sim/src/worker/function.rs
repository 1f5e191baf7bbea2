//! The function of tasks that executors run.

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use servo_engine::{Progress, Report};
use servo_queue::Envelope;
use servo_worker::TaskFunction;
use tokio::sync::watch;

use super::attempt::Attempt;
use super::contract::Contract;
use crate::cluster::Cluster;
use crate::scenario::SECOND;

/// Takes its time, says how far it is, stores what it made while its slot is at the next, and ends in all ways.
pub(super) struct SimFunction {
    pub(super) cluster: Cluster,
    pub(super) contract: Contract,
}

#[async_trait]
impl TaskFunction for SimFunction {
    async fn run(&self, task: &Envelope, progress: &watch::Sender<Option<Progress>>) -> Report {
        self.run_detached(task, progress).await.await
    }

    async fn run_detached(
        &self,
        task: &Envelope,
        progress: &watch::Sender<Option<Progress>>,
    ) -> BoxFuture<'static, Report> {
        let running = self.contract.runs(task);
        let (cluster, course) = (self.cluster.clone(), Attempt::draw(&self.cluster, task));
        let parts = cluster.world.roll(cluster.domain, |rng| rng.within(1..5));
        // One that takes too long is stopped by its executor, not by itself.
        let length = if course.takes_too_long() { course.length + 10 * SECOND } else { course.length };
        for part in 1..=parts {
            cluster.world.sleep(cluster.domain, length / parts).await;
            let ppm = (1_000_000 * part / parts) as u32;
            progress.send_replace(Some(Progress { ppm, message: String::new() }));
        }
        let task = task.clone();
        let durable = async move {
            let report = course.end(&cluster, &task).await;
            drop(running);
            report
        };
        durable.boxed()
    }

    /// Some take longer to stop than they may.
    async fn stop(&self, _task: &Envelope) {
        let length = self.cluster.world.roll(self.cluster.domain, |rng| rng.within(0..4 * SECOND));
        self.cluster.world.sleep(self.cluster.domain, length).await;
    }
}
