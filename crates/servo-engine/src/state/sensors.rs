//! Sensors: their definitions, where each has come to, what waits for them, and their newest evaluations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{AssetKey, EvaluationId, EventId, RunId, SensorId, Timestamp};

use super::named::{Defined, NamedMap, States};
use super::{Due, Messages, Recent, RestoreError, State};
use crate::definitions::SensorDef;
use crate::evaluation::{Evaluation, Subject};
use crate::event::{RunSource, SensorTrigger};
use crate::fold::{self, At};
use crate::lifecycle::SensorKind;
use crate::rows::{Json, SensorDefinitionRow, SensorEvalRow, SensorMessageRow, SensorStateRow};

/// Messages that may wait for one sensor.
pub(crate) const MAX_WAITING: usize = 10_000;

/// A sensor that is or was defined. Its state version counts cursors, too; its failures are evaluations that failed.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Sensor {
    pub defined: Defined<SensorId, SensorDef>,
    pub cursor: Option<Arc<str>>,
    pub last_evaluation_at: Option<Timestamp>,
    pub last_eval_id: Option<Arc<str>>,
    pub last_run_id: Option<RunId>,
    /// When it is evaluated next; none unless it polls.
    pub next_evaluation_at: Option<Timestamp>,
    /// The call that a worker is asked for.
    pub evaluating: Option<PendingEvaluation>,
    /// Assets that were made since it last requested something, by partition.
    pub seen: Arc<BTreeMap<String, BTreeSet<String>>>,
    /// Messages that wait.
    pub messages: Messages,
    /// Messages that were left out because too many wait.
    pub messages_dropped: u64,
    pub changed_at: Timestamp,
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

impl Sensor {
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
            defined: Defined {
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
                failures: state.failures,
                last_error: state.last_error,
                version: state.row_version,
            },
            cursor: state.cursor.map(Into::into),
            last_evaluation_at: state.last_evaluation_at,
            last_eval_id: state.last_eval_id.map(Into::into),
            last_run_id: state.last_run_id,
            next_evaluation_at: state.next_evaluation_at,
            evaluating: state.evaluating.map(|evaluating| evaluating.0),
            seen: Arc::new(state.seen.0),
            messages: Messages::default(),
            messages_dropped: state.messages_dropped,
            changed_at: state.changed_at,
        }
    }
}

/// The sensors of a workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sensors {
    pub(super) named: NamedMap<Sensor>,
    /// The newest evaluations of all of them, by event.
    pub(crate) evals: Recent<EventId, SensorEvalRow>,
    /// Those that watch an asset. Follows from the definitions.
    watching: Arc<BTreeMap<AssetKey, BTreeSet<SensorId>>>,
    /// Those that wait for ends of runs. Follows from the definitions.
    of_runs: Arc<BTreeSet<SensorId>>,
}

impl Sensors {
    pub(crate) fn insert(&mut self, sensor: Sensor) {
        let id = sensor.id;
        self.named.insert(sensor);
        self.watch(id);
    }

