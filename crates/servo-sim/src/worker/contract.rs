//! The duties of an executor to the control plane, watched from all sides while it runs.
//!
//! It acknowledges a message when it was told whether the attempt may begin, and not before. It runs what it may,
//! once at a time. It shows the newest token that it was given. It reports each attempt that it has begun until the
//! report is accepted or refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use servo_core::{AttemptId, Clock, Timestamp};
use servo_engine::{Progress, Report};
use servo_queue::{
    CallbackError, Callbacks, Delivery, Envelope, FetchedWork, FinishedReply, HeartbeatReply, Keyring,
    QueueError, Receipt, StartedReply, TaskSource, WorkRef,
};

use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::machine::MachineClock;
use crate::network::Link;
use crate::scenario::MINUTE;

/// How long after its end an attempt may be unreported in a world without faults.
const LONGEST_SILENCE: u64 = 5 * MINUTE;

/// The contract of one executor. Cheap to clone.
#[derive(Clone)]
pub struct Contract(Arc<Inner>);

/// The contracts of the executors that are alive. Cheap to clone.
#[derive(Clone, Default)]
pub struct Contracts(Arc<Mutex<Vec<Weak<Inner>>>>);

struct Inner {
    cluster: Cluster,
    worker: Arc<str>,
    /// Its connection, if it is on a machine of its own.
    link: Option<Link>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Attempts of which it was told whether they may begin.
    answered: BTreeSet<AttemptId>,
    /// Attempts that it has begun and not reported.
    open: BTreeMap<AttemptId, Open>,
}

struct Open {
    newest_token: String,
    is_running: bool,
    ended_at: Option<u64>,
    /// The fault that had cut it off when the function ended.
    held_up: Option<Fault>,
}

impl Contracts {
    /// Reports what is still owed, when everything has had its time.
    pub fn check_at_rest(&self) {
        let all: Vec<_> = {
            let mut all = lock(&self.0);
            all.retain(|contract| contract.strong_count() > 0);
            all.iter().filter_map(Weak::upgrade).collect()
        };
        for contract in all {
            let now = contract.cluster.world.now();
            let kept = lock(&contract.kept);
            let is_owed = |open: &&Open| open.ended_at.is_some_and(|at| at + LONGEST_SILENCE < now);
            let owed = kept.open.values().filter(is_owed).count();
            drop(kept);
            if owed > 0 {
                contract.broken(&format!("{owed} attempts have ended and were not reported"));
            }
        }
    }
}

impl Inner {
    fn broken(&self, how: &str) {
        self.cluster.audit.report(format!("executor {}: {how}", self.worker));
    }
}

impl Contract {
    /// The contract of an executor with this name.
    pub fn new(cluster: &Cluster, worker: &Arc<str>, link: Option<&Link>) -> Self {
        let inner = Arc::new(Inner {
            cluster: cluster.clone(),
            worker: worker.clone(),
            link: link.cloned(),
            kept: Mutex::default(),
        });
        lock(&cluster.contracts.0).push(Arc::downgrade(&inner));
        Self(inner)
    }

    /// Watches where its messages come from.
    pub fn source(
        &self,
        source: Arc<dyn TaskSource>,
        keys: &Keyring,
        clock: &Arc<MachineClock>,
    ) -> Arc<dyn TaskSource> {
        let (keys, clock, contract) = (keys.clone(), clock.clone(), self.clone());
        Arc::new(WatchedSource { source, keys, clock, contract })
    }

    /// Watches what it says, and what it is told.
    pub fn callbacks(&self, callbacks: Arc<dyn Callbacks>) -> Arc<dyn Callbacks> {
        Arc::new(WatchedCallbacks { callbacks, contract: self.clone() })
    }

    /// Its function is called. The attempt has ended when what is returned is dropped.
    pub fn runs(&self, task: &Envelope) -> Running {
        let broken = match self.kept().open.get_mut(&task.attempt_id) {
            None => Some("runs an attempt that it may not begin"),
            Some(open) => std::mem::replace(&mut open.is_running, true)
                .then_some("runs an attempt that it is running already"),
        };
        if let Some(how) = broken {
            self.0.broken(how);
        }
        Running { contract: self.clone(), attempt: task.attempt_id }
    }

    fn acknowledged(&self, attempt: Option<AttemptId>) {
        let is_early = attempt.is_some_and(|attempt| !self.kept().answered.contains(&attempt));
        if is_early {
            self.0.broken("acknowledged a message before it was told whether the attempt may begin");
        }
    }

    /// It shows a token of an attempt that it is at.
    fn shows(&self, token: &str) {
        let Some(attempt) = self.attempt(token) else { return };
        let broken = match self.kept().open.get(&attempt) {
            None => Some("speaks of an attempt that it has not begun, or has reported"),
            Some(open) => (open.newest_token != token).then_some("shows a token that was renewed"),
        };
        if let Some(how) = broken {
            self.0.broken(how);
        }
    }

