//! Health and version of the server.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::problem::{Code, Problem};

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

/// The workspace accepts requests.
#[utoipa::path(get, path = "/readyz", operation_id = "readyz", tag = "server", responses((status = 200, body = Health), Problems))]
pub(super) async fn readyz(State(app): State<Shared>) -> Result<Answer<Health>, Problem> {
    if !app.workspace().is_open() {
        return Err(Problem::new(Code::ShuttingDown, "the workspace is shut down"));
    }
    // Answered by the engine itself, or not at all.
    app.workspace().inspect(|_| ()).await?;
    Ok(Answer(Health { status: "ok".to_owned() }))
}

/// The version of the server.
#[utoipa::path(get, path = "/version", operation_id = "version", tag = "server", responses((status = 200, body = Version)))]
pub(super) async fn version() -> Answer<Version> {
    Answer(Version { version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// The OpenAPI document.
pub(super) fn document(description: String) -> Response<Body> {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], description).into_response()
}
