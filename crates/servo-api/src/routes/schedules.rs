//! Schedules: create, list, change, pause, resume, trigger, preview, delete, and their ticks.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use servo_core::Timestamp;
use servo_engine::evaluation::{EvaluationOutcome, EvaluationResult};
use servo_engine::rows::ScheduleTickRow;
use servo_engine::{Named, Refusal, ScheduleChange, TickStatus, TriggerSchedule};
use utoipa::IntoParams;

use super::named;
use super::runs::states;
use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
use crate::etag::{Conditional, IfNoneMatch, Tagged};
use crate::extract::{Command, NoQuery, Path, Query};
use crate::pages::{List, Page, PageQuery};
use crate::problem::Problem;
use crate::views::{
    Accepted, AcceptedRun, NextTicks, Schedule, ScheduleBody, SchedulePage, Tick, TickPage,
    TriggerScheduleBody, VersionBody, texts,
};

const DEFAULT_PREVIEW: usize = 10;
const MAX_PREVIEW: usize = 1_000;

/// Query of the ticks of a schedule.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TicksQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
    /// Only ticks that were due at this time or later.
    since: Option<String>,
    /// Only ticks that were due before this time.
    until: Option<String>,
    /// Only ticks with one of these outcomes, separated by commas: `TRIGGERED`, `SKIPPED`, `FAILED`.
    status: Option<String>,
}

/// Query of a preview.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PreviewQuery {
    /// How many ticks, at most 1,000; 10 by default.
    n: Option<usize>,
    /// After which time; now unless given.
    after: Option<String>,
}

/// Lists schedules, by name.
#[utoipa::path(
    get, path = "/orchestration/schedules", operation_id = "list_schedules", tag = "schedules",
    params(PageQuery, Wait, Conditional), responses((status = 200, body = SchedulePage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    if_none_match: IfNoneMatch,
    Query(query): Query<PageQuery>,
) -> Result<Tagged<SchedulePage>, Problem> {
    named::list::<servo_engine::Schedule, _>(&app, "schedules", &query, if_none_match).await
}

/// Creates a schedule that no code declares.
#[utoipa::path(
    post, path = "/orchestration/schedules", operation_id = "create_schedule", tag = "schedules",
    params(IdempotencyKey), request_body = ScheduleBody, responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn create(
    State(app): State<Shared>,
    Command { body, caller }: Command<ScheduleBody>,
) -> Result<Response<Body>, Problem> {
    let (name, expected) = (body.name.clone(), body.expected_state_version);
    named::define(&app, name, expected, ScheduleChange::Create(Arc::new(body.into())), caller).await
}

/// A schedule, by its name or its id.
#[utoipa::path(
    get, path = "/orchestration/schedules/{schedule}", operation_id = "get_schedule", tag = "schedules",
    params(("schedule" = String, Path), Wait, Conditional), responses((status = 200, body = Schedule), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path(name): Path<String>,
    if_none_match: IfNoneMatch,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Tagged<Schedule>, Problem> {
    named::show::<servo_engine::Schedule, _>(&app, name, if_none_match).await
}

/// Gives a schedule that was created over the API another definition.
#[utoipa::path(
    put, path = "/orchestration/schedules/{schedule}", operation_id = "change_schedule", tag = "schedules",
    params(("schedule" = String, Path), IdempotencyKey), request_body = ScheduleBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn redefine(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<ScheduleBody>,
) -> Result<Response<Body>, Problem> {
    named::keeps_name::<servo_engine::Schedule>(&app, "a schedule", &name, &body.name).await?;
    let expected = body.expected_state_version;
    named::define(&app, name, expected, ScheduleChange::Redefine(Arc::new(body.into())), caller).await
}

/// Deletes a schedule that was created over the API. Its ticks stay.
#[utoipa::path(
    delete, path = "/orchestration/schedules/{schedule}", operation_id = "delete_schedule", tag = "schedules",
    params(("schedule" = String, Path), IdempotencyKey), request_body = VersionBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn delete(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<VersionBody>,
) -> Result<Response<Body>, Problem> {
    named::change(&app, name, body.expected_state_version, ScheduleChange::Remove, caller).await
}

/// Pauses a schedule: its ticks are recorded as skipped.
#[utoipa::path(
    post, path = "/orchestration/schedules/{schedule}/pause", operation_id = "pause_schedule", tag = "schedules",
    params(("schedule" = String, Path), IdempotencyKey), request_body = VersionBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn pause(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<VersionBody>,
) -> Result<Response<Body>, Problem> {
    named::change(&app, name, body.expected_state_version, ScheduleChange::Pause, caller).await
}

/// Resumes a schedule.
#[utoipa::path(
    post, path = "/orchestration/schedules/{schedule}/resume", operation_id = "resume_schedule", tag = "schedules",
    params(("schedule" = String, Path), IdempotencyKey), request_body = VersionBody,
    responses((status = 202, body = Accepted), Problems)
)]
pub(super) async fn resume(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Command { body, caller }: Command<VersionBody>,
) -> Result<Response<Body>, Problem> {
    named::change(&app, name, body.expected_state_version, ScheduleChange::Resume, caller).await
}

