//! Health and version of the server.

use std::sync::LazyLock;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use servo_engine::Principal;
use servo_runtime::{Finding, Vital};
use utoipa::ToSchema;

use super::openapi;
use crate::access::{ANYBODY, Actor};
use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::views::Readiness;

/// How long the engine may take to answer.
const ENGINE_WITHIN: Duration = Duration::from_secs(2);

/// The server is healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
}

/// The version of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Of Servo.
    pub version: String,
}

/// The process is alive.
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "server", responses((status = 200, body = Health)))]
pub(super) async fn healthz() -> Answer<Health> {
    Answer(Health { status: "ok".to_owned() })
}

/// Whether the server is of use: deployed, its log and stores writable, its tables not behind. Names of files and errors
/// are told to those who show the token.
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "server",
    responses((status = 200, body = Readiness), (status = 503, body = Readiness), Problems)
)]
pub(super) async fn readyz(State(app): State<Shared>, Actor(principal): Actor) -> Response<Body> {
    let mut findings = vec![engine(&app).await];
    findings.extend(app.workspace().findings().await);
    let is_known = principal != Principal::user(ANYBODY);
    let readiness = Readiness::of(findings, is_known);
    let mut response = Answer(&readiness).into_response();
    if !readiness.is_ready() {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// Whether the engine itself answers.
async fn engine(app: &Shared) -> Finding {
    let problem = match app.workspace().is_open() {
        false => Some("the workspace is shut down"),
        true => match tokio::time::timeout(ENGINE_WITHIN, app.workspace().inspect(|_| ())).await {
            Ok(Ok(())) => None,
            Ok(Err(_)) => Some("the workspace is loading its state"),
            Err(_) => Some("the engine does not answer"),
        },
    };
    Finding { vital: Vital::Engine, problem: problem.map(str::to_owned), details: Vec::new() }
}

/// The version of the server.
#[utoipa::path(get, path = "/version", operation_id = "version", tag = "server", responses((status = 200, body = Version)))]
pub(super) async fn version() -> Answer<Version> {
    Answer(Version { version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// The OpenAPI document, which all workspaces of a server share.
pub(super) async fn document() -> Response<Body> {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| openapi().to_string().into());
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], TEXT.clone()).into_response()
}
