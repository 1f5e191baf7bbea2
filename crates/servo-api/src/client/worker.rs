//! A worker on another machine: the same contract, over HTTP.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use data_encoding::BASE64URL_NOPAD;
use reqwest::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_engine::{Change, Finish, HeartbeatReply, Progress, Refusal, Report};
use servo_queue::{AuthError, SignedEnvelope, TaskClaims, TaskSource};
use servo_runtime::Error;
use servo_store::AppendError;
use servo_worker::Callbacks;

use super::{Client, ClientError};
use crate::problem::Code;
use crate::views::{Completed, Heartbeat, HeartbeatAnswer, Lease, LeaseBody, Reported, Started, Task};

/// How long the server is asked to wait for a task.
const WAIT: Duration = Duration::from_secs(25);
/// How long to leave a server alone that gives no tasks because something is wrong.
const PAUSE: Duration = Duration::from_secs(1);

impl Client {
    /// Asks for tasks; none if there were none in the time that the request names. What is taken and never begun goes to
    /// another worker.
    pub async fn lease(&self, body: &LeaseBody) -> Result<Vec<SignedEnvelope>, ClientError> {
        let response = self.post(&["worker", "leases"], self.worker_key.as_deref(), body).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(Vec::new());
        }
        Ok(self.read::<Lease>(response).await?.envelopes)
    }

    /// Where an executor of this name gets its tasks from.
    pub fn tasks_for(&self, worker_id: impl Into<String>) -> LeasedTasks {
        LeasedTasks { client: self.clone(), worker_id: worker_id.into() }
    }

    async fn report<T: DeserializeOwned>(
        &self,
        token: &str,
        what: &str,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        let claims = claims_of(token)?;
        let task = Task::id_of(&claims.task_key);
        let answer = match self.post(&["tasks", &task, what], Some(token), body).await {
            Ok(response) => self.read(response).await,
            Err(error) => Err(error),
        };
        answer.map_err(|error| refused(&self.server, &claims, error))
    }
}

/// Tasks that are leased from a server, one at a time.
#[derive(Debug, Clone)]
pub struct LeasedTasks {
    client: Client,
    worker_id: String,
}

#[async_trait]
impl TaskSource for LeasedTasks {
    async fn take(&self, queue: &str) -> SignedEnvelope {
        let body = LeaseBody {
            worker_id: self.worker_id.clone(),
            queue: queue.to_owned(),
            slots: 1,
            wait_ms: WAIT.as_millis() as u64,
        };
        let mut is_known = false;
        loop {
            match self.client.lease(&body).await {
                Ok(envelopes) => {
                    is_known = false;
                    if let Some(envelope) = envelopes.into_iter().next() {
                        return envelope;
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_known, true) {
                        tracing::warn!(%error, "worker.lease failed, it will be tried again");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

#[async_trait]
impl Callbacks for Client {
    async fn started(&self, token: &str, worker: &str) -> Result<Change, Error> {
        let body = Started { worker_id: worker.to_owned() };
        let answer: Reported = self.report(token, "started", &body).await?;
        let accepted = |event_id| Change::Accepted { event_id };
        Ok(answer.accepted.accepted_event_id.map_or(Change::Duplicate, accepted))
    }

    async fn heartbeat(&self, token: &str, progress: Option<Progress>) -> Result<HeartbeatReply, Error> {
        let progress =
            progress.map(|progress| crate::views::Progress { ppm: progress.ppm, message: progress.message });
        let answer: HeartbeatAnswer = self.report(token, "heartbeat", &Heartbeat { progress }).await?;
        Ok(HeartbeatReply { should_cancel: answer.should_cancel })
    }

    async fn finished(&self, token: &str, report: Report) -> Result<Finish, Error> {
        let answer: Reported = self.report(token, "completed", &Completed::from(report)).await?;
        Ok(match (answer.late, answer.accepted.accepted_event_id) {
            (true, _) => Finish::Late,
            (false, Some(event_id)) => Finish::Accepted { event_id },
            (false, None) => Finish::Duplicate,
        })
    }
}

/// What a token is good for. The server is the one to believe it or not.
fn claims_of(token: &str) -> Result<TaskClaims, Error> {
    let read = || {
        let body = BASE64URL_NOPAD.decode(token.split('.').nth(2)?.as_bytes()).ok()?;
        serde_json::from_slice(&body).ok()
    };
    let problem = || "it has no claims".to_owned();
    read().ok_or_else(|| Error::Denied(AuthError::Malformed { what: "task token", problem: problem() }))
}

/// What the workspace itself would have said.
fn refused(server: &Arc<str>, claims: &TaskClaims, error: ClientError) -> Error {
    let task_key = || claims.task_key.clone();
    let attempt = claims.attempt;
    let unavailable = |reason: String| {
        Error::NotDurable(Arc::new(AppendError::Unavailable {
            location: server.to_string(),
            action: "reporting about a task",
            source: reason.into(),
        }))
    };
    let denied = |problem: String| Error::Denied(AuthError::Malformed { what: "report", problem });
    match error.code() {
        Some(Code::StaleAttempt) => Refusal::StaleAttempt { task_key: task_key(), attempt }.into(),
        Some(Code::TaskCancelled) => Refusal::Cancelled { task_key: task_key() }.into(),
        Some(Code::AttemptEnded) => Refusal::AttemptEnded { task_key: task_key(), attempt }.into(),
        Some(Code::AlreadyStarted) => {
            Refusal::AlreadyStarted { task_key: task_key(), attempt, worker: "another".into() }.into()
        }
        Some(code) if !code.status().is_server_error() => denied(error.to_string()),
        Some(_) | None => unavailable(error.to_string()),
    }
}
