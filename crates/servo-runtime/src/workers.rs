//! Workers register, prove that they have the storage of the workspace, and are listened to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_core::planted::{self, Mistake};
use servo_core::{Millis, Timestamp, sha256_hex};
use servo_engine::{Change, Engine, Input, RegisterWorker, WorkerLeaves};
use servo_store::Timers;

use crate::error::Error;
use crate::messages::EngineMessage;
use crate::workspace::Workspace;

/// Signs of life of workers. They wake nobody: the engine looks when it decides, and when a worker would be lost.
#[derive(Debug, Default)]
pub(crate) struct SignsOfLife(Mutex<BTreeMap<Arc<str>, Duration>>);

impl SignsOfLife {
    fn heard(&self, worker: &str, at: Duration) {
        self.lock().insert(worker.into(), at);
    }

    fn last(&self, worker: &str) -> Option<Duration> {
        self.lock().get(worker).copied()
    }

    /// Passes them on, as times of a clock that shows `now`.
    pub(crate) fn pass_on(&self, engine: &mut Engine, timers: &dyn Timers, now: Timestamp) {
        let elapsed = timers.elapsed();
        let mut heard = self.lock();
        heard.retain(|worker, _| engine.state().worker(worker).is_some_and(|row| !row.state.is_gone()));
        for (worker, at) in heard.iter() {
            engine.liveness_mut().heard(worker.clone(), before(now, elapsed.saturating_sub(*at)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn before(now: Timestamp, ago: Duration) -> Timestamp {
    now.saturating_sub(Millis::new(ago.as_millis() as u64))
}

impl Workspace {
    /// Writes into the storage what a worker has to find there; false if the workspace stores no data, and nothing is
    /// to be proven.
    pub async fn challenge_worker(&self, worker: &str) -> Result<bool, Error> {
        let Some(data) = &self.inner.data else { return Ok(false) };
        let mut secret = self.inner.secret.to_vec();
        secret.extend(self.new_id().to_u128().to_be_bytes());
        secret.extend(worker.as_bytes());
        let challenge = data.root.challenge(&data.layout, worker, sha256_hex(&secret));
        challenge.await.map_err(|error| Error::Data(Arc::new(error)))?;
        Ok(true)
    }

    /// Whether a worker has found it, and its answer is in the storage of the workspace.
    pub async fn is_proven(&self, worker: &str, proof: &str) -> Result<bool, Error> {
        let Some(data) = &self.inner.data else { return Ok(true) };
        let answered = data.root.is_answered(&data.layout, worker, proof).await;
        let answered = answered.map_err(|error| Error::Data(Arc::new(error)))?;
        Ok(answered || planted::has(Mistake::UnprovenWorkerRegistered))
    }

    /// Registers a worker that has proven itself; returns when that is durable. `Duplicate` if nothing differs.
    pub async fn register_worker(&self, request: RegisterWorker) -> Result<Change, Error> {
        self.heard_of(&request.worker_id);
        self.ask(request).await
    }

    /// Registers the worker of this process, which has its storage. Nobody waits for it: it becomes durable with what
    /// is asked for next.
    pub async fn register_here(&self, request: RegisterWorker) -> Result<(), Error> {
        self.send(EngineMessage::Input(Input::RegisterWorker(request), None)).await
    }

    /// A worker takes no more tasks; returns when that is durable.
    pub async fn worker_leaves(&self, request: WorkerLeaves) -> Result<Change, Error> {
        self.ask(request).await
    }

    /// The worker of this process takes no more tasks. Nobody waits for it.
    pub async fn leave_here(&self, worker: Arc<str>) -> Result<(), Error> {
        let leaves = WorkerLeaves { worker_id: worker, draining: false };
        self.send(EngineMessage::Input(Input::WorkerLeaves(leaves), None)).await
    }

    /// A worker was heard of.
    pub fn heard_of(&self, worker: &str) {
        self.inner.signs_of_life.heard(worker, self.inner.spawner.elapsed());
    }

    /// When a worker was last heard of by this process; none if it was not.
    pub fn last_heard_of(&self, worker: &str) -> Option<Timestamp> {
        let at = self.inner.signs_of_life.last(worker)?;
        Some(before(self.now(), self.inner.spawner.elapsed().saturating_sub(at)))
    }
}
