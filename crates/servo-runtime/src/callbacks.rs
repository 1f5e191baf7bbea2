//! What workers report: the contract of `servo-queue`, kept by a workspace.

use async_trait::async_trait;
use servo_engine::{Attempt, Input, Progress, Reply, Report};
use servo_queue::{AuthError, CallbackError, Callbacks, FinishedReply, HeartbeatReply, StartedReply};
use tokio::sync::oneshot;

use crate::error::Error;
use crate::messages::Message;
use crate::workspace::Workspace;

impl Workspace {
    /// A worker is about to begin; an error means that it must not. Answered when that is durable.
    pub async fn started(&self, token: &str, worker: &str) -> Result<StartedReply, Error> {
        let attempt = self.attempt(token)?;
        started_reply(self.ask(Input::Started(attempt, worker.into())).await?)
    }

    /// A worker of this process is about to begin. Answered as soon as it is decided: if the decision is lost, so are the
    /// worker and whatever it has begun.
    pub async fn started_here(&self, token: &str, worker: &str) -> Result<StartedReply, Error> {
        let attempt = self.attempt(token)?;
        let (reply_to, answer) = oneshot::channel();
        self.send(Message::Early(Input::Started(attempt, worker.into()), reply_to)).await?;
        started_reply(self.answered(answer).await.ok_or(Error::Stopped)??)
    }

    /// A worker is still at it; the answer says whether to go on.
    pub async fn heartbeat(&self, token: &str, progress: Option<Progress>) -> Result<HeartbeatReply, Error> {
        let attempt = self.attempt(token)?;
        match self.ask(Input::Heartbeat(attempt, self.now(), progress)).await? {
            Reply::Heartbeat { should_cancel } => Ok(HeartbeatReply { should_cancel }),
            reply @ (Reply::Run { .. }
            | Reply::Accepted { .. }
            | Reply::Duplicate
            | Reply::Late
            | Reply::Done) => {
                unreachable!("a heartbeat is answered as one: {reply:?}")
            }
        }
    }

    /// A worker ended an attempt. Safe to repeat until it is answered.
    pub async fn finished(&self, token: &str, report: Report) -> Result<FinishedReply, Error> {
        let attempt = self.attempt(token)?;
        match self.ask(Input::Finished(attempt, report)).await? {
            Reply::Accepted { event_id } => Ok(FinishedReply::Ended { event_id }),
            Reply::Duplicate => Ok(FinishedReply::AlreadyEnded),
            Reply::Late => Ok(FinishedReply::Late),
            reply @ (Reply::Run { .. } | Reply::Heartbeat { .. } | Reply::Done) => {
                unreachable!("an end is accepted, known or late: {reply:?}")
            }
        }
    }

    /// The attempt that a token is good for, if it is one of this workspace.
    fn attempt(&self, token: &str) -> Result<Attempt, Error> {
        let claims = self.inner.keys.verify_token(token, self.now())?;
        let layout = &self.inner.stores.layout;
        if claims.tenant != *layout.tenant() || claims.workspace != *layout.workspace() {
            return Err(Error::Denied(AuthError::BadSignature { what: "task token" }));
        }
        Ok(Attempt {
            run_id: claims.run_id,
            task_key: claims.task_key,
            attempt: claims.attempt,
            attempt_id: claims.attempt_id,
        })
    }
}

/// The workers of this process: they are told to begin before that is durable.
#[async_trait]
impl Callbacks for Workspace {
    async fn started(&self, token: &str, worker: &str) -> Result<StartedReply, CallbackError> {
        Ok(self.started_here(token, worker).await?)
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
        } else {
            Self::Refused(reason)
        }
    }
}

fn started_reply(reply: Reply) -> Result<StartedReply, Error> {
    match reply {
        Reply::Accepted { event_id } => Ok(StartedReply::Begun { event_id }),
        Reply::Duplicate => Ok(StartedReply::AlreadyBegun),
        Reply::Run { .. } | Reply::Heartbeat { .. } | Reply::Late | Reply::Done => {
            unreachable!("a start is accepted or known: {reply:?}")
        }
    }
}
