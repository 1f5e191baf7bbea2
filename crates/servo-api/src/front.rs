//! The front of a server: finds the workspace that a request is about, opens it if nobody has, and lets it answer.
//!
//! A request names a workspace in its address, `/api/v1/t/{tenant}/w/{workspace}/…`. One that names none is about the
//! one that its credential is good for, or else the one that the server was started with. Whoever may not know of a
//! workspace is answered as if it did not exist, before anything is looked up.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use axum::response::IntoResponse;
use data_encoding::HEXLOWER;
use futures::StreamExt;
use http_body_util::BodyExt;
use servo_access::parse_key;
use servo_core::{Clock, Millis, TenantId, WorkspaceId};
use servo_runtime::{Host, InUse, SystemClock, WorkspaceKey};
use tokio::sync::watch;
use tracing::{Instrument, Span, field};

use crate::access::unknown_workspace;
use crate::app::{Api, App, Shared};
use crate::authentication::{ApiKeys, Authenticated, Authenticator, authenticate, bearer};
use crate::callback_urls::is_callback;
use crate::guard::{guarded, refused, with_headers};
use crate::lockout::Lockout;
use crate::problem::{Code, Problem};
use crate::rates::{Limited, OpenStream, RateLimits, Rates, Standing};
use crate::routes;

/// How addresses that name a workspace begin.
const PREFIX: &str = "/api/v1/t/";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// How often it is looked whether the credential of a stream has expired.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How long a request beyond a limit waits for its refusal.
const REFUSAL_PAUSE: Duration = Duration::from_millis(100);
/// Longest request id that is taken from a caller.
const MAX_REQUEST_ID_LEN: usize = 128;

/// Marks requests of connections whose certificate was verified.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VerifiedCertificate;

/// The address that a request came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// Whether a workspace can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceStatus {
    /// It can.
    On,
    /// Somebody has switched it off.
    Off,
    /// There is none of that name.
    Unknown,
}

/// The workspaces that a server serves.
#[async_trait]
pub trait Workspaces: Send + Sync {
    /// The one that requests are about which name none.
    fn usual(&self) -> WorkspaceKey;

    /// Whether one can be used.
    fn status(&self, key: &WorkspaceKey) -> WorkspaceStatus;

    /// Every one that is switched on.
    fn all(&self) -> Vec<WorkspaceKey>;

    /// Those that may have something to do by themselves when the server starts.
    fn to_start(&self) -> Vec<WorkspaceKey>;

    /// Opens one.
    async fn open(&self, key: &WorkspaceKey) -> Result<Api, Problem>;

    /// Whether one that nobody asks has nothing to do by itself.
    async fn is_idle(&self, key: &WorkspaceKey, api: &Api) -> bool;

    /// Closes one.
    async fn close(&self, key: &WorkspaceKey, api: &Api);

    /// Holds workspaces that are open to the limits that their tenants have now.
    async fn apply_quotas(&self) {}
}

/// One workspace, which whoever serves it opens and closes.
pub(crate) struct One(pub(crate) Api);

#[async_trait]
impl Workspaces for One {
    fn usual(&self) -> WorkspaceKey {
        let layout = self.0.workspace.layout();
        (layout.tenant().clone(), layout.workspace().clone())
    }

    fn status(&self, key: &WorkspaceKey) -> WorkspaceStatus {
        if *key == self.usual() { WorkspaceStatus::On } else { WorkspaceStatus::Unknown }
    }

    fn all(&self) -> Vec<WorkspaceKey> {
        vec![self.usual()]
    }

    fn to_start(&self) -> Vec<WorkspaceKey> {
        Vec::new()
    }

    async fn open(&self, _: &WorkspaceKey) -> Result<Api, Problem> {
        Ok(self.0.clone())
    }

    async fn is_idle(&self, _: &WorkspaceKey, _: &Api) -> bool {
        false
    }

    async fn close(&self, _: &WorkspaceKey, _: &Api) {}
}

/// An open workspace with its routes.
struct Opened {
    app: Shared,
    router: Router,
}

/// The front of a server.
pub(crate) struct Front {
    workspaces: Arc<dyn Workspaces>,
    authenticators: Arc<[Arc<dyn Authenticator>]>,
    /// The keys of the control ledger, if the server has one.
    keys: Option<ApiKeys>,
    rates: Rates,
    lockout: Lockout,
    /// Whether workers have to show a certificate.
    certified_workers: bool,
    hosts: Vec<String>,
    host: Host<Opened>,
    closing: watch::Sender<bool>,
}

