//! The membership of a worker: it proves itself before it is given tasks, is heard of, and takes up the code that is
//! deployed (ADR-110).

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use servo_api::Code;
use servo_api::client::{Client, ClientError};
use servo_api::views::{LeaveBody, RegisterBody, WorkerStanding};
use servo_engine::definitions::Definitions;
use servo_store::{DataRoot, Layout};
use servo_worker::Runners;
use servo_worker::project::{Project, Scanned};

use super::Waiting;
use crate::session::{host, nonce};

/// How often the server hears of a worker, unless it expects to more often.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Signs of life that may be lost before a worker is taken for lost.
const SIGNS_PER_TIMEOUT: u32 = 6;

/// The membership of a worker.
pub(super) struct Membership {
    client: Client,
    body: RegisterBody,
    worker_id: String,
    data: DataRoot,
    layout: Layout,
    /// How long to wait before the server hears of it again.
    pause: Duration,
}

impl Membership {
    pub(super) fn new(
        client: Client,
        name: &str,
        queues: &[String],
        slots: usize,
        listens: bool,
        data: DataRoot,
        layout: Layout,
    ) -> anyhow::Result<Self> {
        let nonce = nonce()?;
        let body = RegisterBody {
            name: name.to_owned(),
            nonce: nonce.clone(),
            tenant: layout.tenant().to_string(),
            workspace: layout.workspace().to_string(),
            queues: queues.to_vec(),
            slots: u32::try_from(slots).unwrap_or(u32::MAX),
            digest: String::new(),
            storage: data.uri("").trim_end_matches('/').to_owned(),
            host: host(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            assets: [].into(),
            proof: None,
            listens,
        };
        Ok(Self { client, worker_id: format!("{name}-{nonce}"), body, data, layout, pause: HEARTBEAT })
    }

    /// The id of the worker.
    pub(super) fn worker_id(&self) -> &str {
        &self.worker_id
    }

    /// The runners have this code.
    pub(super) fn has_code(&mut self, scanned: &Scanned) {
        self.body.digest.clone_from(&scanned.digest);
        // As they are deployed; a project that cannot be is refused for its digest alone.
        let checked = Definitions::check(scanned.manifest.clone());
        let assets = checked.iter().flat_map(Definitions::assets).map(|asset| &asset.def);
        self.body.assets =
            assets.map(|asset| (asset.key.clone(), servo_api::asset_fingerprint(asset))).collect();
    }

    /// Registers, and tries again as long as that may help: the server may be away, nothing may be deployed yet, or
    /// other code, which may come here too.
    pub(super) async fn join(&mut self, runners: &Runners, root: &Path) -> anyhow::Result<()> {
        let mut waiting = Waiting::default();
        loop {
            let error = match self.register().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match error.downcast_ref::<ClientError>().map(ClientError::code) {
                Some(Some(Code::OtherCode)) => {
                    waiting.again(&error).await;
                    self.reload(runners, root).await;
                }
                Some(None | Some(Code::NothingDeployed | Code::Unavailable | Code::ShuttingDown)) => {
                    waiting.again(&error).await;
                }
                Some(Some(_)) | None => return Err(error),
            }
        }
    }

    /// Asks for a challenge, answers it in the storage of this worker, and shows the answer.
    async fn register(&self) -> anyhow::Result<()> {
        let asked = self.client.register(&self.body).await?;
        if asked.registered {
            return Ok(());
        }
        // What is not found here is shown as not found: the server says what that means.
        let proof = self.data.answer_challenge(&self.layout, &self.worker_id).await?.unwrap_or_default();
        self.client.register(&RegisterBody { proof: Some(proof), ..self.body.clone() }).await?;
        Ok(())
    }

    /// Is heard of, registers again when the server has forgotten it, and takes up the code that is deployed.
    pub(super) async fn keep_up(&mut self, runners: &Runners, root: &Path) -> Infallible {
        let mut told = String::new();
        loop {
            let Some(standing) = self.beat().await else { continue };
            let is_current = standing.digest.as_deref() == Some(self.body.digest.as_str());
            if standing.registered && is_current && !self.is_outdated(&standing) {
                told.clear();
                continue;
            }
            if !is_current && standing.digest.is_some() {
                self.reload(runners, root).await;
            }
            match self.register().await {
                Ok(()) => {
                    let deployment = standing.deployment.unwrap_or_default();
                    eprintln!("{}: registered with the code of deployment {deployment}", self.worker_id);
                    told.clear();
                }
                Err(error) => {
                    let reason = error.to_string();
                    if told != reason {
                        eprintln!("{reason}; no tasks are taken until that is so");
                        told = reason;
                    }
                }
            }
        }
    }

    /// Whether the server still has other code noted for this worker.
    fn is_outdated(&self, standing: &WorkerStanding) -> bool {
        standing.worker_digest.as_deref().is_some_and(|noted| noted != self.body.digest)
    }

    /// Is heard of, and nothing else.
    pub(super) async fn stay(&mut self) -> Infallible {
        loop {
            self.beat().await;
        }
    }

    /// Waits, and is heard of. None if nobody answered.
    async fn beat(&mut self) -> Option<WorkerStanding> {
        tokio::time::sleep(self.pause).await;
        let standing = self.client.worker_heartbeat(&self.worker_id).await.ok()?;
        self.pause = HEARTBEAT.min(Duration::from_millis(standing.timeout_ms) / SIGNS_PER_TIMEOUT);
        Some(standing)
    }

    /// Takes up the code that lies here. Code that cannot be imported changes nothing.
    async fn reload(&mut self, runners: &Runners, root: &Path) {
        let reloaded = match Project::open(root) {
            Ok(project) => runners.reload(project).await.map_err(anyhow::Error::from),
            Err(error) => Err(error.into()),
        };
        match reloaded {
            Ok(scanned) => self.has_code(&scanned),
            Err(error) => eprintln!("{error:#}\nthe code before is kept"),
        }
    }

    /// Says that this worker takes no more tasks. Whoever does not hear it notices the silence.
    pub(super) async fn leave(&self, draining: bool) {
        let body = LeaveBody { worker_id: self.worker_id.clone(), draining };
        if let Err(error) = self.client.leave(&body).await {
            tracing::debug!(%error, "the server was not told that this worker leaves");
        }
    }
}
