//! Simulated users: they repeat requests until they are answered, and remember the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use servo_core::{AssetKey, EventId, Fingerprint, Millis, RunId};
use servo_engine::planner::PartitionChoice;
use servo_engine::requests::{BackfillRequest, PartitionsOf};
use servo_engine::{
    AttemptOutcome, BackfillChange, Caller, CancelRun, Change, ChangeBackfill, ChangeNotification,
    ChangePartitions, ChangeSchedule, ChangeSensor, ChangeSettings, Deploy, NotificationChange,
    PauseCondition, PushMessage, Refusal, ResetCursor, Review, RunReply, RunRequest, ScheduleChange,
    SendTest, SensorChange, SettingOrigin, SettingValue, State, TriggerRun, Verdict,
};
use servo_projections::RunFilter;
use servo_runtime::{Error, RetryRequest, WipeRequest, Workspace};

use crate::cluster::Cluster;
use crate::declared;
use crate::graphs;
use crate::scenario::{SECOND, UserRequest};

/// The pause before people ask the same again.
const AGAIN: u64 = 45 * SECOND;

/// The simulated users, and what they were told. Cheap to clone.
#[derive(Clone)]
pub struct Users {
    cluster: Cluster,
    /// Runs that they were told of, by key: the same key always means the same run.
    told: Arc<Mutex<BTreeMap<String, RunId>>>,
    waiting: Arc<AtomicUsize>,
}

impl Users {
    /// The users of a cluster; their requests come at their times.
    pub fn new(cluster: &Cluster) -> Self {
        let users = Self { cluster: cluster.clone(), told: Arc::default(), waiting: Arc::default() };
        users.waiting.store(cluster.scenario.requests.len(), Ordering::Relaxed);
        for (number, (at, request)) in cluster.scenario.requests.clone().into_iter().enumerate() {
            let person = users.clone();
            users.cluster.spawn_process("person", async move {
                person.cluster.world.sleep(person.cluster.domain, at).await;
                person.request(request, caller(number)).await;
                person.waiting.fetch_sub(1, Ordering::Relaxed);
            });
        }
        users
    }

