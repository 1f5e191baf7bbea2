//! Tables `notification_rules` and `notifications`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::{EventId, RuleId, RunId, Timestamp};

use super::Json;
use super::table::table;
use crate::definitions::NotificationDef;
use crate::lifecycle::{AutomationStatus, Channel, NotificationStatus, NotificationTrigger, Origin};
use crate::notification::Facts;

table! {
    /// One row per notification rule that is or was defined.
    "notification_rules" => NotificationRuleRow {
        key (rule_id: RuleId),
        sorted by row_version,
        at |row| row.changed_at,
    }
    columns {
        rule_id: RuleId, unique;
        name: String, unique;
        /// Who defines it: code or api.
        origin: Origin;
        status: AutomationStatus;
        paused: bool;
        /// Counts definitions, pauses and resumptions.
        state_version: u64;
        /// About which assets; all if none.
        asset_selection: Option<String>;
        /// The whole definition, as in the manifest. Secrets are references.
        definition: Json<Arc<NotificationDef>>, unique;
        /// The event that made the definition, or removed the rule.
        definition_version: EventId;
        created_at: Timestamp;
        /// When this definition was made.
        defined_at: Timestamp;
        /// When it was removed; none if it is there.
        removed_at: Option<Timestamp>;
        /// What it has told of and is not well again: partitions by asset, or schedules, sensors and queues.
        open: Json<Arc<BTreeMap<String, BTreeSet<String>>>>;
        /// Since when what it tells is counted.
        hour_began_at: Timestamp;
        /// How often it has told something since then.
        told_in_hour: u32;
        /// What was left out since it last told something.
        left_out: u64;
        /// Notifications that failed in a row.
        failures: u32;
        last_sent_at: Option<Timestamp>;
        last_error: Option<String>;
        /// When this row last changed.
        changed_at: Timestamp;
        row_version: EventId, unique;
    }
}

table! {
    /// One row per notification: something that is told to one destination.
    "notifications" => NotificationRow {
        key (notification_id: String),
        sorted by row_version,
        at |row| row.created_at,
        facet status,
        lookup rule_id,
    }
    columns {
        notification_id: String, unique;
        rule_id: RuleId;
        rule_name: String;
        /// Why it is told.
        trigger: NotificationTrigger;
        /// Position of the destination in the rule.
        destination: u32;
        channel: Channel;
        status: NotificationStatus;
        /// Tries, with the one that is under way.
        attempts: u32;
        /// When it is tried next.
        next_attempt_at: Option<Timestamp>;
        /// Why the last try failed.
        last_error: Option<String>;
        run_id: Option<RunId>;
        asset_key: Option<String>;
        /// What has happened, as JSON.
        facts: Json<Arc<Facts>>;
        created_at: Timestamp;
        finished_at: Option<Timestamp>;
        /// The event that it follows from.
        created_event_id: EventId;
        row_version: EventId, unique;
    }
}
