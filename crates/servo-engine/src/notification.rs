//! Notifications: what is told to people outside of Servo, and the words for it.
//!
//! The fold decides that something is to be told, a controller asks for each try, and whoever drives the engine sends it
//! once that is durable (ADR-165). Nothing here knows a secret.

pub mod template;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{Millis, RuleId, RunId, Timestamp};

use crate::definitions::{Destination, NotificationDef};
use crate::lifecycle::NotificationTrigger;

/// Tries of one notification.
pub const MAX_ATTEMPTS: u32 = 10;

/// Notifications that are older than this when they could be sent are news to nobody.
pub const MAX_WAIT: Millis = Millis::from_hours(24);

const FIRST_DELAY: Millis = Millis::from_secs(5);
const LONGEST_DELAY: Millis = Millis::from_minutes(15);

/// Assets that a notification names; of others it says how many there are.
pub(crate) const NAMED_ASSETS: usize = 20;

/// The longest error that a notification repeats.
pub(crate) const MAX_ERROR: usize = 2_000;

/// The occurrence that a notification reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// When.
    pub at: Timestamp,
    /// A sentence for people.
    pub summary: String,
    /// The assets that it is about, the first few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assets: Vec<String>,
    /// How many there are besides.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_assets: u64,
    /// The partition, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Owners of these assets, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    /// The first error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The sensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensor: Option<String>,
    /// The queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Notifications of the same rule that were left out since the one before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

impl Facts {
    /// Facts of which nothing more is known.
    pub fn new(at: Timestamp, summary: impl Into<String>) -> Self {
        Self {
            at,
            summary: summary.into(),
            assets: Vec::new(),
            more_assets: 0,
            partition: None,
            owners: Vec::new(),
            error: None,
            run_id: None,
            check: None,
            schedule: None,
            sensor: None,
            queue: None,
            left_out: 0,
        }
    }
}

/// One try of one notification, as whoever sends it is given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The same for every try: whoever is told twice can see it.
    pub notification_id: Arc<str>,
    /// Which try it is.
    pub attempt: u32,
    /// The rule.
    pub rule_id: RuleId,
    /// The rule, with its templates.
    pub rule: Arc<NotificationDef>,
    /// Position of the destination in it.
    pub destination: u32,
    /// Why.
    pub trigger: NotificationTrigger,
    /// The occurrence.
    pub facts: Arc<Facts>,
    /// Whether addresses of private networks may be reached.
    pub private_addresses: bool,
}

impl Delivery {
    /// Where it goes.
    pub fn to(&self) -> Option<&Destination> {
        self.rule.to.get(self.destination as usize)
    }
}

/// How a try of a notification ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notified {
    /// The notification.
    pub notification_id: Arc<str>,
    /// The try.
    pub attempt: u32,
    /// Why it failed; none if it was sent.
    pub failure: Option<SendFailure>,
}

/// Why a notification could not be sent. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendFailure {
    /// For people.
    pub message: String,
    /// Whether another try may do better.
    pub retry: bool,
}

/// How long to wait after so many failures in a row.
pub(crate) fn delay_after(attempts: u32) -> Millis {
    FIRST_DELAY.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(LONGEST_DELAY)
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
