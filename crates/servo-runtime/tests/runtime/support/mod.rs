//! A harness for tests: a workspace, its queue, and an executor whose tasks do as they are told.
#![allow(clippy::disallowed_methods, reason = "tests wait in real time")]
#![allow(unreachable_pub, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::TryStreamExt;
use servo_core::{
    AttemptId, EventId, ManualClock, Millis, PutId, RunId, TaskKey, TenantId, Timestamp, WorkspaceId,
};
use servo_engine::event::{Event, decode_batch};
use servo_engine::{
    ErrorCode, HotRows, Plan, Progress, Report, RetryPolicy, State, TaskError, TaskOptions, TaskRequest,
    TriggerRun,
};
use servo_projections::rebuild::{RebuildContext, VerifyReport, verify};
use servo_queue::{
    CallbackError, Callbacks, Envelope, FetchedWork, FinishedReply, HeartbeatReply, Keyring, LocalQueue,
    SignedEnvelope, StartedReply, TaskSource, WorkRef,
};
use servo_runtime::{Config, Error, Host, RunDetail, Stores, SystemClock, ThreadSpawner, Workspace};
use servo_store::{Layout, Log, MemoryBlobs, MemoryLog, PutIds, Record, SystemPutIds};
use servo_worker::{Executor, Slots, TaskFunction};
use tokio::sync::watch;

/// Longest that anything in these tests may take before they fail.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn tenant() -> TenantId {
    TenantId::parse("acme").unwrap()
}

pub fn workspace_id() -> WorkspaceId {
    WorkspaceId::parse("main").unwrap()
}

pub fn layout() -> Layout {
    Layout::new(tenant(), workspace_id())
}

pub fn keys() -> Keyring {
    Keyring::new("test", b"a key for tests")
}

pub fn secret() -> Arc<[u8]> {
    Arc::from(*b"a secret for tests")
}

/// The behaviour of a task when it runs. A task that is not mentioned succeeds.
#[derive(Debug, Clone)]
pub enum Behaviour {
    Succeed,
    /// Fails this many times in each run, then succeeds.
    Fail(u32),
    Panic,
    /// Never ends by itself.
    Hang,
    /// Ends when there is a permit.
    Gate(Arc<tokio::sync::Semaphore>),
}

/// The scripted behaviour of tasks, and a record of their runs.
#[derive(Debug, Default)]
pub struct Script {
    behaviours: Mutex<BTreeMap<TaskKey, Behaviour>>,
    /// Attempts that ran, in the order in which they began.
    begun: Mutex<Vec<(RunId, TaskKey, AttemptId)>>,
    /// Tasks that were stopped before they ended.
    stopped: Mutex<Vec<TaskKey>>,
}

impl Script {
    pub fn let_task(&self, name: &str, behaviour: Behaviour) {
        self.behaviours.lock().unwrap().insert(task(name), behaviour);
    }

    /// Names of the tasks that ran, in the order in which they began.
    pub fn begun(&self) -> Vec<String> {
        self.begun.lock().unwrap().iter().map(|(_, key, _)| name_of(key)).collect()
    }

    pub fn stopped(&self) -> Vec<String> {
        self.stopped.lock().unwrap().iter().map(name_of).collect()
    }

    /// How often each attempt ran: once, if effects are idempotent.
    pub fn runs_per_attempt(&self) -> BTreeMap<AttemptId, u32> {
        let mut counts = BTreeMap::new();
        for (_, _, attempt) in self.begun.lock().unwrap().iter() {
            *counts.entry(*attempt).or_default() += 1;
        }
        counts
    }

    pub fn assert_no_attempt_ran_twice(&self) {
        for (attempt, count) in self.runs_per_attempt() {
            assert_eq!(count, 1, "attempt {attempt} ran {count} times");
        }
    }
}

/// Notes a task that was dropped before it ended.
struct Unfinished<'a>(&'a Script, Option<TaskKey>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.1.take() {
            self.0.stopped.lock().unwrap().push(key);
        }
    }
}

