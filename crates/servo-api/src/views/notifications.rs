//! Notification rules and notifications.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use servo_core::{EventId, RuleId, RunId, Timestamp};
use servo_engine::definitions::{Destination, Location, NotificationDef};
use servo_engine::rows::NotificationRow;
use servo_engine::{NotificationRule as EngineRule, NotificationTrigger};
use utoipa::ToSchema;

/// A notification rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct NotificationRule {
    #[schema(value_type = String)]
    pub rule_id: RuleId,
    pub name: String,
    /// Who defines it: `code` or `api`.
    pub origin: String,
    /// `ACTIVE`, `PAUSED`, or `ERROR` if it has failed to tell several times in a row.
    pub status: String,
    /// Counts definitions, pauses and resumptions.
    pub state_version: u64,
    /// What it is about, such as `run_failed`.
    pub when: Vec<String>,
    /// About which assets; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<String>,
    /// Whom it tells. Secrets are references.
    #[schema(value_type = Vec<Object>)]
    pub to: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub max_per_hour: u32,
    /// What it has told of and is not well again: partitions by asset, or schedules, sensors and queues.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub open: BTreeMap<String, Vec<String>>,
    /// What was left out since it last told something.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_sent_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub defined_at: Timestamp,
}

/// A notification: something that is told to one destination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct NotificationRecord {
    pub notification_id: String,
    pub rule: String,
    /// Why it is told.
    pub trigger: String,
    /// Position of the destination in the rule.
    pub destination: u32,
    /// `webhook`, `slack`, `email` or `command`.
    pub channel: String,
    /// `PENDING`, `SENDING`, `SENT`, `FAILED` or `DROPPED`.
    pub status: String,
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_attempt_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
    /// What has happened.
    #[schema(value_type = Object)]
    pub facts: Value,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
    /// The event that it follows from.
    #[schema(value_type = String)]
    pub created_event_id: EventId,
}

/// A notification rule to create, or its new definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NotificationBody {
    /// Letters, digits, `_` and `-`; unique in the workspace.
    pub name: String,
    /// What it is about: `run_failed`, `retries_exhausted`, `check_failed`, `check_blocked`, `freshness_missed`,
    /// `schedule_error`, `sensor_error`, `queue_without_worker`, `recovered`.
    #[schema(value_type = Vec<String>)]
    pub when: Vec<NotificationTrigger>,
    /// Whom it tells: objects with a `type` of `webhook`, `slack` or `email`.
    #[schema(value_type = Vec<Object>)]
    pub to: Vec<Destination>,
    /// About which assets; all unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The first line, with names in braces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text, with names in braces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether it tells from the beginning; true unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The most that is told within an hour; 60 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_hour: Option<u32>,
    /// The version that the caller knows, where the rule is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_state_version: Option<u64>,
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

impl From<&EngineRule> for NotificationRule {
    fn from(rule: &EngineRule) -> Self {
        let definition = &rule.definition;
        let value = |to: &Destination| serde_json::to_value(to).unwrap_or_default();
        Self {
            rule_id: rule.id,
            name: rule.name.to_string(),
            origin: rule.origin.to_string(),
            status: rule.status().to_string(),
            state_version: rule.state_version,
            when: definition.when.iter().map(ToString::to_string).collect(),
            selection: definition.selection.clone(),
            to: definition.to.iter().map(value).collect(),
            title: definition.title.clone(),
            body: definition.body.clone(),
            description: definition.description.clone(),
            max_per_hour: definition.max_per_hour,
            open: rule
                .open
                .iter()
                .map(|(what, pieces)| {
                    (what.clone(), pieces.iter().filter(|it| !it.is_empty()).cloned().collect())
                })
                .collect(),
            left_out: rule.left_out,
            last_sent_at: rule.last_sent_at,
            last_error: rule.last_error.clone(),
            created_at: rule.created_at,
            defined_at: rule.defined_at,
        }
    }
}

impl From<NotificationRow> for NotificationRecord {
    fn from(row: NotificationRow) -> Self {
        Self {
            notification_id: row.notification_id,
            rule: row.rule_name,
            trigger: row.trigger.to_string(),
            destination: row.destination,
            channel: row.channel.to_string(),
            status: row.status.to_string(),
            attempts: row.attempts,
            next_attempt_at: row.next_attempt_at,
            last_error: row.last_error,
            run_id: row.run_id,
            asset: row.asset_key,
            facts: serde_json::to_value(&*row.facts.0).unwrap_or_default(),
            created_at: row.created_at,
            finished_at: row.finished_at,
            created_event_id: row.created_event_id,
        }
    }
}

impl From<NotificationBody> for NotificationDef {
    fn from(body: NotificationBody) -> Self {
        Self {
            name: body.name.into(),
            location: Location::default(),
            when: body.when,
            to: body.to,
            selection: body.selection,
            description: body.description,
            title: body.title,
            body: body.body,
            enabled: body.enabled.unwrap_or(true),
            max_per_hour: body.max_per_hour.unwrap_or(Self::DEFAULT_PER_HOUR),
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
