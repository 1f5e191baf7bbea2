//! Sensors: their definitions, where each has come to, what waits for them, and their newest evaluations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, EvaluationId, EventId, RunId, SensorId, Timestamp};

use super::schedules::ERROR_AFTER;
use super::{Messages, SharedMap, State};
use crate::definitions::SensorDef;
use crate::event::{RunSource, SensorTrigger};
use crate::lifecycle::{AutomationStatus, Origin, SensorKind};
use crate::rows::{Json, SensorDefinitionRow, SensorEvalRow, SensorMessageRow, SensorStateRow};

/// Messages that may wait for one sensor.
pub(crate) const MAX_WAITING: usize = 10_000;

/// A sensor that is or was defined.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Sensor {
    pub id: SensorId,
    pub name: Arc<str>,
    pub origin: Origin,
    pub definition: Arc<SensorDef>,
    /// The event that made the definition, or removed the sensor.
    pub definition_version: EventId,
    pub created_at: Timestamp,
    pub defined_at: Timestamp,
    pub removed_at: Option<Timestamp>,
    pub paused: bool,
    /// Counts definitions, pauses, resumptions and cursors.
    pub state_version: u64,
    pub cursor: Option<Arc<str>>,
    pub last_evaluation_at: Option<Timestamp>,
    pub last_eval_id: Option<Arc<str>>,
    pub last_run_id: Option<RunId>,
    /// When it is evaluated next; none unless it polls.
    pub next_evaluation_at: Option<Timestamp>,
    /// Evaluations that failed in a row.
    pub failures: u32,
    pub last_error: Option<String>,
    /// The call that a worker is asked for.
    pub evaluating: Option<PendingEvaluation>,
    /// Assets that were made since it last requested something, by partition.
    pub seen: Arc<BTreeMap<String, BTreeSet<String>>>,
    /// Messages that wait.
    pub messages: Messages,
    /// Messages that were left out because too many wait.
    pub messages_dropped: u64,
    pub changed_at: Timestamp,
    /// The event that last changed its state.
    pub version: EventId,
}

/// A call that a worker was asked for and has not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingEvaluation {
    /// Names the call.
    pub evaluation_id: EvaluationId,
    /// Why it is evaluated.
    pub trigger: SensorTrigger,
    /// How many calls there were for the same poll or message, with this one.
    pub attempt: u32,
    /// The version of the state that the call knows.
    pub expected_state_version: u64,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When it counts as lost.
    pub deadline: Timestamp,
}

impl State {
    /// The name of the schedule or sensor that a run comes from, if it is known; also of one that was removed.
    pub fn source_name(&self, source: &RunSource) -> Option<Arc<str>> {
        match source {
            RunSource::Schedule { id, .. } => self.schedules.find(id).map(|schedule| schedule.name.clone()),
            RunSource::Sensor { id, .. } => self.sensors.find(id).map(|sensor| sensor.name.clone()),
            RunSource::Manual
            | RunSource::Api
            | RunSource::Retry { .. }
            | RunSource::Backfill { .. }
            | RunSource::Condition { .. }
            | RunSource::Unknown(_) => None,
        }
    }
}

