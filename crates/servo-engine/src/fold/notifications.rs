//! Notification rules, and the tries to send what they tell: each is folded once by its number (ADR-165).

use std::sync::Arc;

use servo_core::RuleId;
use servo_core::planted::{self, Mistake};

use super::incidents::add;
use super::named::{self, Folded};
use super::{Applied, At, Ignored, retention};
use crate::event::{
    NotificationAttempted, NotificationRequested, NotificationRuleChanged, NotificationRuleDefined,
    NotificationTested, RuleChange,
};
use crate::lifecycle::{NotificationStatus, NotificationTrigger};
use crate::notification::Facts;
use crate::rows::{DefinitionKind, NotificationRow};
use crate::state::{Defined, NotificationRule, State};

/// Notifications that ended and are kept in memory.
pub(super) const RECENT: usize = 2_000;

impl Folded for NotificationRule {
    const KIND: DefinitionKind = DefinitionKind::Notification;
    const UNKNOWN: Ignored = Ignored::UnknownNotification;

    fn add(state: &mut State, new: Self) {
        state.add_rule(new);
    }

    fn change(state: &mut State, id: RuleId, at: At, change: impl FnOnce(&mut Self)) {
        state.change_rule(id, at, change);
    }
}

pub(super) fn defined(state: &mut State, at: At, payload: &NotificationRuleDefined) -> Applied {
    let (id, definition) = (payload.rule_id, &payload.definition);
    let new = Defined::new(id, payload.origin, definition, payload.state_version, at);
    let create = |defined| NotificationRule {
        defined,
        open: Arc::default(),
        hour_began_at: at.time,
        told_in_hour: 0,
        left_out: 0,
        last_sent_at: None,
        changed_at: at.time,
    };
    named::defined(state, at, new, create, |_, _| {})
}

pub(super) fn changed(state: &mut State, at: At, payload: &NotificationRuleChanged) -> Applied {
    let (id, version) = (payload.rule_id, payload.state_version);
    match payload.change {
        RuleChange::Paused => {
            named::changed(state, at, id, version, |rule: &mut NotificationRule| rule.paused = true)
        }
        RuleChange::Resumed => {
            named::changed(state, at, id, version, |rule: &mut NotificationRule| rule.paused = false)
        }
        RuleChange::Removed => named::removed(state, at, id, version, |rule: &mut NotificationRule| {
            rule.open = Arc::default();
        }),
    }
}

pub(super) fn tested(state: &mut State, at: At, payload: &NotificationTested, key: &str) -> Applied {
    let Some(rule) = state.notifications.get(payload.rule_id).cloned() else {
        return Applied::No(Ignored::UnknownNotification);
    };
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    let summary = format!("a test of notification rule {}", rule.name);
    let facts = Arc::new(Facts::new(at.time, summary));
    add(state, at, &rule, NotificationTrigger::Test, &payload.after.to_string(), &facts);
    Applied::Yes
}

pub(super) fn requested(state: &mut State, at: At, payload: &NotificationRequested) -> Applied {
    let Some(row) = state.notifications.row(&payload.notification_id) else {
        return Applied::No(Ignored::UnknownNotification);
    };
    if payload.attempt <= row.attempts {
        return Applied::No(Ignored::Duplicate);
    }
    if row.status != NotificationStatus::Pending {
        return Applied::No(Ignored::NotInThatState);
    }
    let mut row = NotificationRow::clone(row);
    (row.status, row.attempts, row.next_attempt_at) = (NotificationStatus::Sending, payload.attempt, None);
    row.row_version = at.id;
    state.put_notification(row, RECENT);
    Applied::Yes
}

pub(super) fn attempted(state: &mut State, at: At, payload: &NotificationAttempted) -> Applied {
    let Some(row) = state.notifications.row(&payload.notification_id) else {
        return Applied::No(Ignored::UnknownNotification);
    };
    if row.status.is_final() || at.id <= row.row_version {
        return Applied::No(Ignored::Duplicate);
    }
    // A try that is not made any more is counted as none.
    let is_dropped = payload.attempt == 0;
    if !is_dropped && (row.status != NotificationStatus::Sending || payload.attempt != row.attempts) {
        return Applied::No(Ignored::StaleAttempt);
    }
    let (rule, mut row) = (row.rule_id, NotificationRow::clone(row));
    row.status = payload.status;
    row.last_error.clone_from(&payload.error);
    row.next_attempt_at = payload.retry_at.filter(|_| !planted::has(Mistake::NotificationForgotten));
    row.finished_at = payload.status.is_final().then_some(at.time);
    row.row_version = at.id;
    state.put_notification(row, RECENT);
    state.change_rule(rule, at, |rule| match payload.status {
        NotificationStatus::Sent => {
            (rule.failures, rule.last_error) = (0, None);
            rule.last_sent_at = Some(at.time);
        }
        NotificationStatus::Failed | NotificationStatus::Pending => {
            rule.failures = rule.failures.saturating_add(1);
            rule.last_error.clone_from(&payload.error);
        }
        NotificationStatus::Sending | NotificationStatus::Dropped => {}
    });
    Applied::Yes
}