struct Actor(Arc<Script>);

#[async_trait]
impl TaskFunction for Actor {
    async fn run(&self, envelope: &Envelope, _progress: &watch::Sender<Option<Progress>>) -> Report {
        let script = &self.0;
        let key = &envelope.task_key;
        let times = {
            let mut begun = script.begun.lock().unwrap();
            begun.push((envelope.run_id, key.clone(), envelope.attempt_id));
            begun.iter().filter(|(run, task, _)| *run == envelope.run_id && task == key).count()
        };
        let behaviour = script.behaviours.lock().unwrap().get(key).cloned().unwrap_or(Behaviour::Succeed);
        let mut unfinished = Unfinished(script, Some(key.clone()));
        let report = match behaviour {
            Behaviour::Succeed => Report::succeeded(),
            Behaviour::Fail(failures) if times > failures as usize => Report::succeeded(),
            Behaviour::Fail(_) => {
                Report::failed(TaskError::new(ErrorCode::UserCodeException, format!("{key} said no")))
            }
            Behaviour::Panic => {
                unfinished.1 = None;
                panic!("{key} panics, as it was told to")
            }
            Behaviour::Hang => std::future::pending().await,
            Behaviour::Gate(gate) => {
                gate.acquire().await.unwrap().forget();
                Report::succeeded()
            }
        };
        unfinished.1 = None;
        report
    }
}

/// Events that the workspace has acknowledged to workers.
#[derive(Debug, Default)]
pub struct Acknowledged(Mutex<BTreeSet<EventId>>);

impl Acknowledged {
    pub fn add(&self, event: EventId) {
        self.0.lock().unwrap().insert(event);
    }

    pub fn events(&self) -> BTreeSet<EventId> {
        self.0.lock().unwrap().clone()
    }

    fn note(&self, event_id: EventId) {
        self.add(event_id);
        if std::env::var_os(PRINT_ACKNOWLEDGED).is_some() {
            say(&format!("event {event_id}"));
        }
    }
}

/// Set it to have every acknowledged event printed as it is acknowledged.
pub const PRINT_ACKNOWLEDGED: &str = "SERVO_TEST_PRINT_ACKNOWLEDGED";

/// One line to standard output, at once and whole.
pub fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "@@ {line}").unwrap();
    out.flush().unwrap();
}

struct Noting(Workspace, Arc<Acknowledged>);

#[async_trait]
impl Callbacks for Noting {
    async fn started(&self, token: &str, worker: &str) -> Result<StartedReply, CallbackError> {
        let reply = self.0.started(token, worker).await?;
        match reply {
            StartedReply::Begun { event_id } => self.1.note(event_id),
            StartedReply::AlreadyBegun => {}
        }
        Ok(reply)
    }

    async fn work(
        &self,
        token: &str,
        worker: &str,
        work: &WorkRef,
    ) -> Result<Option<FetchedWork>, CallbackError> {
        self.0.work(token, worker, work).await
    }

    async fn heartbeat(
        &self,
        token: &str,
        progress: Option<Progress>,
    ) -> Result<HeartbeatReply, CallbackError> {
        Ok(self.0.heartbeat(token, progress).await?)
    }

    async fn finished(&self, token: &str, report: Report) -> Result<FinishedReply, CallbackError> {
        let reply = self.0.finished(token, report).await?;
        match reply {
            FinishedReply::Ended { event_id } => self.1.note(event_id),
            FinishedReply::AlreadyEnded | FinishedReply::Late => {}
        }
        Ok(reply)
    }
}

/// The next message of a queue, acknowledged.
pub async fn taken(queue: &LocalQueue, name: &str) -> SignedEnvelope {
    let delivery = queue.receive(&[name.into()], 1).await.unwrap().remove(0);
    let envelope = delivery.envelope.clone();
    delivery.ack().await.unwrap();
    envelope
}

