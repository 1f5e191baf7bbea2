//! The call of a worker: a message, signed for it, with the callback URLs of its attempts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};
use servo_access::{Allowed, KeyId, Permission};
use servo_core::{Clock, TenantId, Timestamp, WorkspaceId};
use servo_queue::{Keyring, PushError, PushReply, PushTarget, SignedEnvelope, TaskClaims};

use super::WorkerCall;
use crate::authentication::ApiKeys;
use crate::callback_urls::callback_urls;
use crate::client::{ClientError, ClientTls, connections};
use crate::problem::Problem;
use crate::routes::worker_keyring;

/// Longer than a queue waits for an answer.
const READ_WITHIN: Duration = Duration::from_secs(120);
/// The longest delay that a worker may ask for.
const MAX_DELAY: Duration = Duration::from_secs(300);
/// Bytes of an answer that are read for its reason.
const REASON: usize = 16 << 10;

/// The key that a worker knows its messages by.
#[derive(Clone)]
pub enum WorkerCredential {
    /// One that the worker and the server have.
    Key(Arc<str>),
    /// An API key of the server: while it is good for workers of the workspace, messages are signed with its hash.
    ApiKey {
        /// The keys of the server.
        keys: ApiKeys,
        /// Which of them.
        id: KeyId,
        /// The workspace.
        workspace: (TenantId, WorkspaceId),
    },
}

/// Secrets are never shown.
impl std::fmt::Debug for WorkerCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(_) => f.debug_tuple("Key").finish_non_exhaustive(),
            Self::ApiKey { id, .. } => f.debug_tuple("ApiKey").field(id).finish(),
        }
    }
}

impl WorkerCredential {
    /// The keys that sign for the worker.
    fn ring(&self, now: Timestamp) -> Result<Keyring, PushError> {
        match self {
            Self::Key(key) => Ok(worker_keyring(key)),
            Self::ApiKey { keys, id, workspace: (tenant, workspace) } => {
                let holder = keys.holder(id, now).map_err(|problem| PushError::new(&*problem.detail))?;
                let state = keys.control().state();
                match (holder.allows(Permission::WorkersServe, tenant, workspace), state.key(id)) {
                    (Allowed::Everything, Some(key)) => Ok(Keyring::new("worker", key.hash.to_text())),
                    (_, _) => {
                        let reason = format!(
                            "key {id} is not one of a worker of {tenant}/{workspace}: it has no role worker"
                        );
                        Err(PushError::new(reason))
                    }
                }
            }
        }
    }
}

/// A worker that is called at its address. The address is the operator's; nothing that a request says changes it, and
/// redirects are not followed.
pub struct CalledWorker {
    http: reqwest::Client,
    url: Url,
    credential: WorkerCredential,
    /// The keys of the workspace: they verify its messages, and sign callback URLs.
    keys: Keyring,
    /// The address of the server, as the worker reaches it.
    server: String,
    clock: Arc<dyn Clock>,
}

impl CalledWorker {
    /// A worker at an address such as `https://gpu.example.org:9443/push`. Calls nobody yet.
    pub fn new(
        url: &str,
        tls: &ClientTls,
        credential: WorkerCredential,
        keys: Keyring,
        server: impl Into<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ClientError> {
        let address = |reason: String| ClientError::Address { text: shown_text(url), reason };
        let parsed: Url = url.parse().map_err(|error: url::ParseError| address(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
            return Err(address("it begins with http:// or https:// and the name of a host".to_owned()));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(address("a name and a password have no place in it".to_owned()));
        }
        let http = connections(&parsed, tls, READ_WITHIN).map_err(address)?;
        Ok(Self { http, url: parsed, credential, keys, server: server.into(), clock })
    }

    /// The message for the worker: with callback URLs in the place of tokens, and signed with the worker's key. None if
    /// nobody would believe it any more.
    fn granted(&self, sealed: &SignedEnvelope, now: Timestamp) -> Result<Option<SignedEnvelope>, PushError> {
        let ring = self.credential.ring(now)?;
        let mut envelope = match self.keys.open(sealed, now) {
            Ok(envelope) => envelope,
            Err(error) => {
                tracing::warn!(%error, "queue.push left a message out");
                return Ok(None);
            }
        };
        let expires_at = now.saturating_add(Keyring::CALLBACK_URLS_LIVE);
        let urls = |claims: &TaskClaims| Some(callback_urls(&self.keys, &self.server, claims, expires_at));
        let mut followers = std::mem::take(&mut envelope.followers);
        for follower in &mut followers {
            let claims = envelope.claims(&follower.task_key, follower.attempt, follower.attempt_id);
            (follower.callbacks, follower.task_token) = (urls(&claims), String::new());
        }
        let claims = envelope.claims(&envelope.task_key, envelope.attempt, envelope.attempt_id);
        (envelope.callbacks, envelope.task_token) = (urls(&claims), String::new());
        envelope.followers = followers;
        Ok(Some(ring.seal(&envelope)))
    }

    /// The address without what may be a secret in it.
    fn shown(&self) -> String {
        shown_text(self.url.as_str())
    }
}

#[async_trait]
impl PushTarget for CalledWorker {
    async fn push(&self, queue: &Arc<str>, envelope: &SignedEnvelope) -> Result<PushReply, PushError> {
        let Some(envelope) = self.granted(envelope, self.clock.now())? else { return Ok(PushReply::Acked) };
        let body = WorkerCall { queue: queue.to_string(), envelope };
        let text = serde_json::to_vec(&body).map_err(|error| PushError::new(error.to_string()))?;
        let request = self.http.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(text);
        let response = request.send().await.map_err(|error| {
            let server = self.shown().into();
            PushError::new(ClientError::unreachable(&server, error.without_url()).to_string())
        })?;
        if response.status().is_success() {
            return Ok(PushReply::Acked);
        }
        match (response.status(), retry_after(&response)) {
            (StatusCode::SERVICE_UNAVAILABLE, Some(delay)) => Ok(PushReply::Nacked { delay }),
            (status, _) => {
                let reason = reason(response).await;
                Err(PushError::new(format!("{} answered {}{reason}", self.shown(), status.as_u16())))
            }
        }
    }
}

/// An address without its query, and without a name and a password.
fn shown_text(url: &str) -> String {
    let address = url.split(['?', '#']).next().unwrap_or_default();
    match address.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default()),
        None => address.to_owned(),
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_DELAY))
}

/// The reason that the endpoint of a worker gives for a refusal; empty if whoever answered is none.
async fn reason(mut response: Response) -> String {
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        text.extend_from_slice(&chunk);
        if text.len() > REASON {
            return String::new();
        }
    }
    match serde_json::from_slice::<Problem>(&text) {
        Ok(problem) => format!(": {}", problem.detail.replace(char::is_control, " ")),
        Err(_) => String::new(),
    }
}
