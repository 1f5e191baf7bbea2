//! How fresh assets are.

use axum::extract::State;
use serde::Deserialize;
use servo_core::AssetKey;
use servo_core::selection::{EvaluateError, Selection};
use servo_engine::freshness::evaluate;
use servo_engine::{FreshnessStatus, RequestError};
use utoipa::IntoParams;

use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::Query;
use crate::pages::{List, Page};
use crate::problem::{Code, Problem, Violation};
use crate::views::{AssetFreshness, AssetFreshnessPage};

/// Which assets.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FreshnessQuery {
    /// Only those that a selection means, such as `+analytics.weekly`; all by default.
    selection: Option<String>,
    /// Only those with this status: `PASS`, `WARN` or `FAIL`.
    status: Option<String>,
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
}

/// The assets that have a freshness policy, by key: how old their data is, and whether that is allowed.
#[utoipa::path(
    get, path = "/freshness", operation_id = "list_freshness", tag = "assets",
    params(FreshnessQuery, Wait), responses((status = 200, body = AssetFreshnessPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<FreshnessQuery>,
) -> Result<Answer<AssetFreshnessPage>, Problem> {
    let text = query.selection.filter(|text| text != "*");
    let selection = text.as_deref().map(Selection::parse).transpose().map_err(RequestError::Selection)?;
    let status = query.status.as_deref().map(|name| {
        let known = FreshnessStatus::from_name(&name.to_ascii_uppercase());
        known.ok_or_else(|| Problem::invalid("status", format!("there is no status {name:?}")))
    });
    let status = status.transpose()?;
    let name = format!("freshness {status:?} {}", text.unwrap_or_default());
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let after: Option<AssetKey> = list.place()?;
    let (wanted, now) = (list.wanted(), app.workspace().now());
    let found = app.workspace().read(move |state| {
        let Some(definitions) = state.checked_definitions() else { return Ok(Vec::new()) };
        let selected = selection.as_ref().map(|it| it.evaluate(definitions.graph())).transpose()?;
        let is_selected = |asset: &AssetKey| {
            let position = definitions.position(asset);
            selected.as_ref().is_none_or(|set| position.is_some_and(|it| set.contains(it as usize)))
        };
        let rest = state
            .asset_freshnesses()
            .map(|(asset, _)| asset)
            .filter(|asset| after.as_ref().is_none_or(|after| *asset > after) && is_selected(asset));
        let shown = rest.filter_map(|asset| {
            let found = evaluate(state, asset, now)?;
            Some(AssetFreshness::new(asset, &found, now))
        });
        let shown = shown.filter(|shown| status.is_none_or(|status| shown.status == status));
        Ok(shown.take(wanted).collect())
    });
    let found = found.await?.map_err(|error: EvaluateError| {
        let mut problem = Problem::new(Code::InvalidRequest, error.to_string());
        problem.violations.push(Violation { field: "selection".to_owned(), message: error.to_string() });
        problem
    })?;
    Ok(Answer(Page::of(found, &list, |asset| asset.asset_key.canonical().to_owned())))
}
