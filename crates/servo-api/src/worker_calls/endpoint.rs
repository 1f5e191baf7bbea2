//! The endpoint of a worker that is called: it verifies each message, hands it to an inbox, and answers with what
//! becomes of it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use servo_core::{Clock, TenantId, WorkspaceId};
use servo_queue::{Keyring, PushInbox, PushReply};
use servo_store::TokioTimers;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::WorkerCall;
use crate::extract::{parse, read};
use crate::problem::{Code, Problem};
use crate::server::{Answers, WRITE_TIMEOUT, accept, watch_certificate};
use crate::tls::Certificate;

/// The address that a worker is called at.
pub const PUSH_PATH: &str = "/push";
/// Size limit of a message.
const MAX_MESSAGE: usize = 16 << 20;
/// Messages that are read and verified at once.
const MAX_READING: usize = 16;
/// How long a message waits for a free slot before its queue is told to call again: less than queues wait.
const WAIT: Duration = Duration::from_secs(30);
/// After how long a queue should call again that called a worker which is about to end.
const CALL_AGAIN: Duration = Duration::from_secs(1);

/// The endpoint of a worker that is called.
pub struct WorkerEndpoint {
    inbox: Arc<PushInbox>,
    keys: Keyring,
    workspace: (TenantId, WorkspaceId),
    queues: Vec<Arc<str>>,
    clock: Arc<dyn Clock>,
    reading: Semaphore,
    closing: watch::Sender<bool>,
}

impl WorkerEndpoint {
    /// An endpoint that hands messages of some queues of a workspace, signed with these keys, to an inbox.
    pub fn new(
        inbox: Arc<PushInbox>,
        keys: Keyring,
        workspace: (TenantId, WorkspaceId),
        queues: Vec<Arc<str>>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let (reading, closing) = (Semaphore::new(MAX_READING), watch::Sender::new(false));
        Arc::new(Self { inbox, keys, workspace, queues, clock, reading, closing })
    }

    async fn answered(&self, request: Request<Body>) -> Result<Response<Body>, Problem> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/healthz") => Ok(StatusCode::NO_CONTENT.into_response()),
            (&Method::POST, PUSH_PATH) => {
                let (queue, call) = self.verified(request).await?;
                let reply = tokio::select! {
                    biased;
                    reply = tokio::time::timeout(WAIT, self.inbox.push(queue, call.envelope)) => reply,
                    () = self.closed() => Ok(PushReply::Nacked { delay: CALL_AGAIN }),
                };
                Ok(match reply {
                    Ok(PushReply::Acked) => StatusCode::NO_CONTENT.into_response(),
                    Ok(PushReply::Nacked { delay }) => call_again(delay),
                    // It waited for a slot, and has not been taken by one.
                    Err(_) => call_again(Duration::ZERO),
                })
            }
            (_, PUSH_PATH | "/healthz") => {
                let detail = format!("{} does not know {}", request.uri().path(), request.method());
                Err(Problem::new(Code::MethodNotAllowed, detail))
            }
            (_, path) => {
                Err(Problem::new(Code::NotFound, format!("there is no {path}; queues call {PUSH_PATH}")))
            }
        }
    }

    /// A message that this worker believes, and its queue.
    async fn verified(&self, request: Request<Body>) -> Result<(Arc<str>, WorkerCall), Problem> {
        let (parts, body) = request.into_parts();
        // It is never closed.
        let _reading = self.reading.acquire().await.map_err(|error| Problem::internal(&error))?;
        let text = read(&TokioTimers::default(), &parts.headers, body, MAX_MESSAGE).await?;
        let call: WorkerCall = parse(&text)?;
        let envelope = self.keys.open(&call.envelope, self.clock.now())?;
        let (tenant, workspace) = &self.workspace;
        if (&envelope.tenant_id, &envelope.workspace_id) != (tenant, workspace) {
            let detail = format!(
                "this worker is for {tenant}/{workspace}, the message is of {}/{}",
                envelope.tenant_id, envelope.workspace_id
            );
            return Err(Problem::new(Code::OtherWorkspace, detail));
        }
        if envelope.callbacks.is_none() || envelope.followers.iter().any(|it| it.callbacks.is_none()) {
            return Err(Problem::invalid("callbacks", "are not there: the worker has nowhere to report"));
        }
        let queue = self.queues.iter().find(|queue| ***queue == *call.queue).cloned();
        let queue = queue.ok_or_else(|| {
            let detail = format!("this worker does not serve queue {}; its --queue says which", call.queue);
            Problem::new(Code::NotFound, detail)
        })?;
        Ok((queue, call))
    }
}

/// Tells a queue to call again.
fn call_again(delay: Duration) -> Response<Body> {
    let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, seconds.to_string())]).into_response()
}

impl Answers for WorkerEndpoint {
    async fn answer(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        self.answered(request).await.unwrap_or_else(IntoResponse::into_response)
    }

    fn close(&self) {
        self.closing.send_replace(true);
    }

    async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // The sender is in `self`, so it cannot be gone.
        let _closing = closing.wait_for(|closing| *closing).await;
    }
}

/// Takes calls until it is stopped; messages that nobody has begun by then are given back to their queues.
pub async fn serve_worker(
    listener: TcpListener,
    endpoint: Arc<WorkerEndpoint>,
    certificate: Option<Certificate>,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let acceptor = certificate.as_ref().map(|it| it.acceptor(None)).transpose().map_err(io::Error::other)?;
    let served = accept(listener, acceptor, &endpoint, WRITE_TIMEOUT, shutdown);
    tokio::select! {
        served = served => served,
        never = watch_certificate(certificate) => match never {},
    }
}
