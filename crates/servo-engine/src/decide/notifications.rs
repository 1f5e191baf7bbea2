//! Requests about notification rules, and what came of tries to send.

use std::sync::Arc;

use servo_core::{RuleId, Timestamp};

use super::Decision;
use super::named::{self, Decided, Turn};
use crate::command::{ChangeNotification, SendTest};
use crate::definitions::{NotificationDef, foreign};
use crate::derive::rule_id;
use crate::evaluation::cut;
use crate::event::{
    EventData, NotificationAttempted, NotificationRuleChanged, NotificationRuleDefined, NotificationTested,
    RuleChange,
};
use crate::lifecycle::{NotificationStatus, NotificationTrigger, Origin};
use crate::notification::{MAX_ATTEMPTS, Notified, delay_after};
use crate::principal::Principal;
use crate::state::{NotificationRule, State};

/// The longest error of a try that is recorded.
const MAX_RECORDED: usize = 500;

impl Decided for NotificationRule {
    const NAME: &'static str = "notification";
    const QUOTA: &'static str = "max_notification_rules";
    const MOST: usize = 1_000;

    fn new_id(state: &State, name: &str, now: Timestamp) -> RuleId {
        rule_id(state.tenant(), state.workspace(), name, now)
    }

    fn check(state: &State, definition: &NotificationDef) -> Result<(), String> {
        if let Some(problem) = foreign(definition) {
            return Err(problem);
        }
        let definitions = state.checked_definitions().ok_or(named::NOTHING_DEPLOYED)?;
        definitions.check_notification(definition).map_err(|problems| named::told(&problems))
    }

    fn defined(
        rule_id: RuleId,
        origin: Origin,
        state_version: u64,
        definition: Arc<NotificationDef>,
    ) -> EventData {
        EventData::NotificationRuleDefined(NotificationRuleDefined {
            rule_id,
            origin,
            state_version,
            definition,
        })
    }

    fn turned(rule_id: RuleId, state_version: u64, turn: Turn) -> EventData {
        let change = match turn {
            Turn::Paused => RuleChange::Paused,
            Turn::Resumed => RuleChange::Resumed,
            Turn::Removed => RuleChange::Removed,
        };
        EventData::NotificationRuleChanged(NotificationRuleChanged { rule_id, state_version, change })
    }
}

pub(super) fn change(state: &State, command: &ChangeNotification, now: Timestamp) -> Decision {
    named::change(state, command, now, |rule: &NotificationRule, SendTest| {
        let (rule_id, after) = (rule.id, state.head.last_event);
        Ok(Some(EventData::NotificationTested(NotificationTested { rule_id, after })))
    })
}

/// A try has ended: the notification was sent, is tried again, or fails for good.
pub(super) fn notified(state: &State, answer: &Notified, now: Timestamp) -> Decision {
    let row = state.notifications.row(&answer.notification_id);
    let is_open = |status, attempts| status == NotificationStatus::Sending && attempts == answer.attempt;
    let Some(row) = row.filter(|row| is_open(row.status, row.attempts)) else {
        return Decision::unchanged();
    };
    let tries = if row.trigger == NotificationTrigger::Test { 1 } else { MAX_ATTEMPTS };
    let (status, error, retry_at) = match &answer.failure {
        None => (NotificationStatus::Sent, None, None),
        Some(failure) => {
            let again = failure.retry && answer.attempt < tries;
            let retry_at = again.then(|| now.saturating_add(delay_after(answer.attempt)));
            let status = if again { NotificationStatus::Pending } else { NotificationStatus::Failed };
            (status, Some(cut(&failure.message, MAX_RECORDED)), retry_at)
        }
    };
    let event = EventData::NotificationAttempted(NotificationAttempted {
        notification_id: answer.notification_id.clone(),
        attempt: answer.attempt,
        status,
        error,
        retry_at,
    });
    Decision::change(event, Principal::controller("notifications"))
}
