//! Simulated workers: they take messages, ask before they begin, send heartbeats, and retry reports until they are
//! acknowledged.

mod membership;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::FutureExt;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use servo_core::{AssetKey, Clock};
use servo_engine::definitions::{CheckDef, Severity};
use servo_engine::outputs::{CheckReport, OutputReport, Usage};
use servo_engine::{DataFormat, ErrorCode, Outcome, OutputState, Progress, Report, TaskError};
use servo_queue::{Delivery, Envelope, HeartbeatReply, LocalQueue, SignedEnvelope, TaskSource};
use servo_runtime::{Error, Workspace};

use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::machine::{MachineClock, ProcessSpawner};
use crate::scenario::SECOND;

/// Concurrent tasks of a worker.
const SLOTS: usize = 2;

/// A worker on a machine of its own.
#[derive(Clone)]
pub struct Worker {
    cluster: Cluster,
    name: Arc<str>,
    timers: ProcessSpawner,
    /// The fault that cuts it off, if one does.
    cut_off: Arc<Mutex<Option<Fault>>>,
    /// Whether it has been registered, as far as it knows.
    is_member: Arc<AtomicBool>,
}

impl Worker {
    /// Starts a worker with a new name; returns its process too.
    pub fn start(cluster: &Cluster, name: &str) -> (Self, u32) {
        let process = cluster.world.process(cluster.domain, name);
        let timers = ProcessSpawner { world: cluster.world.clone(), domain: cluster.domain, process };
        let (cut_off, is_member) = (Arc::default(), Arc::default());
        let worker = Self { cluster: cluster.clone(), name: name.into(), timers, cut_off, is_member };
        if cluster.scenario.settings.push_limit == 0 {
            let member = worker.clone();
            cluster.world.spawn(process, "membership", async move { member.belong().await }.boxed());
        } else {
            worker.is_member.store(true, Ordering::Relaxed);
        }
        for _ in 0..SLOTS {
            let slot = worker.clone();
            cluster.world.spawn(process, "slot", async move { slot.serve().await }.boxed());
        }
        (worker, process)
    }

