//! The worker contract over HTTP, for workers on other machines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use data_encoding::BASE64URL_NOPAD;
use reqwest::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_core::AttemptId;
use servo_engine::evaluation::{Evaluation, EvaluationReport};
use servo_engine::{Progress, Report};
use servo_queue::{
    CallbackError, Callbacks, Delivery, EvaluationSource, FetchedWork, FinishedReply, HeartbeatReply,
    QueueError, QueueErrorKind, Receipt, SignedEnvelope, StartedReply, TaskClaims, TaskSource, WorkRef,
};

use super::{Client, ClientError};
use crate::problem::Code;
use crate::views::{
    Accepted, Begun, EvaluatedBody, HandedOutWork, Heartbeat, HeartbeatAnswer, Lease, LeaseBody, LeaveBody,
    RegisterBody, Registration, Reported, Started, TakeEvaluationBody, TakenEvaluation, Task, WorkerSign,
    WorkerStanding, Workers,
};

/// How long the server may wait for a task.
const WAIT: Duration = Duration::from_secs(25);

impl Client {
    /// Workers that are there, and the newest of those that are gone.
    pub async fn workers(&self) -> Result<Workers, ClientError> {
        self.get(&["workers"], &[]).await
    }

    /// Registers a worker, or asks for a challenge.
    pub async fn register(&self, body: &RegisterBody) -> Result<Registration, ClientError> {
        self.as_worker("register", body).await
    }

    /// Says that a worker is there.
    pub async fn worker_heartbeat(&self, worker_id: &str) -> Result<WorkerStanding, ClientError> {
        self.as_worker("heartbeat", &WorkerSign { worker_id: worker_id.to_owned() }).await
    }

    /// Says that a worker takes no more tasks.
    pub async fn leave(&self, body: &LeaveBody) -> Result<Accepted, ClientError> {
        self.as_worker("leave", body).await
    }

    async fn as_worker<T: DeserializeOwned>(
        &self,
        what: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let response = self.post(&["worker", what], self.worker_key.as_deref(), body).await?;
        self.read(response).await
    }

    /// Leases tasks; none if there were none in the time that the request names. A leased task that is never begun goes
    /// to another worker.
    pub async fn lease(&self, body: &LeaseBody) -> Result<Vec<SignedEnvelope>, ClientError> {
        let response = self.post(&["worker", "leases"], self.worker_key.as_deref(), body).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(Vec::new());
        }
        Ok(self.read::<Lease>(response).await?.envelopes)
    }

    /// The task source of an executor with this name.
    pub fn tasks_for(&self, worker_id: impl Into<String>) -> LeasedTasks {
        LeasedTasks { client: self.clone(), worker_id: worker_id.into() }
    }

    async fn report<T: DeserializeOwned>(
        &self,
        token: &str,
        what: &str,
        body: &impl Serialize,
    ) -> Result<T, CallbackError> {
        let claims = claims_of(token)?;
        let task = Task::id_of(&claims.task_key);
        let answer = match self.post(&["tasks", &task, what], Some(token), body).await {
            Ok(response) => self.read(response).await,
            Err(error) => Err(error),
        };
        answer.map_err(refused)
    }
}

/// Tasks that are leased from a server.
#[derive(Debug, Clone)]
pub struct LeasedTasks {
    client: Client,
    worker_id: String,
}

#[async_trait]
impl TaskSource for LeasedTasks {
    async fn receive(&self, queues: &[Arc<str>], at_most: usize) -> Result<Vec<Delivery>, QueueError> {
        let body = LeaseBody {
            worker_id: self.worker_id.clone(),
            queues: queues.iter().map(ToString::to_string).collect(),
            slots: at_most,
            wait_ms: WAIT.as_millis() as u64,
        };
        loop {
            let leased = self.client.lease(&body).await;
            let envelopes = leased.map_err(|error| not_received(queues, &error))?;
            if !envelopes.is_empty() {
                return Ok(envelopes
                    .into_iter()
                    .map(|envelope| Delivery::new(envelope, HeldByServer))
                    .collect());
            }
        }
    }
}

/// The server has the message: it settles it when the worker asks to begin, or has not in time.
struct HeldByServer;

#[async_trait]
impl Receipt for HeldByServer {
    async fn ack(self: Box<Self>) -> Result<(), QueueError> {
        Ok(())
    }

    async fn nack(self: Box<Self>, _delay: Duration) -> Result<(), QueueError> {
        Ok(())
    }
}

#[async_trait]
impl EvaluationSource for Client {
    async fn next_evaluation(&self) -> Result<Option<Evaluation>, CallbackError> {
        let body = TakeEvaluationBody { wait_ms: WAIT.as_millis() as u64 };
        let asked = self.post(&["worker", "evaluations"], self.worker_key.as_deref(), &body).await;
        let response = asked.map_err(refused)?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        Ok(Some(self.read::<TakenEvaluation>(response).await.map_err(refused)?.evaluation))
    }