    /// Notes what a sensor waits for, after its definition has changed.
    pub(crate) fn watch(&mut self, id: SensorId) {
        let Some(sensor) = self.named.get(id) else { return };
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

    pub(super) fn definition_rows(&self) -> Vec<SensorDefinitionRow> {
        self.values().map(|sensor| sensor.definition_row()).collect()
    }

    pub(super) fn state_rows(&self) -> Vec<SensorStateRow> {
        self.values().map(|sensor| sensor.state_row()).collect()
    }

    pub(super) fn message_rows(&self) -> Vec<SensorMessageRow> {
        let waiting = self.values().flat_map(|sensor| sensor.messages.values());
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
        let found = self.get(id)?.messages.get(&(event, message.clone()))?;
        Some(SensorMessageRow::clone(found))
    }

    pub(super) fn eval_rows(&self) -> Vec<SensorEvalRow> {
        self.evals.sorted_by(|a, b| a.eval_id.cmp(&b.eval_id))
    }

    pub(super) fn restore(
        definitions: Vec<SensorDefinitionRow>,
        states: Vec<SensorStateRow>,
        messages: Vec<SensorMessageRow>,
        evals: Vec<SensorEvalRow>,
    ) -> Result<Self, RestoreError> {
        let mut waiting: BTreeMap<SensorId, Messages> = BTreeMap::new();
        for row in messages {
            waiting.entry(row.sensor_id).or_default().put(row);
        }
        let mut sensors = Self { evals: Recent::of(evals, |row| row.row_version), ..Self::default() };
        let mut states = States::of(["sensor_definitions", "sensor_state"], states, |row| row.sensor_id);
        for row in definitions {
            let state = states.take(row.sensor_id)?;
            let messages = waiting.remove(&row.sensor_id).unwrap_or_default();
            sensors.insert(Sensor { messages, ..Sensor::restore(row, state) });
        }
        Ok(sensors)
    }
}

impl State {
    /// A sensor by its name or its id, unless it was removed.
    pub fn sensor(&self, name: &str) -> Option<&Sensor> {
        self.sensors.live(name)
    }

    /// The id of a sensor that is or was there, by its name or its id.
    pub fn sensor_id(&self, name: &str) -> Option<SensorId> {
        self.sensors.id(name)
    }

    /// The sensors that are there, by name.
    pub fn sensors(&self) -> impl DoubleEndedIterator<Item = &Sensor> {
        self.sensors.iter_live()
    }

    /// The newest evaluations of all sensors, from the last to the first, with those that the tables do not have yet.
    pub fn recent_evals(&self) -> impl Iterator<Item = &SensorEvalRow> {
        let left = self.changes.ended_evals.iter();
        let mut left: Vec<_> = left.map(|row| &**row).collect();
        left.reverse();
        self.sensors.evals.newest_first().chain(left)
    }

    /// Whether a result of a call would still count.
    pub fn waits_for(&self, evaluation: &Evaluation) -> bool {
        let id = evaluation.evaluation_id;
        match evaluation.subject {
            Subject::Schedule(schedule) => {
                let pending = self.schedules.get(schedule).and_then(|schedule| schedule.evaluating.as_ref());
                pending.is_some_and(|pending| pending.evaluation_id == id)
            }
            Subject::Sensor(sensor) => {
                let pending = self.sensors.get(sensor).and_then(|sensor| sensor.evaluating.as_ref());
                pending.is_some_and(|pending| pending.evaluation_id == id)
            }
        }
    }

    /// Adds a sensor with its indexes.
    pub(crate) fn add_sensor(&mut self, sensor: Sensor) {
        let id = sensor.id;
        self.index.replace_due(Due::Sensor(id), None, sensor.due_at());
        self.sensors.insert(sensor);
        self.changes.sensors.insert(id);
        self.changes.sensor_definitions.insert(id);
    }

    /// Changes a sensor through its indexes.
    pub(crate) fn change_sensor(&mut self, id: SensorId, at: At, change: impl FnOnce(&mut Sensor)) {
        let Some(sensor) = self.sensors.get_mut(id) else { return };
        let (before, definition) = (sensor.due_at(), sensor.definition_version);
        let status = sensor.status();
        change(sensor);
        sensor.version = sensor.version.max(at.id);
        sensor.changed_at = at.time;
        let (after, is_defined_anew) = (sensor.due_at(), sensor.definition_version != definition);
        let has_other_status = sensor.status() != status;
        self.changes.sensors.insert(id);
        self.index.replace_due(Due::Sensor(id), before, after);
        if is_defined_anew {
            self.changes.sensor_definitions.insert(id);
            self.sensors.watch(id);
        }
        if has_other_status {
            fold::incidents::sensor_changed(self, at, id, status);
        }
    }

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
