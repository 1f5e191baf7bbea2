//! Sensors: create, list, change, pause, resume, push, evaluate, set the cursor, delete, and their evaluations.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};
use servo_engine::evaluation::{
    Evaluation, EvaluationOutcome, EvaluationReport, EvaluationResult, RequestSpec,
};
use servo_engine::rows::SensorEvalRow;
use servo_engine::{
    Caller, EvaluatedByHand, Principal, PushMessage, Refusal, ResetCursor, SensorChange, SensorKind,
    SensorStatus,
};
use utoipa::IntoParams;

use super::named;
use super::runs::states;
use super::schedules::time;
use crate::access::{ANYBODY, Actor};
use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
use crate::etag::{Conditional, IfNoneMatch, Tagged};
use crate::extract::{Command, NoQuery, Path, Pushed, Query};
use crate::pages::{List, Page, PageQuery};
use crate::problem::{Code, Problem};
use crate::push;
use crate::views::{
    Accepted, EvaluateBody, PushBody, ResetCursorBody, Sensor, SensorBody, SensorEval, SensorEvalPage,
    SensorEvaluation, SensorPage, VersionBody,
};

/// Query of the evaluations of a sensor.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EvalsQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only evaluations at this time or later.
    since: Option<String>,
    /// Only evaluations before this time.
    until: Option<String>,
    /// Only evaluations with one of these outcomes, separated by commas: `TRIGGERED`, `NO_NEW_DATA`, `FAILED`, `STALE`.
    status: Option<String>,
}

