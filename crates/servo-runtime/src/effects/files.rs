//! Effects on files of assets, on a thread of their own: whatever a disk or a bucket does, decisions and commits go on.
//!
//! Effects gather for a moment, so that a thousand promotions cost one sync of the disk, and of those of one partition
//! only the newest is carried out. One that fails is tried again and holds up no other; one that fails for long is
//! [set aside](super::set_aside). None that tables must not be ahead of is lost: a [`Barrier`] opens when all before it
//! are done or set aside, and never if the process ends first (ADR-074).

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use servo_core::{AssetKey, Backoff, Clock, MaterializationId, RunId, Timestamp};
use servo_engine::{AssetMove, Discard, Effect, Expired, Input, Promotion, Release};
use servo_store::DataError;
use tokio::sync::oneshot;

use super::release::{self, Released};
use super::set_aside::{Partition, SetAside, StuckPath, StuckPaths};
use super::{discard, expire, promote};
use crate::attempt_logs::AttemptLogs;
use crate::data::Data;
use crate::messages::EngineMessage;
use crate::spawner::{Spawner, within};

const INITIAL_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// An effect that has failed so often is set aside, and tried again this often.
const TRIES: u32 = 4;
const RETRY_EVERY: Duration = Duration::from_secs(5);

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
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) set_aside: SetAside,
    /// The paths that are shown as stuck.
    pub(crate) stuck: StuckPaths,
}

impl FileEffects {
    /// A handle, and the work of the thread.
    pub(crate) fn start(self) -> (FileEffectsHandle, impl Future<Output = ()> + Send + 'static) {
        let (sender, requests) = flume::unbounded();
        (FileEffectsHandle(sender), self.run(requests))
    }

    async fn run(mut self, requests: flume::Receiver<Request>) {
        let mut pending = Pending::default();
        let mut backoff = Backoff::new(INITIAL_DELAY, MAX_DELAY, self.seed);
        // When to carry out what is pending, and to try what was set aside, by the timers of the spawner.
        let mut due: Option<Duration> = None;
        let mut retry_due = (!self.set_aside.is_empty()).then(|| self.spawner.elapsed());
        loop {
            let now = self.spawner.elapsed();
            let next = due.into_iter().chain(retry_due).min();
            let wait = next.map_or(MAX_WAIT, |due| due.saturating_sub(now));
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
            // Timers are coarser than delays: what was waited for is due, whatever the clock says.
            let now = self.spawner.elapsed().max(next.filter(|_| !hung_up).unwrap_or_default());
            if retry_due.is_some_and(|due| due <= now) {
                self.retry_set_aside().await;
            }
            if hung_up || due.is_some_and(|due| due <= now) {
                let outcome = self.carry_out(&mut pending).await;
                due = match outcome {
                    Ok(()) => {
                        backoff.reset();
                        None
                    }
                    Err(error) => {
                        tracing::error!(%error, "data could not be updated from the log, it will be tried again");
                        Some(self.spawner.elapsed() + backoff.next_delay())
                    }
                };
            }
            retry_due = match self.set_aside.is_empty() {
                true => None,
                false => {
                    Some(retry_due.filter(|due| *due > now).unwrap_or(self.spawner.elapsed() + RETRY_EVERY))
                }
            };
            // What is left is found again by the next start: tables wait for it, or rows say so.
            if hung_up || (due.is_some() && self.stopping.load(Ordering::Acquire)) {
                return;
            }
        }
    }

    /// Carries out what is pending. What failed stays, or is set aside if it has failed too often; says why the last
    /// did that stays.
    async fn carry_out(&mut self, pending: &mut Pending) -> Result<(), DataError> {
        let outcome = self.carry_out_in_place(pending).await;
        // What is to be done under the old name of an asset is done before its data is moved.
        outcome.and(self.carry_out_moves(pending).await)
    }

    async fn carry_out_moves(&mut self, pending: &mut Pending) -> Result<(), DataError> {
        let mut outcome = Ok(());
        for moved in std::mem::take(&mut pending.moves) {
            if let Err(error) = self.move_asset(&moved).await {
                if let Some(data) = &self.data {
                    let path = data.root.uri(&data.layout.data_home(&moved.from, None));
                    self.stuck.failed(path, &error, self.clock.as_ref());
                }
                pending.moves.insert(moved);
                outcome = Err(error);
            }
        }
        outcome
    }