impl Front {
    pub(crate) fn new(
        workspaces: Arc<dyn Workspaces>,
        authenticators: Vec<Arc<dyn Authenticator>>,
        keys: Option<ApiKeys>,
        limits: RateLimits,
        certified_workers: bool,
        hosts: Vec<String>,
    ) -> Arc<Self> {
        let (host, closing) = (Host::default(), watch::Sender::new(false));
        let (authenticators, rates) = (authenticators.into(), Rates::new(limits));
        let lockout = Lockout::new(limits.wrong_keys);
        Arc::new(Self {
            workspaces,
            authenticators,
            keys,
            rates,
            lockout,
            certified_workers,
            hosts,
            host,
            closing,
        })
    }

    /// Answers a request, and says so in the log.
    pub(crate) async fn answer(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let request_id = request_id(&parts);
        let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
        let span = tracing::info_span!(
            "request",
            request_id = %request_id,
            %method,
            path = path.as_str(),
            tenant = field::Empty,
            workspace = field::Empty,
            run_id = field::Empty,
            task_id = field::Empty
        );
        for (name, value) in subjects(&path) {
            span.record(name, value);
        }
        let answered = async {
            let answered = match guarded(&parts.uri, &parts.headers, &self.hosts) {
                Ok(()) => self.guess_or_forward(&mut parts, body).await,
                Err(problem) => refused(problem),
            };
            let mut response = with_headers(answered);
            if let Ok(id) = HeaderValue::from_str(&request_id) {
                response.headers_mut().insert(REQUEST_ID, id);
            }
            let status = response.status().as_u16();
            match response.status().is_server_error() {
                true => tracing::warn!(status, "api.request"),
                false => tracing::info!(status, "api.request"),
            }
            response
        };
        answered.instrument(span).await
    }

    /// Answers a request unless whoever sends it guesses keys.
    async fn guess_or_forward(&self, parts: &mut Parts, body: Body) -> Response<Body> {
        let guess = parts.extensions.get::<PeerAddress>().copied().zip(may_be_guessed(parts));
        let Some((PeerAddress(from), shown)) = guess else {
            return self.forward(parts, body).await.unwrap_or_else(IntoResponse::into_response);
        };
        if let Err(problem) = self.lockout.check(from, &shown, Instant::now()) {
            return problem.into_response();
        }
        let response = self.forward(parts, body).await.unwrap_or_else(IntoResponse::into_response);
        if response.status() == StatusCode::UNAUTHORIZED
            && !self.keys.as_ref().is_some_and(|keys| keys.has_issued(&shown))
            && let Some(locked) = self.lockout.was_wrong(from, Instant::now())
        {
            tracing::warn!(address = %locked.address, wrong_keys = locked.wrong_keys, "api.locked_out");
            if let Some(keys) = &self.keys {
                keys.record_lockout(locked).await;
            }
        }
        response
    }

