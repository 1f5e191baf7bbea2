//! One simulated workspace: its nodes, how they start and die, and how others reach them.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{BoxFuture, Either, select};
use object_store::path::Path;
use servo_api::Api;
use servo_core::{Backoff, Millis, TenantId, WorkspaceId};
use servo_engine::testing::invariants;
use servo_engine::{SettingOrigin, StartWith, State};
use servo_projections::Limits;
use servo_queue::{Keyring, LocalQueue, LocalQueueOptions, TaskQueue};
use servo_runtime::{Config, Error, Ownership, Stores, Workspace};
use servo_store::testing::{MemoryDisk, MemoryFiles};
use servo_store::{
    Blobs, CountingPutIds, DataRoot, FileBlobs, Layout, ObjectBlobs, ObjectLog, ObjectLogOptions, OpenError,
};
use servo_worker::LogFiles;

use crate::audit::Audit;
use crate::auditing_blobs::AuditingBlobs;
use crate::auditing_log::AuditingLog;
use crate::bucket::Bucket;
use crate::disk;
use crate::evaluators;
use crate::faults::{Fault, Faults};
use crate::machine::{MachineClock, ProcessSpawner};
use crate::notifier::SimNotifier;
use crate::queue::SimQueue;
use crate::scenario::{SECOND, Scenario, Storage, WorkerCode, WorkerKind};
use crate::worker;
use crate::worker::contract::Contracts;
use crate::world::{Domain, ProcessId, World};

/// The secret that run ids are derived with.
const SECRET: [u8; 32] = *b"0123456789abcdef0123456789abcdef";

/// The key of workers that ask over HTTP.
pub const WORKER_KEY: &str = "the key of the workers";

/// Timeout of calls.
const PATIENCE: u64 = 30 * SECOND;

/// A workspace and everything around it. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    /// The world it is in.
    pub world: World,
    /// Its domain.
    pub domain: Domain,
    /// The fault injector.
    pub faults: Faults,
    /// The audit.
    pub audit: Audit,
    /// The object store.
    pub bucket: Bucket,
    /// The names of its files.
    pub layout: Layout,
    /// The scenario.
    pub scenario: Arc<Scenario>,
    /// The queue between nodes and workers.
    pub queue: SimQueue,
    /// Whoever is sent notifications.
    pub notifier: SimNotifier,
    /// The keys that sign messages.
    pub keys: Keyring,
    /// The contracts of its executors.
    pub contracts: Contracts,
    disk: MemoryDisk,
    nodes: Arc<Mutex<Vec<Node>>>,
    closing: Arc<AtomicBool>,
    /// Whether workers register no more.
    membership_closed: Arc<AtomicBool>,
}

struct Node {
    clock: MachineClock,
    process: Option<ProcessId>,
    workspace: Option<Workspace>,
    /// Its interface, if workers ask over HTTP.
    routes: Option<Router>,
    /// The disk, as the process sees it.
    files: Option<MemoryFiles>,
    starts: u64,
}

