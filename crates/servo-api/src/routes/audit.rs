//! The audit: who did what to what, when, and whether it was allowed.

use axum::extract::State;
use serde::Deserialize;
use servo_access::{ControlAct, Permission};
use servo_engine::AuditOutcome;
use servo_projections::AuditFilter;
use utoipa::IntoParams;

use super::runs::time;
use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::authentication::Authenticated;
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

/// Changes of the server itself that were asked for, the newest first: keys, sessions, tenants, workspaces, quotas, and
/// what was refused. Acts about a tenant are for those who may read its audit.
#[utoipa::path(
    get, path = "/admin/audit", operation_id = "list_server_audit", tag = "admin",
    params(AuditQuery), responses((status = 200, body = ActPage), Problems)
)]
pub(super) async fn of_server(
    State(app): State<Shared>,
    who: Authenticated,
    Query(query): Query<AuditQuery>,
) -> Result<Answer<ActPage>, Problem> {
    let filter = query.filter()?;
    let name = format!("server audit {filter:?}");
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let control = app.api_keys()?.control();
    let is_wanted =
        |act: &ControlAct| filter.accepts(&act.row) && who.identity.has_in(Permission::AuditRead, &act.scope);
    let found = control.acts(list.place()?, list.wanted(), is_wanted).await?;
    let page = Page::of(found, &list, |act| act.place.to_string());
    Ok(Answer(page.map(|act| Act::from(act.row))))
}
