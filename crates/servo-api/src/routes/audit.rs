//! The audit: who did what to what, when, and whether it was allowed.

use axum::extract::State;
use serde::Deserialize;
use servo_engine::AuditOutcome;
use servo_projections::AuditFilter;
use utoipa::IntoParams;

use super::runs::time;
use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::Query;
use crate::pages::{List, Page};
use crate::problem::Problem;
use crate::views::{Act, ActPage};

/// Query of the audit.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only acts of this principal: `user:local`, or its name alone.
    principal: Option<String>,
    /// Only this action, or all of its family: `run.cancel`, `run`.
    action: Option<String>,
    /// Only acts about a subject that begins so: a run, a project, an asset.
    subject: Option<String>,
    /// `ALLOWED` or `REFUSED`.
    outcome: Option<String>,
    /// Only acts at this time or later.
    since: Option<String>,
    /// Only acts before this time.
    until: Option<String>,
}

impl AuditQuery {
    fn filter(&self) -> Result<AuditFilter, Problem> {
        let outcome = self.outcome.as_deref().map(|name| {
            AuditOutcome::from_name(&name.to_ascii_uppercase()).ok_or_else(|| {
                Problem::invalid("outcome", format!("{name:?} is neither ALLOWED nor REFUSED"))
            })
        });
        Ok(AuditFilter {
            principal: self.principal.clone(),
            action: self.action.clone(),
            subject: self.subject.clone(),
            outcome: outcome.transpose()?,
            since: time("since", self.since.as_deref())?,
            until: time("until", self.until.as_deref())?,
        })
    }
}

/// Changes that were asked for, the newest first, allowed and refused.
#[utoipa::path(
    get, path = "/audit", operation_id = "list_audit", tag = "audit",
    params(AuditQuery, Wait), responses((status = 200, body = ActPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<AuditQuery>,
) -> Result<Answer<ActPage>, Problem> {
    let filter = query.filter()?;
    let list = List::open(&app.api.keys, format!("audit {filter:?}"), query.limit, query.cursor.as_deref())?;
    let found = app.workspace().audit(list.place()?, list.wanted(), &filter).await?;
    let page = Page::of(found, &list, |act| act.event_id.to_string());
    Ok(Answer(page.map(Act::from)))
}
