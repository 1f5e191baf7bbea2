//! Schedules and their ticks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use servo_core::{EventId, RunId, ScheduleId, Timestamp};
use servo_engine::definitions::{IfRunning, Location, ScheduleDef};
use servo_engine::rows::ScheduleTickRow;
use utoipa::ToSchema;

use super::requests::PartitionsBody;

/// A schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Schedule {
    #[schema(value_type = String)]
    pub schedule_id: ScheduleId,
    pub name: String,
    /// Who defines it: `code` or `api`.
    pub origin: String,
    /// `ACTIVE`, `PAUSED`, or `ERROR` if it has failed several times in a row.
    pub status: String,
    /// Counts definitions, pauses and resumptions.
    pub state_version: u64,
    pub cron: String,
    pub timezone: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<String>,
    /// `module:qualname` of the function that decides what a tick requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub config: BTreeMap<String, Value>,
    pub priority: i32,
    /// The partitions that its ticks request; the newest complete one of each asset if absent.
    #[serde(default, skip_serializing_if = "PartitionsBody::is_empty")]
    pub partitions: PartitionsBody,
    pub catchup_window_minutes: u32,
    pub max_catchup_ticks: u32,
    pub catch_up_on_resume: bool,
    /// `allow`, `skip` or `queue`.
    pub if_running: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub defined_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_scheduled_for: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tick_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub last_run_id: Option<RunId>,
    /// Absent if it never ticks again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_tick_at: Option<Timestamp>,
    /// Ticks and evaluations that failed in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A tick of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Tick {
    pub tick_id: String,
    #[schema(value_type = String)]
    pub schedule_id: ScheduleId,
    pub schedule: String,
    #[schema(value_type = String, format = DateTime)]
    pub scheduled_for: Timestamp,
    /// When it was noticed.
    #[schema(value_type = String, format = DateTime)]
    pub ticked_at: Timestamp,
    /// Somebody asked for it.
    pub manual: bool,
    /// `TRIGGERED`, `SKIPPED` or `FAILED`.
    pub status: String,
    /// Why there is no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<String>,
    #[serde(default, skip_serializing_if = "PartitionsBody::is_empty")]
    pub partitions: PartitionsBody,
    /// The runs that it requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<TickRun>,
    /// The event that made the definition which it followed.
    #[schema(value_type = String)]
    pub definition_version: EventId,
}

/// A run that a tick requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct TickRun {
    pub run_key: String,
    #[schema(value_type = String)]
    pub run_id: RunId,
}

/// The next ticks of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct NextTicks {
    pub schedule: String,
    pub cron: String,
    pub timezone: String,
    #[schema(value_type = Vec<String>)]
    pub ticks: Vec<Timestamp>,
}

/// A schedule to create, or its new definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleBody {
    /// Letters, digits, `_` and `-`; unique in the workspace.
    pub name: String,
    /// When: 5 fields, or 6 with seconds.
    pub cron: String,
    /// IANA name of the time zone; UTC unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The selection that its ticks request.
    pub selection: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Labels of the runs that it requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Values of configuration fields, by field or by `namespace.name:field`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub config: BTreeMap<String, Value>,
    /// Higher runs first.
    #[serde(default)]
    pub priority: i32,
    /// Which partitions its ticks request, as of the time at which they were due; the newest complete one of each asset
    /// unless given. A tick that finds none of them to make is skipped.
    #[serde(default, skip_serializing_if = "PartitionsBody::is_empty")]
    pub partitions: PartitionsBody,
    /// Whether it starts running when it is created; true unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether ticks that it missed while paused are made up for.
    #[serde(default)]
    pub catch_up_on_resume: bool,
    /// Ticks that are older when they are noticed are left out; 1440 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catchup_window_minutes: Option<u32>,
    /// The most ticks that are made up for at once; 3 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_catchup_ticks: Option<u32>,
    /// `allow`, `skip` or `queue`: what a tick does while a run of an earlier one is active; `allow` unless given.
    #[serde(default)]
    #[schema(value_type = String)]
    pub if_running: IfRunning,
    /// The version that the caller knows, where the schedule is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_state_version: Option<u64>,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// A request to pause, resume or delete a schedule or a sensor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VersionBody {
    /// The version that the caller knows; refused if there is another by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_state_version: Option<u64>,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// A request for a tick now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerScheduleBody {
    /// Partitions instead of the newest complete one.
    #[serde(default, skip_serializing_if = "PartitionsBody::is_empty")]
    pub partitions: PartitionsBody,
    /// Values of configuration fields, beside those of the schedule.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub config: BTreeMap<String, Value>,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

