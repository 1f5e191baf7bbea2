//! Calls of functions of schedules and sensors, as a worker is given them.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::partitions::PartitionContext;
use servo_core::selection::Selection;
use servo_core::{EvaluationId, Timestamp};

use crate::evaluation::{Call, DEFAULT_TIMEOUT, Evaluation, Subject};
use crate::state::{Schedule, Sensor, State};

/// Assets whose newest partition a function is told.
const MAX_LATEST: usize = 10_000;

/// The call that a schedule waits for.
pub(crate) fn of_schedule(state: &State, schedule: &Schedule) -> Option<Evaluation> {
    let pending = schedule.evaluating.as_ref()?;
    state.schedule_call(schedule, pending.evaluation_id, schedule.next_tick_at?)
}

/// The call that a sensor waits for.
pub(crate) fn of_sensor(sensor: &Sensor) -> Option<Evaluation> {
    let pending = sensor.evaluating.as_ref()?;
    let message = match pending.trigger.message_id() {
        Some(id) => {
            let waiting = sensor.messages.find(id);
            Some(Arc::from(waiting?.message.as_str()))
        }
        None => None,
    };
    sensor.call(pending.evaluation_id, message, pending.requested_at)
}

impl State {
    /// A call of the function of a schedule for a tick; none if it has no function.
    pub fn schedule_call(
        &self,
        schedule: &Schedule,
        evaluation_id: EvaluationId,
        scheduled_for: Timestamp,
    ) -> Option<Evaluation> {
        Some(Evaluation {
            evaluation_id,
            subject: Subject::Schedule(schedule.id),
            name: schedule.name.clone(),
            function: schedule.definition.function.clone()?,
            timeout_ms: schedule.definition.timeout_ms.unwrap_or(DEFAULT_TIMEOUT),
            call: Call::Tick { scheduled_for, latest: self.latest_partitions(schedule, scheduled_for) },
        })
    }

    /// The newest complete partition of the assets that a schedule selects, or of all assets.
    fn latest_partitions(&self, schedule: &Schedule, at: Timestamp) -> BTreeMap<String, String> {
        let Some(definitions) = self.checked_definitions() else { return BTreeMap::new() };
        let selection = schedule.definition.selection.as_deref().and_then(|text| Selection::parse(text).ok());
        let selected = selection.and_then(|selection| selection.evaluate(definitions.graph()).ok());
        let context = PartitionContext::new(at, self.dynamic_partitions());
        let assets = definitions.assets().iter().enumerate();
        let wanted = assets.filter(|(at, _)| selected.as_ref().is_none_or(|selected| selected.contains(*at)));
        let latest = wanted.filter_map(|(_, asset)| {
            let partitions = asset.partitions.as_ref()?;
            let newest = partitions.latest(context);
            // With a dimension beside time there is no newest one.
            let newest = (newest.len() == 1).then(|| partitions.keys_in(&newest, context).next())??;
            Some((asset.key.to_string(), newest.to_string()))
        });
        latest.take(MAX_LATEST).collect()
    }
}

impl Sensor {
    /// A call of its function; none if it has no function.
    pub fn call(
        &self,
        evaluation_id: EvaluationId,
        message: Option<Arc<str>>,
        evaluated_at: Timestamp,
    ) -> Option<Evaluation> {
        let cursor = self.cursor.clone();
        Some(Evaluation {
            evaluation_id,
            subject: Subject::Sensor(self.id),
            name: self.name.clone(),
            function: self.definition.function.clone()?,
            timeout_ms: self.definition.timeout_ms.unwrap_or(DEFAULT_TIMEOUT),
            call: match message {
                Some(message) => Call::Message { message, cursor, evaluated_at },
                None => Call::Poll { cursor, evaluated_at },
            },
        })
    }
}
