//! Schedules: their definitions, when each ticks next, and their newest ticks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::cron::Ticks;
use servo_core::{Cron, EvaluationId, EventId, RunId, ScheduleId, Timestamp};

use super::SharedMap;
use crate::definitions::{IfRunning, ScheduleDef};
use crate::lifecycle::{AutomationStatus, Origin};
use crate::rows::{Json, ScheduleDefinitionRow, ScheduleStateRow, ScheduleTickRow};

/// Failures in a row after which the status says so.
pub(crate) const ERROR_AFTER: u32 = 3;

/// Expressions whose ticks are kept ready.
const READY_EXPRESSIONS: usize = 1_024;

/// A schedule that is or was defined.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Schedule {
    pub id: ScheduleId,
    pub name: Arc<str>,
    pub origin: Origin,
    pub definition: Arc<ScheduleDef>,
    /// The event that made the definition, or removed the schedule.
    pub definition_version: EventId,
    pub created_at: Timestamp,
    pub defined_at: Timestamp,
    pub removed_at: Option<Timestamp>,
    pub paused: bool,
    /// Counts definitions, pauses and resumptions.
    pub state_version: u64,
    /// Ticks up to this time are not made any more.
    pub ticks_after: Timestamp,
    pub last_scheduled_for: Option<Timestamp>,
    pub last_tick_id: Option<Arc<str>>,
    pub last_run_key: Option<Arc<str>>,
    pub last_run_id: Option<RunId>,
    pub next_tick_at: Option<Timestamp>,
    /// Ticks and evaluations that failed in a row.
    pub failures: u32,
    pub last_error: Option<String>,
    /// Evaluations of the next tick that have failed.
    pub attempts: u32,
    /// When a failed evaluation is tried again.
    pub retry_at: Option<Timestamp>,
    /// The call of its function for the next tick that a worker is asked for.
    pub evaluating: Option<PendingTick>,
    /// Runs of its ticks that have not ended.
    pub active: BTreeSet<RunId>,
    /// The event that last changed its state.
    pub version: EventId,
}

/// A call for a tick that a worker was asked for and has not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingTick {
    /// Names the call.
    pub evaluation_id: EvaluationId,
    /// How many calls there were for the tick, with this one.
    pub attempt: u32,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When it counts as lost.
    pub deadline: Timestamp,
}

impl Schedule {
    /// Whether it ticks, waits or fails.
    pub fn status(&self) -> AutomationStatus {
        if self.paused {
            AutomationStatus::Paused
        } else if self.failures >= ERROR_AFTER {
            AutomationStatus::Error
        } else {
            AutomationStatus::Active
        }
    }

    /// When a controller has something to do for it.
    pub(crate) fn due_at(&self) -> Option<Timestamp> {
        if let Some(evaluating) = &self.evaluating {
            return Some(evaluating.deadline);
        }
        let is_held = (self.paused && self.definition.catch_up_on_resume)
            || (self.definition.if_running == IfRunning::Queue && !self.active.is_empty() && !self.paused);
        if self.removed_at.is_some() || is_held {
            return None;
        }
        let next = self.next_tick_at?;
        Some(self.retry_at.map_or(next, |retry| retry.max(next)))
    }

    pub(super) fn definition_row(&self) -> ScheduleDefinitionRow {
        let definition = &self.definition;
        ScheduleDefinitionRow {
            schedule_id: self.id,
            name: self.name.to_string(),
            origin: self.origin,
            cron_expression: definition.cron.clone(),
            timezone: definition.zone().to_owned(),
            catchup_window_minutes: definition.catchup_window_minutes,
            max_catchup_ticks: definition.max_catchup_ticks,
            asset_selection: definition.selection.clone(),
            enabled: definition.enabled,
            definition: Json(definition.clone()),
            created_at: self.created_at,
            defined_at: self.defined_at,
            removed_at: self.removed_at,
            row_version: self.definition_version,
        }
    }

    pub(super) fn state_row(&self) -> ScheduleStateRow {
        ScheduleStateRow {
            schedule_id: self.id,
            status: self.status(),
            paused: self.paused,
            state_version: self.state_version,
            ticks_after: self.ticks_after,
            last_scheduled_for: self.last_scheduled_for,
            last_tick_id: self.last_tick_id.as_deref().map(str::to_owned),
            last_run_key: self.last_run_key.as_deref().map(str::to_owned),
            last_run_id: self.last_run_id,
            next_tick_at: self.next_tick_at,
            failures: self.failures,
            last_error: self.last_error.clone(),
            attempts: self.attempts,
            retry_at: self.retry_at,
            evaluating: self.evaluating.clone().map(Json),
            row_version: self.version,
        }
    }

    fn restore(row: ScheduleDefinitionRow, state: ScheduleStateRow) -> Self {
        Self {
            id: row.schedule_id,
            name: row.name.into(),
            origin: row.origin,
            definition: row.definition.0,
            definition_version: row.row_version,
            created_at: row.created_at,
            defined_at: row.defined_at,
            removed_at: row.removed_at,
            paused: state.paused,
            state_version: state.state_version,
            ticks_after: state.ticks_after,
            last_scheduled_for: state.last_scheduled_for,
            last_tick_id: state.last_tick_id.map(Into::into),
            last_run_key: state.last_run_key.map(Into::into),
            last_run_id: state.last_run_id,
            next_tick_at: state.next_tick_at,
            failures: state.failures,
            last_error: state.last_error,
            attempts: state.attempts,
            retry_at: state.retry_at,
            evaluating: state.evaluating.map(|evaluating| evaluating.0),
            active: BTreeSet::new(),
            version: state.row_version,
        }
    }
}

