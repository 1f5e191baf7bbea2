//! The code that a server runs.

use axum::extract::State;

use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::extract::{NoQuery, Query};
use crate::problem::Problem;
use crate::routes::Health;

/// Answers when the code that was saved before is what the server runs, and with the problem if it cannot be loaded.
#[utoipa::path(
    get, path = "/code", operation_id = "current_code", tag = "deployments",
    responses((status = 200, body = Health), Problems)
)]
pub(super) async fn current(
    State(app): State<Shared>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Health>, Problem> {
    app.current_code().await?;
    Ok(Answer(Health { status: "ok".to_owned() }))
}
