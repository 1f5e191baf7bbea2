//! Authorization: every route is in the table here, and a request to any other route is refused.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use servo_engine::{Principal, PrincipalKind};
use servo_queue::TaskClaims;
use subtle::ConstantTimeEq;

use crate::app::{App, Shared};
use crate::problem::{Code, Problem};

/// A permission of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Permission {
    AssetsRead,
    AssetsDeploy,
    PartitionsChange,
    RunsRead,
    RunsTrigger,
    RunsCancel,
    RunsRetry,
    QuarantineRead,
    QuarantineReview,
    SettingsRead,
    SettingsChange,
    AdmissionRead,
    AdmissionChange,
    AuditRead,
    AutomationRead,
    AutomationOperate,
    AutomationChange,
}

/// The access that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No authentication: the response says nothing about a workspace.
    Public,
    /// A caller with this permission.
    Needs(Permission),
    /// The worker key.
    WorkerKey,
    /// The task token of the attempt.
    TaskToken,
}

/// Every route with the access it requires.
pub const ROUTES: &[(Method, &str, Access)] = &[
    (Method::GET, "/api/v1/healthz", Access::Public),
    (Method::GET, "/api/v1/readyz", Access::Public),
    (Method::GET, "/api/v1/version", Access::Public),
    (Method::GET, "/api/v1/openapi.json", Access::Public),
    (Method::POST, "/api/v1/plan", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/runs", Access::Needs(Permission::RunsRead)),
    (Method::POST, "/api/v1/runs", Access::Needs(Permission::RunsTrigger)),
    (Method::GET, "/api/v1/runs/{run_id}", Access::Needs(Permission::RunsRead)),
    (Method::GET, "/api/v1/runs/{run_id}/events", Access::Needs(Permission::RunsRead)),
    (Method::POST, "/api/v1/runs/{run_id}/cancel", Access::Needs(Permission::RunsCancel)),
    (Method::POST, "/api/v1/runs/{run_id}/retry", Access::Needs(Permission::RunsRetry)),
    (Method::GET, "/api/v1/conflicts", Access::Needs(Permission::RunsRead)),
    (Method::GET, "/api/v1/runs/{run_id}/tasks", Access::Needs(Permission::RunsRead)),
    (Method::GET, "/api/v1/runs/{run_id}/tasks/{task_id}", Access::Needs(Permission::RunsRead)),
    (
        Method::GET,
        "/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/logs",
        Access::Needs(Permission::RunsRead),
    ),
    (
        Method::GET,
        "/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/logs/stream",
        Access::Needs(Permission::RunsRead),
    ),
    (Method::GET, "/api/v1/assets", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/assets/{namespace}/{name}", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/assets/{namespace}/{name}/partitions", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/assets/{namespace}/{name}/lineage", Access::Needs(Permission::AssetsRead)),
    (Method::POST, "/api/v1/dynamic-partitions/{name}", Access::Needs(Permission::PartitionsChange)),
    (Method::GET, "/api/v1/quarantine", Access::Needs(Permission::QuarantineRead)),
    (
        Method::POST,
        "/api/v1/quarantine/{namespace}/{name}/{materialization_id}/approve",
        Access::Needs(Permission::QuarantineReview),
    ),
    (
        Method::POST,
        "/api/v1/quarantine/{namespace}/{name}/{materialization_id}/reject",
        Access::Needs(Permission::QuarantineReview),
    ),
    (Method::GET, "/api/v1/deployments/current", Access::Needs(Permission::AssetsRead)),
    (Method::POST, "/api/v1/deployments", Access::Needs(Permission::AssetsDeploy)),
    (Method::GET, "/api/v1/settings", Access::Needs(Permission::SettingsRead)),
    (Method::PATCH, "/api/v1/settings", Access::Needs(Permission::SettingsChange)),
    (Method::GET, "/api/v1/retention", Access::Needs(Permission::SettingsRead)),
    (Method::POST, "/api/v1/retention/apply", Access::Needs(Permission::SettingsChange)),
    (Method::GET, "/api/v1/admission", Access::Needs(Permission::AdmissionRead)),
    (Method::POST, "/api/v1/pauses", Access::Needs(Permission::AdmissionChange)),
    (Method::POST, "/api/v1/pauses/resume", Access::Needs(Permission::AdmissionChange)),
    (Method::GET, "/api/v1/runs/{run_id}/why", Access::Needs(Permission::RunsRead)),
    (Method::GET, "/api/v1/audit", Access::Needs(Permission::AuditRead)),
    (Method::GET, "/api/v1/orchestration/schedules", Access::Needs(Permission::AutomationRead)),
    (Method::POST, "/api/v1/orchestration/schedules", Access::Needs(Permission::AutomationChange)),
    (Method::GET, "/api/v1/orchestration/schedules/{schedule}", Access::Needs(Permission::AutomationRead)),
    (Method::PUT, "/api/v1/orchestration/schedules/{schedule}", Access::Needs(Permission::AutomationChange)),
    (
        Method::DELETE,
        "/api/v1/orchestration/schedules/{schedule}",
        Access::Needs(Permission::AutomationChange),
    ),
    (
        Method::GET,
        "/api/v1/orchestration/schedules/{schedule}/ticks",
        Access::Needs(Permission::AutomationRead),
    ),
    (
        Method::GET,
        "/api/v1/orchestration/schedules/{schedule}/preview",
        Access::Needs(Permission::AutomationRead),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/schedules/{schedule}/trigger",
        Access::Needs(Permission::RunsTrigger),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/schedules/{schedule}/pause",
        Access::Needs(Permission::AutomationOperate),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/schedules/{schedule}/resume",
        Access::Needs(Permission::AutomationOperate),
    ),
    (Method::GET, "/api/v1/tables", Access::Needs(Permission::RunsRead)),
    (Method::POST, "/api/v1/worker/leases", Access::WorkerKey),
    (Method::POST, "/api/v1/tasks/{task_id}/started", Access::TaskToken),
    (Method::POST, "/api/v1/tasks/{task_id}/heartbeat", Access::TaskToken),
    (Method::POST, "/api/v1/tasks/{task_id}/completed", Access::TaskToken),
    (Method::POST, "/api/v1/tasks/{task_id}/logs", Access::TaskToken),
];

/// The access that a route requires; none if it is not in the table.
fn access(method: &Method, path: &str) -> Option<Access> {
    let found = ROUTES.iter().find(|(of, at, _)| of == method && *at == path);
    found.map(|(_, _, access)| *access)
}

/// The address of the client. Without it, only holders of keys and tokens are served.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer {
    /// The process that serves.
    SameProcess,
    /// A connection.
    Network(SocketAddr),
}

impl Peer {
    /// Whether it is this machine, by whichever kind of address.
    fn is_here(self) -> bool {
        match self {
            Self::SameProcess => true,
            Self::Network(address) => address.ip().to_canonical().is_loopback(),
        }
    }
}

/// Who asks: the principal that goes into the log.
#[derive(Debug, Clone)]
pub(crate) struct Actor(pub(crate) Principal);

/// The credential of a request about an attempt.
#[derive(Debug, Clone)]
pub(crate) struct TaskToken(pub(crate) Arc<(String, TaskClaims)>);

/// Authenticates and authorizes a request.
pub(crate) async fn authorize(
    State(app): State<Shared>,
    matched: MatchedPath,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    // A route answers HEAD as it answers GET.
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let Some(access) = access(method, matched.as_str()) else {
        return Err(Problem::internal(&format!("{method} {} has no permission", matched.as_str())));
    };
    let peer = request.extensions().get::<Peer>().copied();
    let worker = || Principal::new(PrincipalKind::Worker, "");
    let principal = match access {
        Access::Public => Principal::user("anybody"),
        // The place where users come in: who it is, and whether that one has the permission.
        Access::Needs(_) => match peer {
            Some(peer) if peer.is_here() => {
                app.check_access_token(request.headers(), peer)?;
                Principal::user("local")
            }
            Some(_) | None => {
                let detail = "this server knows no users; it serves requests from its own machine only";
                return Err(Problem::new(Code::Unauthenticated, detail));
            }
        },
        Access::WorkerKey => {
            app.check_worker(request.headers())?;
            worker()
        }
        Access::TaskToken => {
            let token = bearer(request.headers())
                .ok_or_else(|| Problem::new(Code::Unauthenticated, "the task token is missing"))?;
            let claims = app.api.keys.verify_token(token, app.workspace().now())?;
            let token = TaskToken(Arc::new((token.to_owned(), claims)));
            request.extensions_mut().insert(token);
            worker()
        }
    };
    request.extensions_mut().insert(Actor(principal));
    Ok(next.run(request).await)
}

impl App {
    /// Where the server has a token, whoever connects must show it.
    fn check_access_token(&self, headers: &HeaderMap, peer: Peer) -> Result<(), Problem> {
        match (&self.api.access_token, peer) {
            (None, _) | (_, Peer::SameProcess) => Ok(()),
            (Some(token), Peer::Network(_)) => match bearer(headers) {
                Some(shown) if is_equal(shown, token) => Ok(()),
                Some(_) | None => {
                    let detail = "this server serves whoever can read its token; it is in server.json";
                    Err(Problem::new(Code::Unauthenticated, detail))
                }
            },
        }
    }

    fn check_worker(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let denied = |detail: &str| Err(Problem::new(Code::Unauthenticated, detail));
        match &self.api.worker_key {
            Some(key) => match bearer(headers) {
                Some(shown) if is_equal(shown, key) => Ok(()),
                Some(_) => denied("the worker key is not the one of this server"),
                None => denied("the worker key is missing"),
            },
            None => denied("this server has no worker key, so it gives tasks to nobody"),
        }
    }
}

/// Takes the same time wherever the first difference is.
fn is_equal(shown: &str, secret: &str) -> bool {
    shown.as_bytes().ct_eq(secret.as_bytes()).into()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

macro_rules! from_extensions {
    ($name:ident) => {
        impl FromRequestParts<Shared> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
                let found = parts.extensions.get::<Self>().cloned();
                found.ok_or_else(|| Problem::internal(&concat!("no ", stringify!($name))))
            }
        }
    };
}

from_extensions!(Actor);
from_extensions!(TaskToken);