    async fn forward(&self, parts: &mut Parts, body: Body) -> Result<Response<Body>, Problem> {
        let named = named(&parts.uri)?;
        let who = authenticate(&self.authenticators, parts, SystemClock.now()).await;
        let from = parts.extensions.get::<PeerAddress>();
        if let (Ok(_), Some(PeerAddress(from)), Some(shown)) = (&who, from, bearer(&parts.headers)) {
            self.lockout.was_good(*from, shown);
        }
        let key = match (&named, &who) {
            (Some((key, _)), Ok(who)) if !who.identity.sees(&key.0, &key.1) => {
                return Err(unknown_workspace(key.0.as_str(), key.1.as_str()));
            }
            // A worker, a task or a sensor may have something to show that only the workspace knows.
            (Some((key, rest)), Err(problem)) if !has_own_credentials(rest) => {
                tracing::debug!(tenant = %key.0, workspace = %key.1, "api.unauthenticated");
                return Err(problem.clone());
            }
            (Some((key, _)), Ok(_)) => key.clone(),
            // A callback URL is good for the workspace that it names, and for no other.
            (Some((key, rest)), Err(_)) if is_callback(rest.path()) => key.clone(),
            (Some((key, _)), Err(_)) => self.known_or_only(key),
            (None, Ok(who)) => self.meant(who, parts.uri.path())?,
            (None, Err(_)) => self.workspaces.usual(),
        };
        match (self.workspaces.status(&key), &who) {
            (WorkspaceStatus::On, _) => {}
            (WorkspaceStatus::Off, Ok(_)) => {
                let detail = format!("{}/{} is switched off; an admin can switch it on again", key.0, key.1);
                return Err(Problem::new(Code::WorkspaceDisabled, detail));
            }
            (WorkspaceStatus::Off | WorkspaceStatus::Unknown, Err(problem)) => return Err(problem.clone()),
            (WorkspaceStatus::Unknown, Ok(_)) => {
                return Err(unknown_workspace(key.0.as_str(), key.1.as_str()));
            }
        }
        if let Some((_, rest)) = named {
            parts.uri = rest;
        }
        let span = Span::current();
        span.record("tenant", key.0.as_str()).record("workspace", key.1.as_str());
        let is_certified = parts.extensions.get::<VerifiedCertificate>().is_some();
        if self.certified_workers && !is_certified && is_of_workers(parts.uri.path()) {
            let detail = "workers of this server show a certificate of its authority: SERVO_CLIENT_CERT and \
                          SERVO_CLIENT_KEY name the files";
            return Err(Problem::new(Code::Unauthenticated, detail));
        }
        let (standing, room) = match &who {
            Ok(who) => match self.limited(who, &key, parts) {
                Ok(counted) => counted,
                Err(limited) => {
                    // Whoever asks again at once is not answered at once: a flood costs the others next to nothing.
                    tokio::time::sleep(REFUSAL_PAUSE).await;
                    let mut response = (*limited.problem).into_response();
                    limited.standing.tell(&mut response, SystemClock.now());
                    return Ok(response);
                }
            },
            // What only the workspace knows is judged by it.
            Err(_) => (None, None),
        };
        if let Ok(who) = who {
            parts.extensions.insert(who);
        }
        let opened = self.opened(&key).await?;
        let changes_limits = parts.method == Method::PATCH && changes_limits(parts.uri.path());
        let credential = Shown { method: parts.method.clone(), headers: parts.headers.clone() };
        let mut request = Request::new(body);
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = parts.uri.clone();
        *request.version_mut() = parts.version;
        *request.headers_mut() = std::mem::take(&mut parts.headers);
        *request.extensions_mut() = std::mem::take(&mut parts.extensions);
        let Ok(mut response) = routes::answer(opened.router.clone(), request).await;
        // Whoever is told of a change can rely on it.
        if changes_limits && response.status().is_success() {
            self.workspaces.apply_quotas().await;
        }
        if let Some(standing) = standing {
            standing.tell(&mut response, SystemClock.now());
        }
        let response = match &self.keys {
            Some(keys) if is_stream(&response) => {
                let refused = credential.refused(self.authenticators.clone(), keys.control().changes());
                response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(refused))))
            }
            Some(_) | None => response,
        };
        // It is in use until the last byte is sent: streams take long.
        Ok(response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _in_use = (&opened, &room);
                frame
            }))
        }))
    }

    /// Counts a request of somebody, and the stream that it may be answered with.
    fn limited(
        &self,
        who: &Authenticated,
        key: &WorkspaceKey,
        parts: &Parts,
    ) -> Result<(Option<Standing>, Option<OpenStream>), Limited> {
        let (method, path, caller) = (&parts.method, parts.uri.path(), who.caller());
        let room = self.rates.open(method, path, key, caller.clone())?;
        let standing = self.rates.take(method, path, key, caller, Instant::now())?;
        Ok((standing, room))
    }

    /// A workspace that somebody names who has credentials of a workspace. Where there is one alone, it judges them, and
    /// tells a worker that it is another.
    fn known_or_only(&self, key: &WorkspaceKey) -> WorkspaceKey {
        let is_unknown = self.workspaces.status(key) == WorkspaceStatus::Unknown;
        match self.workspaces.all().as_slice() {
            [only] if is_unknown => only.clone(),
            _ => key.clone(),
        }
    }

    /// The workspace of a request that names none.
    fn meant(&self, who: &Authenticated, path: &str) -> Result<WorkspaceKey, Problem> {
        let usual = self.workspaces.usual();
        if let Some((tenant, workspace)) = who.identity.only_workspace() {
            return Ok((tenant.clone(), workspace.clone()));
        }
        let is_about_none = !path.starts_with("/api/v1/")
            || path.starts_with("/api/v1/admin/")
            || path == "/api/v1/workspaces";
        if is_about_none || who.identity.sees(&usual.0, &usual.1) {
            return Ok(usual);
        }
        let mut seen = self
            .workspaces
            .all()
            .into_iter()
            .filter(|(tenant, workspace)| who.identity.sees(tenant, workspace));
        match (seen.next(), seen.next()) {
            (Some(only), None) => Ok(only),
            (Some(_) | None, _) => {
                let detail = "this credential is good for several workspaces, or none: name one in the address, as \
                              /api/v1/t/TENANT/w/WORKSPACE/…; servo commands take --tenant and --workspace";
                Err(Problem::new(Code::UnknownWorkspace, detail))
            }
        }
    }

    async fn opened(&self, key: &WorkspaceKey) -> Result<InUse<Opened>, Problem> {
        if *self.closing.borrow() {
            return Err(Problem::new(Code::ShuttingDown, "the server is about to end"));
        }
        let open = || async {
            let app = App::new(self.workspaces.open(key).await?);
            let router = routes::bare(app.clone());
            tracing::info!(tenant = %key.0, workspace = %key.1, "workspace.opened");
            Ok::<_, Problem>(Opened { app, router })
        };
        self.host.open(key, SystemClock.now(), open).await
    }

    /// Closes workspaces that nobody needs, and those that are switched off; to be called now and then.
    pub(crate) async fn close_idle(&self, after: Duration) {
        let after = Millis::new(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        let now = SystemClock.now();
        let is_off = |key: WorkspaceKey, opened: Arc<Opened>| async move {
            let is_off = self.workspaces.status(&key) != WorkspaceStatus::On;
            if is_off {
                opened.app.close();
            }
            is_off
        };
        self.host.close_idle(now, Millis::new(0), is_off, |key, opened| self.close_one(key, opened)).await;
        let is_idle = |key: WorkspaceKey, opened: Arc<Opened>| async move {
            key != self.workspaces.usual() && self.workspaces.is_idle(&key, &opened.app.api).await
        };
        self.host.close_idle(now, after, is_idle, |key, opened| self.close_one(key, opened)).await;
    }

    async fn close_one(&self, key: WorkspaceKey, opened: Arc<Opened>) {
        opened.app.close();
        self.workspaces.close(&key, &opened.app.api).await;
        tracing::info!(tenant = %key.0, workspace = %key.1, "workspace.closed");
    }

    /// Opens every workspace that may have something to do by itself; those that have not are closed when idle.
    pub(crate) async fn open_all(&self) {
        for key in self.workspaces.to_start() {
            if let Err(problem) = self.opened(&key).await.map(|_| ()) {
                tracing::warn!(tenant = %key.0, workspace = %key.1, %problem, "workspace.open failed");
            }
        }
    }

    /// Ends long requests: streams, and waiting for tasks.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
        for (_, opened) in self.host.all_open() {
            opened.app.close();
        }
    }

    /// Closes every workspace.
    pub(crate) async fn shutdown(&self) {
        self.host.close_all(|key, opened| self.close_one(key, opened)).await;
    }

    /// Resolves when the server is about to end.
    pub(crate) async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // The sender is in `self`, so it cannot be gone.
        let _closing = closing.wait_for(|closing| *closing).await;
    }
}

