//! Planning of a request without running it.

use axum::extract::State;

use super::runs::request;
use crate::access::Actor;
use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::asset_limits::AssetLimit;
use crate::extract::Json;
use crate::problem::Problem;
use crate::views::{Plan, RunBody};

/// Plans a request for a run. Nothing is stored.
#[utoipa::path(
    post, path = "/plan", operation_id = "plan", tag = "runs",
    request_body = RunBody, responses((status = 200, body = Plan), Problems)
)]
pub(super) async fn plan(
    State(app): State<Shared>,
    Actor(principal): Actor,
    limit: AssetLimit,
    Json(body): Json<RunBody>,
) -> Result<Answer<Plan>, Problem> {
    let request = request(body, principal.into())?;
    app.current_code().await?;
    limit.check_run(&app, &request).await?;
    Ok(Answer(app.workspace().plan(request).await?.into()))
}
