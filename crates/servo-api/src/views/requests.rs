//! Bodies of requests from people, and of their responses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_core::{EventId, Millis, Operation, RunId, Timestamp};
use servo_engine::planner::PartitionChoice;
use servo_engine::{Change, PartitionsReply, RunSource};
use utoipa::ToSchema;

use super::admission::PauseBody;
use super::deployments::RollbackBody;
use super::notifications::NotificationBody;
use super::partition_life::{MarkBody, UndoBody, WipeBody};
use super::renames::RenameBody;
use super::retention::ApplyRetentionBody;
use super::schedules::{ScheduleBody, TriggerScheduleBody, VersionBody};
use super::sensors::{EvaluateBody, ResetCursorBody, SensorBody};
use super::settings::SettingsBody;
use crate::extract::Asked;

/// A request to run assets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunBody {
    /// Selection of assets: names, globs, `+upstream`, `downstream+`, `tag:`, `group:`, `owner:`, `kind:`, `and`, `or`,
    /// `not`.
    pub selection: String,
    /// `materialize` unless said otherwise; `check` runs the checks of data that is there, and makes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<RequestOperation>,
    /// Partitions of the assets; for checks all that are materialized if none are given.
    #[serde(default, skip_serializing_if = "PartitionsBody::is_empty")]
    pub partitions: PartitionsBody,
    /// Values of configuration fields, by field or by `namespace.name:field`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub config: BTreeMap<String, serde_json::Value>,
    /// Stable name of the request: the same key is the same run. Generated if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_key: Option<String>,
    /// Higher runs first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Free labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Timeout of the run in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub timeout_ms: Option<Millis>,
    /// Whether tasks that fail are left at that, whatever their policy says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_retry: bool,
    /// `manual` if a person asks, with a command; `api` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RequestSource>,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// The operation of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestOperation {
    /// Makes the assets.
    Materialize,
    /// Runs the checks of assets on what is materialized.
    Check,
}

impl From<RequestOperation> for Operation {
    fn from(operation: RequestOperation) -> Self {
        match operation {
            RequestOperation::Materialize => Operation::Materialize,
            RequestOperation::Check => Operation::Check,
        }
    }
}

/// Who makes a request for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestSource {
    /// A person, with a command.
    Manual,
    /// A program.
    Api,
}

impl From<RequestSource> for RunSource {
    fn from(source: RequestSource) -> Self {
        match source {
            RequestSource::Manual => RunSource::Manual,
            RequestSource::Api => RunSource::Api,
        }
    }
}

/// Partitions in the user's notation; the union of all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionsBody {
    /// Keys, such as `2013-01-15` or `date=2013-01-15,region=eu`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Ranges, such as `2013-01-01..2013-01-31`, both ends included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<String>,
    /// The newest partition of every asset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub latest: bool,
    /// Of these, or of all if none are given, only those that were never made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
    /// Of these, or of all if none are given, only those whose last attempt failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Of these, or of all if none are given, only those that have to be made to be up to date.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

/// Options of a cancellation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelBody {
    /// The reason, for the log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Do not wait for workers that have fallen silent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// A request to retry tasks of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryBody {
    /// Retry only tasks that did not succeed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_failure: bool,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// A request to try at once what waits to be tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryNowBody {
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// Options of a review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewBody {
    /// The reason, for the log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// Keys of dynamic partitions to add and to remove.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePartitionsBody {
    /// Those that are there already do not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Those that are not there do not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// Outcome of a change of dynamic partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartitionsChanged {
    /// How many are new.
    pub added: u64,
    /// How many are gone.
    pub removed: u64,
    /// The event; absent if everything was like that before.
    #[serde(flatten)]
    pub accepted: Accepted,
}

/// A run that was requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptedRun {
    /// The run.
    #[schema(value_type = String)]
    pub run_id: RunId,
    /// Number of tasks.
    pub tasks: u64,
    /// The event, and its time.
    #[serde(flatten)]
    pub accepted: Accepted,
}

/// The request is durable in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The event; absent if there was nothing left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub accepted_event_id: Option<EventId>,
    /// When it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub accepted_at: Option<Timestamp>,
}

impl Accepted {
    /// The time is in the id.
    pub(crate) fn by(event: Option<EventId>) -> Self {
        let at = |event: EventId| Timestamp::from_millis(event.timestamp_ms().cast_signed());
        Self { accepted_event_id: event, accepted_at: event.map(at) }
    }
}

impl From<Change> for Accepted {
    fn from(change: Change) -> Self {
        Self::by(change.event_id())
    }
}

impl From<PartitionsReply> for PartitionsChanged {
    fn from(PartitionsReply { change, added, removed }: PartitionsReply) -> Self {
        Self { added, removed, accepted: change.into() }
    }
}

impl PartitionsBody {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The choice of a schedule. Its ticks request the newest partitions anyway, and of assets without any they must not
    /// ask for some.
    pub(super) fn of_ticks(self) -> PartitionChoice {
        let newest = Self { latest: true, ..Self::default() };
        if self == newest { PartitionChoice::default() } else { self.into() }
    }
}

impl From<PartitionChoice> for PartitionsBody {
    fn from(choice: PartitionChoice) -> Self {
        let PartitionChoice { keys, ranges, latest, missing, failed, stale } = choice;
        Self { keys, ranges, latest, missing, failed, stale }
    }
}

impl From<PartitionsBody> for PartitionChoice {
    fn from(body: PartitionsBody) -> Self {
        let PartitionsBody { keys, ranges, latest, missing, failed, stale } = body;
        Self { keys, ranges, latest, missing, failed, stale }
    }
}

macro_rules! asked {
    ($($body:ident),*) => {
        $(impl Asked for $body {
            fn client_request_id(&self) -> Option<&str> {
                self.client_request_id.as_deref()
            }
        })*
    };
}

asked!(
    RunBody,
    CancelBody,
    RetryBody,
    RetryNowBody,
    ReviewBody,
    ChangePartitionsBody,
    ScheduleBody,
    TriggerScheduleBody,
    VersionBody,
    SensorBody,
    NotificationBody,
    ResetCursorBody,
    EvaluateBody,
    SettingsBody,
    PauseBody,
    ApplyRetentionBody,
    WipeBody,
    MarkBody,
    UndoBody,
    RenameBody,
    RollbackBody
);

fn is_zero(value: &i32) -> bool {
    *value == 0
}
