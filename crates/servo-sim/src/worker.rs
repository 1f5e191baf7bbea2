//! Simulated workers: they take messages, ask before they begin, send heartbeats, and retry reports until they are
//! acknowledged. Most are the executor of `servo-worker`. Others are scripts that do the same in their own way: they
//! use a message that they have taken without a word, and do not always stop when they are told to.

mod attempt;
pub mod contract;
mod executors;
mod function;
mod membership;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::channel::oneshot;
use servo_core::Clock;
use servo_engine::{Outcome, Progress, Report};
use servo_queue::{Delivery, Envelope, HeartbeatReply, LocalQueue, SignedEnvelope, TaskSource};
use servo_runtime::{Error, Workspace};
use servo_worker::Slots;

use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::machine::{MachineClock, ProcessSpawner};
use crate::network::Link;
use crate::scenario::{SECOND, WorkerCode};
use attempt::Attempt;

/// Concurrent tasks of a worker.
const SLOTS: usize = 2;

/// The random text of a process that registers over HTTP, as it stands in the id of its worker. Names of processes are
/// used once here.
const NONCE: &str = "processone";
const NONCE_AT_END: &str = "-processone";

/// A worker on a machine of its own.
#[derive(Clone)]
pub struct Worker {
    cluster: Cluster,
    name: Arc<str>,
    timers: ProcessSpawner,
    link: Link,
    /// Whether it is registered, as far as it knows.
    is_member: Arc<AtomicBool>,
    /// Whether it has ever been.
    has_joined: Arc<AtomicBool>,
}

impl Worker {
    /// Starts a worker with a new name; returns its process too, and how an executor is told to end.
    pub fn start(cluster: &Cluster, name: &str) -> (Self, u32, Option<oneshot::Sender<()>>) {
        let process = cluster.world.process(cluster.domain, name);
        let timers = ProcessSpawner { world: cluster.world.clone(), domain: cluster.domain, process };
        let (link, is_member, has_joined) = (Link::new(cluster), Arc::default(), Arc::default());
        let is_over_http = cluster.scenario.worker_code == WorkerCode::OverHttp;
        let name = if is_over_http { format!("{name}{NONCE_AT_END}") } else { name.to_owned() };
        let (cluster_too, name) = (cluster.clone(), name.into());
        let worker = Self { cluster: cluster_too, name, timers, link, is_member, has_joined };
        if cluster.scenario.settings.push_limit == 0 {
            let member = worker.clone();
            let belongs = if is_over_http {
                async move { member.belong_over_http().await }.boxed()
            } else {
                async move { member.belong().await }.boxed()
            };
            cluster.world.spawn(process, "membership", belongs);
        } else {
            worker.joined(true);
        }
        let end = match cluster.scenario.worker_code {
            WorkerCode::OverHttp => Some(executors::over_http(&worker)),
            WorkerCode::Executor => Some(executors::remote(&worker)),
            WorkerCode::Scripted => {
                for _ in 0..SLOTS {
                    let slot = worker.clone();
                    cluster.world.spawn(process, "slot", async move { slot.serve().await }.boxed());
                }
                None
            }
        };
        (worker, process, end)
    }

    fn joined(&self, is_member: bool) {
        self.is_member.store(is_member, Ordering::Relaxed);
        self.has_joined.fetch_or(is_member, Ordering::Relaxed);
    }

    /// Cuts it off, or reconnects it.
    pub fn cut_off(&self, why: Option<Fault>) {
        self.link.cut_off(why);
    }

    fn is_cut_off(&self) -> Option<Fault> {
        self.link.is_cut_off()
    }

    async fn serve(self) {
        loop {
            while self.is_cut_off().is_some() {
                self.cluster.world.sleep(self.cluster.domain, 60 * SECOND).await;
            }
            while !self.is_member.load(Ordering::Relaxed) {
                self.cluster.world.sleep(self.cluster.domain, membership::pause(&self.cluster)).await;
            }
            let message = self.cluster.queue.take().await;
            let Some(envelope) = open(&self.cluster, &message) else { continue };
            let (token, name) = (envelope.task_token.clone(), self.name.clone());
            let begun = self.retry_until_acked(
                move |workspace, token| {
                    let name = name.clone();
                    async move { workspace.started(&token, &name).await }.boxed()
                },
                &token,
            );
            if begun.await.is_err() {
                continue;
            }
            let report = self.work(&envelope).await;
            let held_up = self.is_cut_off();
            let told = self.retry_until_acked(
                move |workspace, token| {
                    let report = report.clone();
                    async move { workspace.finished(&token, report).await }.boxed()
                },
                &token,
            );
            let _not_wanted = told.await;
            held_up.into_iter().for_each(|fault| self.cluster.faults.count(fault));
        }
    }

