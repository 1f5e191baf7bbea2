//! The HTTP client of the API.
//!
//! ```no_run
//! # async fn example() -> Result<(), servo_api::client::ClientError> {
//! use servo_api::client::{Client, RunEvent};
//! use servo_api::views::RunBody;
//!
//! let servo = Client::new("http://127.0.0.1:8741")?;
//! let asked = RunBody { selection: "raw.flights".to_owned(), ..RunBody::default() };
//! let accepted = servo.trigger(&asked).await?;
//! let mut events = servo.follow(accepted.run_id, None);
//! while let Some(event) = events.next().await? {
//!     if let RunEvent::End(end) = event {
//!         println!("{}", end.state);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod admin;
mod admission;
mod audit;
mod backfills;
mod callback_urls;
mod conditions;
mod error;
mod lists;
mod logs;
mod notifications;
mod partitions;
mod retention;
mod runs;
mod schedules;
mod sensors;
mod settings;
mod sse;
mod streams;
mod transport;
mod worker;
mod workspace;

pub use callback_urls::CallbackClient;
pub use error::ClientError;
pub use lists::{ListOptions, all_pages, first_pages};
pub use logs::{LogEvent, LogTail, RemoteLogs};
pub use streams::{RunEvent, RunStream};
pub use transport::{Transport, TransportError};
pub use worker::LeasedTasks;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_core::{Backoff, TenantId, WorkspaceId};
use servo_store::{Timers, TokioTimers};

use crate::app::{Api, App};
use crate::routes;
use transport::{InProcess, Seeds};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Longer than any response or keep-alive takes.
const READ_WITHIN: Duration = Duration::from_secs(60);
/// Shorter than the server keeps an idle connection.
const IDLE: Duration = Duration::from_secs(30);
const INITIAL_DELAY: Duration = Duration::from_millis(20);
const MAX_DELAY: Duration = Duration::from_secs(1);
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A client of one server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    /// Builds requests.
    http: reqwest::Client,
    /// Where the routes of the workspace are.
    base: Url,
    /// Where those of the server are.
    root: Url,
    server: Arc<str>,
    /// Carries what `http` has built.
    transport: Arc<dyn Transport>,
    timers: Arc<dyn Timers>,
    seeds: Arc<Seeds>,
    access_token: Option<Arc<str>>,
    worker_key: Option<Arc<str>>,
    tokens: Arc<worker::RenewedTokens>,
    patience: Duration,
}

/// TLS options of a client: its own root certificates and client certificate.
#[derive(Clone, Default)]
pub struct ClientTls {
    /// Certificates of authorities that servers may be vouched for by, PEM.
    pub authorities: Option<Vec<u8>>,
    /// A certificate to show the server, and its private key, PEM.
    pub identity: Option<Vec<u8>>,
}

/// Secrets are never shown.
impl std::fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientTls").finish_non_exhaustive()
    }
}

impl Client {
    /// A client of the server at an address such as `http://127.0.0.1:8741`. Sends nothing yet.
    pub fn new(server: &str) -> Result<Self, ClientError> {
        Self::with_tls(server, &ClientTls::default())
    }

    /// The same with certificates of one's own.
    pub fn with_tls(server: &str, tls: &ClientTls) -> Result<Self, ClientError> {
        let address = |reason: String| ClientError::Address { text: server.to_owned(), reason };
        let mut base: Url = server.parse().map_err(|error: url::ParseError| address(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(address("it begins with http:// or https:// and the name of a host".to_owned()));
        }
        base.set_query(None);
        base.set_fragment(None);
        base.path_segments_mut()
            .map_err(|()| address("nothing can follow it".to_owned()))?
            .pop_if_empty()
            .extend(["api", "v1"]);
        let http = connections(&base, tls, READ_WITHIN).map_err(address)?;
        let server = base.as_str().trim_end_matches("/api/v1").trim_end_matches('/').into();
        let patience = Duration::from_secs(2);
        let root = base.clone();
        Ok(Self {
            transport: Arc::new(http.clone()),
            timers: Arc::new(TokioTimers::default()),
            // Clients that failed together do not come back together. Where the system has no random numbers, they may.
            seeds: Arc::new(Seeds::new(getrandom::u64().unwrap_or_default())),
            http,
            base,
            root,
            server,
            access_token: None,
            worker_key: None,
            tokens: Arc::default(),
            patience,
        })
    }

    /// Asks an interface in this process, by the same routes and with the same answers as over a network.
    pub fn in_process(api: Api) -> Result<Self, ClientError> {
        let mut client = Self::new("http://localhost")?;
        client.transport = Arc::new(InProcess(routes::assembled(App::new(api))));
        Ok(client)
    }

    /// Sends its requests by another transport, and waits between tries with other timers; the seed decides how long.
    #[must_use]
    pub fn with_transport(
        mut self,
        transport: Arc<dyn Transport>,
        timers: Arc<dyn Timers>,
        seed: u64,
    ) -> Self {
        (self.transport, self.timers) = (transport, timers);
        self.seeds = Arc::new(Seeds::new(seed));
        self
    }

    /// Shows this token with every request.
    #[must_use]
    pub fn with_access_token(mut self, token: impl Into<Arc<str>>) -> Self {
        self.access_token = Some(token.into());
        self
    }

    /// Presents this key when it leases tasks.
    #[must_use]
    pub fn with_worker_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.worker_key = Some(key.into());
        self
    }

    /// How long to retry a server that does not answer, or is unavailable; two seconds by default.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The address that was given.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Asks about this workspace, and not about the one that the credential is good for.
    #[must_use]
    pub fn with_workspace(mut self, tenant: &TenantId, workspace: &WorkspaceId) -> Self {
        self.base = self.root.clone();
        if let Ok(mut path) = self.base.path_segments_mut() {
            path.extend(["t", tenant.as_str(), "w", workspace.as_str()]);
        }
        self
    }

