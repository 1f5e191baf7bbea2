//! Simulated workers register, prove themselves, are heard of, and take up new code; some lie.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use object_store::path::Path;
use servo_engine::{RegisterWorker, WorkerState};
use servo_runtime::{Error, Workspace};
use servo_store::{DataRoot, ObjectBlobs};

use super::{SLOTS, Worker};
use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::scenario::{MINUTE, SECOND};

/// How often a worker is heard of while there is work.
const HEARTBEAT: u64 = 15 * SECOND;

/// How long to wait before the next look: long in a workspace that has nothing to do.
pub(super) fn pause(cluster: &Cluster) -> u64 {
    let is_idle = |node: &Workspace| node.snapshot().state().active_runs() == 0;
    let nodes = cluster.open_nodes();
    let has_work = !cluster.faults.is_healed() || !nodes.iter().all(is_idle) || nodes.is_empty();
    if has_work { HEARTBEAT } else { 10 * MINUTE }
}

/// A worker as it registers.
fn registration(name: &Arc<str>, slots: usize, digest: &str) -> RegisterWorker {
    RegisterWorker {
        worker_id: name.clone(),
        name: name.to_string(),
        queues: vec!["default".into()],
        slots: slots as u32,
        digest: digest.into(),
        storage: "sim://data".to_owned(),
        host: "sim".to_owned(),
        version: "1".to_owned(),
    }
}

/// Whether a worker is given tasks, and the digest of what is deployed.
async fn standing(workspace: Workspace, worker: Arc<str>) -> Result<(bool, Option<String>), Error> {
    workspace.heard_of(&worker);
    let standing = workspace.read(|state| {
        let digest = state.deployment().map(|deployment| deployment.digest.to_string());
        let row = state.worker(&worker).filter(|row| row.state == WorkerState::Active);
        (row.is_some_and(|row| Some(&row.digest) == digest.as_ref()), digest)
    });
    standing.await
}

impl Worker {
    /// Keeps the worker registered while there is work.
    pub(super) async fn belong(self) {
        let (cluster, domain) = (&self.cluster, self.cluster.domain);
        loop {
            if self.is_cut_off().is_none() {
                let name = self.name.clone();
                let looked = cluster.call(|workspace| standing(workspace, name).boxed()).await;
                if let Some(Ok((is_member, digest))) = looked {
                    self.is_member.store(is_member, Ordering::Relaxed);
                    if let (false, Some(digest)) = (is_member, digest) {
                        self.register(&digest).await;
                    }
                }
            }
            cluster.world.sleep(domain, pause(cluster)).await;
        }
    }

    /// Proves its storage and registers; whatever goes wrong is tried again later.
    async fn register(&self, digest: &str) {
        let cluster = &self.cluster;
        if cluster.faults.injects(cluster.domain, Fault::Poison, 100) {
            let lie = registration(&self.name, SLOTS, "sha256:of other code");
            let registered =
                cluster.call(|node| async move { node.register_worker(lie).await }.boxed()).await;
            if let Some(Ok(reply)) = registered {
                cluster.audit.report(format!("a worker with other code was registered: {reply:?}"));
            }
        }
        let has_own_disk = cluster.faults.injects(cluster.domain, Fault::Poison, 200);
        let name = self.name.clone();
        let challenged = cluster.call(|node| async move { node.challenge_worker(&name).await }.boxed()).await;
        let Some(Ok(_)) = challenged else { return };
        let root = if has_own_disk { Path::from("own disk") } else { Path::default() };
        let client = Arc::new(cluster.bucket.client(cluster.domain, &cluster.faults));
        let blobs = Arc::new(
            ObjectBlobs::new(client, &root, &cluster.layout).with_timers(Arc::new(self.timers.clone())),
        );
        let data = DataRoot::bucket("sim://data".to_owned(), blobs);
        let Ok(proof) = data.answer_challenge(&cluster.layout, &self.name).await else { return };
        let (name, request) = (self.name.clone(), registration(&self.name, SLOTS, digest));
        let proof = proof.unwrap_or_default();
        let registered = cluster.call(|node| {
            let register = async move {
                if !node.is_proven(&name, &proof).await? {
                    return Ok(false);
                }
                node.register_worker(request).await.map(|_| true)
            };
            register.boxed()
        });
        if let Some(Ok(true)) = registered.await {
            self.is_member.store(true, Ordering::Relaxed);
            if has_own_disk {
                cluster.audit.report("a worker was registered that stores data on a disk of its own");
            }
        }
    }
}

/// Keeps a worker that is part of a node registered.
pub(super) async fn local(cluster: Cluster, workspace: Workspace, name: Arc<str>) {
    while workspace.is_open() {
        if let Ok((false, Some(digest))) = standing(workspace.clone(), name.clone()).await {
            let _stopped = workspace.register_here(registration(&name, 1, &digest)).await;
        }
        cluster.world.sleep(cluster.domain, pause(&cluster)).await;
    }
}