    /// The number of unanswered requests.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    async fn request(&self, request: UserRequest, caller: Caller) {
        let cluster = &self.cluster;
        cluster.world.note("request", || format!("{request:?}"));
        match request {
            UserRequest::Deploy(version) => self.deploy(version, caller).await,
            UserRequest::Run { key, graph, priority, timeout } => {
                let layout = &cluster.layout;
                let plan = graphs::plan(layout.tenant(), layout.workspace(), cluster.scenario.seed, graph);
                let key = format!("key-{key}");
                let timeout = timeout.map(Millis::from_secs);
                let labels = self.labels(graph);
                // Without a key of the request: the run key is all that the engine knows it by.
                let request = TriggerRun::of_tasks(
                    key.clone(),
                    plan,
                    RunRequest {
                        priority,
                        timeout,
                        labels,
                        caller: Caller::user("me"),
                        ..RunRequest::default()
                    },
                );
                let answer = cluster.retry_until_acked(
                    move |workspace| {
                        let request = request.clone();
                        async move { workspace.trigger(request).await }.boxed()
                    },
                    always,
                );
                if let Ok(RunReply { run_id: run, accepted }) = answer.await {
                    self.note_run(key, run, accepted);
                }
            }
            UserRequest::Cancel { key, force } => {
                let Some(run_id) = self.run_of(key) else { return };
                let request = CancelRun { run_id, caller, reason: String::new(), force };
                self.change(move |workspace| {
                    let request = request.clone();
                    async move { workspace.cancel(request).await }.boxed()
                })
                .await;
            }
            UserRequest::Retry { key, from_failure } => {
                let Some(run_id) = self.run_of(key) else { return };
                // The node makes up a run key each time: the key of the request is all that says it is the same.
                let request = RetryRequest { from_failure, caller, run_key: None };
                let retry = move |workspace: Workspace| {
                    let request = request.clone();
                    async move { workspace.retry(run_id, request).await }.boxed()
                };
                if let Some(launched) = self.twice(retry, |launched| launched.run_id).await {
                    self.told().insert(launched.run_id.to_string(), launched.run_id);
                    launched.accepted.into_iter().for_each(|event| self.acknowledge(event));
                }
            }
            UserRequest::Partitions { add, remove } => {
                let keys =
                    |bits: u8| (0..4).filter(move |bit| bits >> bit & 1 == 1).map(|bit| format!("k{bit}"));
                let change = ChangePartitions {
                    name: graphs::CUSTOMERS.to_owned(),
                    add: keys(add).collect(),
                    remove: keys(remove & !add).collect(),
                    caller,
                };
                self.change(move |workspace| {
                    let change = change.clone();
                    async move { Ok(workspace.change_partitions(change).await?.change) }.boxed()
                })
                .await;
            }
            UserRequest::Review { approve } => self.review(approve, caller).await,
            UserRequest::Wipe { asset, keep_data, force } => {
                let Some((asset, partitions)) = self.known(asset).await else { return };
                let reason = String::new();
                let request = WipeRequest { partitions, keep_data, force, reason, caller };
                self.change(move |workspace| {
                    let (asset, request) = (asset.clone(), request.clone());
                    async move { Ok(workspace.wipe_partitions(asset, request).await?.1.change) }.boxed()
                })
                .await;
            }
            UserRequest::Mark { asset, failed } => {
                let Some((asset, which)) = self.known(asset).await else { return };
                let outcome = if failed { AttemptOutcome::Failed } else { AttemptOutcome::Succeeded };
                self.change(move |workspace| {
                    let (asset, which, caller) = (asset.clone(), which.clone(), caller.clone());
                    async move {
                        let marked = workspace.mark_partitions(asset, which, outcome, String::new(), caller);
                        Ok(marked.await?.change)
                    }
                    .boxed()
                })
                .await;
            }
            UserRequest::Undo { asset } => {
                let Some((asset, _)) = self.known(asset).await else { return };
                self.change(move |workspace| {
                    let (asset, caller) = (asset.clone(), caller.clone());
                    async move { Ok(workspace.restore_partitions(asset, None, caller).await?.change) }.boxed()
                })
                .await;
            }
            UserRequest::Schedule { number, paused, length } => {
                self.keep_schedule(number, paused, length, &caller).await;
            }
            UserRequest::Backfill { chunk_size, at_once, paused, cancelled, length } => {
                let request = BackfillRequest {
                    selection: format!("t.{}", graphs::WIDE),
                    partitions: PartitionChoice { keys: graphs::wide_keys(), ..PartitionChoice::default() },
                    chunk_size,
                    max_concurrent_runs: at_once,
                    labels: self.labels(u64::from(chunk_size)),
                    caller: step(&caller, 0),
                    ..BackfillRequest::default()
                };
                self.keep_backfill(request, paused, cancelled, length, &caller).await;
            }
            UserRequest::Poll { cursor, length } => self.keep_polling(cursor, length, &caller).await,
            UserRequest::Push { declared, messages, removed } => {
                self.push(declared, messages, removed, &caller).await;
            }
            UserRequest::Condition { asset, length } => {
                self.keep_paused(usize::from(asset), length, &caller).await;
            }
            UserRequest::Rule { length } => self.keep_silent(length, &caller).await,
            UserRequest::Rename { version, asset } => self.rename(version, asset, &caller).await,
            UserRequest::Limit { of, limit } => {
                let pools = declared::POOLS.map(|pool| format!("pool.{pool}"));
                let name = pools.get(usize::from(of)).cloned();
                let name = name.unwrap_or_else(|| format!("runs_per.{}", declared::CUSTOMER));
                let (set, unset) = match limit {
                    Some(limit) => ([(name, SettingValue::Number(limit.into()))].into(), Vec::new()),
                    None => (BTreeMap::new(), vec![name]),
                };
                let change = ChangeSettings { set, unset, origin: SettingOrigin::Cli, caller };
                self.change(move |workspace| {
                    let change = change.clone();
                    async move { workspace.change_settings(change).await }.boxed()
                })
                .await;
            }
            UserRequest::Retention => {
                let answer = cluster.retry_until_acked(
                    move |workspace| {
                        let caller = caller.clone();
                        async move { workspace.apply_retention(caller).await }.boxed()
                    },
                    always,
                );
                if let Ok((_, Change::Accepted { event_id })) = answer.await {
                    self.acknowledge(event_id);
                }
            }
            UserRequest::Read => self.read().await,
        }
    }

    /// Whom a run is for, where that has limits.
    fn labels(&self, number: u64) -> BTreeMap<String, String> {
        let customers = declared::CUSTOMERS_OF_RUNS;
        let customer = customers[number as usize % customers.len()].to_owned();
        let has_limits = self.cluster.scenario.declared.limits;
        has_limits.then(|| (declared::CUSTOMER.to_owned(), customer)).into_iter().collect()
    }

    async fn deploy(&self, version: u8, caller: Caller) {
        let deploy = Deploy { caller, ..graphs::project(version, self.cluster.scenario.declared) };
        self.change(move |workspace| {
            let deploy = deploy.clone();
            async move { workspace.deploy(deploy).await }.boxed()
        })
        .await;
    }

    /// Deploys a version that may name an asset anew, and gives something that no code declares another name.
    async fn rename(&self, version: u8, asset: u8, caller: &Caller) {
        self.deploy(version, step(caller, 0)).await;
        let found = self.cluster.retry_until_acked(
            move |workspace| {
                async move { workspace.read(move |state| undeclared(state, asset)).await }.boxed()
            },
            always,
        );
        let Ok(Some(from)) = found.await else { return };
        let to = AssetKey::new("t", &format!("kept{}", asset % 4)).expect("a key");
        let caller = step(caller, 1);
        self.change(move |workspace| {
            let (from, to, caller) = (from.clone(), to.clone(), caller.clone());
            async move { workspace.rename_asset(from, to, caller).await }.boxed()
        })
        .await;
    }

    /// Creates a schedule, lets it tick, and removes it, so that the world can come to rest.
    async fn keep_schedule(&self, number: u8, paused: bool, length: u64, caller: &Caller) {
        let definition = Arc::new(graphs::schedule(number));
        let name = definition.name.to_string();
        let change = |nth: u32, change: ScheduleChange| {
            let caller = step(caller, nth);
            let change = ChangeSchedule { name: name.clone(), expected_state_version: None, change, caller };
            move |workspace: Workspace| {
                let change = change.clone();
                async move { workspace.change_named(change).await }.boxed()
            }
        };
        // Somebody else may have one of this name: then there is nothing to remove.
        if !self.change(change(0, ScheduleChange::Create(definition.clone()))).await {
            return;
        }
        if paused {
            self.change(change(1, ScheduleChange::Pause)).await;
            self.change(change(2, ScheduleChange::Resume)).await;
        }
        self.cluster.world.sleep(self.cluster.domain, length).await;
        // A node that is behind does not know it; the other does.
        while !self.change(change(3, ScheduleChange::Remove)).await {
            self.cluster.world.sleep(self.cluster.domain, AGAIN).await;
        }
    }

    /// Resumes the sensor that polls, sets its cursor while it does, and pauses it, so that the world can come to rest.
    async fn keep_polling(&self, cursor: Option<u8>, length: u64, caller: &Caller) {
        let change =
            |nth: u32, change: SensorChange| sensor_change(declared::POLL, change, step(caller, nth));
        // Before the first deployment there is none: then there is nothing to pause.
        if !self.change(change(0, SensorChange::Resume)).await {
            return;
        }
        self.cluster.world.sleep(self.cluster.domain, length / 2).await;
        if let Some(cursor) = cursor {
            let cursor = (cursor > 0).then(|| cursor.to_string().into());
            self.change(change(1, SensorChange::Own(ResetCursor(cursor)))).await;
        }
        self.cluster.world.sleep(self.cluster.domain, length / 2).await;
        // A node that is behind does not know it; the other does.
        while !self.change(change(2, SensorChange::Pause)).await {
            self.cluster.world.sleep(self.cluster.domain, AGAIN).await;
        }
    }

    /// Pauses the condition of an asset for a while.
    async fn keep_paused(&self, asset: usize, length: u64, caller: &Caller) {
        let asset = AssetKey::new("t", declared::CHAIN[asset]).expect("a key");
        let pause = |nth: u32, paused: bool| {
            let (asset, caller, reason) = (asset.clone(), step(caller, nth), String::new());
            let pause = PauseCondition { asset, paused, expected_state_version: None, reason, caller };
            move |workspace: Workspace| {
                let pause = pause.clone();
                async move { workspace.pause_condition(pause).await }.boxed()
            }
        };
        if !self.change(pause(0, true)).await {
            return;
        }
        self.cluster.world.sleep(self.cluster.domain, length).await;
        // A node that is behind does not know it; the other does.
        while !self.change(pause(1, false)).await {
            self.cluster.world.sleep(self.cluster.domain, AGAIN).await;
        }
    }

    /// Tests a notification rule, and pauses it for a while.
    async fn keep_silent(&self, length: u64, caller: &Caller) {
        let change = |nth: u32, change: NotificationChange| {
            let (name, caller) = (declared::RULE.to_owned(), step(caller, nth));
            let change = ChangeNotification { name, expected_state_version: None, change, caller };
            move |workspace: Workspace| {
                let change = change.clone();
                async move { workspace.change_named(change).await }.boxed()
            }
        };
        self.change(change(0, NotificationChange::Own(SendTest))).await;
        if !self.change(change(1, NotificationChange::Pause)).await {
            return;
        }
        self.cluster.world.sleep(self.cluster.domain, length).await;
        // A node that is behind does not know it; the other does.
        while !self.change(change(2, NotificationChange::Resume)).await {
            self.cluster.world.sleep(self.cluster.domain, AGAIN).await;
        }
    }

    /// Sends messages to a sensor. Others send some of the same ids, which count once.
    async fn push(&self, declared: bool, messages: u8, removed: bool, caller: &Caller) {
        let name = if declared { declared::PUSHED } else { declared::TOLD };
        if !declared {
            // Somebody else may have created it.
            self.change(sensor_change(name, SensorChange::Create(declared::told()), step(caller, 0))).await;
        }
        for number in 0..messages {
            let message = PushMessage {
                sensor: name.to_owned(),
                message_id: format!("m{number}").into(),
                message: format!("{{\"id\":\"m{number}\",\"number\":{number}}}").into(),
                caller: step(caller, 1 + u32::from(number)),
            };
            self.change(move |workspace| {
                let message = message.clone();
                async move { workspace.push_message(message).await }.boxed()
            })
            .await;
        }
        if removed && !declared {
            self.change(sensor_change(name, SensorChange::Remove, step(caller, 99))).await;
        }
    }

    /// Creates a backfill, and sees to it that it ends.
    async fn keep_backfill(
        &self,
        request: BackfillRequest,
        paused: bool,
        cancelled: bool,
        length: u64,
        caller: &Caller,
    ) {
        let create = move |workspace: Workspace| {
            let request = request.clone();
            async move { workspace.create_backfill(request).await }.boxed()
        };
        let Some(created) = self.twice(create, |reply| *reply).await else { return };
        created.accepted.into_iter().for_each(|event| self.acknowledge(event));
        let change = |nth: u32, change: BackfillChange| {
            let change = ChangeBackfill {
                backfill: created.backfill_id,
                expected_state_version: None,
                change,
                reason: String::new(),
                caller: step(caller, nth),
            };
            move |workspace: Workspace| {
                let change = change.clone();
                async move { workspace.change_backfill(change).await }.boxed()
            }
        };
        if paused {
            self.change(change(1, BackfillChange::Pause)).await;
        }
        self.cluster.world.sleep(self.cluster.domain, length).await;
        let last = change(2, if cancelled { BackfillChange::Cancel } else { BackfillChange::Resume });
        loop {
            match self.cluster.retry_until_acked(&last, always).await {
                Ok(_) | Err(Error::Refused(Refusal::BackfillEnded { .. })) => return,
                // A node that is behind does not know it; the other does.
                Err(_) => self.cluster.world.sleep(self.cluster.domain, AGAIN).await,
            }
        }
    }

    /// An asset that something is or will be known of, and its partitions.
    async fn known(&self, pick: u8) -> Option<(AssetKey, PartitionsOf)> {
        let found = self.cluster.retry_until_acked(
            move |workspace| async move { workspace.read(move |state| known(state, pick)).await }.boxed(),
            always,
        );
        found.await.ok().flatten()
    }

    /// Asks for a change, and for the same again later. Says whether it is made.
    async fn change(&self, ask: impl Fn(Workspace) -> BoxFuture<'static, Result<Change, Error>>) -> bool {
        let change = self.twice(ask, |change| *change).await;
        if let Some(Change::Accepted { event_id }) = change {
            self.acknowledge(event_id);
        }
        change.is_some()
    }

    /// Asks until answered, and the same again later: an accepted request gets the same answer. Gives that.
    async fn twice<T: Send + 'static, A: PartialEq + Debug>(
        &self,
        ask: impl Fn(Workspace) -> BoxFuture<'static, Result<T, Error>>,
        told: impl Fn(&T) -> A,
    ) -> Option<T> {
        let first = self.cluster.retry_until_acked(&ask, always).await.ok()?;
        self.cluster.world.sleep(self.cluster.domain, AGAIN).await;
        let again = self.cluster.retry_until_acked(&ask, always).await;
        let (before, now) = (told(&first), again.as_ref().map(&told).ok());
        // With several nodes one may be behind the other, and refuse what the other has done.
        let is_behind = now.is_none() && self.cluster.scenario.nodes > 1;
        if now.as_ref() != Some(&before) && !is_behind {
            self.cluster.audit.report(format!("a request was answered with {before:?}, then with {now:?}"));
        }
        Some(first)
    }

    async fn review(&self, approve: bool, caller: Caller) {
        let waiting = self.cluster.retry_until_acked(
            |workspace| {
                async move {
                    let found = workspace.read(|state| {
                        state.quarantine().next().map(|row| (row.asset_key.clone(), row.materialization_id))
                    });
                    found.await
                }
                .boxed()
            },
            always,
        );
        let Ok(Some((asset, materialization_id))) = waiting.await else { return };
        let verdict = if approve { Verdict::Approve } else { Verdict::Reject };
        let review = Review { asset, materialization_id, verdict, caller, reason: String::new() };
        self.change(move |workspace| {
            let review = review.clone();
            async move { workspace.review(review).await }.boxed()
        })
        .await;
    }

    /// Checks that acknowledged runs are found, in memory or in the tables.
    async fn read(&self) {
        let known = self.told().clone();
        let listed = self
            .cluster
            .call(|workspace| async move { workspace.runs(None, 50, RunFilter::default()).await }.boxed());
        let Some(Ok(listed)) = listed.await else { return };
        // With several nodes one may be behind the other for as long as nobody tells it.
        if self.cluster.scenario.nodes > 1 {
            return;
        }
        for (key, run) in known {
            if !listed.iter().any(|row| row.run_id == run) {
                self.cluster.audit.report(format!("run {run} of {key} was acknowledged and is not listed"));
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<String, RunId>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_of(&self, key: u8) -> Option<RunId> {
        self.told().get(&format!("key-{key}")).copied()
    }

    fn note_run(&self, key: String, run: RunId, accepted: Option<EventId>) {
        let before = *self.told().entry(key.clone()).or_insert(run);
        if before != run {
            self.cluster.audit.report(format!("{key} was answered with {run}, and with {before} before"));
        }
        if let Some(event) = accepted {
            self.acknowledge(event);
        }
    }

    fn acknowledge(&self, event: EventId) {
        self.cluster.audit.acknowledged(&self.cluster.prefix(), &event.to_string());
    }
}

/// The person with this number, whose request has an identity.
fn caller(number: usize) -> Caller {
    Caller {
        request_id: Some(format!("request-{number}").into()),
        request_fingerprint: Some(Fingerprint::from_digest([1; 32])),
        ..Caller::user("me")
    }
}

/// The same person with another request.
fn step(caller: &Caller, nth: u32) -> Caller {
    let request = caller.request_id.as_deref().unwrap_or_default();
    Caller { request_id: Some(format!("{request}-{nth}").into()), ..caller.clone() }
}

/// Asks for a change of a sensor.
fn sensor_change(
    name: &str,
    change: SensorChange,
    caller: Caller,
) -> impl Fn(Workspace) -> BoxFuture<'static, Result<Change, Error>> + use<> {
    let change = ChangeSensor { name: name.to_owned(), expected_state_version: None, change, caller };
    move |workspace| {
        let change = change.clone();
        async move { workspace.change_named(change).await }.boxed()
    }
}

fn always() -> bool {
    true
}

/// One of the assets that were attempted or are being made, and everything that it has.
fn known(state: &State, pick: u8) -> Option<(AssetKey, PartitionsOf)> {
    let mut places: BTreeMap<AssetKey, BTreeSet<String>> = BTreeMap::new();
    for (asset, _) in state.attempted_assets() {
        let keys = state.partition_statuses(asset).filter_map(|(text, _)| Some(text?.to_string()));
        places.entry(asset.clone()).or_default().extend(keys);
    }
    for task in state.runs().flat_map(|run| run.tasks.iter()) {
        let keys = task.key.partition_str().map(str::to_owned);
        places.entry(task.key.asset()).or_default().extend(keys);
    }
    let count = places.len().max(1);
    let (asset, keys) = places.into_iter().nth(usize::from(pick) % count)?;
    Some((asset, PartitionsOf { keys: keys.into_iter().collect(), ..PartitionsOf::default() }))
}

/// One of the assets that something is known of and that no code declares.
fn undeclared(state: &State, pick: u8) -> Option<AssetKey> {
    let known = state.attempted_assets().map(|(asset, _)| asset);
    let left: Vec<&AssetKey> = known.filter(|asset| state.definition(asset).is_none()).collect();
    left.get(usize::from(pick) % left.len().max(1)).map(|asset| (*asset).clone())
}
