//! Notification rules, what they have told of and is not well again, and their notifications: those that wait, and the
//! newest of those that ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::selection::Selection;
use servo_core::{AssetKey, EventId, RuleId, Timestamp};

use super::named::{Defined, NamedMap};
use super::{SharedMap, State};
use crate::definitions::NotificationDef;
use crate::fold::At;
use crate::lifecycle::{NotificationStatus, NotificationTrigger};
use crate::rows::{Json, NotificationRow, NotificationRuleRow};

/// A notification rule that is or was defined. Its failures are notifications that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NotificationRule {
    pub defined: Defined<RuleId, NotificationDef>,
    /// Open incidents: partitions by asset, or schedules, sensors and queues.
    pub open: Arc<BTreeMap<String, BTreeSet<String>>>,
    /// Since when what it tells is counted.
    pub hour_began_at: Timestamp,
    /// How often it has told something since then.
    pub told_in_hour: u32,
    /// The number of occurrences left out since its last notification.
    pub left_out: u64,
    pub last_sent_at: Option<Timestamp>,
    pub changed_at: Timestamp,
}

impl NotificationRule {
    /// Whether it tells what happens now.
    pub(crate) fn is_active(&self) -> bool {
        !self.paused && self.removed_at.is_none()
    }

    fn row(&self) -> NotificationRuleRow {
        NotificationRuleRow {
            rule_id: self.id,
            name: self.name.to_string(),
            origin: self.origin,
            status: self.status(),
            paused: self.paused,
            state_version: self.state_version,
            asset_selection: self.definition.selection.clone(),
            definition: Json(self.definition.clone()),
            definition_version: self.definition_version,
            created_at: self.created_at,
            defined_at: self.defined_at,
            removed_at: self.removed_at,
            open: Json(self.open.clone()),
            hour_began_at: self.hour_began_at,
            told_in_hour: self.told_in_hour,
            left_out: self.left_out,
            failures: self.failures,
            last_sent_at: self.last_sent_at,
            last_error: self.last_error.clone(),
            changed_at: self.changed_at,
            row_version: self.version,
        }
    }

    fn restore(row: NotificationRuleRow) -> Self {
        Self {
            defined: Defined {
                id: row.rule_id,
                name: row.name.into(),
                origin: row.origin,
                definition: row.definition.0,
                definition_version: row.definition_version,
                created_at: row.created_at,
                defined_at: row.defined_at,
                removed_at: row.removed_at,
                paused: row.paused,
                state_version: row.state_version,
                failures: row.failures,
                last_error: row.last_error,
                version: row.row_version,
            },
            open: row.open.0,
            hour_began_at: row.hour_began_at,
            told_in_hour: row.told_in_hour,
            left_out: row.left_out,
            last_sent_at: row.last_sent_at,
            changed_at: row.changed_at,
        }
    }
}

/// The assets that a rule selects, as long as neither the rule nor the assets change.
#[derive(Debug, Clone)]
struct Selected {
    deployment: u64,
    definition: EventId,
    /// None if it selects all.
    assets: Option<Arc<BTreeSet<AssetKey>>>,
}

/// The notification rules of a workspace and their notifications.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notifications {
    pub(super) named: NamedMap<NotificationRule>,
    /// Those in memory: all that wait, and the newest of those that ended.
    rows: SharedMap<Arc<str>, Arc<NotificationRow>>,
    /// Those that ended, in the order in which they did.
    ended: SharedMap<(EventId, Arc<str>), ()>,
    /// Rules that are there, by what they are about. Follows from the definitions.
    about: Arc<BTreeMap<NotificationTrigger, BTreeSet<RuleId>>>,
    /// Rules that have told of something that is not well again, by what it is. Follows from the rules.
    open: Arc<BTreeMap<String, BTreeSet<RuleId>>>,
    /// Follows from definitions and deployment.
    selected: Arc<BTreeMap<RuleId, Selected>>,
}

impl Notifications {
    /// Rules that are about something and not paused.
    pub(crate) fn about(&self, trigger: NotificationTrigger) -> Vec<RuleId> {
        let rules = self.about.get(&trigger).into_iter().flatten().copied();
        rules.filter(|id| self.get(*id).is_some_and(|rule| rule.is_active())).collect()
    }