impl Sensor {
    /// Whether it is evaluated, waits or fails.
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
        if self.removed_at.is_some() || self.paused {
            return None;
        }
        match self.definition.kind() {
            SensorKind::Poll => self.next_evaluation_at,
            SensorKind::Push | SensorKind::Asset | SensorKind::Run => self.messages.due_at(),
        }
    }

    /// Why a message is evaluated.
    pub(crate) fn trigger_of(&self, message: &SensorMessageRow) -> SensorTrigger {
        let message_id = message.message_id.as_str().into();
        match self.definition.kind() {
            SensorKind::Asset => SensorTrigger::Asset { message_id },
            SensorKind::Run => SensorTrigger::Run { message_id },
            SensorKind::Push | SensorKind::Poll => SensorTrigger::Push { message_id },
        }
    }

    pub(super) fn definition_row(&self) -> SensorDefinitionRow {
        let definition = &self.definition;
        SensorDefinitionRow {
            sensor_id: self.id,
            name: self.name.to_string(),
            origin: self.origin,
            kind: definition.kind(),
            asset_selection: definition.selection.clone(),
            interval_ms: (definition.kind() == SensorKind::Poll).then(|| definition.interval()),
            enabled: definition.enabled,
            definition: Json(definition.clone()),
            created_at: self.created_at,
            defined_at: self.defined_at,
            removed_at: self.removed_at,
            row_version: self.definition_version,
        }
    }

    pub(super) fn state_row(&self) -> SensorStateRow {
        SensorStateRow {
            sensor_id: self.id,
            status: self.status(),
            paused: self.paused,
            state_version: self.state_version,
            cursor: self.cursor.as_deref().map(str::to_owned),
            last_evaluation_at: self.last_evaluation_at,
            last_eval_id: self.last_eval_id.as_deref().map(str::to_owned),
            last_run_id: self.last_run_id,
            next_evaluation_at: self.next_evaluation_at,
            failures: self.failures,
            last_error: self.last_error.clone(),
            evaluating: self.evaluating.clone().map(Json),
            seen: Json(BTreeMap::clone(&self.seen)),
            messages_dropped: self.messages_dropped,
            changed_at: self.changed_at,
            row_version: self.version,
        }
    }

    fn restore(row: SensorDefinitionRow, state: SensorStateRow) -> Self {
        Self {
            id: row.sensor_id,
            name: row.name.into(),
            origin: row.origin,
            definition: row.definition.0,
            definition_version: row.row_version,
            created_at: row.created_at,
            defined_at: row.defined_at,
            removed_at: row.removed_at,
            paused: state.paused,
            state_version: state.state_version,
            cursor: state.cursor.map(Into::into),
            last_evaluation_at: state.last_evaluation_at,
            last_eval_id: state.last_eval_id.map(Into::into),
            last_run_id: state.last_run_id,
            next_evaluation_at: state.next_evaluation_at,
            failures: state.failures,
            last_error: state.last_error,
            evaluating: state.evaluating.map(|evaluating| evaluating.0),
            seen: Arc::new(state.seen.0),
            messages: Messages::default(),
            messages_dropped: state.messages_dropped,
            changed_at: state.changed_at,
            version: state.row_version,
        }
    }
}

/// The sensors of a workspace. Removed ones stay, so that one that returns keeps its id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sensors {
    by_id: SharedMap<SensorId, Arc<Sensor>>,
    names: SharedMap<Arc<str>, SensorId>,
    /// The newest evaluations of all of them, by event.
    evals: SharedMap<EventId, Arc<SensorEvalRow>>,
    /// Those that watch an asset. Follows from the definitions.
    watching: Arc<BTreeMap<AssetKey, BTreeSet<SensorId>>>,
    /// Those that wait for ends of runs. Follows from the definitions.
    of_runs: Arc<BTreeSet<SensorId>>,
}

