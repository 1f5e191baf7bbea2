//! Conflicts: requests that reused a run key for something else.

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::Query;
use crate::pages::{List, Page};
use crate::problem::Problem;
use crate::views::{Conflict, ConflictPage};

/// Query of the list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ConflictsQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
}

/// Requests that were refused because their run key names the run of another request, the newest first.
#[utoipa::path(
    get, path = "/conflicts", operation_id = "list_conflicts", tag = "runs",
    params(ConflictsQuery, Wait), responses((status = 200, body = ConflictPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<ConflictsQuery>,
) -> Result<Answer<ConflictPage>, Problem> {
    let list = List::open(&app.api.keys, "conflicts".to_owned(), query.limit, query.cursor.as_deref())?;
    let found = app.workspace().conflicts(list.place()?, list.wanted()).await?;
    let page = Page::of(found, &list, |row| row.conflicting_event_id.to_string());
    Ok(Answer(page.map(Conflict::from)))
}
