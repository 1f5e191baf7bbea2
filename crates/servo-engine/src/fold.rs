//! The fold: state ⊕ event → state. Pure: no clock, no I/O, no randomness, no emitted events (P2, ADR-032).
//!
//! Every event is either applied or ignored with a reason. A duplicate, a stale attempt or an event about a run that
//! has left memory changes nothing.

mod audit;
mod backfills;
mod cancel;
mod clock;
pub(crate) mod conditions;
mod costs;
mod definitions;
mod dispatch;
mod expiry;
mod freshness;
pub(crate) mod incidents;
mod materializations;
mod named;
mod notifications;
mod outputs;
mod partition_life;
mod partitions;
mod pauses;
mod propagate;
mod renames;
mod requests;
mod retention;
mod reviews;
mod runs;
mod schedules;
mod sensors;
mod settings;
mod tasks;
mod timers;
mod workers;

pub(crate) use cancel::is_silent;
pub(crate) use partitions::change_partitions;
#[cfg(feature = "testing")]
pub(crate) use propagate::is_blocked;

use servo_core::planted::{self, Mistake};
use servo_core::{EventId, Millis};

use crate::event::{Event, EventData};
use crate::state::{NewerEvent, State};

/// The most that the time between two events counts for in [`Head::elapsed`](crate::rows::Head::elapsed).
const LONGEST_GAP: Millis = Millis::from_hours(1);

/// Outcome of folding one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It changed the state.
    Yes,
    /// It changed nothing, and why.
    No(Ignored),
}

/// Why an event changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// This very fact is already in the state.
    Duplicate,
    /// It is about an attempt that is no longer the newest (INV-8).
    StaleAttempt,
    /// The state it is about has moved on.
    NotInThatState,
    /// The timer is older than the row it is about (INV-9).
    NotDue,
    /// The run is not in memory: it never was, or it ended long ago.
    UnknownRun,
    /// The run has no such task.
    UnknownTask,
    /// There is no such schedule.
    UnknownSchedule,
    /// There is no such sensor.
    UnknownSensor,
    /// There is no such backfill.
    UnknownBackfill,
    /// There is no such asset, or it has no freshness policy.
    UnknownAsset,
    /// The asset has no automation condition.
    UnknownCondition,
    /// There is no such notification, or no such rule.
    UnknownNotification,
    /// The same run key with another request: recorded as a conflict.
    RunKeyConflict,
    /// Written by a newer version.
    UnknownEvent,
}

/// Identity and time of the event being folded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    pub(crate) id: EventId,
    pub(crate) time: servo_core::Timestamp,
}

