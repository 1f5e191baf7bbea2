//! Automation conditions: list, explain, their evaluations, pause and resume.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use servo_core::AssetKey;
use servo_engine::{Caller, PauseCondition, Refusal};
use utoipa::IntoParams;

use super::assets::{key, partition};
use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Command, Path, Query};
use crate::pages::{Page, PageQuery};
use crate::problem::Problem;
use crate::views::{
    Accepted, Condition, ConditionEvaluation, ConditionEvaluationPage, ConditionPage, ExplainedCondition,
    PauseConditionBody,
};

/// Partitions that are explained, unless the query says otherwise.
const EXPLAINED: usize = 25;
const MOST_EXPLAINED: usize = 1_000;

/// Query of an explanation.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ExplainQuery {
    /// One partition, instead of the newest.
    partition: Option<String>,
    /// How many of the newest partitions, at most 1,000; 25 by default.
    newest: Option<usize>,
}

/// Lists the assets that have an automation condition, by key.
#[utoipa::path(
    get, path = "/orchestration/conditions", operation_id = "list_conditions", tag = "conditions",
    params(PageQuery, Wait), responses((status = 200, body = ConditionPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<PageQuery>,
) -> Result<Answer<ConditionPage>, Problem> {
    let list = query.open(&app.api.keys, "conditions".to_owned())?;
    let (after, wanted) = (list.place::<AssetKey>()?, list.wanted());
    let found = app.workspace().read(move |state| {
        let rest = state.conditions().filter(|it| after.as_ref().is_none_or(|after| it.asset > *after));
        rest.take(wanted).map(Condition::from).collect::<Vec<_>>()
    });
    Ok(Answer(Page::of(found.await?, &list, |condition| condition.asset.canonical().to_owned())))
}

/// The automation of an asset, and why its condition holds or not at this moment.
#[utoipa::path(
    get, path = "/orchestration/conditions/{namespace}/{name}", operation_id = "explain_condition",
    tag = "conditions", params(("namespace" = String, Path), ("name" = String, Path), ExplainQuery, Wait),
    responses((status = 200, body = ExplainedCondition), Problems)
)]
pub(super) async fn explain(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<ExplainQuery>,
) -> Result<Answer<ExplainedCondition>, Problem> {
    let asset = key(&namespace, &name)?;
    let newest = query.newest.unwrap_or(EXPLAINED);
    if !(1..=MOST_EXPLAINED).contains(&newest) {
        return Err(Problem::invalid("newest", format!("it is between 1 and {MOST_EXPLAINED}")));
    }
    let wanted = asset.clone();
    if !app.workspace().read(move |state| state.condition(&wanted).is_some()).await? {
        return Err(unknown(asset));
    }
    let one = match &query.partition {
        Some(text) => Some(partition(&app, &asset, text).await?),
        None => None,
    };
    let (wanted, now) = (asset.clone(), app.workspace().now());
    let found = app.workspace().read(move |state| {
        let explanation = servo_engine::conditions::explain(state, &wanted, one.as_ref(), now, newest)?;
        ExplainedCondition::new(state, explanation)
    });
    let missing = || Problem::invalid("partition", "the asset has no such partition");
    found.await?.map(Answer).ok_or_else(missing)
}

/// The evaluations that requested something of an asset, or could not, the newest first.
#[utoipa::path(
    get, path = "/orchestration/conditions/{namespace}/{name}/evaluations",
    operation_id = "list_condition_evaluations", tag = "conditions",
    params(("namespace" = String, Path), ("name" = String, Path), PageQuery, Wait),
    responses((status = 200, body = ConditionEvaluationPage), Problems)
)]
pub(super) async fn evaluations(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Result<Answer<ConditionEvaluationPage>, Problem> {
    let asset = key(&namespace, &name)?;
    let of = format!("evaluations {}", asset.canonical());
    let list = query.open(&app.api.keys, of)?;
    let found = app.workspace().condition_evaluations(&asset, list.place()?, list.wanted()).await?;
    let page = Page::of(found, &list, |row| row.row_version.to_string());
    Ok(Answer(page.map(ConditionEvaluation::from)))
}

/// Pauses the automation of an asset: its condition requests nothing.
#[utoipa::path(
    post, path = "/orchestration/conditions/{namespace}/{name}/pause", operation_id = "pause_condition",
    tag = "conditions", params(("namespace" = String, Path), ("name" = String, Path), IdempotencyKey),
    request_body = PauseConditionBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn pause(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Command { body, caller }: Command<PauseConditionBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, key(&namespace, &name)?, true, body, caller).await
}

/// Resumes the automation of an asset. What changed meanwhile is requested once.
#[utoipa::path(
    post, path = "/orchestration/conditions/{namespace}/{name}/resume", operation_id = "resume_condition",
    tag = "conditions", params(("namespace" = String, Path), ("name" = String, Path), IdempotencyKey),
    request_body = PauseConditionBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn resume(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Command { body, caller }: Command<PauseConditionBody>,
) -> Result<Response<Body>, Problem> {
    change(&app, key(&namespace, &name)?, false, body, caller).await
}

async fn change(
    app: &Shared,
    asset: AssetKey,
    paused: bool,
    body: PauseConditionBody,
    caller: Caller,
) -> Result<Response<Body>, Problem> {
    let PauseConditionBody { expected_state_version, reason, .. } = body;
    let request = PauseCondition { asset, paused, expected_state_version, reason, caller: caller.clone() };
    let work = async { Ok(Accepted::from(app.workspace().pause_condition(request).await?)) };
    app.once(caller, work, async |known| Ok(known.change().into())).await
}

fn unknown(asset: AssetKey) -> Problem {
    Refusal::UnknownCondition { asset }.into()
}
