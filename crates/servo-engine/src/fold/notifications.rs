//! Notification rules, and the tries to send what they tell: each is folded once by its number (ADR-165).

use std::sync::Arc;

use super::definitions::keep_version;
use super::incidents::add;
use super::{Applied, At, Ignored, retention};
use crate::definitions::NotificationDef;
use crate::event::{
    NotificationAttempted, NotificationRequested, NotificationRuleChanged, NotificationRuleDefined,
    NotificationTested, RuleChange,
};
use crate::lifecycle::{NotificationStatus, NotificationTrigger, Origin};
use crate::notification::Facts;
use crate::rows::{DefinitionChange, DefinitionKind, NotificationRow};
use crate::state::{NotificationRule, State};

/// Notifications that ended and are kept in memory.
pub(super) const RECENT: usize = 2_000;

pub(super) fn defined(state: &mut State, at: At, payload: &NotificationRuleDefined) -> Applied {
    let (id, definition) = (payload.rule_id, &payload.definition);
    let Some(known) = state.notifications.get(id) else {
        state.add_rule(NotificationRule {
            id,
            name: definition.name.as_str().into(),
            origin: payload.origin,
            definition: definition.clone(),
            definition_version: at.id,
            created_at: at.time,
            defined_at: at.time,
            removed_at: None,
            paused: !definition.enabled,
            state_version: payload.state_version,
            open: Arc::default(),
            hour_began_at: at.time,
            told_in_hour: 0,
            left_out: 0,
            failures: 0,
            last_sent_at: None,
            last_error: None,
            changed_at: at.time,
            version: at.id,
        });
        keep_definition(state, at, payload, DefinitionChange::Added);
        return Applied::Yes;
    };
    if payload.state_version <= known.state_version {
        return Applied::No(Ignored::Duplicate);
    }
    let was_removed = known.removed_at.is_some();
    let is_new = was_removed || known.origin != Origin::Code;
    state.change_rule(id, at, |rule| {
        rule.origin = payload.origin;
        rule.definition = definition.clone();
        rule.definition_version = at.id;
        rule.defined_at = at.time;
        rule.removed_at = None;
        rule.state_version = payload.state_version;
        if was_removed {
            rule.paused = !definition.enabled;
        }
    });
    let change = if is_new { DefinitionChange::Added } else { DefinitionChange::Changed };
    keep_definition(state, at, payload, change);
    Applied::Yes
}

/// Keeps definitions that code declares, so that a rollback can return to them.
fn keep_definition(state: &mut State, at: At, payload: &NotificationRuleDefined, change: DefinitionChange) {
    if payload.origin == Origin::Code {
        let (kind, definition) = (DefinitionKind::Notification, &payload.definition);
        keep_version(state, at, kind, &definition.name, change, Some(definition));
    }
}

pub(super) fn changed(state: &mut State, at: At, payload: &NotificationRuleChanged) -> Applied {
    let Some(rule) = state.notifications.get(payload.rule_id) else {
        return Applied::No(Ignored::UnknownNotification);
    };
    if payload.state_version <= rule.state_version {
        return Applied::No(Ignored::Duplicate);
    }
    let is_gone = payload.change == RuleChange::Removed && rule.origin == Origin::Code;
    let gone = is_gone.then(|| rule.name.clone());
    state.change_rule(payload.rule_id, at, |rule| {
        rule.state_version = payload.state_version;
        match payload.change {
            RuleChange::Paused => rule.paused = true,
            RuleChange::Resumed => rule.paused = false,
            RuleChange::Removed => {
                rule.removed_at = Some(at.time);
                rule.definition_version = at.id;
                rule.open = Arc::default();
            }
        }
    });
    if let Some(name) = gone {
        let (kind, change) = (DefinitionKind::Notification, DefinitionChange::Removed);
        keep_version(state, at, kind, &name, change, None::<&NotificationDef>);
    }
    Applied::Yes
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
    row.next_attempt_at = payload.retry_at;
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
