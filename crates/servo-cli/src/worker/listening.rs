//! A worker that waits to be called: the address that it listens at, and its certificate.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use servo_api::{Certificate, PUSH_PATH, WorkerEndpoint, serve_worker};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Where a worker is called, if it is.
#[derive(clap::Args)]
pub(super) struct ListenOptions {
    /// Address to be called at by queues of [queues] in serve.toml, instead of asking for tasks.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Certificate chain in PEM for that address; it is read again when it changes.
    #[arg(long, value_name = "FILE", requires = "listen", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl ListenOptions {
    /// Takes the address, so that it is said at once if it cannot be had.
    pub(super) async fn listen(&self) -> anyhow::Result<Option<Listening>> {
        let Some(listen) = self.listen else { return Ok(None) };
        let certificate = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Certificate::read(certificate, key)?),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                bail!("--tls-cert and --tls-key belong together; give both or none")
            }
        };
        let listener = TcpListener::bind(listen).await.with_context(|| format!("listening on {listen}"))?;
        let at = listener.local_addr()?;
        if !at.ip().is_loopback() && certificate.is_none() {
            tracing::warn!(
                "tasks are sent in plain text to {at}; give the worker a certificate, or put something with TLS before it"
            );
        }
        Ok(Some(Listening { listener, certificate, at }))
    }
}

/// An address that is taken, where nobody answers yet.
pub(super) struct Listening {
    listener: TcpListener,
    certificate: Option<Certificate>,
    at: SocketAddr,
}

impl Listening {
    /// Answers calls from now on.
    pub(super) fn serve(self, endpoint: Arc<WorkerEndpoint>) -> Serving {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}{PUSH_PATH}", self.at);
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async {
                let _dropped = stopped.await;
            };
            if let Err(error) = serve_worker(self.listener, endpoint, self.certificate, stopped).await {
                tracing::error!(%error, "worker.listen ended");
            }
        });
        Serving { url, stop, task }
    }
}

/// A worker that answers calls.
pub(super) struct Serving {
    url: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Where it is called.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Gives back what nobody has begun, and takes no more calls.
    pub(super) async fn stop(self) {
        drop(self.stop);
        let _panicked = self.task.await;
    }
}