    /// Cuts it off, or reconnects it.
    pub fn cut_off(&self, why: Option<Fault>) {
        *self.cut_off.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    fn is_cut_off(&self) -> Option<Fault> {
        *self.cut_off.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Workers inside a node: they die with it, and begin before their start is durable.
pub fn local(
    cluster: &Cluster,
    spawner: &ProcessSpawner,
    workspace: &Workspace,
    queue: &Arc<LocalQueue>,
    name: &str,
) {
    for slot in 0..SLOTS {
        let (cluster, workspace, queue) = (cluster.clone(), workspace.clone(), queue.clone());
        let name = format!("{name}/{slot}");
        if cluster.scenario.settings.push_limit == 0 {
            let belongs = membership::local(cluster.clone(), workspace.clone(), name.as_str().into());
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

/// The planned course of an attempt.
struct Attempt {
    length: u64,
    end: u64,
    obeys: bool,
}

impl Attempt {
    fn draw(cluster: &Cluster, envelope: &Envelope) -> Self {
        let mut attempt = cluster.world.roll(cluster.domain, |rng| {
            let length = match rng.below(8) {
                0 => rng.within(0..1_000),
                7 => rng.within(20 * SECOND..100 * SECOND),
                _ => rng.within(10_000..8 * SECOND),
            };
            Self { length, end: rng.within(0..100), obeys: rng.chance(850) }
        });
        if let Some(limit) = envelope.timeout_ms.map(|limit| limit.get() * 1_000)
            && attempt.length > limit
        {
            (attempt.length, attempt.end) = (limit, 100);
        }
        if cluster.faults.is_healed() {
            // Everything must end some day.
            attempt.end = attempt.end.min(90);
        }
        attempt
    }

    async fn end(&self, cluster: &Cluster, envelope: &Envelope) -> Report {
        let failed = |code| Report::failed(TaskError::new(code, "boom"));
        let usage = Some(Usage { cpu_ms: self.length / 1_000, ..Usage::default() });
        let report = match self.end {
            0..=79 => match store(cluster, envelope, OutputState::Committed).await {
                Some(outputs) => Report { outputs: outputs.into(), ..Report::succeeded() },
                None => failed(ErrorCode::DiskFull),
            },
            80..=85 => match store(cluster, envelope, OutputState::Quarantined).await {
                Some(outputs) => Report { outputs: outputs.into(), ..failed(ErrorCode::CheckFailed) },
                None => failed(ErrorCode::DiskFull),
            },
            86..=90 => failed(ErrorCode::UserCodeException),
            91..=94 => failed(ErrorCode::WorkerCrash),
            95..=97 => Report::new(Outcome::Interrupted),
            98..=99 => failed(ErrorCode::NetworkError),
            _ => Report::new(Outcome::TimedOut),
        };
        let report = Report { usage, ..report };
        if cluster.faults.injects(cluster.domain, Fault::Poison, 30) { nonsense(report) } else { report }
    }
}

/// A malformed report: it repeats an output with another state, and names foreign assets.
fn nonsense(report: Report) -> Report {
    let again = report.outputs.iter().map(|output| OutputReport {
        row_count: Some(u64::MAX),
        ..OutputReport::new(output.asset.clone(), OutputState::Discarded)
    });
    let stranger = AssetKey::new("t", "somebody_elses").expect("a key");
    let stranger = OutputReport::new(stranger, OutputState::Committed);
    let outputs = report.outputs.iter().cloned().chain(again).chain([stranger]).collect();
    let error = Some(Arc::new(TaskError::new(ErrorCode::InternalError, "\u{0}\n{}[]\"")));
    Report { outputs, error: report.error.or(error), ..report }
}

/// A false report of success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Nothing was stored.
    NoMarker,
    /// A check did not pass.
    FailedCheck,
    /// A check was not run.
    NoCheck,
}

impl Lie {
    fn draw(cluster: &Cluster) -> Option<Self> {
        if !cluster.faults.injects(cluster.domain, Fault::Poison, 40) {
            return None;
        }
        let lies = [Self::NoMarker, Self::FailedCheck, Self::NoCheck];
        Some(lies[cluster.world.roll(cluster.domain, |rng| rng.below(lies.len()))])
    }
}

fn results(checks: &[CheckDef], state: OutputState, lie: Option<Lie>) -> Vec<CheckReport> {
    if lie == Some(Lie::NoCheck) {
        return Vec::new();
    }
    let passed = state == OutputState::Committed && lie != Some(Lie::FailedCheck);
    let result = |check: &CheckDef| CheckReport {
        name: check.name.clone(),
        kind: check.kind,
        passed,
        // How bad it is, the control plane knows.
        severity: Severity::Info,
        blocking: None,
        message: None,
        metadata: [].into(),
        error: None,
        duration_ms: 1,
    };
    checks.iter().map(result).collect()
}

/// Writes the outputs of an attempt: the data, and last the commit marker.
async fn store(cluster: &Cluster, envelope: &Envelope, state: OutputState) -> Option<Vec<OutputReport>> {
    let mut reports = Vec::new();
    let Some(work) = &envelope.work else { return Some(reports) };
    let (client, partition) =
        (cluster.bucket.client(cluster.domain, &cluster.faults), envelope.task_key.partition());
    let lie = Lie::draw(cluster);
    for output in &work.outputs {
        if output.checked.is_some() {
            // Nothing is made, whatever is said of it.
            reports.push(OutputReport {
                checks: results(&output.checks, state, lie),
                ..OutputReport::new(output.asset.clone(), state)
            });
            continue;
        }
        let (dir, marker) = match state {
            OutputState::Quarantined => (
                cluster.layout.quarantine(&output.asset, partition.as_ref(), output.materialization_id),
                "_reason.json",
            ),
            OutputState::Committed | OutputState::Discarded | OutputState::Missing => (
                cluster.layout.materialization(&output.asset, partition.as_ref(), output.materialization_id),
                "_commit.json",
            ),
        };
        let path = Path::from(format!("{}/{dir}/{marker}", cluster.prefix()));
        let mut tries = 0;
        let mut backoff = cluster.backoff(2 * SECOND, 128 * SECOND);
        let is_stored = lie != Some(Lie::NoMarker) || state != OutputState::Committed;
        while is_stored && client.put(&path, PutPayload::from(Bytes::from_static(b"{}"))).await.is_err() {
            tries += 1;
            if tries == 8 {
                return None;
            }
            cluster.world.pause(cluster.domain, backoff.next_delay()).await;
        }
        reports.push(OutputReport {
            format: Some(DataFormat::Parquet),
            row_count: Some(1),
            checks: results(&output.checks, state, lie),
            ..OutputReport::new(output.asset.clone(), state)
        });
    }
    Some(reports)
}