/// A configuration for tests: as it comes, only that the tables are written often.
pub fn config(queue: &Arc<LocalQueue>) -> Config {
    let mut config = Config::new(queue.clone(), secret(), keys());
    config.flush_every = Duration::from_millis(20);
    config
}

/// A workspace at work, with an executor.
pub struct Harness {
    pub workspace: Workspace,
    pub stores: Stores,
    pub queue: Arc<LocalQueue>,
    pub script: Arc<Script>,
    pub acknowledged: Arc<Acknowledged>,
    slots: Slots,
}

impl Harness {
    /// On a directory, with defaults.
    pub async fn on(root: &Path) -> Self {
        Self::open(directory(root), |_| {}).await.unwrap()
    }

    pub async fn open(stores: Stores, change: impl FnOnce(&mut Config)) -> Result<Self, Error> {
        Self::open_with(stores, Arc::default(), 4, change).await
    }

    /// With a script that may have a past, and this many tasks at once; none means that tasks stay in the queue.
    pub async fn open_with(
        stores: Stores,
        script: Arc<Script>,
        slots: usize,
        change: impl FnOnce(&mut Config),
    ) -> Result<Self, Error> {
        let queue = LocalQueue::new(1_024);
        let mut config = config(&queue);
        change(&mut config);
        let workspace = Workspace::open(stores.clone(), config.clone()).await?;
        Ok(Self::staff(workspace, stores, queue, script, slots, &config))
    }

    /// Among the workspaces of a host, which will also close it.
    pub async fn open_in(host: &Host<Workspace>, stores: Stores) -> Self {
        let queue = LocalQueue::new(1_024);
        let config = config(&queue);
        let key = (stores.layout.tenant().clone(), stores.layout.workspace().clone());
        let opened =
            host.open(&key, config.clock.now(), || Workspace::open(stores.clone(), config.clone())).await;
        Self::staff(Workspace::clone(&opened.unwrap()), stores, queue, Arc::default(), 4, &config)
    }

    fn staff(
        workspace: Workspace,
        stores: Stores,
        queue: Arc<LocalQueue>,
        script: Arc<Script>,
        slots: usize,
        config: &Config,
    ) -> Self {
        let worker = format!("{}worker", config.local_workers);
        let clock = config.clock.clone();
        let acknowledged: Arc<Acknowledged> = Arc::default();
        let executor = Executor {
            source: queue.clone(),
            queues: vec!["default".into()],
            callbacks: Arc::new(Noting(workspace.clone(), acknowledged.clone())),
            keys: keys(),
            clock,
            worker: worker.into(),
            slots,
            function: Arc::new(Actor(script.clone())),
            spawner: Arc::new(ThreadSpawner::default()),
            seed: 1,
        };
        let slots = executor.start();
        Self { workspace, stores, queue, script, acknowledged, slots }
    }

    pub async fn trigger(&self, key: &str, plan: Plan) -> RunId {
        let reply = loop {
            match self.workspace.trigger(TriggerRun::new(key, plan.clone(), "test")).await {
                // Another node has written: it is asked again.
                Err(Error::Recovering) => tokio::time::sleep(Duration::from_millis(2)).await,
                reply => break reply.unwrap(),
            }
        };
        if let Some(event) = reply.accepted {
            self.acknowledged.add(event);
        }
        reply.run_id
    }

    /// Waits until the run has ended, wherever it is kept by then.
    pub async fn ended(&self, run: RunId) -> RunDetail {
        within(self.workspace.wait(run)).await.unwrap();
        let detail = self.workspace.run(run).await.unwrap().expect("a run that was asked for is found");
        assert!(detail.run.state.is_terminal(), "{:?}", detail.run.state);
        detail
    }

    /// Triggers a run and waits for its end.
    pub async fn run(&self, key: &str, plan: Plan) -> RunDetail {
        let run = self.trigger(key, plan).await;
        self.ended(run).await
    }