impl Cluster {
    /// A workspace with this name, without running nodes.
    pub fn new(
        world: &World,
        domain: Domain,
        faults: &Faults,
        audit: &Audit,
        bucket: &Bucket,
        name: &str,
        scenario: Scenario,
    ) -> Self {
        let tenant = TenantId::parse("acme").expect("a tenant");
        let layout = Layout::new(tenant, WorkspaceId::parse(name).expect("a workspace"));
        let prefix = layout.prefix();
        audit.open(&prefix);
        let node = |_| Node {
            clock: MachineClock::new(world, 0),
            process: None,
            workspace: None,
            routes: None,
            files: None,
            starts: 0,
        };
        Self {
            world: world.clone(),
            domain,
            faults: faults.clone(),
            audit: audit.clone(),
            bucket: bucket.clone(),
            queue: SimQueue::new(world, faults, audit, domain, &prefix, keys()),
            notifier: SimNotifier::new(world, faults, domain),
            layout,
            keys: keys(),
            contracts: Contracts::default(),
            disk: MemoryDisk::new(),
            nodes: Arc::new(Mutex::new((0..scenario.nodes).map(node).collect())),
            scenario: Arc::new(scenario),
            closing: Arc::default(),
            membership_closed: Arc::default(),
        }
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prefix of the names of the workspace.
    pub fn prefix(&self) -> String {
        self.layout.prefix()
    }

    /// Starts a node that is down.
    pub fn start(&self, number: usize) {
        if self.closing.load(Ordering::Relaxed) {
            return;
        }
        let (process, clock, files, starts) = {
            let mut nodes = self.nodes();
            let node = &mut nodes[number];
            if node.process.is_some() {
                return;
            }
            node.starts += 1;
            let process = self.world.process(self.domain, format!("node {number}.{}", node.starts));
            node.process = Some(process);
            let files = self.disk.process();
            node.files = Some(files.clone());
            (process, node.clock.clone(), files, node.starts)
        };
        self.world.note("start", || format!("node {number}.{starts}"));
        let spawner = ProcessSpawner { world: self.world.clone(), domain: self.domain, process };
        let cluster = self.clone();
        self.world.spawn(
            process,
            "life",
            async move { cluster.live(number, starts, spawner, clock, files).await }.boxed(),
        );
    }

    /// Kills a node and starts it again after a while.
    pub fn crash(&self, number: usize, pause: u64) {
        let (process, of_process) = {
            let mut nodes = self.nodes();
            let node = &mut nodes[number];
            if let Some(files) = node.files.take() {
                files.kill();
            }
            (node.process.take(), (node.workspace.take(), node.routes.take()))
        };
        let Some(process) = process else { return };
        self.world.kill(process);
        drop(of_process);
        self.start_later(number, pause);
    }

    /// Kills a node between two turns of its tasks, if it lives that long.
    pub fn crash_after(&self, number: usize, turns: u64, pause: u64) {
        let Some(process) = self.nodes()[number].process else { return };
        let cluster = self.clone();
        self.world.interrupt_after(process, turns, move |_| {
            cluster.faults.count(Fault::Crash);
            cluster.crash(number, pause);
        });
    }

    /// The machine loses power: unsynced writes are lost, or torn.
    pub fn lose_power(&self, pause: u64) {
        if self.nodes()[0].process.is_some() {
            self.faults.count(Fault::TornTail);
        }
        self.disk.power_loss(&mut |choices| self.world.roll(self.domain, |rng| rng.below(choices)));
        self.crash(0, pause);
    }

    /// The files of the workspace that are on the disk, by their names.
    pub fn files(&self) -> BTreeMap<String, Bytes> {
        let home = format!("{}/{}/", disk::ROOT.trim_start_matches('/'), self.prefix());
        let named = |(path, bytes): (PathBuf, Vec<u8>)| {
            let path = path.to_string_lossy().trim_start_matches('/').to_owned();
            Some((path.strip_prefix(&home)?.to_owned(), Bytes::from(bytes)))
        };
        self.disk.dump().into_iter().filter_map(named).collect()
    }

    /// The disk as seen by a process that is not a node.
    pub fn checkers_files(&self) -> MemoryFiles {
        self.disk.process()
    }

    /// Stops starting nodes.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Whether nodes are not started.
    pub fn is_closed(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Lets no worker register any more: that would be written to the log after everything was looked at.
    pub fn close_membership(&self) {
        self.membership_closed.store(true, Ordering::Relaxed);
    }

    /// Whether workers register no more.
    pub fn is_membership_closed(&self) -> bool {
        self.membership_closed.load(Ordering::Relaxed)
    }

    /// Kills all nodes, and starts none.
    pub fn stop_all(&self) {
        self.close();
        for number in 0..self.scenario.nodes {
            self.crash(number, 0);
        }
    }

    /// Starts all nodes again.
    pub fn start_all(&self) {
        self.closing.store(false, Ordering::Relaxed);
        for number in 0..self.scenario.nodes {
            self.start(number);
        }
    }

    /// Makes the disk of the cluster fail now and then.
    pub fn inject_disk_faults(&self) {
        if self.scenario.storage == Storage::Disk {
            disk::inject_disk_faults(self, &self.disk);
        }
    }

    /// Releases everything that holds this cluster.
    pub fn end(&self) {
        disk::stop_disk_faults(&self.disk);
        self.nodes().clear();
    }

    fn start_later(&self, number: usize, pause: u64) {
        let cluster = self.clone();
        self.world.after(self.domain, pause, move |_| cluster.start(number));
    }

    /// Pauses a node for a while.
    pub fn freeze(&self, number: usize, length: u64) {
        let Some(process) = self.nodes()[number].process else { return };
        self.world.note("freeze", || format!("node {number}"));
        self.world.freeze(process);
        let cluster = self.clone();
        self.world.after(self.domain, length, move |world| {
            world.note("thaw", || format!("node {number}"));
            if cluster.is_replaced(number, process) {
                cluster.faults.count(Fault::StaleNode);
            }
            world.thaw(process);
        });
    }

    /// Whether a paused node is still the same process and believes it is active, while another is.
    fn is_replaced(&self, number: usize, process: ProcessId) -> bool {
        let nodes = self.nodes();
        let at_work = |node: &Node| node.workspace.as_ref().is_some_and(Workspace::is_open);
        let others = nodes.iter().enumerate().filter(|(other, _)| *other != number);
        nodes[number].process == Some(process)
            && at_work(&nodes[number])
            && others.map(|(_, node)| node).any(at_work)
    }

    /// Resumes all nodes, with the right time.
    pub fn heal(&self) {
        for node in self.nodes().iter() {
            node.clock.set_error(0);
            if let Some(process) = node.process {
                self.world.thaw(process);
            }
        }
    }

    /// Sets the error of a node's clock.
    pub fn set_clock(&self, number: usize, error: i64, fault: Fault) {
        let (clock, is_up) = {
            let node = &self.nodes()[number];
            (node.clock.clone(), node.process.is_some())
        };
        clock.set_error(error);
        if is_up {
            self.faults.count(fault);
        }
    }

    /// Nodes that take requests.
    pub fn open_nodes(&self) -> Vec<Workspace> {
        let nodes = self.nodes();
        nodes.iter().filter_map(|node| node.workspace.clone()).filter(Workspace::is_open).collect()
    }

    /// The life of a node, until it is told to stop.
    /// Opens the workspace once, as a node that is started after all others have ended, and closes it.
    pub async fn open_once(&self) -> Result<(), Error> {
        let spawner = self.spawner("late node");
        let stores = self.stores(&spawner, &self.checkers_files())?;
        let (clock, queue) = (self.nodes()[0].clock.clone(), LocalQueue::new(1));
        let config = self.config(0, 1_000_000, &spawner, &clock, &queue);
        Workspace::open(stores, config).await?.shutdown().await
    }

    async fn live(
        self,
        number: usize,
        starts: u64,
        spawner: ProcessSpawner,
        clock: MachineClock,
        files: MemoryFiles,
    ) {
        let queue = LocalQueue::with(LocalQueueOptions {
            capacity: 1_000,
            timers: Arc::new(spawner.clone()),
            ..LocalQueueOptions::default()
        });
        let mut backoff = self.backoff(SECOND / 4, 60 * SECOND);
        let workspace = loop {
            let opened = match self.stores(&spawner, &files) {
                Ok(stores) => {
                    Workspace::open(stores, self.config(number, starts, &spawner, &clock, &queue)).await
                }
                Err(error) => Err(error),
            };
            match opened {
                Ok(workspace) => break workspace,
                Err(error) => {
                    self.world.note("not open", || format!("node {number}: {error}"));
                    if let Error::LogBehind { .. } | Error::Batch { .. } | Error::Restore(_) = error {
                        self.audit.report(format!("node {number} cannot start: {error}"));
                    }
                    self.world.pause(self.domain, backoff.next_delay()).await;
                }
            }
        };
        self.world.note("open", || format!("node {number}.{starts}"));
        let routes = (self.scenario.worker_code == WorkerCode::OverHttp).then(|| self.routes(&workspace));
        {
            let node = &mut self.nodes()[number];
            (node.workspace, node.routes) = (Some(workspace.clone()), routes);
        }
        let slots = match self.scenario.worker_kind {
            WorkerKind::Local => {
                let name = format!("local-{number}.{starts}");
                worker::local(&self, &spawner, &clock, &workspace, &queue, &name)
            }
            WorkerKind::Remote => None,
        };
        if self.scenario.declared.sensors {
            evaluators::serve(&self, &spawner, &workspace);
        }
        self.watch_over(number, &workspace).await;
        // Deposed: it ends as a process does, and is started again by whoever watches over processes.
        if let Some(slots) = slots {
            worker::end(&self, slots).await;
        }
        let _ended = workspace.shutdown().await;
        self.world.note("ended", || format!("node {number}.{starts}"));
        let gone = {
            let mut nodes = self.nodes();
            let node = &mut nodes[number];
            node.process = None;
            (node.workspace.take(), node.routes.take())
        };
        drop(gone);
        self.start_later(number, SECOND);
    }

    /// Checks the state of a node now and then, until the node closes.
    async fn watch_over(&self, number: usize, workspace: &Workspace) {
        let mut before: Option<State> = None;
        while workspace.is_open() {
            let pause = self.world.roll(self.domain, |rng| rng.within(SECOND..60 * SECOND));
            self.world.sleep(self.domain, pause).await;
            let earlier = before.take();
            let checked = workspace.inspect(move |state| {
                invariants::check(state)?;
                if let Some(earlier) = &earlier {
                    invariants::absorbs(earlier, state)?;
                }
                Ok(state.clone())
            });
            match checked.await {
                Ok(Ok(state)) => before = Some(state),
                Ok(Err::<_, invariants::Violation>(wrong)) => {
                    self.audit.report(format!("node {number}: {wrong}"));
                }
                Err(_) => {}
            }
        }
    }

    /// The spawner of a new process that is not a node.
    pub fn spawner(&self, name: &str) -> ProcessSpawner {
        let process = self.world.process(self.domain, name);
        ProcessSpawner { world: self.world.clone(), domain: self.domain, process }
    }

    /// The stores of a process.
    pub fn stores(&self, spawner: &ProcessSpawner, files: &MemoryFiles) -> Result<Stores, Error> {
        let client = Arc::new(self.bucket.client(self.domain, &self.faults));
        let timers = Arc::new(spawner.clone());
        let root = Path::default();
        let blobs =
            Arc::new(ObjectBlobs::new(client.clone(), &root, &self.layout).with_timers(timers.clone()));
        let data = Some(DataRoot::bucket("sim://data".to_owned(), blobs.clone()));
        let layout = self.layout.clone();
        match self.scenario.storage {
            Storage::Bucket => {
                let options = ObjectLogOptions { timers, ..ObjectLogOptions::default() };
                let log = Arc::new(ObjectLog::new(client, &root, &layout, options));
                let log = Arc::new(AuditingLog::new(log, self, false));
                Ok(Stores { log, blobs, layout, data })
            }
            Storage::Disk => {
                let log = disk::open(self, files, &layout).map_err(refused)?;
                Ok(Stores { log, blobs: self.file_blobs(files), layout, data })
            }
        }
    }

    /// The blobs on the disk.
    pub fn file_blobs(&self, files: &MemoryFiles) -> Arc<dyn Blobs> {
        let blobs = FileBlobs::with_files(Arc::new(files.clone()), disk::ROOT, &self.layout);
        Arc::new(AuditingBlobs::new(Arc::new(blobs), &self.audit, self.prefix()))
    }

    fn config(
        &self,
        number: usize,
        starts: u64,
        spawner: &ProcessSpawner,
        clock: &MachineClock,
        local: &Arc<LocalQueue>,
    ) -> Config {
        let queue: Arc<dyn TaskQueue> = match self.scenario.worker_kind {
            WorkerKind::Remote => Arc::new(self.queue.clone()),
            WorkerKind::Local => local.clone(),
        };
        let ownership = if self.scenario.leased {
            Ownership::ByLease { node: format!("node {number}.{starts}"), ttl: Millis::from_secs(45) }
        } else {
            Ownership::ByLog
        };
        let writer = (number as u64 + 1) * 10_000 + starts;
        Config {
            start_with: StartWith::differing(&self.scenario.settings, SettingOrigin::Flag),
            clock: Arc::new(clock.clone()),
            spawner: Arc::new(spawner.clone()),
            put_ids: Arc::new(CountingPutIds::new(writer)),
            ownership,
            local_workers: format!("local-{number}.").into(),
            heartbeat_interval: Millis::from_secs(10),
            token_lifetime: match self.scenario.worker_code {
                WorkerCode::OverHttp => self.scenario.token_lifetime,
                WorkerCode::Scripted | WorkerCode::Executor => Millis::from_hours(2),
            },
            flush_every: Duration::from_millis(self.scenario.flush_every),
            flush_patience: 1,
            keep_log_batches: self.scenario.keep_log_batches,
            notifier: self.scenario.declared.notifications.then(|| Arc::new(self.notifier.clone()) as _),
            limits: Limits {
                l0_max_count: self.scenario.merge_at,
                tier_fanout: self.scenario.merge_at,
                keep_manifests: 4,
                ..Limits::default()
            },
            ..Config::new(queue, SECRET, self.keys.clone())
        }
    }

    /// The interface of a node over HTTP.
    fn routes(&self, workspace: &Workspace) -> Router {
        // No log of an attempt is written here.
        let logs = Arc::new(LogFiles::new("/nowhere", self.layout.clone()));
        let mut api = Api::new(workspace.clone(), Arc::new(self.queue.clone()), logs, self.keys.clone());
        api.worker_key = Some(WORKER_KEY.into());
        servo_api::router(api)
    }

    /// The process of some node that listens, and its interface.
    pub fn http_node(&self) -> Option<(ProcessId, Router)> {
        let nodes = self.nodes();
        let listening: Vec<_> =
            nodes.iter().filter_map(|node| Some((node.process?, node.routes.clone()?))).collect();
        if listening.is_empty() {
            return None;
        }
        let chosen = self.world.roll(self.domain, |rng| rng.below(listening.len()));
        listening.into_iter().nth(chosen)
    }

    /// Calls a random node over the network. None if there was no answer.
    pub async fn call<T: Send + 'static>(
        &self,
        ask: impl FnOnce(Workspace) -> BoxFuture<'static, Result<T, Error>>,
    ) -> Option<Result<T, Error>> {
        let travel = || self.world.roll(self.domain, |rng| rng.within(50..3_000));
        self.world.sleep(self.domain, travel()).await;
        let (process, workspace) = {
            let nodes = self.nodes();
            let open: Vec<_> =
                nodes.iter().filter_map(|node| Some((node.process?, node.workspace.clone()?))).collect();
            if open.is_empty() {
                return None;
            }
            open[self.world.roll(self.domain, |rng| rng.below(open.len()))].clone()
        };
        let (sender, answer) = oneshot::channel();
        let asked = ask(workspace);
        let serve = async move { drop(sender.send(asked.await)) };
        self.world.spawn(process, "call", serve.boxed());
        let patience = self.world.sleep(self.domain, PATIENCE);
        let answer = match select(answer, patience).await {
            Either::Left((answer, _)) => answer.ok()?,
            Either::Right(_) => return None,
        };
        self.world.sleep(self.domain, travel()).await;
        if self.faults.injects(self.domain, Fault::Partition, 20) {
            return None;
        }
        Some(answer)
    }

    /// Calls until a node gives a final answer.
    pub async fn retry_until_acked<T: Send + 'static>(
        &self,
        mut ask: impl FnMut(Workspace) -> BoxFuture<'static, Result<T, Error>>,
        mut is_reachable: impl FnMut() -> bool,
    ) -> Result<T, Error> {
        let mut backoff = self.backoff(SECOND / 100, 240 * SECOND);
        loop {
            if is_reachable() {
                match self.call(&mut ask).await {
                    Some(Err(Error::Stopped)) | None => {}
                    Some(Err(error)) if error.is_transient() => {}
                    Some(answer) => return answer,
                }
            }
            self.world.pause(self.domain, backoff.next_delay()).await;
        }
    }

    /// Delays between tries, from one number of microseconds up to another.
    pub fn backoff(&self, initial: u64, max: u64) -> Backoff {
        let seed = self.world.roll(self.domain, |rng| rng.within(0..u64::MAX));
        Backoff::new(Duration::from_micros(initial), Duration::from_micros(max), seed)
    }

    /// Runs a task in a process of its own that is never killed.
    pub fn spawn_process(&self, name: &str, work: impl Future<Output = ()> + Send + 'static) {
        let process = self.world.process(self.domain, name);
        self.world.spawn(process, "work", work.boxed());
    }
}

fn keys() -> Keyring {
    Keyring::new("k1", SECRET)
}

fn refused(error: OpenError) -> Error {
    match error {
        OpenError::Read(error) => Error::Log(Arc::new(error)),
        OpenError::Write(error) => Error::NotDurable(Arc::new(error)),
        OpenError::Locked { .. } => Error::Recovering,
    }
}