    fn url(&self, segments: &[&str]) -> Url {
        let is_of_server = segments.first() == Some(&"admin");
        let mut url = if is_of_server { self.root.clone() } else { self.base.clone() };
        if let Ok(mut path) = url.path_segments_mut() {
            path.extend(segments);
        }
        url
    }

    async fn get<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, ClientError> {
        let mut url = self.url(segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let response = self.send(|| self.authorized(self.http.get(url.clone()))).await?;
        self.read(response).await
    }

    /// Sends a change. It carries an idempotency key, so that it can be retried if no response came.
    async fn change<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.change_by(Method::POST, segments, body).await
    }

    /// Sends a new definition, as a change is sent.
    async fn replace<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.change_by(Method::PUT, segments, body).await
    }

    /// Sends a deletion, as a change is sent.
    async fn delete<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.change_by(Method::DELETE, segments, body).await
    }

    async fn change_by<T: DeserializeOwned>(
        &self,
        method: Method,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.change_as(method, &new_key()?, segments, body).await
    }

    /// Sends a change that is made once under a key, also if it is asked for again later.
    async fn change_once<T: DeserializeOwned>(
        &self,
        key: &str,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.change_as(Method::POST, key, segments, body).await
    }

    async fn change_as<T: DeserializeOwned>(
        &self,
        method: Method,
        key: &str,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = self.encode(body)?;
        let url = self.url(segments);
        let request = || {
            let request = self.authorized(json(self.http.request(method.clone(), url.clone()), &body));
            request.header(IDEMPOTENCY_KEY, key)
        };
        let response = self.send(request).await?;
        self.read(response).await
    }

    /// Sends a request with a body that is safe to retry.
    async fn post(
        &self,
        segments: &[&str],
        bearer: Option<&str>,
        body: &impl Serialize,
    ) -> Result<Response, ClientError> {
        let body = self.encode(body)?;
        let url = self.url(segments);
        self.send(|| {
            let request = json(self.http.post(url.clone()), &body);
            match bearer {
                Some(token) => request.bearer_auth(token),
                None => self.authorized(request),
            }
        })
        .await
    }

    /// Sends a body that is safe to send again to an address that is its own credential.
    async fn post_to(&self, url: &Url, body: &impl Serialize) -> Result<Response, ClientError> {
        let body = self.encode(body)?;
        self.send(|| json(self.http.post(url.clone()), &body)).await
    }

    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.access_token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn exchange(&self, request: RequestBuilder) -> Result<Response, TransportError> {
        self.transport.exchange(request.build()?).await
    }

    /// Sends a request until there is a final response.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Response, ClientError> {
        let deadline = self.timers.elapsed().saturating_add(self.patience);
        let mut backoff = Backoff::new(INITIAL_DELAY, MAX_DELAY, self.seeds.next());
        loop {
            let error = match self.exchange(request()).await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => {
                    let is_passing = response.status().is_server_error();
                    let error = self.problem(response).await;
                    if !is_passing {
                        return Err(error);
                    }
                    error
                }
                Err(error) => self.unreachable(error),
            };
            let pause = backoff.next_delay();
            if self.timers.elapsed() + pause > deadline {
                return Err(error);
            }
            self.timers.sleep(pause).await;
        }
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, ClientError> {
        let text = response.bytes().await.map_err(|error| self.unreachable(error))?;
        serde_json::from_slice(&text).map_err(|error| self.malformed(error.to_string()))
    }

    /// The error of a response that is not a success.
    async fn problem(&self, response: Response) -> ClientError {
        let status = response.status();
        match response.bytes().await {
            Ok(text) => match serde_json::from_slice(&text) {
                Ok(problem) => ClientError::Problem(Box::new(problem)),
                Err(_) => self.malformed(format!("status {status} without a reason")),
            },
            Err(error) => self.unreachable(error),
        }
    }

    fn encode(&self, body: &impl Serialize) -> Result<Bytes, ClientError> {
        serde_json::to_vec(body).map(Bytes::from).map_err(|error| self.malformed(error.to_string()))
    }

    fn malformed(&self, reason: String) -> ClientError {
        ClientError::Malformed { server: self.server.clone(), reason }
    }

    fn unreachable(&self, error: impl Into<TransportError>) -> ClientError {
        ClientError::unreachable(&self.server, error)
    }
}

/// Connections to a host. Redirects are not followed.
pub(crate) fn connections(
    base: &Url,
    tls: &ClientTls,
    read_within: Duration,
) -> Result<reqwest::Client, String> {
    let mut http = reqwest::Client::builder()
        .connect_timeout(CONNECT_WITHIN)
        .read_timeout(read_within)
        .pool_idle_timeout(IDLE)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true);
    if base.scheme() == "http" {
        // Certificates of the system take longer to load than most requests to answer.
        http = http.tls_certs_only([]);
    }
    if let Some(text) = tls.authorities.as_ref().filter(|_| base.scheme() == "https") {
        let certificates = reqwest::Certificate::from_pem_bundle(text);
        http = http.tls_certs_merge(certificates.map_err(|error| format!("authorities: {error}"))?);
    }
    if let Some(text) = &tls.identity {
        let identity = reqwest::Identity::from_pem(text);
        http = http.identity(identity.map_err(|error| format!("own certificate: {error}"))?);
    }
    if is_loopback(base) {
        http = http.no_proxy();
    }
    http.build().map_err(|error| error.to_string())
}

fn json(request: RequestBuilder, body: &Bytes) -> RequestBuilder {
    request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body.clone())
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// A new idempotency key.
fn new_key() -> Result<String, ClientError> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random).map_err(|error| ClientError::Random(error.to_string()))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