impl State {
    /// Folds one event.
    pub fn apply(&mut self, event: &Event) -> Applied {
        let time = if planted::has(Mistake::FoldReadsClock) { planted::clock(event.at) } else { event.at };
        let at = At { id: event.id, time };
        self.head.last_event = self.head.last_event.max(event.id);
        let passed = event.at.since(self.head.last_event_at).min(LONGEST_GAP);
        self.head.elapsed = self.head.elapsed.saturating_add(passed);
        self.head.last_event_at = self.head.last_event_at.max(event.at);
        let applied = match &event.data {
            EventData::RunRequested(payload) => runs::requested(self, at, event, payload),
            EventData::PlanCreated(payload) => runs::planned(self, at, payload),
            EventData::RunTriggered(payload) => runs::triggered(self, at, payload),
            EventData::RunCancelRequested(payload) => cancel::requested(self, at, &event.principal, payload),
            EventData::RunKeyConflicted(payload) => requests::conflicted(self, at, event, payload),
            EventData::RequestAnswered(payload) => requests::answered(self, at, event, payload),
            EventData::DispatchRequested(payload) => dispatch::requested(self, at, payload),
            EventData::DispatchEnqueued(payload) => dispatch::enqueued(self, at, payload),
            EventData::TimerRequested(payload) => timers::requested(self, at, payload),
            EventData::TimerEnqueued(payload) => timers::enqueued(self, at, payload),
            EventData::TimerFired(payload) => timers::fired(self, at, payload),
            EventData::ClockStepped(payload) => clock::stepped(self, at, payload, &event.idempotency_key),
            EventData::TaskStarted(payload) => tasks::started(self, at, payload),
            EventData::TaskHeartbeat(payload) => tasks::heartbeat(self, at, payload),
            EventData::TaskFinished(payload) => tasks::finished(self, at, payload, &event.idempotency_key),
            EventData::AssetsDeployed(payload) => definitions::deployed(self, at, &event.principal, payload),
            EventData::DynamicPartitionsChanged(payload) => {
                partitions::changed(self, at, &event.principal, payload)
            }
            EventData::RequestRefused(payload) => return audit::refused(self, at, event, payload),
            EventData::MaterializationApproved(payload) => reviews::approved(self, at, payload),
            EventData::MaterializationRejected(payload) => reviews::rejected(self, payload),
            EventData::MaterializationReleased(payload) => reviews::released(self, at, payload),
            EventData::RetentionApplied(payload) => {
                expiry::applied(self, at, payload, &event.idempotency_key)
            }
            EventData::SettingsChanged(payload) => settings::changed(self, at, &event.principal, payload),
            EventData::PauseChanged(payload) => pauses::changed(self, at, &event.principal, payload),
            EventData::ScheduleDefined(payload) => schedules::defined(self, at, payload),
            EventData::SchedulePaused(payload) => schedules::paused(self, at, payload),
            EventData::ScheduleResumed(payload) => schedules::resumed(self, at, payload),
            EventData::ScheduleRemoved(payload) => schedules::removed(self, at, payload),
            EventData::ScheduleTicked(payload) => {
                schedules::ticked(self, at, payload, &event.idempotency_key)
            }
            EventData::ScheduleEvaluationFailed(payload) => schedules::evaluation_failed(self, at, payload),
            EventData::ScheduleEvaluationRequested(payload) => {
                schedules::evaluation_requested(self, at, payload)
            }
            EventData::SensorDefined(payload) => sensors::defined(self, at, payload),
            EventData::SensorPaused(payload) => sensors::paused(self, at, payload),
            EventData::SensorResumed(payload) => sensors::resumed(self, at, payload),
            EventData::SensorRemoved(payload) => sensors::removed(self, at, payload),
            EventData::SensorCursorReset(payload) => sensors::reset(self, at, payload),
            EventData::SensorMessageReceived(payload) => {
                sensors::message(self, at, payload, &event.idempotency_key)
            }
            EventData::SensorEvaluationRequested(payload) => sensors::evaluation_requested(self, at, payload),
            EventData::SensorEvaluated(payload) => {
                sensors::evaluated(self, at, payload, &event.idempotency_key)
            }
            EventData::WorkerRegistered(payload) => workers::registered(self, at, payload),
            EventData::WorkerChanged(payload) => workers::changed(self, at, payload),
            EventData::WorkerLeft(payload) => workers::left(self, at, payload),
            EventData::WorkerLost(payload) => workers::lost(self, at, payload),
            EventData::BackfillCreated(payload) => backfills::created(self, at, &event.principal, payload),
            EventData::BackfillChunkPlanned(payload) => backfills::chunk_planned(self, at, payload),
            EventData::BackfillStateChanged(payload) => backfills::state_changed(self, at, payload),
            EventData::FreshnessChanged(payload) => freshness::changed(self, at, payload),
            EventData::FreshnessObserved(payload) => freshness::observed(self, at, payload),
            EventData::ConditionsEvaluated(payload) => {
                conditions::evaluated(self, at, payload, &event.idempotency_key)
            }
            EventData::ConditionPauseChanged(payload) => conditions::pause_changed(self, at, payload),
            EventData::PartitionsWiped(payload) => {
                partition_life::wiped(self, at, payload, &event.idempotency_key)
            }
            EventData::PartitionsMarked(payload) => {
                partition_life::marked(self, at, payload, &event.idempotency_key)
            }
            EventData::PartitionsRestored(payload) => partition_life::restored(self, at, payload),
            EventData::PartitionsExpired(payload) => {
                partition_life::expired(self, at, payload, &event.idempotency_key)
            }
            EventData::AssetRenamed(payload) => {
                renames::renamed(self, at, &event.principal, payload, &event.idempotency_key)
            }
            EventData::AssetMoved(payload) => renames::moved(self, at, payload),
            EventData::NotificationRuleDefined(payload) => notifications::defined(self, at, payload),
            EventData::NotificationRuleChanged(payload) => notifications::changed(self, at, payload),
            EventData::NotificationTested(payload) => {
                notifications::tested(self, at, payload, &event.idempotency_key)
            }
            EventData::NotificationRequested(payload) => notifications::requested(self, at, payload),
            EventData::NotificationAttempted(payload) => notifications::attempted(self, at, payload),
            EventData::QueueServiceChanged(payload) => {
                incidents::queue_changed(self, at, payload, &event.idempotency_key)
            }
            EventData::Unknown(unknown) => {
                self.head.unknown_events += 1;
                self.newer_event.get_or_insert_with(|| NewerEvent::of(event.id, unknown));
                Applied::No(Ignored::UnknownEvent)
            }
        };
        audit::record(self, at, event, applied);
        applied
    }

    /// Folds the batch that the log numbered `seq`.
    pub fn apply_batch(&mut self, seq: u64, events: &[Event]) {
        for event in events {
            self.apply(event);
        }
        self.head.seq = seq;
    }
}