    fn attempt(&self, token: &str) -> Option<AttemptId> {
        // How old it is does not matter here.
        let claims = self.0.cluster.keys.verify_token(token, Timestamp::from_millis(0));
        claims.ok().map(|claims| claims.attempt_id)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.0.kept)
    }
}

/// An attempt that the function is at.
pub struct Running {
    contract: Contract,
    attempt: AttemptId,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Inner { cluster, link, .. } = &*self.contract.0;
        if let Some(open) = self.contract.kept().open.get_mut(&self.attempt) {
            open.is_running = false;
            open.ended_at = Some(cluster.world.now());
            open.held_up = link.as_ref().and_then(Link::is_cut_off);
        }
    }
}

struct WatchedSource {
    source: Arc<dyn TaskSource>,
    keys: Keyring,
    clock: Arc<MachineClock>,
    contract: Contract,
}

#[async_trait]
impl TaskSource for WatchedSource {
    async fn receive(&self, queues: &[Arc<str>], at_most: usize) -> Result<Vec<Delivery>, QueueError> {
        let watched = |delivery: Delivery| {
            // A message that cannot be opened is acknowledged, so that it does not come again.
            let attempt = self.keys.open(&delivery.envelope, self.clock.now()).ok();
            let attempt = attempt.map(|envelope| envelope.attempt_id);
            let (envelope, contract) = (delivery.envelope.clone(), self.contract.clone());
            Delivery::new(envelope, WatchedReceipt { delivery, attempt, contract })
        };
        Ok(self.source.receive(queues, at_most).await?.into_iter().map(watched).collect())
    }
}

struct WatchedReceipt {
    delivery: Delivery,
    attempt: Option<AttemptId>,
    contract: Contract,
}

#[async_trait]
impl Receipt for WatchedReceipt {
    async fn ack(self: Box<Self>) -> Result<(), QueueError> {
        self.contract.acknowledged(self.attempt);
        self.delivery.ack().await
    }

    async fn nack(self: Box<Self>, delay: Duration) -> Result<(), QueueError> {
        self.delivery.nack(delay).await
    }
}

struct WatchedCallbacks {
    callbacks: Arc<dyn Callbacks>,
    contract: Contract,
}

#[async_trait]
impl Callbacks for WatchedCallbacks {
    async fn started(&self, token: &str, worker: &str) -> Result<StartedReply, CallbackError> {
        let (contract, Inner { cluster, link, .. }) = (&self.contract, &*self.contract.0);
        if link.is_some() && cluster.faults.injects(cluster.domain, Fault::Poison, 20) {
            let forged = self.callbacks.started(&format!("{token}x"), worker).await;
            if forged.is_ok() {
                contract.0.broken("was let begin with a forged token");
            }
        }
        let answer = self.callbacks.started(token, worker).await;
        if let (Some(attempt), false) = (contract.attempt(token), is_transient(&answer)) {
            let mut kept = contract.kept();
            kept.answered.insert(attempt);
            if answer.is_ok() {
                let newest_token = token.to_owned();
                let open = Open { newest_token, is_running: false, ended_at: None, held_up: None };
                kept.open.entry(attempt).or_insert(open);
            }
        }
        answer
    }

    async fn work(
        &self,
        token: &str,
        worker: &str,
        work: &WorkRef,
    ) -> Result<Option<FetchedWork>, CallbackError> {
        self.contract.shows(token);
        self.callbacks.work(token, worker, work).await
    }

    async fn heartbeat(
        &self,
        token: &str,
        progress: Option<Progress>,
    ) -> Result<HeartbeatReply, CallbackError> {
        self.contract.shows(token);
        let reply = self.callbacks.heartbeat(token, progress).await?;
        if let (Some(renewed), Some(attempt)) = (&reply.task_token, self.contract.attempt(token))
            && let Some(open) = self.contract.kept().open.get_mut(&attempt)
        {
            open.newest_token.clone_from(renewed);
        }
        Ok(reply)
    }

    async fn finished(&self, token: &str, report: Report) -> Result<FinishedReply, CallbackError> {
        self.contract.shows(token);
        let answer = self.callbacks.finished(token, report).await;
        if let (Some(attempt), false) = (self.contract.attempt(token), is_transient(&answer)) {
            let reported = self.contract.kept().open.remove(&attempt);
            if let Some(fault) = reported.and_then(|open| open.held_up) {
                self.contract.0.cluster.faults.count(fault);
            }
        }
        answer
    }
}

fn is_transient<T>(answer: &Result<T, CallbackError>) -> bool {
    answer.as_ref().is_err_and(CallbackError::is_transient)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
