//! Commands about schedules, sensors, notification rules and conditions.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use servo_core::{AssetKey, EvaluationId};

use super::StoredRunKey;
use crate::definitions::{NotificationDef, ScheduleDef, SensorDef};
use crate::evaluation::{EvaluationReport, EvaluationResult};
use crate::planner::PartitionChoice;
use crate::principal::Caller;

/// Define, pause, resume or remove something that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeNamed<C> {
    /// Its name or its id.
    pub name: String,
    /// The version that the caller knows; refused if there is another by now.
    pub expected_state_version: Option<u64>,
    /// The change.
    pub change: C,
    /// Who asks.
    pub caller: Caller,
}

/// A change of something that has a name. `X` are the changes that only things of its kind know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedChange<D, X = Infallible> {
    /// It is new.
    Create(Arc<D>),
    /// It has another definition.
    Redefine(Arc<D>),
    /// It does nothing until it is resumed.
    Pause,
    /// It goes on.
    Resume,
    /// It is removed; what came of it stays.
    Remove,
    /// A change of its kind alone.
    Own(X),
}

/// Define, pause, resume or remove a schedule.
pub type ChangeSchedule = ChangeNamed<ScheduleChange>;

/// A change of a schedule.
pub type ScheduleChange = NamedChange<ScheduleDef>;

/// Define, pause, resume or remove a sensor, or set its cursor.
pub type ChangeSensor = ChangeNamed<SensorChange>;

/// A change of a sensor.
pub type SensorChange = NamedChange<SensorDef, ResetCursor>;

/// The cursor of a sensor is set, or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetCursor(pub Option<Arc<str>>);

/// Define, pause, resume, remove or test a notification rule.
pub type ChangeNotification = ChangeNamed<NotificationChange>;

/// A change of a notification rule.
pub type NotificationChange = NamedChange<NotificationDef, SendTest>;

/// Each destination of a notification rule is sent a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendTest;

/// Make a tick of a schedule now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerSchedule {
    /// Its name or its id.
    pub schedule: String,
    /// Partitions instead of the newest complete one.
    pub partitions: PartitionChoice,
    /// Values of configuration fields as JSON texts, beside those of the definition.
    pub config: BTreeMap<String, String>,
    /// The return value of its function, if it has one.
    pub evaluated: Option<EvaluationResult>,
    /// Rows in the tables of run keys that the function has chosen, by whole key.
    pub stored_keys: BTreeMap<Arc<str>, StoredRunKey>,
    /// Who asks.
    pub caller: Caller,
}

/// Tell a sensor something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushMessage {
    /// Its name or its id.
    pub sensor: String,
    /// The id that the sender gave the message.
    pub message_id: Arc<str>,
    /// The message, a JSON object.
    pub message: Arc<str>,
    /// Who asks.
    pub caller: Caller,
}

/// A sensor was evaluated because somebody asked for it.
#[derive(Debug, Clone)]
pub struct EvaluatedByHand {
    /// Its name or its id.
    pub sensor: String,
    /// The call.
    pub evaluation_id: EvaluationId,
    /// The version that the call knew; refused if there is another by now.
    pub expected_state_version: u64,
    /// The result.
    pub report: EvaluationReport,
    /// Rows in the tables of run keys that the function has chosen, by whole key.
    pub stored_keys: BTreeMap<Arc<str>, StoredRunKey>,
    /// Who asks.
    pub caller: Caller,
}

/// Pause or resume the automation of an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseCondition {
    /// The asset.
    pub asset: AssetKey,
    /// Whether it is to be paused.
    pub paused: bool,
    /// The version that the caller knows; refused if there is another by now.
    pub expected_state_version: Option<u64>,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub caller: Caller,
}
