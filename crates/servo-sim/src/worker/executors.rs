//! Workers that are the executor of `servo-worker`, as it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::channel::oneshot;
use servo_api::client::{Client, LeasedTasks};
use servo_api::worker_keyring;
use servo_queue::{Callbacks, Delivery, Keyring, LocalQueue, QueueError, TaskSource};
use servo_runtime::Workspace;
use servo_worker::{Executor, Slots};

use super::contract::Contract;
use super::function::SimFunction;
use super::{SLOTS, Worker, membership};
use crate::cluster::{Cluster, WORKER_KEY};
use crate::machine::{MachineClock, ProcessSpawner};
use crate::scenario::SECOND;

/// Starts the executor of a node, in its process.
pub(super) fn local(
    cluster: &Cluster,
    spawner: &ProcessSpawner,
    clock: &MachineClock,
    workspace: &Workspace,
    queue: &Arc<LocalQueue>,
    name: &str,
) -> Slots {
    let worker: Arc<str> = name.into();
    if cluster.scenario.settings.push_limit == 0 {
        let belongs = membership::local(cluster.clone(), workspace.clone(), worker.clone(), SLOTS);
        spawner.world.spawn(spawner.process, "membership", belongs.boxed());
    }
    let (contract, clock) = (Contract::new(cluster, &worker, None), Arc::new(clock.clone()));
    let executor = Executor {
        source: contract.source(queue.clone(), &cluster.keys, &clock),
        queues: vec!["default".into()],
        callbacks: contract.callbacks(Arc::new(workspace.clone())),
        keys: cluster.keys.clone(),
        clock,
        worker,
        slots: SLOTS,
        function: Arc::new(SimFunction { cluster: cluster.clone(), contract }),
        spawner: Arc::new(spawner.clone()),
        seed: cluster.world.roll(cluster.domain, |rng| rng.draw()),
    };
    executor.start()
}

/// Ends the executor of a node that has been deposed: in order, or not.
pub(super) async fn end(cluster: &Cluster, slots: Slots) {
    if cluster.world.roll(cluster.domain, |rng| rng.chance(500)) {
        slots.shutdown(Duration::from_secs(5)).await;
    } else {
        slots.abort().await;
    }
}

/// Starts the executor of a worker on a machine of its own. It ends in order when it is told to, and its process with
/// it.
pub(super) fn remote(worker: &Worker) -> oneshot::Sender<()> {
    let cluster = &worker.cluster;
    let source = Arc::new(Membership(worker.clone()));
    start(worker, source, Arc::new(worker.link.clone()), cluster.keys.clone())
}

/// The same, if it asks over HTTP: by the client that it asks with in production.
pub(super) fn over_http(worker: &Worker) -> oneshot::Sender<()> {
    let client = client(worker);
    let source = Arc::new(Joined { tasks: client.tasks_for(&*worker.name), worker: worker.clone() });
    start(worker, source, Arc::new(client), worker_keyring(WORKER_KEY))
}

/// A client of the nodes.
pub(super) fn client(worker: &Worker) -> Client {
    let Worker { cluster, link, timers, .. } = worker;
    let seed = cluster.world.roll(cluster.domain, |rng| rng.draw());
    let client = Client::new("http://localhost:8741").expect("the address of a server");
    client.with_worker_key(WORKER_KEY).with_transport(Arc::new(link.clone()), Arc::new(timers.clone()), seed)
}

fn start(
    worker: &Worker,
    source: Arc<dyn TaskSource>,
    callbacks: Arc<dyn Callbacks>,
    keys: Keyring,
) -> oneshot::Sender<()> {
    let cluster = &worker.cluster;
    let contract = Contract::new(cluster, &worker.name, Some(&worker.link));
    let clock = Arc::new(MachineClock::new(&cluster.world, 0));
    let executor = Executor {
        source: contract.source(source, &keys, &clock),
        queues: vec!["default".into()],
        callbacks: contract.callbacks(callbacks),
        keys,
        clock,
        worker: worker.name.clone(),
        slots: SLOTS,
        function: Arc::new(SimFunction { cluster: cluster.clone(), contract }),
        spawner: Arc::new(worker.timers.clone()),
        seed: cluster.world.roll(cluster.domain, |rng| rng.draw()),
    };
    hold(worker, executor.start())
}

/// Keeps the slots of a worker until it is told to end.
fn hold(worker: &Worker, slots: Slots) -> oneshot::Sender<()> {
    let (end, told) = oneshot::channel();
    let (world, domain, process) =
        (worker.cluster.world.clone(), worker.cluster.domain, worker.timers.process);
    let holds = async move {
        if told.await.is_err() {
            // Nobody will tell it: it lives as long as its process.
            let _slots = slots;
            return futures::future::pending().await;
        }
        let drain = world.roll(domain, |rng| rng.within(0..20 * SECOND));
        slots.shutdown(Duration::from_micros(drain)).await;
        world.kill(process);
    };
    worker.cluster.world.spawn(process, "slots", holds.boxed());
    end
}

/// The queue, for a worker that takes messages while it is registered.
struct Membership(Worker);

#[async_trait]
impl TaskSource for Membership {
    async fn receive(&self, queues: &[Arc<str>], at_most: usize) -> Result<Vec<Delivery>, QueueError> {
        let Worker { cluster, link, is_member, .. } = &self.0;
        while link.is_cut_off().is_some() {
            cluster.world.sleep(cluster.domain, 60 * SECOND).await;
        }
        while !is_member.load(Ordering::Relaxed) {
            cluster.world.sleep(cluster.domain, membership::pause(cluster)).await;
        }
        cluster.queue.receive(queues, at_most).await
    }
}

/// The leases of a worker over HTTP, once it has joined. After that its server says who may take tasks.
struct Joined {
    tasks: LeasedTasks,
    worker: Worker,
}

#[async_trait]
impl TaskSource for Joined {
    async fn receive(&self, queues: &[Arc<str>], at_most: usize) -> Result<Vec<Delivery>, QueueError> {
        let Worker { cluster, has_joined, .. } = &self.worker;
        while !has_joined.load(Ordering::Relaxed) {
            cluster.world.sleep(cluster.domain, 5 * SECOND).await;
        }
        self.tasks.receive(queues, at_most).await
    }
}
