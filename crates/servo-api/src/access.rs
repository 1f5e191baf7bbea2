//! Authorization: every route is in the table here, and a request to any other route is refused.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
pub use servo_access::Permission;
use servo_access::{Allowed, KeyHash, parse_key};
use servo_engine::{Caller, DenyRequest, Principal, PrincipalKind};
use servo_queue::{CallbackVerb, TaskClaims};
use subtle::ConstantTimeEq;

use crate::app::{App, Shared};
use crate::asset_limits::{AssetLimit, limited};
use crate::authentication::{Authenticated, authenticate, bearer};
use crate::callback_urls::GoodUrl;
use crate::problem::{Code, Problem};

/// A caller of a public route who has shown nothing.
pub(crate) const ANYBODY: &str = "anybody";

/// The access that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No authentication: the response says nothing about a workspace.
    Public,
    /// A caller with this permission.
    Needs(Permission),
    /// A caller who has this permission somewhere; the route finds out what for.
    Administers(Permission),
    /// This machine, or whoever knows the secret of the sensor: the route finds out.
    SensorSecret,
    /// The worker key, or an API key of a worker.
    WorkerKey,
    /// The task token of the attempt.
    TaskToken,
    /// The address itself, which is signed for one kind of report.
    CallbackUrl(CallbackVerb),
}

