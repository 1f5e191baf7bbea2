//! Simulated workers register, prove themselves, are heard of, and take up new code; some lie.

use std::sync::Arc;

use futures::FutureExt;
use object_store::path::Path;
use servo_api::client::{Client, ClientError};
use servo_api::views::RegisterBody;
use servo_engine::{RegisterWorker, WorkerState};
use servo_runtime::{Error, Workspace};
use servo_store::{DataRoot, ObjectBlobs};

use super::{NONCE, NONCE_AT_END, SLOTS, Worker, executors};
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
            if self.is_cut_off().is_none() && !cluster.is_membership_closed() {
                let name = self.name.clone();
                let looked = cluster.call(|workspace| standing(workspace, name).boxed()).await;
                if let Some(Ok((is_member, digest))) = looked {
                    self.joined(is_member);
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
        let has_own_disk = self.draws_own_disk();
        let name = self.name.clone();
        let challenged = cluster.call(|node| async move { node.challenge_worker(&name).await }.boxed()).await;
        let Some(Ok(_)) = challenged else { return };
        let Some(proof) = self.prove(has_own_disk).await else { return };
        let (name, request) = (self.name.clone(), registration(&self.name, SLOTS, digest));
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
            self.joined(true);
            self.must_share(has_own_disk);
        }
    }
}

impl Worker {
    /// Whether it lies about where it stores data.
    fn draws_own_disk(&self) -> bool {
        self.cluster.faults.injects(self.cluster.domain, Fault::Poison, 200)
    }

    /// Answers the challenge with what it finds in its storage. None if the storage does not answer.
    async fn prove(&self, has_own_disk: bool) -> Option<String> {
        let cluster = &self.cluster;
        let root = if has_own_disk { Path::from("own disk") } else { Path::default() };
        let client = Arc::new(cluster.bucket.client(cluster.domain, &cluster.faults));
        let blobs = Arc::new(
            ObjectBlobs::new(client, &root, &cluster.layout).with_timers(Arc::new(self.timers.clone())),
        );
        let data = DataRoot::bucket("sim://data".to_owned(), blobs);
        let proof = data.answer_challenge(&cluster.layout, &self.name).await.ok()?;
        Some(proof.unwrap_or_default())
    }

    fn must_share(&self, has_own_disk: bool) {
        if has_own_disk {
            self.cluster.audit.report("a worker was registered that stores data on a disk of its own");
        }
    }

    /// The same over HTTP.
    pub(super) async fn belong_over_http(self) {
        let (cluster, client) = (&self.cluster, executors::client(&self));
        loop {
            if !cluster.is_membership_closed() {
                // Whatever goes wrong is tried again.
                let _refused = self.join(&client).await;
            }
            cluster.world.sleep(cluster.domain, HEARTBEAT).await;
        }
    }

    async fn join(&self, client: &Client) -> Result<(), ClientError> {
        let standing = client.worker_heartbeat(&self.name).await?;
        let is_member = standing.registered && standing.worker_digest == standing.digest;
        self.joined(is_member);
        let (false, Some(digest)) = (is_member, standing.digest) else { return Ok(()) };
        let layout = &self.cluster.layout;
        let body = RegisterBody {
            name: self.name.trim_end_matches(NONCE_AT_END).to_owned(),
            nonce: NONCE.to_owned(),
            tenant: layout.tenant().to_string(),
            workspace: layout.workspace().to_string(),
            queues: vec!["default".to_owned()],
            slots: SLOTS as u32,
            listens: false,
            digest,
            storage: "sim://data".to_owned(),
            host: "sim".to_owned(),
            version: "1".to_owned(),
            assets: [].into(),
            proof: None,
        };
        let challenged = client.register(&body).await?;
        let has_own_disk = self.draws_own_disk();
        let Some(proof) = self.prove(has_own_disk).await else { return Ok(()) };
        let registered = !challenged.registered && !self.cluster.is_membership_closed();
        if registered && client.register(&RegisterBody { proof: Some(proof), ..body }).await?.registered {
            self.joined(true);
            self.must_share(has_own_disk);
        }
        Ok(())
    }
}

/// Keeps a worker that is part of a node registered.
pub(super) async fn local(cluster: Cluster, workspace: Workspace, name: Arc<str>, slots: usize) {
    while workspace.is_open() {
        if !cluster.is_membership_closed()
            && let Ok((false, Some(digest))) = standing(workspace.clone(), name.clone()).await
        {
            let _stopped = workspace.register_here(registration(&name, slots, &digest)).await;
        }
        cluster.world.sleep(cluster.domain, pause(&cluster)).await;
    }
}
