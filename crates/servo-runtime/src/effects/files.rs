//! Effects on files of assets, on a thread of their own: whatever a disk or a bucket does, decisions and commits go on.
//!
//! Effects gather for a moment, so that a thousand promotions cost one sync of the disk, and of those of one partition
//! only the newest is carried out. One that fails is tried again and holds up no other. None that tables must not be
//! ahead of is lost: a [`Barrier`] opens when all before it are done, and never if the process ends first (ADR-074).

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use servo_core::{AssetKey, Backoff, MaterializationId, PartitionKey, RunId, Timestamp};
use servo_engine::{Discard, Effect, Expired, Input, Promotion, Release};
use servo_store::DataError;
use tokio::sync::oneshot;

use super::release::Released;
use super::{discard, expire, promote};
use crate::attempt_logs::AttemptLogs;
use crate::data::Data;
use crate::messages::EngineMessage;
use crate::spawner::{Spawner, within};

const INITIAL_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// Never sleeps longer than this.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// To the thread, in order.
enum Request {
    Begin(Vec<Effect>),
    Barrier(oneshot::Sender<()>),
}

/// Opens when effects that were begun before it are carried out.
pub(crate) struct Barrier(oneshot::Receiver<()>);

impl Barrier {
    /// Waits for that. False if some of them were not carried out and never will be by this process.
    pub(crate) async fn opened(self) -> bool {
        self.0.await.is_ok()
    }
}

/// The end of those who have effects carried out. The thread ends when the last one is gone.
#[derive(Clone)]
pub(crate) struct FileEffectsHandle(flume::Sender<Request>);

impl FileEffectsHandle {
    /// Begins to carry these out.
    pub(crate) fn begin(&self, effects: Vec<Effect>) {
        if !effects.is_empty() {
            let _stopping = self.0.send(Request::Begin(effects));
        }
    }

    /// Opens when everything begun so far is carried out, except what the log will acknowledge: the state remembers
    /// that.
    pub(crate) fn barrier(&self) -> Barrier {
        let (open, opened) = oneshot::channel();
        let _stopping = self.0.send(Request::Barrier(open));
        Barrier(opened)
    }
}

/// Carries out effects on files.
pub(crate) struct FileEffects {
    /// None if nothing that runs here stores any: then there is nothing to do.
    pub(crate) data: Option<Data>,
    /// Logs of attempts; none if they are kept elsewhere.
    pub(crate) logs: Option<Arc<dyn AttemptLogs>>,
    pub(crate) spawner: Arc<dyn Spawner>,
    /// How long effects may gather.
    pub(crate) linger: Duration,
    pub(crate) stopping: Arc<AtomicBool>,
    /// To acknowledge releases.
    pub(crate) engine: flume::WeakSender<EngineMessage>,
    /// Chance for delays.
    pub(crate) seed: u64,
}

impl FileEffects {
    /// A handle, and the work of the thread.
    pub(crate) fn start(self) -> (FileEffectsHandle, impl Future<Output = ()> + Send + 'static) {
        let (sender, requests) = flume::unbounded();
        (FileEffectsHandle(sender), self.run(requests))
    }

    async fn run(self, requests: flume::Receiver<Request>) {
        let mut pending = Pending::default();
        let mut backoff = Backoff::new(INITIAL_DELAY, MAX_DELAY, self.seed);
        // When to carry out what is pending, by the timers of the spawner.
        let mut due: Option<Duration> = None;
        loop {
            let now = self.spawner.elapsed();
            let wait = due.map_or(MAX_WAIT, |due| due.saturating_sub(now));
            let hung_up = match within(self.spawner.as_ref(), wait, requests.recv_async()).await {
                Some(Ok(request)) => {
                    let now = self.spawner.elapsed();
                    let is_urgent = request.is_urgent();
                    pending.add(request);
                    due = Some(if is_urgent { now } else { due.unwrap_or(now + self.linger) });
                    continue;
                }
                Some(Err(_disconnected)) => true,
                None => false,
            };
            due = match self.carry_out(&mut pending).await {
                Ok(()) => {
                    backoff.reset();
                    None
                }
                Err(error) => {
                    tracing::error!(%error, "data could not be updated from the log, it will be tried again");
                    Some(self.spawner.elapsed() + backoff.next_delay())
                }
            };
            // What is left is found again by the next start: tables wait for it, or rows say so.
            if hung_up || (due.is_some() && self.stopping.load(Ordering::Acquire)) {
                return;
            }
        }
    }

    /// Carries out what is pending. What failed stays; says why the last did.
    async fn carry_out(&self, pending: &mut Pending) -> Result<(), DataError> {
        let mut outcome = Ok(());
        for (key, release) in std::mem::take(&mut pending.releases) {
            match self.release(&release).await {
                Ok(()) => {}
                Err(error) => {
                    pending.releases.insert(key, release);
                    outcome = Err(error);
                }
            }
        }
        pending.carry_out(self.data.as_ref(), self.logs.as_deref()).await.and(outcome)
    }

