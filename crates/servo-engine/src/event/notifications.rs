//! Events of notifications: rules, tests, tries, and queues that nobody serves.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{EventId, RuleId, Timestamp};

use super::Payload;
use crate::audit::Act;
use crate::definitions::NotificationDef;
use crate::lifecycle::{NotificationStatus, Origin};
use crate::principal::Principal;

/// A notification rule is new, or its definition has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationRuleDefined {
    /// The rule.
    pub rule_id: RuleId,
    /// Who defines it.
    pub origin: Origin,
    /// The version of its state that this makes, from 1.
    pub state_version: u64,
    /// The whole definition.
    pub definition: Arc<NotificationDef>,
}

/// A notification rule was paused, resumed or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationRuleChanged {
    /// The rule.
    pub rule_id: RuleId,
    /// The version of its state that this makes.
    pub state_version: u64,
    /// The change.
    pub change: RuleChange,
}

/// A change of a notification rule that leaves its definition as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleChange {
    /// It tells nothing.
    Paused,
    /// It does again.
    Resumed,
    /// It is no longer declared, or was deleted. Its notifications stay.
    Removed,
}

/// Somebody wants to see whether the notifications of a rule arrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationTested {
    /// The rule.
    pub rule_id: RuleId,
    /// The event before it, which names the test.
    pub after: EventId,
}

/// Intent: a notification is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationRequested {
    /// The notification.
    pub notification_id: Arc<str>,
    /// Which try it is, from 1.
    pub attempt: u32,
}

/// Acknowledgement: a notification was sent, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationAttempted {
    /// The notification.
    pub notification_id: Arc<str>,
    /// Which try it was; none was made if it is 0.
    pub attempt: u32,
    /// The state that it has now.
    pub status: NotificationStatus,
    /// Why it was not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
}

/// Tasks wait for a queue that no worker serves, or do not any more. Recorded where a rule asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueServiceChanged {
    /// The queue.
    pub queue: Arc<str>,
    /// Whether it is served.
    pub served: bool,
    /// Since when it was seen to be so.
    pub since: Timestamp,
}

impl Payload for NotificationRuleDefined {
    fn idempotency_key(&self) -> String {
        format!("notification_def:{}:{}", self.rule_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::DEFINE_NOTIFICATION, self.rule_id, &*self.definition.name))
    }
}

impl Payload for NotificationRuleChanged {
    fn idempotency_key(&self) -> String {
        format!("notification_change:{}:{}", self.rule_id, self.state_version)
    }

    fn act(&self) -> Option<Act> {
        let action = match self.change {
            RuleChange::Paused => Act::PAUSE_NOTIFICATION,
            RuleChange::Resumed => Act::RESUME_NOTIFICATION,
            RuleChange::Removed => Act::REMOVE_NOTIFICATION,
        };
        Some(Act::new(action, self.rule_id, ""))
    }
}

impl Payload for NotificationTested {
    fn idempotency_key(&self) -> String {
        format!("notification_test:{}:{}", self.rule_id, self.after)
    }

    fn act(&self) -> Option<Act> {
        Some(Act::new(Act::TEST_NOTIFICATION, self.rule_id, ""))
    }
}

impl Payload for NotificationRequested {
    fn idempotency_key(&self) -> String {
        format!("notify:{}:{}", self.notification_id, self.attempt)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("notifications")
    }
}

impl Payload for NotificationAttempted {
    fn idempotency_key(&self) -> String {
        format!("notified:{}:{}", self.notification_id, self.attempt)
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("notifications")
    }
}

impl Payload for QueueServiceChanged {
    fn idempotency_key(&self) -> String {
        let state = if self.served { "served" } else { "unserved" };
        format!("queue_{state}:{}:{}", self.queue, self.since.as_millis())
    }

    fn usual_principal(&self) -> Principal {
        Principal::controller("notifications")
    }
}
