//! The server: connections, and how they end.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::app::{Api, App, Shared};
use crate::routes;

/// Connections at once; more wait to be accepted.
const MAX_CONNECTIONS: usize = 4_096;
/// How long a request may take to say what it wants, and a connection may have nothing to say.
const HEADERS_WITHIN: Duration = Duration::from_secs(60);
/// How long requests in progress may take after a shutdown began.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until it is stopped, then ends streams, finishes requests in progress, and returns.
pub async fn serve(
    listener: TcpListener,
    api: Api,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let app = App::new(api);
    let router = routes::assembled(app.clone());
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            let permit = room.clone().acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|(stream, _)| (permit, stream))
        };
        tokio::select! {
            accepted = accepted => match accepted {
                Ok((permit, stream)) => {
                    connections.spawn(connection(permit, stream, router.clone(), app.clone()));
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
    app.close();
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, finished).await.is_err() {
        tracing::warn!("requests that did not end in time are broken off");
    }
    Ok(())
}

async fn connection(_permit: OwnedSemaphorePermit, stream: TcpStream, router: Router, app: Shared) {
    // Answers are small and somebody waits for them.
    let _unsupported = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        routes::answer(router.clone(), request.map(Body::new))
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = app.closed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "api.connection ended");
    }
}