impl Sensors {
    /// How many there are, with those that were removed.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, id: SensorId) -> Option<&Arc<Sensor>> {
        self.by_id.get(&id)
    }

    /// A sensor by its name, or by its id. Removed ones are found too.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Sensor>> {
        let by_id = || name.parse().ok();
        self.by_id.get(&self.names.get(name).copied().or_else(by_id)?)
    }

    /// All of them, by name. Removed ones are among them.
    pub(crate) fn by_name(&self) -> impl DoubleEndedIterator<Item = &Arc<Sensor>> {
        self.names.values().filter_map(|id| self.by_id.get(id))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<Sensor>> {
        self.by_id.values()
    }

    pub(crate) fn insert(&mut self, sensor: Sensor) {
        let id = sensor.id;
        self.names.insert(sensor.name.clone(), id);
        self.by_id.insert(id, Arc::new(sensor));
        self.watch(id);
    }

    pub(crate) fn get_mut(&mut self, id: SensorId) -> Option<&mut Sensor> {
        self.by_id.get_mut(&id).map(Arc::make_mut)
    }

    /// Notes what a sensor waits for, after its definition has changed.
    pub(crate) fn watch(&mut self, id: SensorId) {
        let Some(sensor) = self.by_id.get(&id) else { return };
        let is_there = sensor.removed_at.is_none();
        let on = sensor.definition.on.iter().filter(|_| is_there);
        let on: BTreeSet<AssetKey> = on.filter_map(|text| AssetKey::parse(text).ok()).collect();
        let is_of_runs = is_there && !sensor.definition.run_status.is_empty();
        if !on.is_empty() || self.watching.values().any(|watching| watching.contains(&id)) {
            let watching = Arc::make_mut(&mut self.watching);
            watching.retain(|_, ids| {
                ids.remove(&id);
                !ids.is_empty()
            });
            for key in on {
                watching.entry(key).or_default().insert(id);
            }
        }
        if is_of_runs != self.of_runs.contains(&id) {
            let of_runs = Arc::make_mut(&mut self.of_runs);
            if is_of_runs {
                of_runs.insert(id)
            } else {
                of_runs.remove(&id)
            };
        }
    }

    /// Those that watch an asset.
    pub(crate) fn watching(&self, asset: &AssetKey) -> Vec<SensorId> {
        self.watching.get(asset).into_iter().flatten().copied().collect()
    }

    /// Those that wait for ends of runs.
    pub(crate) fn of_runs(&self) -> Vec<SensorId> {
        self.of_runs.iter().copied().collect()
    }

    /// The newest evaluations, by event.
    pub(crate) fn evals(&self) -> &SharedMap<EventId, Arc<SensorEvalRow>> {
        &self.evals
    }

    /// Adds an evaluation; gives back the oldest if there are too many.
    pub(crate) fn add_eval(&mut self, row: SensorEvalRow, limit: usize) -> Option<Arc<SensorEvalRow>> {
        self.evals.insert(row.row_version, Arc::new(row));
        if self.evals.len() <= limit.max(1) {
            return None;
        }
        let oldest = *self.evals.keys().next()?;
        self.evals.remove(&oldest)
    }

    pub(super) fn definition_rows(&self) -> Vec<SensorDefinitionRow> {
        self.by_id.values().map(|sensor| sensor.definition_row()).collect()
    }

    pub(super) fn state_rows(&self) -> Vec<SensorStateRow> {
        self.by_id.values().map(|sensor| sensor.state_row()).collect()
    }

    pub(super) fn message_rows(&self) -> Vec<SensorMessageRow> {
        let waiting = self.by_id.values().flat_map(|sensor| sensor.messages.values());
        let mut rows: Vec<_> = waiting.map(|row| SensorMessageRow::clone(row)).collect();
        rows.sort_by(|a, b| (a.sensor_id, &a.message_id).cmp(&(b.sensor_id, &b.message_id)));
        rows
    }

    pub(super) fn message_row(
        &self,
        id: SensorId,
        event: EventId,
        message: &Arc<str>,
    ) -> Option<SensorMessageRow> {
        let found = self.by_id.get(&id)?.messages.get(&(event, message.clone()))?;
        Some(SensorMessageRow::clone(found))
    }

    pub(super) fn eval_rows(&self) -> Vec<SensorEvalRow> {
        let mut rows: Vec<_> = self.evals.values().map(|row| SensorEvalRow::clone(row)).collect();
        rows.sort_by(|a, b| a.eval_id.cmp(&b.eval_id));
        rows
    }

    pub(super) fn restore(
        definitions: Vec<SensorDefinitionRow>,
        states: Vec<SensorStateRow>,
        messages: Vec<SensorMessageRow>,
        evals: Vec<SensorEvalRow>,
    ) -> Result<Self, super::RestoreError> {
        let mut states: BTreeMap<SensorId, SensorStateRow> =
            states.into_iter().map(|row| (row.sensor_id, row)).collect();
        let mut waiting: BTreeMap<SensorId, Messages> = BTreeMap::new();
        for row in messages {
            waiting.entry(row.sensor_id).or_default().put(row);
        }
        let mut sensors = Self::default();
        for row in definitions {
            let state = states.remove(&row.sensor_id).ok_or_else(|| super::RestoreError {
                table: "sensor_definitions",
                key: row.sensor_id.to_string(),
                problem: "it is not in table sensor_state".to_owned(),
            })?;
            let messages = waiting.remove(&row.sensor_id).unwrap_or_default();
            sensors.insert(Sensor { messages, ..Sensor::restore(row, state) });
        }
        let mut evals: Vec<_> = evals.into_iter().map(|row| (row.row_version, Arc::new(row))).collect();
        evals.sort_by_key(|(version, _)| *version);
        sensors.evals = evals.into_iter().collect();
        Ok(sensors)
    }
}
