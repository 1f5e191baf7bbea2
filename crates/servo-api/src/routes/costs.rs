//! Costs of attempts.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use axum::extract::State;
use serde::Deserialize;
use servo_core::selection::{EvaluateError, Selection};
use servo_core::{AssetKey, Millis};
use servo_engine::RequestError;
use servo_projections::{CostFilter, CostGroup as Group, CostSum as Sum};
use utoipa::IntoParams;

use super::runs::time;
use crate::answer::{Answer, Problems, Wait};
use crate::app::{App, Shared};
use crate::asset_limits::AssetLimit;
use crate::extract::Query;
use crate::pages::{List, Page};
use crate::problem::Problem;
use crate::views::{CostGroup, CostSum, Costs, CostsBy};

const DAY: Millis = Millis::from_hours(24);
/// Days that are counted unless the request says since when.
const USUAL_DAYS: u64 = 30;
/// Days that are counted at most: a question is answered from the rows of all of them.
const MOST_DAYS: u64 = 366;

/// Query of costs.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CostsQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// The grouping: `asset` by default, `day` or `run`.
    #[serde(default)]
    by: CostsBy,
    /// Only the deployed assets of this selection.
    selection: Option<String>,
    /// Only attempts that ended at this time or later; 30 days before the end by default, at most 366.
    since: Option<String>,
    /// Only attempts that ended before this time; now by default.
    until: Option<String>,
}

/// Costs of the attempts that ended in some time, failed ones too: totals by asset, day or run, the dearest first, days the
/// newest first.
#[utoipa::path(
    get, path = "/costs", operation_id = "list_costs", tag = "runs",
    params(CostsQuery, Wait), responses((status = 200, body = Costs), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    limit: AssetLimit,
    Query(query): Query<CostsQuery>,
) -> Result<Answer<Costs>, Problem> {
    if query.by == CostsBy::Run {
        limit.check_everything()?;
    }
    let name = format!("costs {:?} {:?} {:?} {:?}", query.by, query.selection, query.since, query.until);
    let list = List::open(&app.api.keys, name, query.limit, query.cursor.as_deref())?;
    let until = time("until", query.until.as_deref())?.unwrap_or_else(|| {
        // What ends now is counted.
        app.workspace().now().saturating_add(Millis::new(1))
    });
    let usual = || until.saturating_sub(DAY.saturating_mul(USUAL_DAYS));
    let since = time("since", query.since.as_deref())?.unwrap_or_else(usual);
    if until.since(since) > DAY.saturating_mul(MOST_DAYS) {
        let problem = format!("{since} is more than {MOST_DAYS} days before {until}; ask for a part of them");
        return Err(Problem::invalid("since", problem));
    }
    let assets = assets(&app, &limit, query.selection.as_deref()).await?;
    let filter = CostFilter { assets, since: Some(since), until: Some(until) };
    let found = app.workspace().costs(&filter, query.by.into()).await?;
    let mut total = Sum::default();
    found.values().for_each(|sum| total.add(sum));
    let mut groups: Vec<(Group, Sum)> = found.into_iter().collect();
    match query.by {
        CostsBy::Day => groups.reverse(),
        CostsBy::Asset | CostsBy::Run => groups.sort_by_key(|(_, sum)| Reverse(sum.total)),
    }
    // Groups have no place of their own: what they cost grows while somebody turns pages.
    let first: usize = list.place()?.unwrap_or_default();
    let page = groups.into_iter().skip(first).take(list.wanted()).collect();
    let page = Page::of(page, &list, |_| (first + list.limit).to_string()).map(CostGroup::from);
    Ok(Answer(Costs {
        by: query.by,
        since,
        until,
        total: CostSum::from(total),
        items: page.items,
        next_cursor: page.next_cursor,
    }))
}

/// The assets whose costs are asked for; none for all.
async fn assets(
    app: &App,
    limit: &AssetLimit,
    selection: Option<&str>,
) -> Result<Option<BTreeSet<AssetKey>>, Problem> {
    let Some(text) = selection.filter(|text| *text != "*") else { return Ok(limit.narrowed(None)) };
    let selection = Selection::parse(text).map_err(RequestError::Selection)?;
    let selected = app.workspace().read(move |state| {
        let Some(definitions) = state.checked_definitions() else { return Ok(BTreeSet::new()) };
        let set = selection.evaluate(definitions.graph())?;
        Ok(definitions.graph().keys(&set).cloned().collect())
    });
    let selected: Result<BTreeSet<AssetKey>, EvaluateError> = selected.await?;
    let mut selected = selected.map_err(|error| Problem::invalid("selection", error.to_string()))?;
    selected.retain(|asset| limit.has(asset));
    Ok(Some(selected))
}