    /// Whether any rule is about something.
    pub(crate) fn is_about(&self, trigger: NotificationTrigger) -> bool {
        self.about.contains_key(&trigger)
    }

    /// Rules that have told of something that is not well again.
    pub(crate) fn open(&self, what: &str) -> Vec<RuleId> {
        self.open.get(what).into_iter().flatten().copied().collect()
    }

    /// Whether there is anything that is not well again.
    pub(crate) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Open incidents, by subject.
    pub(crate) fn all_open(&self) -> impl Iterator<Item = &String> {
        self.open.keys()
    }

    /// A notification in memory.
    pub(crate) fn row(&self, id: &str) -> Option<&Arc<NotificationRow>> {
        self.rows.get(id)
    }

    /// Notifications in memory.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<NotificationRow>> {
        self.rows.values()
    }

    /// Notifications that have not ended.
    pub(crate) fn waiting(&self) -> usize {
        self.rows.len() - self.ended.len()
    }

    /// Notes what a rule is about, after its definition has changed.
    fn watch(&mut self, id: RuleId) {
        let Some(rule) = self.named.get(id) else { return };
        let wanted: BTreeSet<_> =
            rule.definition.when.iter().copied().filter(|_| rule.removed_at.is_none()).collect();
        let about = Arc::make_mut(&mut self.about);
        about.retain(|_, ids| {
            ids.remove(&id);
            !ids.is_empty()
        });
        for trigger in wanted {
            about.entry(trigger).or_default().insert(id);
        }
    }

    /// Notes what a rule has told of, after that has changed.
    fn reopen(&mut self, id: RuleId, before: &BTreeMap<String, BTreeSet<String>>) {
        let Some(rule) = self.named.get(id) else { return };
        let after = rule.open.clone();
        let index = Arc::make_mut(&mut self.open);
        for what in before.keys().filter(|what| !after.contains_key(*what)) {
            if let Some(ids) = index.get_mut(what) {
                ids.remove(&id);
                if ids.is_empty() {
                    index.remove(what);
                }
            }
        }
        for what in after.keys().filter(|what| !before.contains_key(*what)) {
            index.entry(what.clone()).or_default().insert(id);
        }
    }

    pub(super) fn rule_rows(&self) -> Vec<NotificationRuleRow> {
        self.values().map(|rule| rule.row()).collect()
    }

    pub(super) fn rule_row(&self, id: RuleId) -> Option<NotificationRuleRow> {
        self.get(id).map(|rule| rule.row())
    }

    pub(super) fn notification_rows(&self) -> Vec<NotificationRow> {
        self.rows.values().map(|row| NotificationRow::clone(row)).collect()
    }

    pub(super) fn restore(rules: Vec<NotificationRuleRow>, rows: Vec<NotificationRow>) -> Self {
        let mut found = Self::default();
        for row in rules {
            let id = row.rule_id;
            found.insert(NotificationRule::restore(row));
            found.watch(id);
            found.reopen(id, &BTreeMap::new());
        }
        for row in rows {
            found.put(row);
        }
        found
    }

    fn put(&mut self, row: NotificationRow) {
        let id: Arc<str> = row.notification_id.as_str().into();
        if row.status.is_final() {
            self.ended.insert((row.row_version, id.clone()), ());
        }
        self.rows.insert(id, Arc::new(row));
    }
}

/// When a notification is due: none if it is on its way or has ended. A first try is due at once: what it tells of may
/// have a time that lies ahead of a clock that was set back since.
pub(super) fn due_at(row: &NotificationRow) -> Option<Timestamp> {
    let next = row.next_attempt_at.filter(|_| row.status == NotificationStatus::Pending)?;
    Some(if row.attempts == 0 { Timestamp::EPOCH } else { next })
}

impl State {
    /// A notification rule by its name or its id, unless it was removed.
    pub fn notification_rule(&self, name: &str) -> Option<&NotificationRule> {
        self.notifications.live(name)
    }