    async fn release(&self, release: &Release) -> Result<(), DataError> {
        let released = match &self.data {
            Some(data) => super::release::release(data, release).await?,
            None => Released::Done,
        };
        match released {
            Released::Done => {
                // Without an engine the next start releases it again.
                if let Some(engine) = self.engine.upgrade() {
                    let _stopping =
                        engine.send_async(EngineMessage::Input(Input::Released(release.clone()), None)).await;
                }
            }
            Released::Missing => {
                let (asset, id) = (release.asset.canonical(), release.materialization_id);
                tracing::error!(asset, %id, "data was approved that is not in quarantine; it will not count");
            }
        }
        Ok(())
    }
}

impl Request {
    /// Whether somebody waits for it.
    fn is_urgent(&self) -> bool {
        match self {
            Request::Begin(effects) => effects.iter().any(|effect| matches!(effect, Effect::Release(_))),
            Request::Barrier(_) => true,
        }
    }
}

/// Effects that were begun and are not carried out.
#[derive(Default)]
struct Pending {
    releases: BTreeMap<(AssetKey, MaterializationId), Release>,
    promotions: BTreeMap<(AssetKey, Option<PartitionKey>), Promotion>,
    discards: BTreeSet<Discard>,
    staging: BTreeSet<RunId>,
    expired: BTreeSet<Expired>,
    logs_before: Option<Timestamp>,
    barriers: Vec<oneshot::Sender<()>>,
}

impl Pending {
    fn add(&mut self, request: Request) {
        match request {
            Request::Begin(effects) => effects.into_iter().for_each(|effect| self.begin(effect)),
            Request::Barrier(open) => self.barriers.push(open),
        }
    }

    fn begin(&mut self, effect: Effect) {
        match effect {
            Effect::Release(release) => {
                self.releases.insert((release.asset.clone(), release.materialization_id), release);
            }
            Effect::Promote(promotion) => {
                let partition = (promotion.asset.clone(), promotion.partition.clone());
                let event = promotion.event_id;
                if self.promotions.get(&partition).is_none_or(|known| known.event_id < event) {
                    self.promotions.insert(partition, promotion);
                }
            }
            Effect::Discard(discard) => {
                self.discards.insert(discard);
            }
            Effect::ClearStaging(run) => {
                self.staging.insert(run);
            }
            Effect::Expire(expired) => {
                self.expired.insert(expired);
            }
            Effect::ExpireLogs(before) => self.logs_before = self.logs_before.max(Some(before)),
            // Goes to a queue, not to files.
            Effect::Enqueue(_) => {}
        }
    }

    /// Carries out what tables must not be ahead of, and opens barriers if nothing of it is left.
    async fn carry_out(
        &mut self,
        data: Option<&Data>,
        logs: Option<&dyn AttemptLogs>,
    ) -> Result<(), DataError> {
        let followed = match data {
            Some(data) => self.follow(data).await,
            None => Ok(()),
        };
        let outcome = followed.and(self.expire_logs(logs).await);
        if outcome.is_ok() {
            self.promotions.clear();
            self.discards.clear();
            self.staging.clear();
            self.expired.clear();
            self.logs_before = None;
            for open in self.barriers.drain(..) {
                let _gone = open.send(());
            }
        }
        outcome
    }

    async fn follow(&mut self, data: &Data) -> Result<(), DataError> {
        let mut outcome = self.promote(data).await;
        for discard in std::mem::take(&mut self.discards) {
            if let Err(error) = discard::discard(data, &discard).await {
                self.discards.insert(discard);
                outcome = Err(error);
            }
        }
        for expired in std::mem::take(&mut self.expired) {
            if let Err(error) = expire::expire(data, &expired).await {
                self.expired.insert(expired);
                outcome = Err(error);
            }
        }
        for run in std::mem::take(&mut self.staging) {
            if let Err(error) = discard::clear_staging(data, run).await {
                self.staging.insert(run);
                outcome = Err(error);
            }
        }
        outcome
    }

    async fn expire_logs(&mut self, logs: Option<&dyn AttemptLogs>) -> Result<(), DataError> {
        match logs.zip(self.logs_before) {
            Some((logs, before)) => expire::expire_logs(logs, before).await,
            None => Ok(()),
        }
    }

    /// All at once, which costs one sync; if that fails, one by one.
    async fn promote(&mut self, data: &Data) -> Result<(), DataError> {
        let promotions = std::mem::take(&mut self.promotions);
        if promote::promote(data, &promotions.values().collect::<Vec<_>>()).await.is_ok() {
            return Ok(());
        }
        let mut outcome = Ok(());
        for (partition, promotion) in promotions {
            if let Err(error) = promote::promote(data, &[&promotion]).await {
                self.promotions.insert(partition, promotion);
                outcome = Err(error);
            }
        }
        outcome
    }
}

/// Carries out, once and now, what tables must not be ahead of: for processes that run no workspace.
pub(crate) async fn follow(
    data: Option<&Data>,
    logs: Option<&dyn AttemptLogs>,
    effects: Vec<Effect>,
) -> Result<(), DataError> {
    let mut pending = Pending::default();
    effects.into_iter().for_each(|effect| pending.begin(effect));
    pending.carry_out(data, logs).await
}
