//! The server: connections, and how they end.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use servo_oidc::Provider;
use servo_queue::Keyring;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::app::{Api, chain};
use crate::authentication::{ApiKeys, Authenticator};
use crate::front::{Front, One, PeerAddress, VerifiedCertificate, Workspaces};
use crate::rates::RateLimits;
use crate::tls::{Certificate, ClientAuthority};
use crate::write_timeout::WriteTimeout;

/// Connections at once; more wait to be accepted.
const MAX_CONNECTIONS: usize = 4_096;
/// How long a request may take to say what it wants, and a connection may have nothing to say.
const HEADERS_WITHIN: Duration = Duration::from_secs(60);
/// Headers of a request, and how long all of them may be together.
const MAX_HEADERS: usize = 100;
const MAX_HEAD: usize = 256 << 10;
/// How long a client of a server of one workspace may read nothing.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the handshake of TLS may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// How long requests in progress may take after a shutdown began.
const GRACE: Duration = Duration::from_secs(10);
/// How often it is looked for workspaces that nobody needs, and for another certificate.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Answers the requests of connections.
pub(crate) trait Answers: Send + Sync + 'static {
    /// Answers one request.
    fn answer(self: Arc<Self>, request: Request<Body>) -> impl Future<Output = Response<Body>> + Send;

    /// Ends long requests: no more connections are accepted.
    fn close(&self);

    /// Resolves when it is closed.
    fn closed(&self) -> impl Future<Output = ()> + Send;
}

impl Answers for Front {
    async fn answer(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        Self::answer(self, request).await
    }

    fn close(&self) {
        Self::close(self);
    }

    async fn closed(&self) {
        Self::closed(self).await;
    }
}

/// Configuration of a server of many workspaces.
pub struct Served {
    /// The workspaces.
    pub workspaces: Arc<dyn Workspaces>,
    /// Secret by which whoever runs the server is known.
    pub access_token: Option<Arc<str>>,
    /// API keys.
    pub api_keys: Option<ApiKeys>,
    /// Signs sessions of browsers.
    pub session_keys: Keyring,
    /// The identity provider that callers log in with, if there is one.
    pub oidc: Option<Provider>,
    /// Authenticators of other kinds, which are asked in turn after those for the token, keys and sessions.
    pub authenticators: Vec<Arc<dyn Authenticator>>,
    /// How often callers may ask.
    pub limits: RateLimits,
    /// Host names besides those of the loopback that requests may address.
    pub hosts: Vec<String>,
    /// The certificate; without one it is plain HTTP.
    pub certificate: Option<Certificate>,
    /// Who vouches for the certificates that workers have to show then; without one they show none.
    pub worker_authority: Option<ClientAuthority>,
    /// How long a workspace that nobody uses stays open.
    pub idle_after: Duration,
    /// How long a client may read nothing of an answer or a stream before it is broken off.
    pub write_timeout: Duration,
}

/// Serves one workspace until it is stopped, then ends streams, finishes requests in progress, and returns. The workspace
/// stays open.
pub async fn serve(
    listener: TcpListener,
    api: Api,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (authenticators, hosts) = (api.chain(), api.hosts.clone());
    let keys = api.api_keys.clone();
    let front = Front::new(Arc::new(One(api)), authenticators, keys, RateLimits::NONE, false, hosts);
    accept(listener, None, &front, WRITE_TIMEOUT, shutdown).await
}

/// Serves many workspaces until it is stopped, and closes them then.
pub async fn serve_many(
    listener: TcpListener,
    served: Served,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let Served {
        workspaces,
        access_token,
        api_keys,
        session_keys,
        oidc,
        authenticators,
        limits,
        hosts,
        certificate,
        worker_authority,
        idle_after,
        write_timeout,
    } = served;
    let all = chain(access_token.as_ref(), api_keys.as_ref(), &session_keys, oidc.as_ref(), &authenticators);
    let front = Front::new(workspaces, all, api_keys, limits, worker_authority.is_some(), hosts);
    let acceptor = certificate.as_ref().map(|it| it.acceptor(worker_authority.as_ref()));
    let acceptor = acceptor.transpose().map_err(io::Error::other)?;
    let looking = tokio::spawn(look(front.clone(), idle_after));
    let certificates = tokio::spawn(watch_certificate(certificate));
    let served = accept(listener, acceptor, &front, write_timeout, shutdown).await;
    certificates.abort();
    looking.abort();
    let _aborted = looking.await;
    front.shutdown().await;
    served
}

/// Opens what has something to do, and from then on closes what nobody needs.
async fn look(front: Arc<Front>, idle_after: Duration) {
    front.open_all().await;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        front.close_idle(idle_after).await;
    }
}

/// Reads a certificate again when its files have changed.
pub(crate) async fn watch_certificate(certificate: Option<Certificate>) -> Infallible {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match certificate.as_ref().map(Certificate::reload) {
            Some(Ok(true)) => tracing::info!("tls.certificate read again"),
            Some(Err(error)) => {
                tracing::warn!(%error, "tls.certificate cannot be used; the one before stays")
            }
            Some(Ok(false)) | None => {}
        }
    }
}

/// Answers connections until it is stopped, and those that there are then for a little longer.
pub(crate) async fn accept<A: Answers>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    front: &Arc<A>,
    write_timeout: Duration,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            let permit = room.clone().acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|(stream, from)| (permit, stream, PeerAddress(from.ip())))
        };
        tokio::select! {
            accepted = accepted => match accepted {
                Ok((permit, stream, from)) => {
                    // Answers are small and somebody waits for them.
                    let _unsupported = stream.set_nodelay(true);
                    // Below TLS: whoever does not read is broken off, whatever it is for.
                    let stream = WriteTimeout::new(stream, write_timeout);
                    connections.spawn(connection(permit, stream, from, tls.clone(), front.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: some will be given back.
                    tracing::warn!(%error, "api.accept failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    front.close();
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, finished).await.is_err() {
        tracing::warn!("requests that did not end in time are broken off");
    }
    Ok(())
}

async fn connection<A: Answers>(
    permit: OwnedSemaphorePermit,
    stream: WriteTimeout<TcpStream>,
    from: PeerAddress,
    tls: Option<TlsAcceptor>,
    front: Arc<A>,
) {
    let Some(tls) = tls else { return answer(permit, stream, from, None, front).await };
    match tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let certificate = stream.get_ref().1.peer_certificates().map(|_| VerifiedCertificate);
            answer(permit, stream, from, certificate, front).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "tls.handshake failed"),
        Err(_) => tracing::debug!("tls.handshake took too long"),
    }
}

async fn answer<A: Answers>(
    _permit: OwnedSemaphorePermit,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    from: PeerAddress,
    certificate: Option<VerifiedCertificate>,
    front: Arc<A>,
) {
    let asked = front.clone();
    let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(from);
        if let Some(certificate) = certificate {
            request.extensions_mut().insert(certificate);
        }
        let answered = asked.clone().answer(request.map(Body::new));
        async { Ok::<_, Infallible>(answered.await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN);
    server.max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = front.closed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "api.connection ended");
    }
}
