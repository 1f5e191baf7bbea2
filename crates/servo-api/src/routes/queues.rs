//! Queues: what waits for each, and who serves it.

use axum::extract::State;
use servo_engine::why::queues;

use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::{NoQuery, Query};
use crate::problem::Problem;
use crate::views::{Queue, Queues};

/// Queues by name: those that something waits in or somebody serves, and those that a definition, a setting or a pause
/// names.
#[utoipa::path(
    get, path = "/queues", operation_id = "list_queues", tag = "admission",
    params(Wait), responses((status = 200, body = Queues), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Queues>, Problem> {
    let found = app.workspace().read(queues).await?;
    Ok(Answer(Queues { items: found.into_iter().map(Queue::from).collect() }))
}