/// Lists sensors, by name.
#[utoipa::path(
    get, path = "/orchestration/sensors", operation_id = "list_sensors", tag = "sensors",
    params(PageQuery, Wait, Conditional), responses((status = 200, body = SensorPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    if_none_match: IfNoneMatch,
    Query(query): Query<PageQuery>,
) -> Result<Tagged<SensorPage>, Problem> {
    named::list::<servo_engine::Sensor, _>(&app, "sensors", &query, if_none_match).await
}

/// Creates a sensor that no code declares: one that is told something and requests a selection.
#[utoipa::path(
    post, path = "/orchestration/sensors", operation_id = "create_sensor", tag = "sensors",
    params(IdempotencyKey), request_body = SensorBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn create(
    State(app): State<Shared>,
    Command { body, caller }: Command<SensorBody>,
) -> Result<Response<Body>, Problem> {
    let (name, expected) = (body.name.clone(), body.expected_state_version);
    named::define(&app, name, expected, SensorChange::Create(Arc::new(body.into())), caller).await
}

/// A sensor, by its name or its id.
#[utoipa::path(
    get, path = "/orchestration/sensors/{sensor}", operation_id = "get_sensor", tag = "sensors",
    params(("sensor" = String, Path), Wait, Conditional), responses((status = 200, body = Sensor), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path(name): Path<String>,
    if_none_match: IfNoneMatch,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Tagged<Sensor>, Problem> {
    named::show::<servo_engine::Sensor, _>(&app, name, if_none_match).await
}

/// Gives a sensor that was created over the API another definition. Its cursor and the messages that wait stay.
#[utoipa::path(
    put, path = "/orchestration/sensors/{sensor}", operation_id = "change_sensor", tag = "sensors",
    params(("sensor" = String, Path), IdempotencyKey), request_body = SensorBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn redefine(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<SensorBody>,
) -> Result<Response<Body>, Problem> {
    named::keeps_name::<servo_engine::Sensor>(&app, "a sensor", &name, &body.name).await?;
    let expected = body.expected_state_version;
    named::define(&app, name, expected, SensorChange::Redefine(Arc::new(body.into())), caller).await
}

/// Deletes a sensor that was created over the API. Its evaluations stay.
#[utoipa::path(
    delete, path = "/orchestration/sensors/{sensor}", operation_id = "delete_sensor", tag = "sensors",
    params(("sensor" = String, Path), IdempotencyKey), request_body = VersionBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn delete(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<VersionBody>,
) -> Result<Response<Body>, Problem> {
    named::change(&app, name, body.expected_state_version, SensorChange::Remove, caller).await
}

/// Pauses a sensor: it is not evaluated, and messages to it wait.
#[utoipa::path(
    post, path = "/orchestration/sensors/{sensor}/pause", operation_id = "pause_sensor", tag = "sensors",
    params(("sensor" = String, Path), IdempotencyKey), request_body = VersionBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn pause(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<VersionBody>,
) -> Result<Response<Body>, Problem> {
    named::change(&app, name, body.expected_state_version, SensorChange::Pause, caller).await
}

/// Resumes a sensor.
#[utoipa::path(
    post, path = "/orchestration/sensors/{sensor}/resume", operation_id = "resume_sensor", tag = "sensors",
    params(("sensor" = String, Path), IdempotencyKey), request_body = VersionBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn resume(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<VersionBody>,
) -> Result<Response<Body>, Problem> {
    named::change(&app, name, body.expected_state_version, SensorChange::Resume, caller).await
}

/// Sets the cursor of a sensor, or removes it.
#[utoipa::path(
    post, path = "/orchestration/sensors/{sensor}/reset-cursor", operation_id = "reset_sensor_cursor",
    tag = "sensors", params(("sensor" = String, Path), IdempotencyKey), request_body = ResetCursorBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn reset_cursor(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<ResetCursorBody>,
) -> Result<Response<Body>, Problem> {
    let cursor = body.cursor.map(Into::into);
    named::change(&app, name, body.expected_state_version, SensorChange::Own(ResetCursor(cursor)), caller)
        .await
}

/// Sends a message to a sensor. Answered when it is durable; the same message again changes nothing.
///
/// Takes a push of Pub/Sub, a CloudEvent in headers or in one object, a notification of S3 or SNS, or JSON with an id.
#[utoipa::path(
    post, path = "/orchestration/sensors/{sensor}/push", operation_id = "push_to_sensor", tag = "sensors",
    params(("sensor" = String, Path)), request_body = PushBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn push(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Actor(principal): Actor,
    pushed: Pushed,
) -> Result<Response<Body>, Problem> {
    let sensor = found(&app, &name).await;
    let principal = match sensor.as_ref().ok().and_then(|sensor| sensor.definition.verify.as_ref()) {
        Some(rule) => {
            let secret = push::secret(&rule.secret, app.api.project_root.as_deref())?;
            let Pushed { headers, token, body } = &pushed;
            push::verify(rule.scheme, &secret, headers, token.as_deref(), body, app.workspace().now())?;
            Principal::user("webhook")
        }
        // Whoever may not ask is not told what there is.
        None if principal == Principal::user(ANYBODY) => {
            let detail = "show the token of this server, or send to a sensor that has a secret of its own";
            return Err(Problem::new(Code::Unauthenticated, detail));
        }
        None => principal,
    };
    let sensor = sensor?;
    let message = push::read(&pushed.headers, &pushed.body)?;
    let request = PushMessage {
        sensor: sensor.id.to_string(),
        message_id: message.id.into(),
        message: message.text.into(),
        caller: principal.into(),
    };
    let accepted = Accepted::from(app.workspace().push_message(request).await?);
    Ok((StatusCode::ACCEPTED, Answer(accepted)).into_response())
}

/// Evaluates a sensor now, with a sample message if it takes any; or only shows what would happen.
#[utoipa::path(
    post, path = "/orchestration/sensors/{sensor}/evaluate", operation_id = "evaluate_sensor", tag = "sensors",
    params(("sensor" = String, Path), IdempotencyKey), request_body = EvaluateBody,
    responses((status = 200, body = SensorEvaluation), Problems)
)]
pub(super) async fn evaluate(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<EvaluateBody>,
) -> Result<Answer<SensorEvaluation>, Problem> {
    app.current_code().await?;
    let mut sensor = found(&app, &name).await?;
    if body.cursor.is_some() && !body.dry_run {
        let advice = "is for a dry run; set the cursor with reset-cursor first";
        return Err(Problem::invalid("cursor", advice));
    }
    if let Some(cursor) = &body.cursor {
        sensor.cursor = Some(cursor.as_str().into());
    }
    let evaluation = call(&app, &sensor, body.payload.as_ref())?;
    let report = match &evaluation {
        Some(evaluation) => app.workspace().evaluate(evaluation.clone()).await?,
        // Without a function it requests its selection.
        None => {
            let partition = body.payload.as_ref().and_then(|payload| payload.get("partition")?.as_str());
            let request = RequestSpec { partition: partition.map(str::to_owned), ..RequestSpec::default() };
            let result = EvaluationResult { requests: vec![request], ..EvaluationResult::default() };
            EvaluationReport { outcome: EvaluationOutcome::Returned(result), output: None }
        }
    };
    let mut view = match &report.outcome {
        EvaluationOutcome::Returned(result) => SensorEvaluation::of(&sensor, result, body.dry_run),
        EvaluationOutcome::Failed(error) => {
            let nothing = SensorEvaluation::of(&sensor, &EvaluationResult::default(), body.dry_run);
            SensorEvaluation { status: "FAILED".to_owned(), reason: Some(error.clone()), ..nothing }
        }
    };
    view.output.clone_from(&report.output);
    if body.dry_run {
        preview(&app, &sensor, &report, &mut view).await?;
        return Ok(Answer(view));
    }
    apply(&app, &sensor, evaluation, report, caller, &mut view).await?;
    Ok(Answer(view))
}