impl From<&servo_engine::Schedule> for Schedule {
    fn from(schedule: &servo_engine::Schedule) -> Self {
        let definition = &schedule.definition;
        Self {
            schedule_id: schedule.id,
            name: schedule.name.to_string(),
            origin: schedule.origin.to_string(),
            status: schedule.status().to_string(),
            state_version: schedule.state_version,
            cron: definition.cron.to_string(),
            timezone: definition.zone().to_owned(),
            selection: definition.selection.as_deref().map(str::to_owned),
            function: definition.function.clone(),
            description: definition.description.clone(),
            tags: definition.tags.clone(),
            config: values(&definition.config),
            priority: definition.priority,
            partitions: definition.partitions.clone().into(),
            catchup_window_minutes: definition.catchup_window_minutes,
            max_catchup_ticks: definition.max_catchup_ticks,
            catch_up_on_resume: definition.catch_up_on_resume,
            if_running: if_running(definition.if_running).to_owned(),
            created_at: schedule.created_at,
            defined_at: schedule.defined_at,
            last_scheduled_for: schedule.last_scheduled_for,
            last_tick_id: schedule.last_tick_id.as_deref().map(str::to_owned),
            last_run_id: schedule.last_run_id,
            next_tick_at: schedule.next_tick_at,
            failures: schedule.failures,
            last_error: schedule.last_error.clone(),
        }
    }
}

impl Schedule {
    /// A request for the definition that it has, to be sent with changes.
    pub fn to_body(&self) -> ScheduleBody {
        ScheduleBody {
            name: self.name.clone(),
            cron: self.cron.clone(),
            timezone: Some(self.timezone.clone()),
            selection: self.selection.clone().unwrap_or_default(),
            description: self.description.clone(),
            tags: self.tags.clone(),
            config: self.config.clone(),
            priority: self.priority,
            partitions: self.partitions.clone(),
            enabled: None,
            catch_up_on_resume: self.catch_up_on_resume,
            catchup_window_minutes: Some(self.catchup_window_minutes),
            max_catchup_ticks: Some(self.max_catchup_ticks),
            if_running: serde_json::from_value(self.if_running.clone().into()).unwrap_or_default(),
            expected_state_version: Some(self.state_version),
            client_request_id: None,
        }
    }
}

impl From<ScheduleTickRow> for Tick {
    fn from(row: ScheduleTickRow) -> Self {
        let run = |run: servo_engine::event::RequestedRun| TickRun {
            run_key: run.run_key.to_string(),
            run_id: run.run_id,
        };
        Self {
            tick_id: row.tick_id,
            schedule_id: row.schedule_id,
            schedule: row.schedule_name,
            scheduled_for: row.scheduled_for,
            ticked_at: row.ticked_at,
            manual: row.manual,
            status: row.status.to_string(),
            reason: row.reason,
            selection: row.asset_selection,
            partitions: row.partition_selection.map(|choice| choice.0.into()).unwrap_or_default(),
            runs: row.runs.0.into_iter().map(run).collect(),
            definition_version: row.definition_version,
        }
    }
}

impl From<ScheduleBody> for ScheduleDef {
    fn from(body: ScheduleBody) -> Self {
        Self {
            location: Location::default(),
            cron: body.cron.into(),
            timezone: body.timezone.map(Into::into),
            function: None,
            selection: Some(body.selection.into()),
            description: body.description,
            tags: body.tags,
            enabled: body.enabled.unwrap_or(true),
            partitions: body.partitions.of_ticks(),
            catch_up_on_resume: body.catch_up_on_resume,
            config: texts(&body.config),
            priority: body.priority,
            catchup_window_minutes: body.catchup_window_minutes.unwrap_or(Self::DEFAULT_WINDOW_MINUTES),
            max_catchup_ticks: body.max_catchup_ticks.unwrap_or(Self::DEFAULT_CATCHUP_TICKS),
            if_running: body.if_running,
            timeout_ms: None,
            name: body.name.into(),
        }
    }
}

/// Values of a configuration as JSON texts.
pub(crate) fn texts(config: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    config.iter().map(|(field, value)| (field.clone(), value.to_string())).collect()
}

pub(super) fn values(config: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let value = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.clone()));
    config.iter().map(|(field, text)| (field.clone(), value(text))).collect()
}

fn if_running(rule: IfRunning) -> &'static str {
    match rule {
        IfRunning::Allow => "allow",
        IfRunning::Skip => "skip",
        IfRunning::Queue => "queue",
    }
}

pub(super) fn is_zero(count: &u32) -> bool {
    *count == 0
}
