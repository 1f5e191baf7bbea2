//! How requests of a client come to its server.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http;
use reqwest::{Request, Response};

use crate::access::SameProcess;
use crate::routes;

/// Carries requests to a server and brings its responses.
#[async_trait]
pub trait Transport: std::fmt::Debug + Send + Sync + 'static {
    /// The response to a request, whatever it says; an error if none came.
    async fn exchange(&self, request: Request) -> Result<Response, TransportError>;
}

/// Why no response came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransportError(pub String);

impl From<reqwest::Error> for TransportError {
    /// The root cause: the errors above it repeat the address.
    fn from(error: reqwest::Error) -> Self {
        let mut bottom: &dyn std::error::Error = &error;
        while let Some(below) = bottom.source() {
            bottom = below;
        }
        Self(bottom.to_string())
    }
}

/// Over a network.
#[async_trait]
impl Transport for reqwest::Client {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        // Addresses may be secrets.
        Ok(self.execute(request).await.map_err(reqwest::Error::without_url)?)
    }
}

/// To an interface in this process, by the same routes and with the same answers as over a network.
#[derive(Debug)]
pub(super) struct InProcess(pub(super) Router);

#[async_trait]
impl Transport for InProcess {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let request: http::Request<reqwest::Body> = request.try_into()?;
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(SameProcess);
        let Ok(response) = routes::answer(self.0.clone(), request).await;
        Ok(response.map(|body| reqwest::Body::wrap_stream(body.into_data_stream())).into())
    }
}

/// Seeds of delays between tries, another one each time.
#[derive(Debug)]
pub(super) struct Seeds {
    first: u64,
    given: AtomicU64,
}

impl Seeds {
    pub(super) fn new(first: u64) -> Self {
        Self { first, given: AtomicU64::new(0) }
    }

    pub(super) fn next(&self) -> u64 {
        self.first.wrapping_add(self.given.fetch_add(1, Ordering::Relaxed))
    }
}