    /// Stops the workers, then the workspace.
    pub async fn close(self) {
        let Self { workspace, slots, .. } = self;
        slots.abort().await;
        within(workspace.shutdown()).await.unwrap();
    }

    /// Stops the workers only.
    pub async fn close_workers(self) {
        self.slots.abort().await;
    }

    /// The state in memory, as rows. All of it is durable.
    pub async fn rows(&self) -> HotRows {
        self.workspace.inspect(State::rows).await.unwrap()
    }

    /// The state in memory equals the fold of the log, byte for byte.
    pub async fn assert_replay_is_live(&self) {
        let live = self.rows().await;
        let replayed = replay(self.stores.log.as_ref(), live.head.seq).await;
        assert_same_rows(&live, &replayed.rows());
    }

    /// The log holds everything that was acknowledged.
    pub async fn assert_acknowledged_is_in_the_log(&self) {
        assert_in_log(&self.acknowledged.events(), self.stores.log.as_ref()).await;
    }
}

pub async fn assert_in_log(acknowledged: &BTreeSet<EventId>, log: &dyn Log) {
    let logged: BTreeSet<EventId> = events(log).await.iter().map(|event| event.id).collect();
    let lost: Vec<_> = acknowledged.difference(&logged).collect();
    assert!(
        lost.is_empty(),
        "{} of {} acknowledged events are lost: {lost:?}",
        lost.len(),
        acknowledged.len()
    );
}

pub fn directory(root: &Path) -> Stores {
    Stores::open_directory(root, tenant(), workspace_id()).unwrap()
}

/// Stores in memory; the log can be told to misbehave, and clones of the stores are other nodes.
pub fn memory() -> (MemoryLog, Stores) {
    let log = MemoryLog::new();
    let blobs = Arc::new(MemoryBlobs::in_memory(&layout()));
    (log.clone(), Stores { log: Arc::new(log), blobs, layout: layout(), data: None })
}

/// A clock that the test moves.
pub fn manual_clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_millis(1_800_000_000_000)))
}

pub fn task(name: &str) -> TaskKey {
    TaskKey::parse(&format!("test/{name}:materialize")).unwrap()
}

pub fn name_of(key: &TaskKey) -> String {
    key.as_str().trim_start_matches("test/").trim_end_matches(":materialize").to_owned()
}

pub fn request(name: &str, upstream: &[&str], options: TaskOptions) -> TaskRequest {
    TaskRequest { key: task(name), upstream: upstream.iter().map(|name| task(name)).collect(), options }
}

pub fn plan_of(requests: Vec<TaskRequest>) -> Plan {
    Plan::build(&tenant(), &workspace_id(), requests, 10_000).unwrap()
}

/// Tasks and what each waits for.
pub fn plan(tasks: &[(&str, &[&str])]) -> Plan {
    plan_of(tasks.iter().map(|(name, upstream)| request(name, upstream, TaskOptions::default())).collect())
}

pub fn one(name: &str) -> Plan {
    plan(&[(name, &[])])
}

pub fn diamond() -> Plan {
    plan(&[("top", &[]), ("left", &["top"]), ("right", &["top"]), ("bottom", &["left", "right"])])
}

/// Each waits for the one before; the options are those of one of them.
pub fn chain(prefix: &str, length: usize, special: Option<(usize, TaskOptions)>) -> Plan {
    let name = |i: usize| format!("{prefix}_{i}");
    let options = |i: usize| match &special {
        Some((at, options)) if *at == i => options.clone(),
        Some(_) | None => TaskOptions::default(),
    };
    let request = |i: usize| TaskRequest {
        key: task(&name(i)),
        upstream: i.checked_sub(1).map(|before| task(&name(before))).into_iter().collect(),
        options: options(i),
    };
    plan_of((0..length).map(request).collect())
}