/// The evaluations of a sensor, the newest first.
#[utoipa::path(
    get, path = "/orchestration/sensors/{sensor}/evals", operation_id = "list_sensor_evals", tag = "sensors",
    params(("sensor" = String, Path), EvalsQuery, Wait), responses((status = 200, body = SensorEvalPage), Problems)
)]
pub(super) async fn evals(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Query(query): Query<EvalsQuery>,
) -> Result<Answer<SensorEvalPage>, Problem> {
    let statuses = states(query.status.as_deref(), SensorStatus::from_name)?;
    let (since, until) = (time("since", query.since.as_deref())?, time("until", query.until.as_deref())?);
    let id = named::id::<servo_engine::Sensor>(&app, name).await?;
    let list_name = format!("evals {id} {since:?} {until:?} {statuses:?}");
    let list = List::open(&app.api.keys, list_name, query.limit, query.cursor.as_deref())?;
    let accepts = |row: &SensorEvalRow| {
        (statuses.is_empty() || statuses.contains(&row.status))
            && since.is_none_or(|since| row.evaluated_at >= since)
            && until.is_none_or(|until| row.evaluated_at < until)
    };
    let found = app.workspace().sensor_evals(id, list.place()?, list.wanted(), accepts).await?;
    let page = Page::of(found, &list, |row| row.row_version.to_string());
    Ok(Answer(page.map(SensorEval::from)))
}

/// The call that an evaluation by hand makes; none if the sensor has no function.
fn call(
    app: &Shared,
    sensor: &servo_engine::Sensor,
    payload: Option<&Value>,
) -> Result<Option<Evaluation>, Problem> {
    let id = app.workspace().new_evaluation_id();
    let message_id = format!("manual_{id}");
    let message = match (sensor.definition.kind(), payload) {
        (SensorKind::Poll, Some(_)) => {
            return Err(Problem::invalid("payload", "the sensor polls: it is given a cursor and no message"));
        }
        (SensorKind::Poll, None) => None,
        (SensorKind::Push, payload) => Some(json!({"id": message_id, "data": payload})),
        (kind @ (SensorKind::Asset | SensorKind::Run), payload) => {
            let mut message = payload.cloned().unwrap_or_else(|| json!({}));
            let Some(fields) = message.as_object_mut() else {
                return Err(Problem::invalid("payload", "is an object"));
            };
            fields.insert("id".to_owned(), message_id.into());
            fields.insert("kind".to_owned(), kind.name().into());
            Some(message)
        }
    };
    let message = message.map(|message| message.to_string().into());
    Ok(sensor.call(id, message, app.workspace().now()))
}

/// Says what the requests of an evaluation would become.
async fn preview(
    app: &Shared,
    sensor: &servo_engine::Sensor,
    report: &EvaluationReport,
    view: &mut SensorEvaluation,
) -> Result<(), Problem> {
    let EvaluationOutcome::Returned(result) = &report.outcome else { return Ok(()) };
    let (sensor, result, now) = (sensor.clone(), result.clone(), app.workspace().now());
    let planned = app.workspace().read(move |state| sensor.preview(state, &result, now)).await?;
    for (planned, shown) in planned.into_iter().zip(&mut view.requests) {
        match planned {
            Ok(tasks) => shown.tasks = Some(tasks as u64),
            Err(problem) => shown.problem = Some(problem),
        }
    }
    Ok(())
}

/// Records an evaluation by hand, with its runs.
async fn apply(
    app: &Shared,
    sensor: &servo_engine::Sensor,
    evaluation: Option<Evaluation>,
    report: EvaluationReport,
    caller: Caller,
    view: &mut SensorEvaluation,
) -> Result<(), Problem> {
    let subject = servo_engine::evaluation::Subject::Sensor(sensor.id);
    let id = evaluation.as_ref().map_or_else(|| app.workspace().new_evaluation_id(), |it| it.evaluation_id);
    let command = EvaluatedByHand {
        sensor: sensor.id.to_string(),
        evaluation_id: id,
        expected_state_version: sensor.state_version,
        report,
        stored_keys: BTreeMap::new(),
        caller,
    };
    app.workspace().evaluated_by_hand(subject, command).await?;
    let recorded = app
        .workspace()
        .read(move |state| state.recent_evals().find(|row| row.evaluation_id == Some(id)).cloned());
    if let Some(row) = recorded.await? {
        view.status = row.status.to_string();
        view.reason = row.reason;
        for (shown, run) in view.requests.iter_mut().zip(&row.runs.0) {
            shown.run_id = Some(run.run_id);
        }
    }
    Ok(())
}

async fn found(app: &Shared, name: &str) -> Result<servo_engine::Sensor, Problem> {
    let wanted = name.to_owned();
    let found = app.workspace().read(move |state| state.sensor(&wanted).cloned()).await?;
    Ok(found.ok_or_else(|| Refusal::UnknownSensor { name: name.to_owned() })?)
}
