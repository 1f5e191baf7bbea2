//! Retention: what the rules do not keep any more, and its removal.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;

use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Command, NoQuery, Query};
use crate::problem::Problem;
use crate::views::{ApplyRetentionBody, Retention, RetentionApplied};

/// Previews the removals of retention. Changes nothing.
#[utoipa::path(
    get, path = "/retention", operation_id = "show_retention", tag = "settings",
    params(Wait), responses((status = 200, body = Retention), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Retention>, Problem> {
    let survey = app.workspace().survey_retention().await?;
    Ok(Answer(app.workspace().read(|state| Retention::of(&survey, state.settings())).await?))
}

/// Removes what the rules do not keep any more. Answered when that is decided; the files go a moment later.
#[utoipa::path(
    post, path = "/retention/apply", operation_id = "apply_retention", tag = "settings",
    params(IdempotencyKey), request_body = ApplyRetentionBody,
    responses((status = 202, body = RetentionApplied), Problems)
)]
pub(super) async fn apply(
    State(app): State<Shared>,
    Command { body: _, caller }: Command<ApplyRetentionBody>,
) -> Result<Response<Body>, Problem> {
    let by = caller.clone();
    let work = async {
        let (survey, change) = app.workspace().apply_retention(by).await?;
        let retention = app.workspace().read(|state| Retention::of(&survey, state.settings())).await?;
        Ok(RetentionApplied { retention, accepted: change.into() })
    };
    // The removals of that time are not known any more, only that they were made.
    let again = async |known: servo_engine::rows::AnswerEntry| {
        let survey = app.workspace().survey_retention().await?;
        let retention = app.workspace().read(|state| Retention::of(&survey, state.settings())).await?;
        Ok(RetentionApplied { retention, accepted: known.change().into() })
    };
    app.once(caller, work, again).await
}
