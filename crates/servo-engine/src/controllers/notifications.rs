//! Notifications: one that is due is asked for; one that nobody wants any more is dropped. Queues that no worker serves
//! are noticed where a rule asks for that.
//!
//! No notification waits for another one. A try that failed is made again, later each time, and fails for good after a few.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::Timestamp;

use crate::event::{
    EventData, NotificationAttempted, NotificationRequested, PauseScope, QueueServiceChanged,
};
use crate::fold::incidents::open_queue;
use crate::lifecycle::{NotificationStatus, NotificationTrigger};
use crate::notification::MAX_WAIT;
use crate::rows::NotificationRow;
use crate::state::{Capacities, State};

/// Most notifications that are asked for within a step.
const MAX_AT_ONCE: usize = 256;

/// Which notifications a process sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notifying {
    /// None: it has nobody who could.
    #[default]
    Nothing,
    /// Those that somebody tests with; all others are left to those who stay.
    Tests,
    /// All.
    Everything,
}

/// The events for notifications that are due.
pub fn reconcile(state: &State, notifying: Notifying, now: Timestamp) -> Vec<EventData> {
    let is_sent = |row: &&Arc<NotificationRow>| match notifying {
        Notifying::Nothing => false,
        Notifying::Tests => row.trigger == NotificationTrigger::Test,
        Notifying::Everything => true,
    };
    let due = state.index.notifications.iter().take_while(|(at, _)| *at <= now);
    let rows = due.filter_map(|(_, id)| state.notifications.row(id)).filter(is_sent);
    rows.take(MAX_AT_ONCE).map(|row| event(state, row, now)).collect()
}

fn event(state: &State, row: &NotificationRow, now: Timestamp) -> EventData {
    let notification_id: Arc<str> = row.notification_id.as_str().into();
    match unwanted(state, row, now) {
        None => {
            let attempt = row.attempts + 1;
            EventData::NotificationRequested(NotificationRequested { notification_id, attempt })
        }
        Some(reason) => EventData::NotificationAttempted(NotificationAttempted {
            notification_id,
            attempt: 0,
            status: NotificationStatus::Dropped,
            error: Some(reason),
            retry_at: None,
        }),
    }
}

/// Why a notification is not to be sent any more.
fn unwanted(state: &State, row: &NotificationRow, now: Timestamp) -> Option<String> {
    let is_test = row.trigger == NotificationTrigger::Test;
    let rule = state.notifications.get(row.rule_id);
    let Some(rule) = rule.filter(|rule| rule.removed_at.is_none()) else {
        return Some("its rule was removed".to_owned());
    };
    let to = rule.definition.to.get(row.destination as usize);
    if to.is_none_or(|to| to.channel() != row.channel) {
        return Some("its rule does not have this destination any more".to_owned());
    }
    if rule.paused && !is_test {
        return Some("its rule is paused".to_owned());
    }
    let is_old = now.since(row.created_at) > MAX_WAIT && row.attempts == 0;
    is_old.then(|| format!("nobody could send it for {MAX_WAIT}"))
}

/// Since when queues were seen to have tasks and no worker. Not in the log: whoever takes over sees it too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unserved {
    since: BTreeMap<Arc<str>, Timestamp>,
}

impl Unserved {
    /// When a queue has been without a worker for long enough to tell.
    pub(crate) fn next_deadline(&self, state: &State) -> Option<Timestamp> {
        let after = state.settings.queue_without_worker_after;
        let untold = self.since.iter().filter(|(queue, _)| !is_told(state, queue));
        untold.map(|(_, since)| since.saturating_add(after)).min()
    }
}

fn is_told(state: &State, queue: &str) -> bool {
    !state.notifications.open(&open_queue(queue)).is_empty()
}

/// A `QueueServiceChanged` for each queue that has been without a worker for too long, and for each that has one again.
pub(crate) fn queues(state: &State, unserved: &mut Unserved, now: Timestamp) -> Vec<EventData> {
    let is_asked = state.notifications.is_about(NotificationTrigger::QueueWithoutWorker);
    let told = state.notifications.all_open().filter_map(|what| what.strip_prefix("queue:"));
    let told: BTreeSet<Arc<str>> = told.map(Arc::from).collect();
    if !is_asked && told.is_empty() {
        unserved.since.clear();
        return Vec::new();
    }
    let found = without_worker(state);
    unserved.since.retain(|queue, _| found.contains(queue));
    for queue in &found {
        unserved.since.entry(queue.clone()).or_insert(now);
    }
    let after = state.settings.queue_without_worker_after;
    let is_long = |queue: &&Arc<str>| {
        unserved.since.get(*queue).is_some_and(|since| since.saturating_add(after) <= now)
    };
    let lost = found.iter().filter(is_long).filter(|queue| is_asked && !told.contains(*queue));
    let lost = lost.map(|queue| (queue.clone(), false, unserved.since.get(queue).copied().unwrap_or(now)));
    let served = told.iter().filter(|queue| !found.contains(*queue)).map(|queue| (queue.clone(), true, now));
    let event =
        |(queue, served, since)| EventData::QueueServiceChanged(QueueServiceChanged { queue, served, since });
    lost.chain(served).map(event).collect()
}

/// Queues that tasks wait for and that no worker with the deployed code serves.
fn without_worker(state: &State) -> BTreeSet<Arc<str>> {
    if state.pauses.paused(&PauseScope::All).is_some() {
        return BTreeSet::new();
    }
    let ready = state.index.ready.keys().filter(|lane| !lane.is_paused).map(|lane| &lane.queue);
    let queues: BTreeSet<&Arc<str>> = ready.chain(state.index.unstarted.keys()).collect();
    let mut capacities = Capacities::new(state, &state.index);
    let is_unserved =
        |queue: &&Arc<str>| state.settings.push_limit(queue) == 0 && capacities.of(queue).workers == 0;
    queues.into_iter().filter(is_unserved).cloned().collect()
}