/// The schedules of a workspace. Removed ones stay, so that one that returns keeps its id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schedules {
    by_id: SharedMap<ScheduleId, Arc<Schedule>>,
    names: SharedMap<Arc<str>, ScheduleId>,
    /// The newest ticks of all of them, by event.
    ticks: SharedMap<EventId, Arc<ScheduleTickRow>>,
    /// Ticks of expressions in zones, computed once. Not part of the state: they follow from the text.
    ready: Arc<BTreeMap<(String, String), Arc<Ticks>>>,
}

impl Schedules {
    /// How many there are, with those that were removed.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, id: ScheduleId) -> Option<&Arc<Schedule>> {
        self.by_id.get(&id)
    }

    /// A schedule by its name, or by its id. Removed ones are found too.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Schedule>> {
        let by_id = || name.parse().ok();
        self.by_id.get(&self.names.get(name).copied().or_else(by_id)?)
    }

    /// All of them, by name. Removed ones are among them.
    pub(crate) fn by_name(&self) -> impl DoubleEndedIterator<Item = &Arc<Schedule>> {
        self.names.values().filter_map(|id| self.by_id.get(id))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<Schedule>> {
        self.by_id.values()
    }

    pub(crate) fn insert(&mut self, schedule: Schedule) {
        self.names.insert(schedule.name.clone(), schedule.id);
        self.by_id.insert(schedule.id, Arc::new(schedule));
    }

    pub(crate) fn get_mut(&mut self, id: ScheduleId) -> Option<&mut Schedule> {
        self.by_id.get_mut(&id).map(Arc::make_mut)
    }

    /// The newest ticks, by event.
    pub(crate) fn ticks(&self) -> &SharedMap<EventId, Arc<ScheduleTickRow>> {
        &self.ticks
    }

    /// Adds a tick; gives back the oldest if there are too many.
    pub(crate) fn add_tick(&mut self, row: ScheduleTickRow, limit: usize) -> Option<Arc<ScheduleTickRow>> {
        self.ticks.insert(row.row_version, Arc::new(row));
        if self.ticks.len() <= limit.max(1) {
            return None;
        }
        let oldest = *self.ticks.keys().next()?;
        self.ticks.remove(&oldest)
    }

    /// The ticks of a definition; why there are none if its texts make no sense to this version.
    pub(crate) fn ticks_of(&self, definition: &ScheduleDef) -> Result<Arc<Ticks>, String> {
        let key = (definition.cron.clone(), definition.zone().to_owned());
        match self.ready.get(&key) {
            Some(ticks) => Ok(ticks.clone()),
            None => ticks(definition),
        }
    }

    /// The same, kept ready for the next time.
    pub(crate) fn ready_ticks_of(&mut self, definition: &ScheduleDef) -> Result<Arc<Ticks>, String> {
        let key = (definition.cron.clone(), definition.zone().to_owned());
        if let Some(ticks) = self.ready.get(&key) {
            return Ok(ticks.clone());
        }
        let ticks = ticks(definition)?;
        let ready = Arc::make_mut(&mut self.ready);
        if ready.len() >= READY_EXPRESSIONS {
            ready.clear();
        }
        ready.insert(key, ticks.clone());
        Ok(ticks)
    }

    pub(super) fn definition_rows(&self) -> Vec<ScheduleDefinitionRow> {
        self.by_id.values().map(|schedule| schedule.definition_row()).collect()
    }

    pub(super) fn state_rows(&self) -> Vec<ScheduleStateRow> {
        self.by_id.values().map(|schedule| schedule.state_row()).collect()
    }

    pub(super) fn tick_rows(&self) -> Vec<ScheduleTickRow> {
        let mut rows: Vec<_> = self.ticks.values().map(|row| ScheduleTickRow::clone(row)).collect();
        rows.sort_by(|a, b| a.tick_id.cmp(&b.tick_id));
        rows
    }

    pub(super) fn restore(
        definitions: Vec<ScheduleDefinitionRow>,
        states: Vec<ScheduleStateRow>,
        ticks: Vec<ScheduleTickRow>,
    ) -> Result<Self, super::RestoreError> {
        let mut states: BTreeMap<ScheduleId, ScheduleStateRow> =
            states.into_iter().map(|row| (row.schedule_id, row)).collect();
        let mut schedules = Self::default();
        for row in definitions {
            let state = states.remove(&row.schedule_id).ok_or_else(|| super::RestoreError {
                table: "schedule_definitions",
                key: row.schedule_id.to_string(),
                problem: "it is not in table schedule_state".to_owned(),
            })?;
            schedules.insert(Schedule::restore(row, state));
        }
        let mut ticks: Vec<_> = ticks.into_iter().map(|row| (row.row_version, Arc::new(row))).collect();
        ticks.sort_by_key(|(version, _)| *version);
        schedules.ticks = ticks.into_iter().collect();
        Ok(schedules)
    }
}

fn ticks(definition: &ScheduleDef) -> Result<Arc<Ticks>, String> {
    let cron = Cron::parse(&definition.cron).map_err(|error| error.to_string())?;
    cron.in_zone(definition.zone()).map(Arc::new).map_err(|error| error.to_string())
}