/// The run and the task that a path is about, as fields of log lines.
fn subjects(path: &str) -> impl Iterator<Item = (&'static str, &str)> {
    let segments = path.split('/');
    segments.clone().zip(segments.skip(1)).filter_map(|(of, name)| match of {
        "runs" if name.starts_with("run_") => Some(("run_id", name)),
        "tasks" if !name.is_empty() => Some(("task_id", name)),
        _ => None,
    })
}

/// Whether a path is that of limits of a tenant, or of settings that they are limits for.
fn changes_limits(path: &str) -> bool {
    let is_quotas = path.starts_with("/api/v1/admin/tenants/") && path.ends_with("/quotas");
    is_quotas || path == "/api/v1/settings"
}

/// Whether an answer goes on until somebody ends it.
fn is_stream(response: &Response<Body>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// The credential of a request whose answer is a stream.
struct Shown {
    method: Method,
    headers: HeaderMap,
}

impl Shown {
    /// Resolves when the credential is not good any more: revoked, ended or expired.
    async fn refused(self, authenticators: Arc<[Arc<dyn Authenticator>]>, mut changes: watch::Receiver<u64>) {
        let (mut parts, ()) = Request::new(()).into_parts();
        (parts.method, parts.headers) = (self.method, self.headers);
        if authenticate(&authenticators, &parts, SystemClock.now()).await.is_err() {
            // Its workspace knows it, not the server.
            return futures::future::pending().await;
        }
        loop {
            let changed = tokio::time::timeout(LOOK_AGAIN, changes.changed()).await;
            let is_closed = matches!(changed, Ok(Err(_)));
            match authenticate(&authenticators, &parts, SystemClock.now()).await {
                Err(problem) if problem.code == Code::Unauthenticated => return,
                Ok(_) | Err(_) if is_closed => return,
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// The workspace that an address names, and the address without it.
fn named(uri: &Uri) -> Result<Option<(WorkspaceKey, Uri)>, Problem> {
    let path = uri.path();
    let Some(rest) = path.strip_prefix(PREFIX) else { return Ok(None) };
    let mut segments = rest.splitn(4, '/');
    let (tenant, w, workspace) = (segments.next(), segments.next(), segments.next());
    let (Some(tenant), Some("w"), Some(workspace)) = (tenant, w, workspace) else {
        return Err(Problem::new(Code::NotFound, "an address is /api/v1/t/TENANT/w/WORKSPACE/…"));
    };
    // A name that cannot be one is that of no workspace.
    let key = match (TenantId::parse(tenant), WorkspaceId::parse(workspace)) {
        (Ok(tenant), Ok(workspace)) => (tenant, workspace),
        (Ok(_) | Err(_), _) => return Err(unknown_workspace(tenant, workspace)),
    };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let rest = format!("/api/v1/{}{query}", segments.next().unwrap_or_default());
    let rest: Uri = rest.parse().map_err(|_| Problem::invalid("address", "is not one"))?;
    Ok(Some((key, rest)))
}

/// Whether a route takes credentials that only its workspace knows.
fn has_own_credentials(rest: &Uri) -> bool {
    let path = rest.path();
    let is_push = path.starts_with("/api/v1/orchestration/sensors/") && path.ends_with("/push");
    is_push || is_of_workers(path)
}

/// The credential of a request, if it is of a kind that somebody may guess: a key or a token of the server. Tokens of
/// tasks and signatures of messages are judged by their workspace.
fn may_be_guessed(parts: &Parts) -> Option<String> {
    let shown = bearer(&parts.headers)?;
    let rest = named(&parts.uri).ok()?.map_or_else(|| parts.uri.clone(), |(_, rest)| rest);
    (!has_own_credentials(&rest) || parse_key(shown).is_some()).then(|| shown.to_owned())
}

/// Whether a path is one that workers ask for, with their keys, the tokens of tasks or callback URLs.
fn is_of_workers(path: &str) -> bool {
    path.starts_with("/api/v1/worker/") || path.starts_with("/api/v1/tasks/") || is_callback(path)
}

/// The id that a caller has given a request, or a new one.
fn request_id(parts: &Parts) -> String {
    let given = parts.headers.get(&REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_good = |id: &&str| {
        !id.is_empty() && id.len() <= MAX_REQUEST_ID_LEN && id.bytes().all(|it| it.is_ascii_graphic())
    };
    if let Some(id) = given.filter(is_good) {
        return id.to_owned();
    }
    let mut random = [0u8; 8];
    // Without chance there is no id, and the request is answered all the same.
    let _none = getrandom::fill(&mut random);
    HEXLOWER.encode(&random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_log_name_the_run_and_the_task_of_a_path() {
        let of = |path| subjects(path).collect::<Vec<_>>();
        assert_eq!(of("/api/v1/runs"), []);
        assert_eq!(of("/api/v1/t/a/w/b/runs/run_x/cancel"), [("run_id", "run_x")]);
        let both = [("run_id", "run_x"), ("task_id", "t-1")];
        assert_eq!(of("/api/v1/runs/run_x/tasks/t-1/attempts/1/logs"), both);
        assert_eq!(of("/api/v1/tasks/t-1/started"), [("task_id", "t-1")]);
        assert_eq!(of("/runs/nothing"), [], "a page of the UI is about none");
    }

    #[test]
    fn an_address_may_name_a_workspace() {
        let named = |text: &str| named(&text.parse().unwrap());
        assert!(named("/api/v1/runs").unwrap().is_none());
        let (key, rest) = named("/api/v1/t/acme/w/main/runs/x?limit=1&a=b").unwrap().unwrap();
        assert_eq!((key.0.as_str(), key.1.as_str()), ("acme", "main"));
        assert_eq!(rest.to_string(), "/api/v1/runs/x?limit=1&a=b");
        for bad in ["/api/v1/t/", "/api/v1/t/acme", "/api/v1/t/acme/main/runs", "/api/v1/t/acme/w"] {
            assert_eq!(named(bad).unwrap_err().code, Code::NotFound, "{bad}");
        }
        for bad in ["/api/v1/t/ACME/w/main/runs", "/api/v1/t/../w/main/runs", "/api/v1/t/a/w/%2e%2e/runs"] {
            assert_eq!(named(bad).unwrap_err().code, Code::UnknownWorkspace, "{bad}");
        }
    }
}