/// One, then many, then one.
pub fn wide(prefix: &str, width: usize) -> Plan {
    let first = format!("{prefix}_first");
    let middle: Vec<String> = (0..width).map(|i| format!("{prefix}_{i:03}")).collect();
    let mut tasks = vec![request(&first, &[], TaskOptions::default())];
    tasks.extend(middle.iter().map(|name| request(name, &[&first], TaskOptions::default())));
    let all: Vec<&str> = middle.iter().map(String::as_str).collect();
    tasks.push(request(&format!("{prefix}_last"), &all, TaskOptions::default()));
    plan_of(tasks)
}

/// Retries everything, after a few milliseconds.
pub fn quick_retries(max_attempts: u32) -> TaskOptions {
    let retry = RetryPolicy {
        max_attempts,
        initial_delay_ms: Millis::new(1),
        max_delay_ms: Millis::new(5),
        ..RetryPolicy::default()
    };
    TaskOptions { retry: Some(retry), ..TaskOptions::default() }
}

/// The answer, or a failed test: nothing may wait for ever.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("an answer in time")
}

/// Looks again and again until it is so.
pub async fn eventually<Fut: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> Fut) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "still not so: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub async fn records(log: &dyn Log) -> Vec<Record> {
    log.read(log.boundary().await.unwrap()).try_collect().await.unwrap()
}

/// Every event of the log, in order.
pub async fn events(log: &dyn Log) -> Vec<Event> {
    let records = records(log).await;
    records.iter().flat_map(|record| decode_batch(&record.payload).unwrap()).collect()
}

/// The fold of the log up to batch `through`.
pub async fn replay(log: &dyn Log, through: u64) -> State {
    let mut state = State::new(tenant(), workspace_id());
    for record in records(log).await.into_iter().take_while(|record| record.seq <= through) {
        state.apply_batch(record.seq, &decode_batch(&record.payload).unwrap());
    }
    assert_eq!(state.head().seq, through, "the log reaches as far as what was read");
    state
}

pub fn assert_same_rows(left: &HotRows, right: &HotRows) {
    assert_eq!(left.head, right.head);
    assert_eq!(left.runs, right.runs);
    assert_eq!(left.tasks, right.tasks);
    assert_eq!(left.edges, right.edges);
    assert_eq!(left.timers, right.timers);
    assert_eq!(left.outbox, right.outbox);
    assert_eq!(left.asset_definitions, right.asset_definitions);
    assert_eq!(left.deployments, right.deployments);
    assert_eq!(left.dynamic_partitions, right.dynamic_partitions);
    assert_eq!(left.partition_sets, right.partition_sets);
    assert_eq!(left.partition_status, right.partition_status);
    assert_eq!(left.run_keys, right.run_keys);
    assert_eq!(left.idempotency, right.idempotency);
    assert_eq!(format!("{left:?}").into_bytes(), format!("{right:?}").into_bytes());
}

pub fn rebuild_context(stores: &Stores) -> RebuildContext {
    RebuildContext {
        blobs: stores.blobs.clone(),
        layout: stores.layout.clone(),
        put_ids: Arc::new(SystemPutIds::default()),
        clock: Arc::new(SystemClock),
    }
}

/// The tables are what the log says, row by row.
pub async fn assert_tables_verify(stores: &Stores) -> VerifyReport {
    let report = verify(stores.log.as_ref(), &rebuild_context(stores)).await.unwrap();
    assert!(report.is_ok(), "{report:#?}");
    assert!(report.undecodable.is_empty(), "{report:#?}");
    report
}

/// State of every task of a run, by name.
pub fn task_states(detail: &RunDetail) -> BTreeMap<String, servo_engine::TaskState> {
    detail.tasks.iter().map(|task| (name_of(&task.task_key), task.state)).collect()
}

pub fn task_row<'a>(detail: &'a RunDetail, name: &str) -> &'a servo_engine::rows::TaskRow {
    detail.tasks.iter().find(|row| row.task_key == task(name)).expect("the run has this task")
}

pub fn put_id() -> PutId {
    SystemPutIds::default().next()
}