/// Every route with the access it requires.
pub const ROUTES: &[(Method, &str, Access)] = &[
    (Method::GET, "/login", Access::Public),
    (Method::GET, "/login/callback", Access::Public),
    (Method::POST, "/logout", Access::Public),
    (Method::GET, "/api/v1/login-options", Access::Public),
    (Method::GET, "/api/v1/me", Access::Needs(Permission::RunsRead)),
    (Method::GET, "/api/v1/workspaces", Access::Administers(Permission::RunsRead)),
    (Method::POST, "/api/v1/logins", Access::Needs(Permission::LoginsCreate)),
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
    (Method::POST, "/api/v1/runs/{run_id}/retry-now", Access::Needs(Permission::RunsRetry)),
    (Method::GET, "/api/v1/checks", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/conflicts", Access::Needs(Permission::RunsRead)),
    (Method::GET, "/api/v1/costs", Access::Needs(Permission::RunsRead)),
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
    (
        Method::GET,
        "/api/v1/assets/{namespace}/{name}/partitions/summary",
        Access::Needs(Permission::AssetsRead),
    ),
    (
        Method::GET,
        "/api/v1/assets/{namespace}/{name}/materializations",
        Access::Needs(Permission::AssetsRead),
    ),
    (Method::GET, "/api/v1/graph", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/changes", Access::Needs(Permission::RunsRead)),
    (Method::GET, "/api/v1/assets/{namespace}/{name}/materialization", Access::Needs(Permission::AssetsRead)),
    (
        Method::GET,
        "/api/v1/assets/{namespace}/{name}/materializations/{materialization_id}/files/{file}",
        Access::Needs(Permission::AssetsRead),
    ),
    (Method::GET, "/api/v1/assets/{namespace}/{name}/lineage", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/freshness", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/partitions/stale", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/assets/{namespace}/{name}/why", Access::Needs(Permission::AssetsRead)),
    (Method::POST, "/api/v1/dynamic-partitions/{name}", Access::Needs(Permission::PartitionsChange)),
    (
        Method::POST,
        "/api/v1/assets/{namespace}/{name}/partitions/wipe/preview",
        Access::Needs(Permission::AssetsRead),
    ),
    (
        Method::POST,
        "/api/v1/assets/{namespace}/{name}/partitions/wipe",
        Access::Needs(Permission::PartitionsChange),
    ),
    (
        Method::POST,
        "/api/v1/assets/{namespace}/{name}/partitions/mark",
        Access::Needs(Permission::PartitionsChange),
    ),
    (
        Method::POST,
        "/api/v1/assets/{namespace}/{name}/partitions/undo",
        Access::Needs(Permission::PartitionsChange),
    ),
    (Method::POST, "/api/v1/assets/{namespace}/{name}/rename", Access::Needs(Permission::AssetsDeploy)),
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
    (Method::POST, "/api/v1/deployments/preview", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/deployments", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/deployments/{number}", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/deployments/{number}/diff", Access::Needs(Permission::AssetsRead)),
    (Method::POST, "/api/v1/deployments/{number}/rollback", Access::Needs(Permission::AssetsDeploy)),
    (Method::GET, "/api/v1/assets/{namespace}/{name}/versions", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/code", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/settings", Access::Needs(Permission::SettingsRead)),
    (Method::PATCH, "/api/v1/settings", Access::Needs(Permission::SettingsChange)),
    (Method::GET, "/api/v1/retention", Access::Needs(Permission::SettingsRead)),
    (Method::POST, "/api/v1/retention/apply", Access::Needs(Permission::SettingsChange)),
    (Method::GET, "/api/v1/admission", Access::Needs(Permission::AdmissionRead)),
    (Method::GET, "/api/v1/queues", Access::Needs(Permission::AdmissionRead)),
    (Method::POST, "/api/v1/pauses", Access::Needs(Permission::AdmissionChange)),
    (Method::POST, "/api/v1/pauses/resume", Access::Needs(Permission::AdmissionChange)),
    (Method::GET, "/api/v1/runs/{run_id}/why", Access::Needs(Permission::RunsRead)),
    (Method::GET, "/api/v1/runs/{run_id}/plan", Access::Needs(Permission::RunsRead)),
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
    (Method::GET, "/api/v1/notifications", Access::Needs(Permission::AutomationRead)),
    (Method::POST, "/api/v1/notifications", Access::Needs(Permission::AutomationChange)),
    (Method::GET, "/api/v1/notifications/{notification}", Access::Needs(Permission::AutomationRead)),
    (Method::PUT, "/api/v1/notifications/{notification}", Access::Needs(Permission::AutomationChange)),
    (Method::DELETE, "/api/v1/notifications/{notification}", Access::Needs(Permission::AutomationChange)),
    (Method::GET, "/api/v1/notifications/{notification}/history", Access::Needs(Permission::AutomationRead)),
    (Method::POST, "/api/v1/notifications/{notification}/pause", Access::Needs(Permission::AutomationChange)),
    (
        Method::POST,
        "/api/v1/notifications/{notification}/resume",
        Access::Needs(Permission::AutomationChange),
    ),
    (Method::POST, "/api/v1/notifications/{notification}/test", Access::Needs(Permission::AutomationChange)),
    (Method::GET, "/api/v1/orchestration/sensors", Access::Needs(Permission::AutomationRead)),
    (Method::POST, "/api/v1/orchestration/sensors", Access::Needs(Permission::AutomationChange)),
    (Method::GET, "/api/v1/orchestration/sensors/{sensor}", Access::Needs(Permission::AutomationRead)),
    (Method::PUT, "/api/v1/orchestration/sensors/{sensor}", Access::Needs(Permission::AutomationChange)),
    (Method::DELETE, "/api/v1/orchestration/sensors/{sensor}", Access::Needs(Permission::AutomationChange)),
    (Method::GET, "/api/v1/orchestration/sensors/{sensor}/evals", Access::Needs(Permission::AutomationRead)),
    (Method::POST, "/api/v1/orchestration/sensors/{sensor}/push", Access::SensorSecret),
    (Method::POST, "/api/v1/orchestration/sensors/{sensor}/evaluate", Access::Needs(Permission::RunsTrigger)),
    (
        Method::POST,
        "/api/v1/orchestration/sensors/{sensor}/reset-cursor",
        Access::Needs(Permission::AutomationOperate),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/sensors/{sensor}/pause",
        Access::Needs(Permission::AutomationOperate),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/sensors/{sensor}/resume",
        Access::Needs(Permission::AutomationOperate),
    ),
    (Method::GET, "/api/v1/orchestration/backfills", Access::Needs(Permission::AutomationRead)),
    (Method::POST, "/api/v1/orchestration/backfills", Access::Needs(Permission::RunsTrigger)),
    (Method::POST, "/api/v1/orchestration/backfills/preview", Access::Needs(Permission::AssetsRead)),
    (Method::GET, "/api/v1/orchestration/backfills/{backfill_id}", Access::Needs(Permission::AutomationRead)),
    (
        Method::GET,
        "/api/v1/orchestration/backfills/{backfill_id}/chunks",
        Access::Needs(Permission::AutomationRead),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/backfills/{backfill_id}/pause",
        Access::Needs(Permission::AutomationOperate),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/backfills/{backfill_id}/resume",
        Access::Needs(Permission::AutomationOperate),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/backfills/{backfill_id}/cancel",
        Access::Needs(Permission::AutomationOperate),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/backfills/{backfill_id}/retry-failed",
        Access::Needs(Permission::RunsRetry),
    ),
    (Method::GET, "/api/v1/orchestration/conditions", Access::Needs(Permission::AutomationRead)),
    (
        Method::GET,
        "/api/v1/orchestration/conditions/{namespace}/{name}",
        Access::Needs(Permission::AutomationRead),
    ),
    (
        Method::GET,
        "/api/v1/orchestration/conditions/{namespace}/{name}/evaluations",
        Access::Needs(Permission::AutomationRead),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/conditions/{namespace}/{name}/pause",
        Access::Needs(Permission::AutomationOperate),
    ),
    (
        Method::POST,
        "/api/v1/orchestration/conditions/{namespace}/{name}/resume",
        Access::Needs(Permission::AutomationOperate),
    ),
    (Method::POST, "/api/v1/sql", Access::Needs(Permission::SqlRun)),
    (Method::GET, "/api/v1/sql/tables", Access::Needs(Permission::SqlRun)),
    (Method::GET, "/api/v1/tables", Access::Needs(Permission::RunsRead)),
    (Method::GET, "/api/v1/workers", Access::Needs(Permission::WorkersRead)),
    (Method::POST, "/api/v1/worker/register", Access::WorkerKey),
    (Method::POST, "/api/v1/worker/heartbeat", Access::WorkerKey),
    (Method::POST, "/api/v1/worker/leave", Access::WorkerKey),
    (Method::POST, "/api/v1/worker/leases", Access::WorkerKey),
    (Method::POST, "/api/v1/worker/evaluations", Access::WorkerKey),
    (Method::POST, "/api/v1/worker/evaluations/result", Access::WorkerKey),
    (Method::POST, "/api/v1/tasks/{task_id}/started", Access::TaskToken),
    (Method::POST, "/api/v1/tasks/{task_id}/heartbeat", Access::TaskToken),
    (Method::POST, "/api/v1/tasks/{task_id}/completed", Access::TaskToken),
    (Method::POST, "/api/v1/tasks/{task_id}/logs", Access::TaskToken),
    (
        Method::POST,
        "/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/callbacks/started",
        Access::CallbackUrl(CallbackVerb::Started),
    ),
    (
        Method::POST,
        "/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/callbacks/heartbeat",
        Access::CallbackUrl(CallbackVerb::Heartbeat),
    ),
    (
        Method::POST,
        "/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/callbacks/finished",
        Access::CallbackUrl(CallbackVerb::Finished),
    ),
    (
        Method::POST,
        "/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/callbacks/logs",
        Access::CallbackUrl(CallbackVerb::Logs),
    ),
    (Method::GET, "/api/v1/admin/keys", Access::Administers(Permission::KeysManage)),
    (Method::POST, "/api/v1/admin/keys", Access::Administers(Permission::KeysManage)),
    (Method::POST, "/api/v1/admin/keys/{key_id}/revoke", Access::Administers(Permission::KeysManage)),
    (Method::GET, "/api/v1/admin/audit", Access::Administers(Permission::AuditRead)),
    (Method::GET, "/api/v1/admin/sessions", Access::Administers(Permission::KeysManage)),
    (Method::POST, "/api/v1/admin/sessions/end", Access::Administers(Permission::KeysManage)),
    (Method::POST, "/api/v1/admin/sessions/{session_id}/end", Access::Administers(Permission::KeysManage)),
    (Method::GET, "/api/v1/admin/tenants", Access::Administers(Permission::WorkspacesManage)),
    (Method::POST, "/api/v1/admin/tenants", Access::Administers(Permission::TenantsManage)),
    (Method::POST, "/api/v1/admin/tenants/{tenant}/disable", Access::Administers(Permission::TenantsManage)),
    (Method::POST, "/api/v1/admin/tenants/{tenant}/enable", Access::Administers(Permission::TenantsManage)),
    (Method::DELETE, "/api/v1/admin/tenants/{tenant}", Access::Administers(Permission::TenantsManage)),
    (Method::GET, "/api/v1/admin/tenants/{tenant}/quotas", Access::Administers(Permission::QuotasManage)),
    (Method::PATCH, "/api/v1/admin/tenants/{tenant}/quotas", Access::Administers(Permission::QuotasManage)),
    (Method::GET, "/api/v1/admin/workspaces", Access::Administers(Permission::WorkspacesManage)),
    (Method::POST, "/api/v1/admin/workspaces", Access::Administers(Permission::WorkspacesManage)),
    (
        Method::POST,
        "/api/v1/admin/workspaces/{tenant}/{workspace}/disable",
        Access::Administers(Permission::WorkspacesManage),
    ),
    (
        Method::POST,
        "/api/v1/admin/workspaces/{tenant}/{workspace}/enable",
        Access::Administers(Permission::WorkspacesManage),
    ),
    (
        Method::DELETE,
        "/api/v1/admin/workspaces/{tenant}/{workspace}",
        Access::Administers(Permission::WorkspacesManage),
    ),
];

/// The access that a route requires; none if it is not in the table.
pub(crate) fn access(method: &Method, path: &str) -> Option<Access> {
    let found = ROUTES.iter().find(|(of, at, _)| of == method && *at == path);
    found.map(|(_, _, access)| *access)
}

/// Marks requests that the serving process makes of itself; they need no token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SameProcess;

/// Who asks: the principal that goes into the log.
#[derive(Debug, Clone)]
pub(crate) struct Actor(pub(crate) Principal);

/// The credential of a request about an attempt.
#[derive(Debug, Clone)]
pub(crate) struct TaskToken(pub(crate) Arc<(String, TaskClaims)>);

/// The signing key of envelopes for the worker that asks.
#[derive(Debug, Clone)]
pub(crate) struct WorkerSecret(pub(crate) Arc<str>);

/// Authenticates and authorizes a request.
pub(crate) async fn authorize(
    State(app): State<Shared>,
    matched: MatchedPath,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    // A route answers HEAD as it answers GET.
    let method = if parts.method == Method::HEAD { Method::GET } else { parts.method.clone() };
    let Some(access) = access(&method, matched.as_str()) else {
        return Err(Problem::internal(&format!("{method} {} has no permission", matched.as_str())));
    };
    let worker = || Principal::new(PrincipalKind::Worker, "");
    let anybody = || Principal::user(ANYBODY);
    let principal = match access {
        Access::Public => {
            app.authenticate(&parts).await.map_or_else(|_| anybody(), |who| who.identity.principal)
        }
        Access::Needs(permission) => {
            let who = app.authenticate(&parts).await?;
            let limit = match app.allowed(&who, permission) {
                Allowed::Everything => AssetLimit::None,
                Allowed::Assets(selections) => {
                    limited(&app, &method, matched.as_str(), &mut parts, selections).await?
                }
                Allowed::Nothing => return Err(app.deny(&who, permission, &parts).await),
                Allowed::Invisible => return Err(app.unknown_workspace()),
            };
            parts.extensions.insert(limit);
            let principal = who.identity.principal.clone();
            parts.extensions.insert(who);
            principal
        }
        Access::Administers(permission) => {
            let who = app.authenticate(&parts).await?;
            if !who.identity.has_somewhere(permission) {
                return Err(app.deny_administration(&who, permission, &parts).await);
            }
            let principal = who.identity.principal.clone();
            parts.extensions.insert(who);
            principal
        }
        // Whoever may not operate the sensor is as good as anybody who knows its secret.
        Access::SensorSecret => match app.authenticate(&parts).await {
            Ok(who) if app.allowed(&who, Permission::AutomationOperate) == Allowed::Everything => {
                who.identity.principal
            }
            Ok(_) | Err(_) => anybody(),
        },
        Access::WorkerKey => {
            let secret = app.check_worker(&parts).await?;
            parts.extensions.insert(WorkerSecret(secret));
            worker()
        }
        Access::CallbackUrl(verb) => {
            let (url, token) = app.verify_callback(&mut parts, verb).await?;
            parts.extensions.insert(url);
            parts.extensions.insert(token);
            worker()
        }
        Access::TaskToken => {
            let token = bearer(&parts.headers)
                .ok_or_else(|| Problem::new(Code::Unauthenticated, "the task token is missing"))?;
            let claims = app.api.keys.verify_token(token, app.workspace().now())?;
            // The workspaces of a tenant share their keys.
            let layout = app.workspace().layout();
            if (&claims.tenant, &claims.workspace) != (layout.tenant(), layout.workspace()) {
                return Err(Problem::new(Code::Unauthenticated, "the task token is of another workspace"));
            }
            tracing::Span::current().record("run_id", tracing::field::display(claims.run_id));
            let token = TaskToken(Arc::new((token.to_owned(), claims)));
            parts.extensions.insert(token);
            worker()
        }
    };
    parts.extensions.insert(Actor(principal));
    Ok(next.run(Request::from_parts(parts, body)).await)
}

impl App {
    /// Who asks. Where a request comes from says nothing: every user of a machine reaches its loopback.
    pub(crate) async fn authenticate(&self, request: &Parts) -> Result<Authenticated, Problem> {
        // The front has asked already.
        if let Some(known) = request.extensions.get::<Authenticated>() {
            return Ok(known.clone());
        }
        authenticate(&self.authenticators, request, self.workspace().now()).await
    }

    /// Whether somebody has a permission in this workspace.
    pub(crate) fn allowed(&self, who: &Authenticated, permission: Permission) -> Allowed {
        let layout = self.workspace().layout();
        who.identity.allows(permission, layout.tenant(), layout.workspace())
    }

    /// The same for a workspace that does not exist as for one that the caller may not know of.
    fn unknown_workspace(&self) -> Problem {
        let layout = self.workspace().layout();
        unknown_workspace(layout.tenant().as_str(), layout.workspace().as_str())
    }

    /// Refuses somebody without a permission, and records that.
    async fn deny(&self, who: &Authenticated, permission: Permission, request: &Parts) -> Problem {
        let role = permission.least_role();
        let caller = Caller::from(who.identity.principal.clone());
        let subject = format!("{} {}", request.method, request.uri.path());
        let denied = DenyRequest { permission: permission.name(), role: role.name(), subject, caller };
        if let Err(error) = self.workspace().deny(denied).await {
            tracing::warn!(%error, "a refused request could not be recorded");
        }
        let layout = self.workspace().layout();
        let at = format!("{}/{}", layout.tenant(), layout.workspace());
        let mut has: Vec<&str> = who.identity.grants.iter().map(|grant| grant.role.name()).collect();
        has.dedup();
        let detail = format!(
            "this needs the permission {}, which the role {role} has; {} has the role {} in {at}",
            permission.name(),
            who.identity.principal,
            has.join(", "),
        );
        Problem::new(Code::Forbidden, detail)
    }

    /// The same about the server, whose ledger has it; that of the workspace where there is none.
    async fn deny_administration(
        &self,
        who: &Authenticated,
        permission: Permission,
        request: &Parts,
    ) -> Problem {
        let Some(keys) = &self.api.api_keys else { return self.deny(who, permission, request).await };
        let subject = format!("{} {}", request.method, request.uri.path());
        keys.record_denial(who, permission, subject).await;
        let mut has: Vec<&str> = who.identity.grants.iter().map(|grant| grant.role.name()).collect();
        has.dedup();
        let detail = format!(
            "this needs the permission {}, which the role {} has; {} has the role {}",
            permission.name(),
            permission.least_role(),
            who.identity.principal,
            has.join(", "),
        );
        Problem::new(Code::Forbidden, detail)
    }

    /// The signing key of a worker's envelopes, if it may take tasks.
    async fn check_worker(&self, request: &Parts) -> Result<Arc<str>, Problem> {
        let denied = |detail: &str| Err(Problem::new(Code::Unauthenticated, detail));
        let shown = bearer(&request.headers);
        if let (Some(_), Some((_, secret))) = (&self.api.api_keys, shown.and_then(parse_key)) {
            let who = self.authenticate(request).await?;
            return match self.allowed(&who, Permission::WorkersServe) {
                Allowed::Everything => Ok(KeyHash::of(secret).to_text().into()),
                Allowed::Assets(_) | Allowed::Nothing => {
                    Err(self.deny(&who, Permission::WorkersServe, request).await)
                }
                Allowed::Invisible => Err(self.unknown_workspace()),
            };
        }
        match &self.api.worker_key {
            Some(key) => match shown {
                Some(shown) if is_equal(shown, key) => Ok(key.clone()),
                Some(_) => denied("the worker key is not the one of this server"),
                None => denied("the worker key is missing"),
            },
            None => denied("this server has no worker key, so it gives tasks to nobody"),
        }
    }
}

/// Takes the same time wherever the first difference is. Nothing is equal to a secret that is empty.
pub(crate) fn is_equal(shown: &str, secret: &str) -> bool {
    !secret.is_empty() && bool::from(shown.as_bytes().ct_eq(secret.as_bytes()))
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

/// There is no such workspace, or it is nothing that the caller may know of.
pub(crate) fn unknown_workspace(tenant: &str, workspace: &str) -> Problem {
    let detail = format!("there is no workspace {tenant}/{workspace} that this credential is good for");
    Problem::new(Code::UnknownWorkspace, detail)
}

from_extensions!(Actor);
from_extensions!(Authenticated);
from_extensions!(GoodUrl);
from_extensions!(TaskToken);
from_extensions!(WorkerSecret);
