//! The message that carries an attempt to a worker: canonical JSON, signed.

use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use servo_core::{
    AttemptId, Millis, RunId, TaskKey, TenantId, Timestamp, WorkspaceId, dispatch_id, to_canonical_string,
};

use servo_engine::work::Work;

use crate::callback_url::CallbackUrls;
use crate::keyring::{AuthError, Keyring, Purpose};
use crate::stored_work::WorkRef;
use crate::token::TaskClaims;

const WHAT: &str = "task envelope";

/// A message that holds all data a worker needs to run one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Form of this message.
    pub envelope_version: u32,
    /// The tenant that owns the task.
    pub tenant_id: TenantId,
    /// The workspace of the task.
    pub workspace_id: WorkspaceId,
    /// The run of the task.
    pub run_id: RunId,
    /// Identity of the task: asset, partition and operation.
    pub task_key: TaskKey,
    /// Number of the attempt.
    pub attempt: u32,
    /// Token that every report must echo (INV-8).
    pub attempt_id: AttemptId,
    /// `dispatch:{run}:{task}:{attempt}`.
    pub dispatch_id: String,
    /// The resolved work; none if the asset is no longer deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Arc<Work>>,
    /// Attempts of further partitions that the same call of the function makes (ADR-210).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followers: Vec<Follower>,
    /// Work and followers that are stored, since they are too large for a message (ADR-310).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_ref: Option<WorkRef>,
    /// Timeout of the attempt.
    pub timeout_ms: Option<Millis>,
    /// Heartbeat interval.
    pub heartbeat_interval_ms: Millis,
    /// Credential for reports about this attempt; empty where it has callback URLs.
    pub task_token: String,
    /// Where to report about this attempt, for a worker that is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callbacks: Option<CallbackUrls>,
    /// Expiry; invalid after this.
    pub expires_at: Timestamp,
    /// Unique per attempt.
    pub nonce: String,
}

/// An attempt that is part of the call of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follower {
    /// Identity of the task.
    pub task_key: TaskKey,
    /// Number of the attempt.
    pub attempt: u32,
    /// Token that every report must echo (INV-8).
    pub attempt_id: AttemptId,
    /// The resolved work; none if the asset is no longer deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Arc<Work>>,
    /// Credential for reports about this attempt; empty where it has callback URLs, and in stored work.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task_token: String,
    /// Where to report about this attempt, for a worker that is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callbacks: Option<CallbackUrls>,
}

impl Follower {
    /// The same with this credential: callback URLs as one text, or a token.
    pub(crate) fn with_credential(self, credential: String) -> Self {
        match CallbackUrls::of_credential(&credential) {
            Some(callbacks) => Self { callbacks: Some(callbacks), ..self },
            None => Self { task_token: credential, ..self },
        }
    }
}

impl Envelope {
    /// The credential that reports about this attempt are made with: its callback URLs as one text, or its token.
    pub fn credential(&self) -> String {
        self.callbacks.as_ref().map_or_else(|| self.task_token.clone(), CallbackUrls::to_credential)
    }

    /// The claims of the token of an attempt in this envelope.
    pub fn claims(&self, task_key: &TaskKey, attempt: u32, attempt_id: AttemptId) -> TaskClaims {
        TaskClaims {
            tenant: self.tenant_id.clone(),
            workspace: self.workspace_id.clone(),
            run_id: self.run_id,
            task_key: task_key.clone(),
            attempt,
            attempt_id,
            expires_at: self.expires_at,
        }
    }

    /// Takes the followers out, each as an envelope of its own.
    pub fn take_followers(&mut self) -> Vec<Envelope> {
        let followers = std::mem::take(&mut self.followers).into_iter();
        let alone = |follower: Follower| Envelope {
            dispatch_id: dispatch_id(self.run_id, &follower.task_key, follower.attempt),
            nonce: follower.attempt_id.to_string(),
            task_key: follower.task_key,
            attempt: follower.attempt,
            attempt_id: follower.attempt_id,
            work: follower.work,
            task_token: follower.task_token,
            callbacks: follower.callbacks,
            ..self.clone()
        };
        followers.map(alone).collect()
    }
}

/// An envelope with its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedEnvelope {
    /// Canonical JSON of the envelope.
    pub body: Arc<str>,
    /// Key it is signed with.
    pub key_id: String,
    /// Base64url of HMAC-SHA256 over the body.
    pub signature: String,
}

impl Keyring {
    /// Signs an envelope.
    ///
    /// # Panics
    /// Never: an envelope has no floats, so it has a canonical form.
    pub fn seal(&self, envelope: &Envelope) -> SignedEnvelope {
        let body = to_canonical_string(envelope).expect("an envelope has no floats");
        let (key_id, signature) = self.sign(Purpose::Envelopes, body.as_bytes());
        SignedEnvelope { key_id, signature: BASE64URL_NOPAD.encode(&signature), body: body.into() }
    }

    /// The verified envelope: signed by this ring and not expired.
    pub fn open(&self, sealed: &SignedEnvelope, now: Timestamp) -> Result<Envelope, AuthError> {
        let malformed = |problem: String| AuthError::Malformed { what: WHAT, problem };
        let signature = BASE64URL_NOPAD
            .decode(sealed.signature.as_bytes())
            .map_err(|_| malformed("the signature is not base64url".to_owned()))?;
        self.check(Purpose::Envelopes, WHAT, &sealed.key_id, sealed.body.as_bytes(), &signature)?;
        let envelope: Envelope =
            serde_json::from_str(&sealed.body).map_err(|error| malformed(error.to_string()))?;
        if now > envelope.expires_at {
            return Err(AuthError::Expired { what: WHAT, at: envelope.expires_at });
        }
        Ok(envelope)
    }
}