    async fn carry_out_in_place(&mut self, pending: &mut Pending) -> Result<(), DataError> {
        let mut outcome = Ok(());
        for (key, release) in std::mem::take(&mut pending.releases) {
            let path = self.data.as_ref().map(|data| data.root.uri(&release::location(data, &release)));
            match self.release(&release).await {
                Ok(()) => {
                    if let Some(path) = path {
                        self.stuck.healed(&path);
                    }
                }
                Err(error) => {
                    if let Some(path) = path {
                        self.stuck.failed(path, &error, self.clock.as_ref());
                    }
                    pending.releases.insert(key, release);
                    outcome = Err(error);
                }
            }
        }
        if let Some((logs, before)) = self.logs.as_deref().zip(pending.logs_before.take())
            && let Err(error) = expire::expire_logs(logs, before).await
        {
            tracing::warn!(%error, "old logs could not be removed, they are found again in an hour");
        }
        let Some(data) = &self.data else {
            pending.forget();
            return outcome;
        };
        match pending.carry_out(data, &mut self.set_aside, TRIES).await {
            Ok(failed) => {
                for (path, error) in failed {
                    if self.stuck.failed(path.clone(), &error, self.clock.as_ref()) {
                        tracing::error!(
                            path, %error, "this cannot be written; everything else goes on, and it is tried again"
                        );
                    }
                }
                outcome
            }
            Err(error) => Err(error),
        }
    }

    /// Tries again what was set aside.
    async fn retry_set_aside(&mut self) {
        let Some(data) = &self.data else { return };
        self.set_aside.retry(data, &self.stuck, self.clock.as_ref()).await;
        if let Err(error) = self.set_aside.store().await {
            tracing::warn!(%error, "what was set aside could not be noted");
        }
    }

    /// Moves everything of an asset to where its new name is. What was moved before is not there any more.
    async fn move_asset(&self, moved: &AssetMove) -> Result<(), DataError> {
        if let Some(data) = &self.data {
            let home = |asset: &AssetKey| data.layout.data_home(asset, None);
            let path = data.root.uri(&home(&moved.from));
            data.root.rename(&home(&moved.from), &home(&moved.to)).await?;
            self.stuck.healed(&path);
        }
        // Without an engine the next start moves it again.
        if let Some(engine) = self.engine.upgrade() {
            let _stopping = engine.send_async(EngineMessage::Input(Input::Moved(moved.clone()), None)).await;
        }
        Ok(())
    }

    async fn release(&self, release: &Release) -> Result<(), DataError> {
        let released = match &self.data {
            Some(data) => release::release(data, release).await?,
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
            Request::Begin(effects) => {
                effects.iter().any(|effect| matches!(effect, Effect::Release(_) | Effect::Move(_)))
            }
            Request::Barrier(_) => true,
        }
    }
}

