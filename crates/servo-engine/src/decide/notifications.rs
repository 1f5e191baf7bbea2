//! Requests about notification rules, and what came of tries to send.

use std::sync::Arc;

use servo_core::{RuleId, Timestamp};

use super::{Decision, named};
use crate::command::{ChangeNotification, NotificationChange};
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
use crate::refusal::Refusal;
use crate::state::{NotificationRule, State};

/// The longest error of a try that is recorded.
const MAX_RECORDED: usize = 500;

const RULES: named::Kind = named::Kind { name: "notification", quota: "max_notification_rules", most: 1_000 };

pub(super) fn change(state: &State, command: &ChangeNotification, now: Timestamp) -> Decision {
    match changed(state, command, now) {
        Ok(Some(event)) => Decision::change(event, command.caller.principal.clone()),
        Ok(None) => Decision::unchanged(),
        Err(refusal) => Decision::refuse(refusal),
    }
}

fn changed(
    state: &State,
    command: &ChangeNotification,
    now: Timestamp,
) -> Result<Option<EventData>, Refusal> {
    if let NotificationChange::Create(definition) = &command.change {
        check(state, definition)?;
        let known = state.notifications.find(&definition.name).map(|rule| &**rule);
        RULES.may_create(&definition.name, known, state.notifications.len())?;
        let (id, version) = identity(state, &definition.name, known, now);
        return Ok(Some(defined(id, Origin::Api, version, definition)));
    }
    let rule = find(state, &command.rule)?;
    RULES.expect_version(rule, command.expected_state_version)?;
    let (rule_id, state_version) = (rule.id, rule.state_version + 1);
    let change = |change| {
        Some(EventData::NotificationRuleChanged(NotificationRuleChanged { rule_id, state_version, change }))
    };
    Ok(match &command.change {
        NotificationChange::Pause if rule.paused => None,
        NotificationChange::Pause => change(RuleChange::Paused),
        NotificationChange::Resume if !rule.paused => None,
        NotificationChange::Resume => change(RuleChange::Resumed),
        NotificationChange::Remove => {
            RULES.is_changeable(rule)?;
            change(RuleChange::Removed)
        }
        NotificationChange::Test => {
            let after = state.head.last_event;
            Some(EventData::NotificationTested(NotificationTested { rule_id, after }))
        }
        NotificationChange::Create(definition) | NotificationChange::Redefine(definition) => {
            RULES.is_changeable(rule)?;
            check(state, definition)?;
            (rule.definition != *definition).then(|| defined(rule_id, Origin::Api, state_version, definition))
        }
    })
}

/// The differences between the notification rules of a project and those of the state.
pub(super) fn deploy(
    state: &State,
    rules: &[Arc<NotificationDef>],
    now: Timestamp,
) -> Result<Vec<EventData>, Refusal> {
    let declared = RULES.declared(rules.iter().map(|rule| (rule.name.as_str(), rule)))?;
    let mut events = Vec::new();
    for (name, definition) in &declared {
        let known = state.notifications.find(name).map(|rule| &**rule);
        RULES.may_deploy(name, known)?;
        let is_same =
            |known: &&NotificationRule| known.removed_at.is_none() && known.definition == **definition;
        if known.is_some_and(|known| is_same(&known)) {
            continue;
        }
        let (id, version) = identity(state, name, known, now);
        events.push(defined(id, Origin::Code, version, definition));
    }
    RULES.limit(state.notifications.len() + events.len())?;
    let is_gone =
        |rule: &&NotificationRule| rule.origin == Origin::Code && !declared.contains_key(&*rule.name);
    events.extend(state.notification_rules().filter(is_gone).map(|rule| {
        EventData::NotificationRuleChanged(NotificationRuleChanged {
            rule_id: rule.id,
            state_version: rule.state_version + 1,
            change: RuleChange::Removed,
        })
    }));
    Ok(events)
}

/// A try has ended: the notification was sent, is tried again, or is given up.
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

fn find<'a>(state: &'a State, name: &str) -> Result<&'a NotificationRule, Refusal> {
    state.notification_rule(name).ok_or_else(|| Refusal::UnknownNotification { name: name.to_owned() })
}

/// A rule without a selection needs no project.
fn check(state: &State, definition: &NotificationDef) -> Result<(), Refusal> {
    let bad = |problem: String| RULES.bad(&definition.name, problem);
    if let Some(problem) = foreign(definition) {
        return Err(bad(problem));
    }
    let definitions = state.checked_definitions().ok_or_else(|| bad(named::NOTHING_DEPLOYED.to_owned()))?;
    definitions.check_notification(definition).map_err(|problems| bad(named::told(&problems)))
}

fn identity(state: &State, name: &str, known: Option<&NotificationRule>, now: Timestamp) -> (RuleId, u64) {
    match known {
        Some(known) => (known.id, known.state_version + 1),
        None => (rule_id(state.tenant(), state.workspace(), name, now), 1),
    }
}

fn defined(
    rule_id: RuleId,
    origin: Origin,
    state_version: u64,
    definition: &Arc<NotificationDef>,
) -> EventData {
    let definition = definition.clone();
    EventData::NotificationRuleDefined(NotificationRuleDefined { rule_id, origin, state_version, definition })
}