    /// The id of a notification rule that is or was there, by its name or its id.
    pub fn notification_rule_id(&self, name: &str) -> Option<RuleId> {
        self.notifications.id(name)
    }

    /// The notification rules that are there, by name.
    pub fn notification_rules(&self) -> impl DoubleEndedIterator<Item = &NotificationRule> {
        self.notifications.iter_live()
    }

    /// Notifications that wait, and the newest of those that ended, with those that the tables do not have yet, from the
    /// last to the first.
    pub fn recent_notifications(&self) -> Vec<&NotificationRow> {
        let left = self.changes.ended_notifications.iter();
        let mut found: Vec<_> =
            self.notifications.rows().map(|row| &**row).chain(left.map(|row| &**row)).collect();
        found.sort_by_key(|row| std::cmp::Reverse(row.row_version));
        found
    }

    /// Adds a notification rule with its indexes.
    pub(crate) fn add_rule(&mut self, rule: NotificationRule) {
        let id = rule.id;
        self.notifications.insert(rule);
        self.notifications.watch(id);
        self.changes.rules.insert(id);
    }

    /// Changes a notification rule through its indexes.
    pub(crate) fn change_rule(&mut self, id: RuleId, at: At, change: impl FnOnce(&mut NotificationRule)) {
        let Some(rule) = self.notifications.get_mut(id) else { return };
        let (definition, open) = (rule.definition_version, rule.open.clone());
        change(rule);
        rule.version = rule.version.max(at.id);
        rule.changed_at = at.time;
        let (is_defined_anew, is_open_anew) = (rule.definition_version != definition, rule.open != open);
        self.changes.rules.insert(id);
        if is_defined_anew {
            self.notifications.watch(id);
        }
        if is_open_anew {
            self.notifications.reopen(id, &open);
        }
    }

    /// Adds or changes a notification through its index; those that ended long ago leave memory.
    pub(crate) fn put_notification(&mut self, row: NotificationRow, limit: usize) {
        let id: Arc<str> = row.notification_id.as_str().into();
        let before = self.notifications.row(&id).and_then(|row| due_at(row));
        self.index.replace_notification(&id, before, due_at(&row));
        self.changes.notifications.insert(id);
        self.notifications.put(row);
        while self.notifications.ended.len() > limit.max(1) {
            let Some(oldest) = self.notifications.ended.keys().next().cloned() else { return };
            self.notifications.ended.remove(&oldest);
            if let Some(row) = self.notifications.rows.remove(&oldest.1) {
                self.changes.notifications.remove(&oldest.1);
                self.changes.ended_notifications.push(row);
            }
        }
    }

    /// Those of some assets that a rule selects.
    pub(crate) fn selected_by(&mut self, id: RuleId, assets: &[AssetKey]) -> Vec<AssetKey> {
        let deployment = self.definitions.number();
        let Some(rule) = self.notifications.get(id).cloned() else { return Vec::new() };
        let known = self.notifications.selected.get(&id);
        let known =
            known.filter(|it| it.deployment == deployment && it.definition == rule.definition_version);
        let selected = match known {
            Some(known) => known.assets.clone(),
            None => {
                let assets = rule.definition.selection.as_deref().map(|text| Arc::new(self.evaluated(text)));
                let fresh =
                    Selected { deployment, definition: rule.definition_version, assets: assets.clone() };
                Arc::make_mut(&mut self.notifications.selected).insert(id, fresh);
                assets
            }
        };
        let is_selected = |asset: &&AssetKey| selected.as_ref().is_none_or(|set| set.contains(*asset));
        assets.iter().filter(is_selected).cloned().collect()
    }

    /// The deployed assets that a selection names; none if it makes no sense any more.
    pub(crate) fn evaluated(&self, selection: &str) -> BTreeSet<AssetKey> {
        let Some(definitions) = self.checked_definitions() else { return BTreeSet::new() };
        let set = Selection::parse(selection).ok().and_then(|it| it.evaluate(definitions.graph()).ok());
        set.iter().flat_map(|set| definitions.graph().keys(set)).cloned().collect()
    }
}