    async fn retry_until_acked<T: std::fmt::Debug + Send + 'static>(
        &self,
        ask: impl Fn(Workspace, String) -> futures::future::BoxFuture<'static, Result<T, Error>>,
        token: &str,
    ) -> Result<T, Error> {
        let token = token.to_owned();
        if self.cluster.faults.injects(self.cluster.domain, Fault::Poison, 20) {
            let forged = token.clone() + "x";
            let refused = self.cluster.call(|workspace| ask(workspace, forged)).await;
            if let Some(Ok(reply)) = refused {
                self.cluster.audit.report(format!("a forged token was taken: {reply:?}"));
            }
        }
        self.cluster
            .retry_until_acked(|workspace| ask(workspace, token.clone()), || self.is_cut_off().is_none())
            .await
    }

    /// Runs an attempt with its heartbeats.
    async fn work(&self, envelope: &Envelope) -> Report {
        let attempt = Attempt::draw(&self.cluster, envelope);
        let mut left = attempt.length;
        let interval = envelope.heartbeat_interval_ms.get() * 1_000;
        while left > 0 {
            let nap = left.min(interval);
            self.cluster.world.sleep(self.cluster.domain, nap).await;
            left -= nap;
            if left == 0 || self.is_cut_off().is_some() {
                continue;
            }
            let token = envelope.task_token.clone();
            let progress = Progress { ppm: (left % 1_000_000) as u32, message: String::new() };
            let heard = self.cluster.call(move |workspace| {
                async move { workspace.heartbeat(&token, Some(progress)).await }.boxed()
            });
            match heard.await {
                Some(Ok(HeartbeatReply { should_cancel: true, .. })) if attempt.obeys => {
                    return Report::new(Outcome::Cancelled);
                }
                Some(Err(error))
                    if !error.is_transient() && !matches!(error, Error::Stopped) && attempt.obeys =>
                {
                    return Report::new(Outcome::Cancelled);
                }
                Some(_) | None => {}
            }
        }
        attempt.end(&self.cluster, envelope).await
    }
}

/// Workers inside a node: they die with it, and begin before their start is durable. Returns the slots of an executor.
pub fn local(
    cluster: &Cluster,
    spawner: &ProcessSpawner,
    clock: &MachineClock,
    workspace: &Workspace,
    queue: &Arc<LocalQueue>,
    name: &str,
) -> Option<Slots> {
    if cluster.scenario.worker_code != WorkerCode::Scripted {
        return Some(executors::local(cluster, spawner, clock, workspace, queue, name));
    }
    for slot in 0..SLOTS {
        let (cluster, workspace, queue) = (cluster.clone(), workspace.clone(), queue.clone());
        let name = format!("{name}/{slot}");
        if cluster.scenario.settings.push_limit == 0 {
            let belongs = membership::local(cluster.clone(), workspace.clone(), name.as_str().into(), 1);
            spawner.world.spawn(spawner.process, "membership", belongs.boxed());
        }
        let serve = async move {
            let queues = ["default".into()];
            while let Ok(deliveries) = queue.receive(&queues, 1).await {
                for delivery in deliveries {
                    if let Some(envelope) = open(&cluster, &delivery.envelope) {
                        run_local(&cluster, &workspace, delivery, &envelope, &name).await;
                    }
                }
            }
        };
        spawner.world.spawn(spawner.process, "slot", serve.boxed());
    }
    None
}

/// Ends the executor of a node that has been deposed.
pub async fn end(cluster: &Cluster, slots: Slots) {
    executors::end(cluster, slots).await;
}

async fn run_local(
    cluster: &Cluster,
    workspace: &Workspace,
    delivery: Delivery,
    envelope: &Envelope,
    name: &str,
) {
    let token = &envelope.task_token;
    let pause = || cluster.world.sleep(cluster.domain, SECOND / 20);
    let begun = loop {
        match workspace.started_here(token, name).await {
            Err(error) if error.is_transient() => pause().await,
            answer => break answer,
        }
    };
    let _taken = delivery.ack().await;
    if begun.is_err() {
        return;
    }
    let attempt = Attempt::draw(cluster, envelope);
    cluster.world.sleep(cluster.domain, attempt.length / 2).await;
    let asked = workspace.heartbeat(token, None).await;
    let report = match asked {
        Ok(HeartbeatReply { should_cancel: true, .. }) if attempt.obeys => Report::new(Outcome::Cancelled),
        Ok(_) | Err(_) => {
            cluster.world.sleep(cluster.domain, attempt.length / 2).await;
            attempt.end(cluster, envelope).await
        }
    };
    while let Err(error) = workspace.finished(token, report.clone()).await {
        if !error.is_transient() {
            return;
        }
        pause().await;
    }
}

/// The verified message.
fn open(cluster: &Cluster, message: &SignedEnvelope) -> Option<Envelope> {
    let clock = MachineClock::new(&cluster.world, 0);
    cluster.keys.open(message, clock.now()).ok()
}
