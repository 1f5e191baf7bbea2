//! Results of checks of all assets: what passed, what did not, and what was found.

use axum::extract::State;
use serde::Deserialize;
use servo_core::RunId;
use servo_projections::CheckFilter;
use utoipa::IntoParams;

use super::runs::asset;
use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::asset_limits::AssetLimit;
use crate::extract::Query;
use crate::pages::{List, Page};
use crate::problem::Problem;
use crate::views::{CheckResult, CheckResultPage};

/// Which results of checks.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChecksQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only checks of this asset, `namespace.name`.
    asset: Option<String>,
    /// Only checks of this name.
    check: Option<String>,
    /// Only checks of this partition, as people write it.
    partition: Option<String>,
    /// Only those that passed, or with `false` those that did not.
    passed: Option<bool>,
    /// Only checks of this run.
    #[param(value_type = Option<String>)]
    run_id: Option<RunId>,
}

/// Results of checks, the newest first.
#[utoipa::path(
    get, path = "/checks", operation_id = "list_checks", tag = "assets",
    params(ChecksQuery, Wait), responses((status = 200, body = CheckResultPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    limit: AssetLimit,
    Query(query): Query<ChecksQuery>,
) -> Result<Answer<CheckResultPage>, Problem> {
    let asset = query.asset.as_deref().map(asset).transpose()?;
    let partition = query.partition.as_deref();
    let filter = CheckFilter {
        assets: limit.narrowed(asset.as_ref()),
        check: query.check.clone(),
        partitions: app.meant_partitions(partition, asset.as_ref()).await?,
        passed: query.passed,
        run: query.run_id,
    };
    let name = format!("checks {asset:?} {partition:?} {filter:?}");
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let found = app.workspace().checks(list.place()?, list.wanted(), &filter).await?;
    let page = Page::of(found, &list, |(place, _)| place.to_string());
    Ok(Answer(page.map(|(_, row)| CheckResult::from(row))))
}