/// Effects that were begun and are not carried out, and how often each that tables wait for has failed.
#[derive(Default)]
struct Pending {
    releases: BTreeMap<(AssetKey, MaterializationId), Release>,
    moves: BTreeSet<AssetMove>,
    promotions: BTreeMap<Partition, (Promotion, u32)>,
    discards: BTreeMap<Discard, u32>,
    staging: BTreeMap<RunId, u32>,
    expired: BTreeMap<Expired, u32>,
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
            Effect::Move(moved) => {
                self.moves.insert(moved);
            }
            Effect::Promote(promotion) => {
                let partition = (promotion.asset.clone(), promotion.partition.clone());
                let event = promotion.event_id;
                if self.promotions.get(&partition).is_none_or(|(known, _)| known.event_id < event) {
                    self.promotions.insert(partition, (promotion, 0));
                }
            }
            Effect::Discard(discard) => {
                self.discards.entry(discard).or_default();
            }
            Effect::ClearStaging(run) => {
                self.staging.entry(run).or_default();
            }
            Effect::Expire(expired) => {
                // What was promoted and wiped within a moment is not pointed at in between.
                let partition = (expired.asset.clone(), expired.partition.clone());
                let goes =
                    |(known, _): &(Promotion, u32)| known.materialization_id == expired.materialization_id;
                if expired.was_latest && self.promotions.get(&partition).is_some_and(goes) {
                    self.promotions.remove(&partition);
                }
                self.expired.entry(expired).or_default();
            }
            Effect::ExpireLogs(before) => self.logs_before = self.logs_before.max(Some(before)),
            // Goes to a queue, not to files.
            Effect::Enqueue(_) | Effect::Evaluate(_) | Effect::Notify(_) => {}
        }
    }

    /// Nothing that runs here stores anything: there is nothing to do.
    fn forget(&mut self) {
        self.promotions.clear();
        self.discards.clear();
        self.staging.clear();
        self.expired.clear();
        self.open_barriers();
    }

    fn open_barriers(&mut self) {
        for open in self.barriers.drain(..) {
            let _gone = open.send(());
        }
    }

    /// Carries out what tables must not be ahead of, and opens barriers if nothing of it is left. What has failed so
    /// often is set aside; gives the paths of that, with the reasons.
    async fn carry_out(
        &mut self,
        data: &Data,
        set_aside: &mut SetAside,
        tries: u32,
    ) -> Result<Vec<(String, DataError)>, DataError> {
        let failed = self.follow(data, set_aside).await;
        let worn_out = failed.iter().filter(|failure| failure.count >= tries).count();
        let has_room = set_aside.has_room_for(worn_out);
        let (mut paths_set_aside, mut outcome) = (Vec::new(), Ok(()));
        for Failure { path, error, count, undone } in failed {
            if count < tries || !has_room {
                outcome = Err(error);
                continue;
            }
            match undone {
                Undone::Promotion(partition) => {
                    if let Some((promotion, _)) = self.promotions.get(&partition) {
                        set_aside.add_promotion(partition, promotion.clone());
                    }
                }
                Undone::Discard(discard) => {
                    discard::directories(data, &discard)
                        .into_iter()
                        .for_each(|dir| set_aside.add_removal(dir));
                }
                Undone::Staging(run) => set_aside.add_removal(data.layout.staging_of(run)),
                Undone::Expired(expired) => set_aside.add_removal(expire::directory(data, &expired)),
            }
            paths_set_aside.push((path, error));
        }
        // Durable before the tables go on.
        set_aside.store().await?;
        if !paths_set_aside.is_empty() {
            self.promotions.retain(|_, (_, count)| *count < tries);
            self.discards.retain(|_, count| *count < tries);
            self.staging.retain(|_, count| *count < tries);
            self.expired.retain(|_, count| *count < tries);
        }
        if outcome.is_ok() {
            self.open_barriers();
        }
        outcome.map(|()| paths_set_aside)
    }

    /// Tries everything; what fails stays.
    async fn follow(&mut self, data: &Data, set_aside: &mut SetAside) -> Vec<Failure> {
        let mut failed = self.promote(data, set_aside).await;
        for (discard, count) in std::mem::take(&mut self.discards) {
            if let Err(error) = discard::discard(data, &discard).await {
                let path = data.root.uri(&discard::directories(data, &discard).join(", "));
                failed.push(Failure {
                    path,
                    error,
                    count: count + 1,
                    undone: Undone::Discard(discard.clone()),
                });
                self.discards.insert(discard, count + 1);
            }
        }
        for (expired, count) in std::mem::take(&mut self.expired) {
            if let Err(error) = expire::expire(data, &expired).await {
                let path = data.root.uri(&expire::directory(data, &expired));
                let undone = Undone::Expired(expired.clone());
                failed.push(Failure { path, error, count: count + 1, undone });
                self.expired.insert(expired, count + 1);
            }
        }
        for (run, count) in std::mem::take(&mut self.staging) {
            if let Err(error) = discard::clear_staging(data, run).await {
                let path = data.root.uri(&data.layout.staging_of(run));
                failed.push(Failure { path, error, count: count + 1, undone: Undone::Staging(run) });
                self.staging.insert(run, count + 1);
            }
        }
        failed
    }

    /// All at once, which costs one sync; if that fails, one by one.
    async fn promote(&mut self, data: &Data, set_aside: &mut SetAside) -> Vec<Failure> {
        let promotions = std::mem::take(&mut self.promotions);
        let all: Vec<&Promotion> = promotions.values().map(|(promotion, _)| promotion).collect();
        if promote::promote(data, &all).await.is_ok() {
            promotions.keys().for_each(|partition| set_aside.promoted(partition));
            return Vec::new();
        }
        let mut failed = Vec::new();
        for (partition, (promotion, count)) in promotions {
            match promote::promote(data, &[&promotion]).await {
                Ok(()) => set_aside.promoted(&partition),
                Err(error) => {
                    let path = data.root.uri(&data.layout.latest(&partition.0, partition.1.as_ref()));
                    let undone = Undone::Promotion(partition.clone());
                    failed.push(Failure { path, error, count: count + 1, undone });
                    self.promotions.insert(partition, (promotion, count + 1));
                }
            }
        }
        failed
    }
}

/// An effect that failed.
struct Failure {
    path: String,
    error: DataError,
    /// How often.
    count: u32,
    undone: Undone,
}

/// Which effect.
enum Undone {
    Promotion(Partition),
    Discard(Discard),
    Staging(RunId),
    Expired(Expired),
}

/// Carries out, once and now, what tables must not be ahead of, and what was set aside before: for processes that run no
/// workspace. What fails is set aside, or an error if that is a lot.
pub(crate) async fn follow(
    data: &Data,
    mut set_aside: SetAside,
    clock: &dyn Clock,
    effects: Vec<Effect>,
) -> Result<Vec<StuckPath>, DataError> {
    let (mut pending, stuck) = (Pending::default(), StuckPaths::default());
    effects.into_iter().for_each(|effect| pending.begin(effect));
    set_aside.retry(data, &stuck, clock).await;
    for (path, error) in pending.carry_out(data, &mut set_aside, 1).await? {
        stuck.failed(path, &error, clock);
    }
    Ok(stuck.list())
}
