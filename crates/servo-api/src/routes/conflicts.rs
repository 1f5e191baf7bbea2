//! Conflicts: requests that reused a run key for something else.

use axum::extract::State;

use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::Query;
use crate::pages::{Page, PageQuery};
use crate::problem::Problem;
use crate::views::{Conflict, ConflictPage};

/// Requests that were refused because their run key names the run of another request, the newest first.
#[utoipa::path(
    get, path = "/conflicts", operation_id = "list_conflicts", tag = "runs",
    params(PageQuery, Wait), responses((status = 200, body = ConflictPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<PageQuery>,
) -> Result<Answer<ConflictPage>, Problem> {
    let list = query.open(&app.api.keys, "conflicts".to_owned())?;
    let found = app.workspace().conflicts(list.place()?, list.wanted()).await?;
    let page = Page::of(found, &list, |row| row.conflicting_event_id.to_string());
    Ok(Answer(page.map(Conflict::from)))
}
