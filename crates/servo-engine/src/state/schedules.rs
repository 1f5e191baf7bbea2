//! Schedules: their definitions, when each ticks next, and their newest ticks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::cron::Ticks;
use servo_core::{Cron, EvaluationId, EventId, RunId, ScheduleId, Timestamp};

use super::named::{Defined, NamedMap, States};
use super::{Due, Recent, RestoreError, State};
use crate::definitions::{IfRunning, ScheduleDef};
use crate::fold::{self, At};
use crate::rows::{Json, ScheduleDefinitionRow, ScheduleStateRow, ScheduleTickRow};

/// Expressions whose ticks are kept ready.
const READY_EXPRESSIONS: usize = 1_024;
/// Texts of definitions that are kept to be shared.
const SHARED_TEXTS: usize = 4_096;

/// A schedule that is or was defined. Its failures are ticks and evaluations that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Schedule {
    pub defined: Defined<ScheduleId, ScheduleDef>,
    /// Ticks up to this time are not made any more.
    pub ticks_after: Timestamp,
    pub last_scheduled_for: Option<Timestamp>,
    pub last_tick_id: Option<Arc<str>>,
    pub last_run_key: Option<Arc<str>>,
    pub last_run_id: Option<RunId>,
    pub next_tick_at: Option<Timestamp>,
    /// Evaluations of the next tick that have failed.
    pub attempts: u32,
    /// When a failed evaluation is tried again.
    pub retry_at: Option<Timestamp>,
    /// The call of its function for the next tick that a worker is asked for.
    pub evaluating: Option<Box<PendingTick>>,
    /// Runs of its ticks that have not ended.
    pub active: BTreeSet<RunId>,
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
            cron_expression: definition.cron.to_string(),
            timezone: definition.zone().to_owned(),
            catchup_window_minutes: definition.catchup_window_minutes,
            max_catchup_ticks: definition.max_catchup_ticks,
            asset_selection: definition.selection.as_deref().map(str::to_owned),
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
            evaluating: self.evaluating.as_deref().cloned().map(Json),
            row_version: self.version,
        }
    }

    fn restore(row: ScheduleDefinitionRow, state: ScheduleStateRow) -> Self {
        Self {
            defined: Defined {
                id: row.schedule_id,
                name: row.definition.name.clone(),
                origin: row.origin,
                definition: row.definition.0,
                definition_version: row.row_version,
                created_at: row.created_at,
                defined_at: row.defined_at,
                removed_at: row.removed_at,
                paused: state.paused,
                state_version: state.state_version,
                failures: state.failures,
                last_error: state.last_error,
                version: state.row_version,
            },
            ticks_after: state.ticks_after,
            last_scheduled_for: state.last_scheduled_for,
            last_tick_id: state.last_tick_id.map(Into::into),
            last_run_key: state.last_run_key.map(Into::into),
            last_run_id: state.last_run_id,
            next_tick_at: state.next_tick_at,
            attempts: state.attempts,
            retry_at: state.retry_at,
            evaluating: state.evaluating.map(|evaluating| Box::new(evaluating.0)),
            active: BTreeSet::new(),
        }
    }
}

/// A cron expression and its zone.
type Expression = (Arc<str>, Option<Arc<str>>);

/// The schedules of a workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schedules {
    pub(super) named: NamedMap<Schedule>,
    /// The newest ticks of all of them, by event.
    pub(crate) ticks: Recent<EventId, ScheduleTickRow>,
    /// Ticks of expressions in zones, computed once. Not part of the state: they follow from the text.
    ready: Arc<BTreeMap<Expression, Arc<Ticks>>>,
    /// Texts that definitions share: many schedules are declared in one place, and by one expression.
    texts: Arc<BTreeSet<Arc<str>>>,
}

impl Schedules {
    /// Gives a definition the texts of others, where they are equal.
    pub(crate) fn share(&mut self, definition: &mut Arc<ScheduleDef>) {
        let own = Arc::make_mut(definition);
        let texts = Arc::make_mut(&mut self.texts);
        let optional = [own.timezone.as_mut(), own.selection.as_mut()].into_iter().flatten();
        for text in [&mut own.location.file, &mut own.cron].into_iter().chain(optional) {
            match texts.get(&**text) {
                Some(known) => *text = known.clone(),
                None => {
                    if texts.len() >= SHARED_TEXTS {
                        texts.clear();
                    }
                    texts.insert(text.clone());
                }
            }
        }
    }

    /// The ticks of a definition; why there are none if its texts make no sense to this version.
    pub(crate) fn ticks_of(&self, definition: &ScheduleDef) -> Result<Arc<Ticks>, String> {
        let key = (definition.cron.clone(), definition.timezone.clone());
        match self.ready.get(&key) {
            Some(ticks) => Ok(ticks.clone()),
            None => ticks(definition),
        }
    }

    /// The same, kept ready for the next time.
    pub(crate) fn ready_ticks_of(&mut self, definition: &ScheduleDef) -> Result<Arc<Ticks>, String> {
        let key = (definition.cron.clone(), definition.timezone.clone());
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
        self.values().map(|schedule| schedule.definition_row()).collect()
    }

    pub(super) fn state_rows(&self) -> Vec<ScheduleStateRow> {
        self.values().map(|schedule| schedule.state_row()).collect()
    }

    pub(super) fn tick_rows(&self) -> Vec<ScheduleTickRow> {
        self.ticks.sorted_by(|a, b| a.tick_id.cmp(&b.tick_id))
    }