    async fn evaluated(
        &self,
        evaluation: &Evaluation,
        report: EvaluationReport,
    ) -> Result<(), CallbackError> {
        let body = EvaluatedBody { evaluation: evaluation.clone(), report };
        let path = ["worker", "evaluations", "result"];
        self.post(&path, self.worker_key.as_deref(), &body).await.map(drop).map_err(refused)
    }
}

#[async_trait]
impl Callbacks for Client {
    async fn started(&self, token: &str, worker: &str) -> Result<StartedReply, CallbackError> {
        let body = Started { worker_id: worker.to_owned(), work: None };
        let answer: Begun = self.report(token, "started", &body).await?;
        Ok(begun(&answer))
    }

    async fn work(
        &self,
        token: &str,
        worker: &str,
        work: &WorkRef,
    ) -> Result<Option<FetchedWork>, CallbackError> {
        let body = Started { worker_id: worker.to_owned(), work: Some(work.into()) };
        let answer: Begun = self.report(token, "started", &body).await?;
        Ok(answer.work.map(|HandedOutWork { text, credentials }| FetchedWork { text, credentials }))
    }

    async fn heartbeat(
        &self,
        token: &str,
        progress: Option<Progress>,
    ) -> Result<HeartbeatReply, CallbackError> {
        let body = Heartbeat { progress: progress.map(Into::into) };
        let answer: HeartbeatAnswer = self.report(token, "heartbeat", &body).await?;
        if let Some(renewed) = &answer.task_token {
            self.tokens.renew(token, renewed);
        }
        Ok(HeartbeatReply { should_cancel: answer.should_cancel, task_token: answer.task_token })
    }

    async fn finished(&self, token: &str, report: Report) -> Result<FinishedReply, CallbackError> {
        let reported: Reported = self.report(token, "completed", &report).await?;
        self.tokens.forget(token);
        Ok(ended(&reported))
    }
}

/// The reply that a report of a beginning was answered with.
pub(super) fn begun(answer: &Begun) -> StartedReply {
    match answer.accepted.accepted_event_id {
        Some(event_id) => StartedReply::Begun { event_id },
        None => StartedReply::AlreadyBegun,
    }
}

/// The reply that a report of an end was answered with.
pub(super) fn ended(reported: &Reported) -> FinishedReply {
    match (reported.late, reported.accepted.accepted_event_id) {
        (true, _) => FinishedReply::Late,
        (false, Some(event_id)) => FinishedReply::Ended { event_id },
        (false, None) => FinishedReply::AlreadyEnded,
    }
}

/// The newest tokens of attempts, for those who were given the first one.
#[derive(Debug, Default)]
pub(super) struct RenewedTokens(Mutex<BTreeMap<AttemptId, String>>);

impl RenewedTokens {
    fn renew(&self, shown: &str, renewed: &str) {
        if let Ok(claims) = claims_of(shown) {
            self.lock().insert(claims.attempt_id, renewed.to_owned());
        }
    }

    /// The newest token of the attempt that this one is about.
    pub(super) fn newest(&self, token: &str) -> String {
        let renewed = claims_of(token).ok().and_then(|claims| self.lock().get(&claims.attempt_id).cloned());
        renewed.unwrap_or_else(|| token.to_owned())
    }

    fn forget(&self, token: &str) {
        if let Ok(claims) = claims_of(token) {
            self.lock().remove(&claims.attempt_id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AttemptId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The claims of a token, unverified: the server verifies them.
fn claims_of(token: &str) -> Result<TaskClaims, CallbackError> {
    let read = || {
        let body = BASE64URL_NOPAD.decode(token.split('.').nth(2)?.as_bytes()).ok()?;
        serde_json::from_slice(&body).ok()
    };
    read().ok_or_else(|| CallbackError::Denied("the task token has no claims".to_owned()))
}

pub(super) fn refused(error: ClientError) -> CallbackError {
    let reason = error.to_string();
    match error.code() {
        Some(Code::Unauthenticated | Code::Forbidden) => CallbackError::Denied(reason),
        Some(Code::UnknownWorker) => CallbackError::NotRegistered(reason),
        Some(code) if !code.status().is_server_error() => CallbackError::Refused(reason),
        Some(_) | None => CallbackError::Transient(reason),
    }
}

fn not_received(queues: &[Arc<str>], error: &ClientError) -> QueueError {
    let is_refused = error.code().is_some_and(|code| !code.status().is_server_error());
    let kind = if is_refused { QueueErrorKind::Refused } else { QueueErrorKind::Unavailable };
    QueueError::new(kind, queues.join(", "), error.to_string())
}