/// Makes a tick now, beside those by the clock.
#[utoipa::path(
    post, path = "/orchestration/schedules/{schedule}/trigger", operation_id = "trigger_schedule",
    tag = "schedules", params(("schedule" = String, Path), IdempotencyKey), request_body = TriggerScheduleBody,
    responses((status = 202, body = AcceptedRun), Problems)
)]
pub(super) async fn trigger(
    State(app): State<Shared>,
    Path(schedule): Path<String>,
    Command { body, caller }: Command<TriggerScheduleBody>,
) -> Result<Response<Body>, Problem> {
    let (partitions, config) = (body.partitions.into(), texts(&body.config));
    let work = async {
        app.current_code().await?;
        let evaluated = evaluated(&app, &schedule).await?;
        let stored_keys = BTreeMap::new();
        let request =
            TriggerSchedule { schedule, partitions, config, evaluated, stored_keys, caller: caller.clone() };
        let reply = app.workspace().trigger_schedule(request).await?;
        let tasks = app.workspace().run_row(reply.run_id).await?.map_or(0, |row| u64::from(row.tasks_total));
        Ok(AcceptedRun { run_id: reply.run_id, tasks, accepted: Accepted::by(reply.accepted) })
    };
    app.once(caller.clone(), work, async |known| app.accepted_again(known).await).await
}

/// The next ticks of a schedule.
#[utoipa::path(
    get, path = "/orchestration/schedules/{schedule}/preview", operation_id = "preview_schedule",
    tag = "schedules", params(("schedule" = String, Path), PreviewQuery, Wait),
    responses((status = 200, body = NextTicks), Problems)
)]
pub(super) async fn preview(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Query(query): Query<PreviewQuery>,
) -> Result<Answer<NextTicks>, Problem> {
    let count = query.n.unwrap_or(DEFAULT_PREVIEW);
    if !(1..=MAX_PREVIEW).contains(&count) {
        return Err(Problem::invalid("n", format!("{count} is not between 1 and {MAX_PREVIEW}")));
    }
    let after = time("after", query.after.as_deref())?.unwrap_or_else(|| app.workspace().now());
    let wanted = name.clone();
    let found = app.workspace().read(move |state| {
        let schedule = state.schedule(&wanted)?;
        let ticks = state.next_ticks(schedule, after, count);
        Some(ticks.map(|ticks| NextTicks {
            schedule: schedule.name.to_string(),
            cron: schedule.definition.cron.to_string(),
            timezone: schedule.definition.zone().to_owned(),
            ticks,
        }))
    });
    match found.await? {
        Some(Ok(next)) => Ok(Answer(next)),
        Some(Err(problem)) => Err(Problem::invalid("schedule", problem)),
        None => Err(servo_engine::Schedule::unknown(name).into()),
    }
}

/// The ticks of a schedule, the newest first.
#[utoipa::path(
    get, path = "/orchestration/schedules/{schedule}/ticks", operation_id = "list_schedule_ticks",
    tag = "schedules", params(("schedule" = String, Path), TicksQuery, Wait),
    responses((status = 200, body = TickPage), Problems)
)]
pub(super) async fn ticks(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Query(query): Query<TicksQuery>,
) -> Result<Answer<TickPage>, Problem> {
    let statuses = states(query.status.as_deref(), TickStatus::from_name)?;
    let (since, until) = (time("since", query.since.as_deref())?, time("until", query.until.as_deref())?);
    let id = named::id::<servo_engine::Schedule>(&app, name).await?;
    let list_name = format!("ticks {id} {since:?} {until:?} {statuses:?}");
    let list = List::open(&app.api.keys, list_name, query.limit, query.cursor.as_deref())?;
    let accepts = |row: &ScheduleTickRow| {
        (statuses.is_empty() || statuses.contains(&row.status))
            && since.is_none_or(|since| row.scheduled_for >= since)
            && until.is_none_or(|until| row.scheduled_for < until)
    };
    let found = app.workspace().schedule_ticks(id, list.place()?, list.wanted(), accepts).await?;
    let page = Page::of(found, &list, |row| row.row_version.to_string());
    Ok(Answer(page.map(Tick::from)))
}

/// The result of the function of a schedule for a tick now; none if it has no function.
async fn evaluated(app: &Shared, schedule: &str) -> Result<Option<EvaluationResult>, Problem> {
    let (wanted, id, now) = (schedule.to_owned(), app.workspace().new_evaluation_id(), app.workspace().now());
    let call = app.workspace().read(move |state| {
        let schedule = state.schedule(&wanted)?;
        state.schedule_call(schedule, id, now)
    });
    let Some(call) = call.await? else { return Ok(None) };
    match app.workspace().evaluate(call).await?.outcome {
        EvaluationOutcome::Returned(result) => Ok(Some(result)),
        EvaluationOutcome::Failed(problem) => {
            Err(Refusal::CannotTrigger { name: schedule.to_owned(), problem }.into())
        }
    }
}

pub(super) fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let read =
        |text: &str| text.parse::<Timestamp>().map_err(|error| Problem::invalid(field, error.to_string()));
    text.map(read).transpose()
}