    pub(super) fn restore(
        definitions: Vec<ScheduleDefinitionRow>,
        states: Vec<ScheduleStateRow>,
        ticks: Vec<ScheduleTickRow>,
    ) -> Result<Self, RestoreError> {
        let mut schedules = Self { ticks: Recent::of(ticks, |row| row.row_version), ..Self::default() };
        let mut states =
            States::of(["schedule_definitions", "schedule_state"], states, |row| row.schedule_id);
        for row in definitions {
            let state = states.take(row.schedule_id)?;
            let mut schedule = Schedule::restore(row, state);
            schedules.share(&mut schedule.definition);
            schedules.insert(schedule);
        }
        Ok(schedules)
    }
}

fn ticks(definition: &ScheduleDef) -> Result<Arc<Ticks>, String> {
    let cron = Cron::parse(&definition.cron).map_err(|error| error.to_string())?;
    cron.in_zone(definition.zone()).map(Arc::new).map_err(|error| error.to_string())
}

impl State {
    /// A schedule by its name or its id, unless it was removed.
    pub fn schedule(&self, name: &str) -> Option<&Schedule> {
        self.schedules.live(name)
    }

    /// The id of a schedule that is or was there, by its name or its id.
    pub fn schedule_id(&self, name: &str) -> Option<ScheduleId> {
        self.schedules.id(name)
    }

    /// The schedules that are there, by name.
    pub fn schedules(&self) -> impl DoubleEndedIterator<Item = &Schedule> {
        self.schedules.iter_live()
    }

    /// The next ticks of a schedule after a time, at most so many; why there are none if its texts cannot be read.
    pub fn next_ticks(
        &self,
        schedule: &Schedule,
        after: Timestamp,
        count: usize,
    ) -> Result<Vec<Timestamp>, String> {
        let ticks = self.schedules.ticks_of(&schedule.definition)?;
        Ok(std::iter::successors(ticks.next(after), |last| ticks.next(*last)).take(count).collect())
    }

    /// The newest ticks of all schedules, from the last to the first, with those that the tables do not have yet.
    pub fn recent_ticks(&self) -> impl Iterator<Item = &ScheduleTickRow> {
        let left = self.changes.ended_ticks.iter();
        let mut left: Vec<_> = left.map(|row| &**row).collect();
        left.reverse();
        self.schedules.ticks.newest_first().chain(left)
    }

    /// Adds a schedule with its index.
    pub(crate) fn add_schedule(&mut self, schedule: Schedule) {
        let id = schedule.id;
        self.index.replace_due(Due::Schedule(id), None, schedule.due_at());
        self.schedules.insert(schedule);
        self.changes.schedules.insert(id);
        self.changes.schedule_definitions.insert(id);
    }

    /// Changes a schedule through its index.
    pub(crate) fn change_schedule(
        &mut self,
        id: ScheduleId,
        version: EventId,
        change: impl FnOnce(&mut Schedule),
    ) {
        let Some(schedule) = self.schedules.get_mut(id) else { return };
        let (before, definition) = (schedule.due_at(), schedule.definition_version);
        let status = schedule.status();
        change(schedule);
        schedule.version = schedule.version.max(version);
        if schedule.definition_version != definition {
            self.changes.schedule_definitions.insert(id);
        }
        self.changes.schedules.insert(id);
        let has_other_status = schedule.status() != status;
        self.index.replace_due(Due::Schedule(id), before, schedule.due_at());
        if has_other_status {
            let at = At { id: version, time: self.head.last_event_at };
            fold::incidents::schedule_changed(self, at, id, status);
        }
    }

    /// Changes which runs of a schedule are active: follows from the runs, so that no row of it changes.
    pub(crate) fn change_schedule_runs(&mut self, id: ScheduleId, change: impl FnOnce(&mut BTreeSet<RunId>)) {
        let Some(schedule) = self.schedules.get_mut(id) else { return };
        let before = schedule.due_at();
        change(&mut schedule.active);
        self.index.replace_due(Due::Schedule(id), before, schedule.due_at());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, cron: &str) -> Arc<ScheduleDef> {
        let text = format!(
            r#"{{"name":"{name}","location":{{"file":"jobs.py","line":3}},"cron":"{cron}","timezone":"Europe/Amsterdam",
                "selection":"t.a"}}"#
        );
        Arc::new(serde_json::from_str(&text).expect("a schedule"))
    }

    #[test]
    fn definitions_share_the_texts_that_are_equal() {
        let mut schedules = Schedules::default();
        let declared = definition("b", "0 6 * * *");
        let [mut first, mut second] = [definition("a", "0 6 * * *"), declared.clone()];
        schedules.share(&mut first);
        schedules.share(&mut second);
        assert_eq!(second, declared, "it says what it said");
        assert!(Arc::ptr_eq(&first.cron, &second.cron));
        assert!(Arc::ptr_eq(&first.location.file, &second.location.file));
        let texts = |it: &ScheduleDef| [it.timezone.clone(), it.selection.clone()].map(Option::unwrap);
        for (one, other) in texts(&first).iter().zip(&texts(&second)) {
            assert!(Arc::ptr_eq(one, other));
        }
        for number in 0..2 * SHARED_TEXTS {
            schedules.share(&mut definition("c", &number.to_string()));
        }
        assert!(schedules.texts.len() <= SHARED_TEXTS, "of many different ones few are kept to be shared");
    }

    /// A hundred thousand of them wait in 100 MB, with their definitions, names and indexes.
    #[test]
    fn a_schedule_is_small() {
        assert!(size_of::<Schedule>() <= 304, "{}", size_of::<Schedule>());
        assert!(size_of::<ScheduleDef>() <= 272, "{}", size_of::<ScheduleDef>());
    }
}
