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
use servo_engine::{Caller, ChangeSchedule, Refusal, ScheduleChange, TickStatus, TriggerSchedule};
use utoipa::IntoParams;

use super::runs::states;
use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Command, NoQuery, Path, Query};
use crate::pages::{List, Page};
use crate::problem::Problem;
use crate::views::{
    Accepted, AcceptedRun, NextTicks, Schedule, ScheduleBody, SchedulePage, Tick, TickPage,
    TriggerScheduleBody, VersionBody, texts,
};

const DEFAULT_PREVIEW: usize = 10;
const MAX_PREVIEW: usize = 1_000;

/// Query of the list of schedules.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SchedulesQuery {
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
}

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
    params(SchedulesQuery, Wait), responses((status = 200, body = SchedulePage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<SchedulesQuery>,
) -> Result<Answer<SchedulePage>, Problem> {
    let list = List::open(&app.api.keys, "schedules".to_owned(), query.limit, query.cursor.as_deref())?;
    let (after, wanted) = (list.after.clone(), list.wanted());
    let found = app.workspace().read(move |state| {
        let rest = state.schedules().filter(|it| after.as_deref().is_none_or(|after| &*it.name > after));
        rest.take(wanted).map(Schedule::from).collect::<Vec<_>>()
    });
    Ok(Answer(Page::of(found.await?, &list, |schedule| schedule.name.clone())))
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
    change(&app, name, expected, ScheduleChange::Create(Arc::new(body.into())), caller).await
}

/// A schedule, by its name or its id.
#[utoipa::path(
    get, path = "/orchestration/schedules/{schedule}", operation_id = "get_schedule", tag = "schedules",
    params(("schedule" = String, Path), Wait), responses((status = 200, body = Schedule), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Schedule>, Problem> {
    let wanted = name.clone();
    let found = app.workspace().read(move |state| state.schedule(&wanted).map(Schedule::from)).await?;
    found.map(Answer).ok_or_else(|| unknown(name))
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
    let (wanted, new_name) = (name.clone(), body.name.clone());
    let known = app.workspace().read(move |state| state.schedule(&wanted).map(|it| it.name.clone())).await?;
    if known.as_deref().is_some_and(|known| known != new_name) {
        return Err(Problem::invalid("name", "a schedule keeps its name; create another one"));
    }
    let expected = body.expected_state_version;
    change(&app, name, expected, ScheduleChange::Redefine(Arc::new(body.into())), caller).await
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
    change(&app, name, body.expected_state_version, ScheduleChange::Remove, caller).await
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
    change(&app, name, body.expected_state_version, ScheduleChange::Pause, caller).await
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
    change(&app, name, body.expected_state_version, ScheduleChange::Resume, caller).await
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
            cron: schedule.definition.cron.clone(),
            timezone: schedule.definition.zone().to_owned(),
            ticks,
        }))
    });
    match found.await? {
        Some(Ok(next)) => Ok(Answer(next)),
        Some(Err(problem)) => Err(Problem::invalid("schedule", problem)),
        None => Err(unknown(name)),
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
    let wanted = name.clone();
    // Those of one that was removed can be looked at for as long as somebody knows its name.
    let id = app.workspace().read(move |state| state.schedule_id(&wanted)).await?;
    let id = id.ok_or_else(|| unknown(name))?;
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

async fn change(
    app: &Shared,
    schedule: String,
    expected_state_version: Option<u64>,
    change: ScheduleChange,
    caller: Caller,
) -> Result<Response<Body>, Problem> {
    let request = ChangeSchedule { schedule, expected_state_version, change, caller: caller.clone() };
    let work = async { Ok(Accepted::from(app.workspace().change_schedule(request).await?)) };
    app.once(caller, work, async |known| Ok(known.change().into())).await
}

fn unknown(name: String) -> Problem {
    Refusal::UnknownSchedule { name }.into()
}

pub(super) fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let read =
        |text: &str| text.parse::<Timestamp>().map_err(|error| Problem::invalid(field, error.to_string()));
    text.map(read).transpose()
}
