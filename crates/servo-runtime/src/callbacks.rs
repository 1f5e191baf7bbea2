//! Implements the callbacks of `servo-queue` for a workspace.

use std::sync::Arc;

use async_trait::async_trait;
use servo_engine::{Attempt, Change, Finish, Finished, Heartbeat, Progress, Refusal, Report, Started};
use servo_queue::{
    AuthError, CallbackError, Callbacks, FetchedWork, FinishedReply, HeartbeatReply, StartedReply,
    StoredWorkError, TaskClaims, WorkRef, followers_of,
};

use crate::error::Error;
use crate::messages::EngineMessage;
use crate::workspace::Workspace;

impl Workspace {
    /// A worker is about to begin; an error means that it must not. Answered when that is durable.
    pub async fn started(&self, token: &str, worker: &str) -> Result<StartedReply, Error> {
        let attempt = self.attempt(token)?;
        Ok(started_reply(self.ask(Started { attempt, worker: worker.into() }).await?))
    }

    /// Reports that a worker of this process is about to begin. Answered before it is durable: if the decision is lost,
    /// so is the worker.
    pub async fn started_here(&self, token: &str, worker: &str) -> Result<StartedReply, Error> {
        let attempt = self.attempt(token)?;
        let started = Started { attempt, worker: worker.into() };
        Ok(started_reply(self.ask_by(started, EngineMessage::Early).await?))
    }

    /// The text of stored work that a message refers to, with the claims of the followers in it; none if it is not
    /// there, or not that of the attempt. It is given as it is: whoever has the message knows its hash.
    pub async fn stored_work(
        &self,
        token: &str,
        work: &WorkRef,
    ) -> Result<Option<(String, Vec<TaskClaims>)>, Error> {
        let claims = self.claims(token)?;
        let Some(data) = self.inner.data.as_ref().filter(|_| work.is_well_formed()) else { return Ok(None) };
        let name = data.layout.stored_work(claims.run_id, &work.sha256);
        let stored = data.root.get(&name).await.map_err(|error| Error::Data(Arc::new(error)))?;
        let Some(bytes) = stored else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(match followers_of(&text, &claims) {
            Ok(followers) => Some((text, followers)),
            Err(StoredWorkError::Other(_)) => None,
            // The worker notices, and says what is wrong.
            Err(StoredWorkError::Malformed(_) | StoredWorkError::Damaged { .. }) => Some((text, Vec::new())),
        })
    }

    /// Reports a heartbeat; the reply says whether to continue.
    pub async fn heartbeat(&self, token: &str, progress: Option<Progress>) -> Result<HeartbeatReply, Error> {
        let claims = self.claims(token)?;
        let (attempt, sent_at) = (attempt_of(&claims), self.now());
        let reply = self.ask(Heartbeat { attempt, sent_at, progress }).await?;
        let left = claims.expires_at.since(self.now());
        let has_little_left = left.get() < self.inner.token_lifetime.get() / 2;
        let task_token = has_little_left.then(|| self.task_token(claims));
        Ok(HeartbeatReply { should_cancel: reply.should_cancel, task_token })
    }

    /// A token of an attempt for the worker that it is given to.
    pub fn task_token(&self, claims: TaskClaims) -> String {
        let expires_at = self.now().saturating_add(self.inner.token_lifetime);
        self.inner.keys.mint(&TaskClaims { expires_at, ..claims })
    }

    /// Reports the end of an attempt. Safe to repeat until it is acknowledged.
    pub async fn finished(&self, token: &str, report: Report) -> Result<FinishedReply, Error> {
        let attempt = self.attempt(token)?;
        let report = match &self.inner.data {
            Some(data) => {
                data.confirm(&attempt, report).await.map_err(|error| Error::Data(Arc::new(error)))?
            }
            None => report,
        };
        Ok(match self.ask(Finished { attempt, report }).await? {
            Finish::Accepted { event_id } => FinishedReply::Ended { event_id },
            Finish::Duplicate => FinishedReply::AlreadyEnded,
            Finish::Late => FinishedReply::Late,
        })
    }

    /// The attempt that a token is good for.
    fn attempt(&self, token: &str) -> Result<Attempt, Error> {
        Ok(attempt_of(&self.claims(token)?))
    }

    /// The claims of a token, if it is one of this workspace.
    fn claims(&self, token: &str) -> Result<TaskClaims, Error> {
        let claims = self.inner.keys.verify_token(token, self.now())?;
        let layout = &self.inner.stores.layout;
        if claims.tenant != *layout.tenant() || claims.workspace != *layout.workspace() {
            return Err(Error::Denied(AuthError::BadSignature { what: "task token" }));
        }
        Ok(claims)
    }
}

fn attempt_of(claims: &TaskClaims) -> Attempt {
    Attempt {
        run_id: claims.run_id,
        task_key: claims.task_key.clone(),
        attempt: claims.attempt,
        attempt_id: claims.attempt_id,
    }
}

/// The workers of this process: they are told to begin before that is durable.
#[async_trait]
impl Callbacks for Workspace {
    async fn started(&self, token: &str, worker: &str) -> Result<StartedReply, CallbackError> {
        Ok(self.started_here(token, worker).await?)
    }

    async fn work(
        &self,
        token: &str,
        _worker: &str,
        work: &WorkRef,
    ) -> Result<Option<FetchedWork>, CallbackError> {
        let stored = self.stored_work(token, work).await?;
        Ok(stored.map(|(text, followers)| FetchedWork {
            text,
            credentials: followers.into_iter().map(|claims| self.task_token(claims)).collect(),
        }))
    }

    async fn heartbeat(
        &self,
        token: &str,
        progress: Option<Progress>,
    ) -> Result<HeartbeatReply, CallbackError> {
        Ok(Workspace::heartbeat(self, token, progress).await?)
    }

    async fn finished(&self, token: &str, report: Report) -> Result<FinishedReply, CallbackError> {
        Ok(Workspace::finished(self, token, report).await?)
    }
}

impl From<Error> for CallbackError {
    fn from(error: Error) -> Self {
        let reason = error.to_string();
        if error.is_transient() {
            Self::Transient(reason)
        } else if matches!(error, Error::Denied(_)) {
            Self::Denied(reason)
        } else if matches!(error, Error::Refused(Refusal::UnknownWorker { .. })) {
            Self::NotRegistered(reason)
        } else {
            Self::Refused(reason)
        }
    }
}

fn started_reply(change: Change) -> StartedReply {
    match change {
        Change::Accepted { event_id } => StartedReply::Begun { event_id },
        Change::Duplicate => StartedReply::AlreadyBegun,
    }
}
