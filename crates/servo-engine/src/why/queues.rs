//! How full each queue is, and who serves it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::Timestamp;

use crate::event::PauseScope;
use crate::rows::PauseRow;
use crate::state::{Capacities, Capacity, DEFAULT_QUEUE, SortedSet, State};

/// How full a queue is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct QueueLoad {
    pub name: Arc<str>,
    /// Ready tasks that were not handed to it yet.
    pub tasks_waiting: usize,
    /// Since when the first of them waits.
    pub waiting_since: Option<Timestamp>,
    /// Tasks in it that no worker has begun.
    pub tasks_dispatched: usize,
    /// Tasks of it that workers are at.
    pub tasks_running: usize,
    /// Workers that serve it with the code that is deployed.
    pub workers: u32,
    /// Workers that serve it with other code, and are given nothing.
    pub outdated_workers: u32,
    /// Functions that its workers run at once.
    pub slots: u32,
    /// Tasks that could be handed to it now.
    pub free: u32,
    /// The pause of it alone.
    pub paused: Option<PauseRow>,
    /// The most tasks that may be in it, if it calls its workers.
    pub push_limit: Option<u32>,
}

/// Every queue that something waits in, that somebody serves, or that a definition, a setting or a pause names, by name.
/// Looks at all that is at work: for people, not for controllers.
pub fn queues(state: &State) -> Vec<QueueLoad> {
    let index = state.fresh_index();
    let mut waiting: BTreeMap<Arc<str>, (usize, Option<Timestamp>)> = BTreeMap::new();
    for (lane, keys) in &index.ready {
        let (count, since) = waiting.entry(lane.queue.clone()).or_default();
        *count += keys.len();
        for key in keys {
            let task = state.runs.get(&key.task.run).and_then(|run| run.tasks.get(key.task.task as usize));
            let ready = task.map(|task| task.ready_at.unwrap_or(task.transition_at));
            *since = [*since, ready].into_iter().flatten().min();
        }
    }
    let mut names: BTreeSet<Arc<str>> = waiting.keys().cloned().collect();
    names.insert(DEFAULT_QUEUE.into());
    names.extend(index.open_in_queue.keys().cloned());
    names.extend(state.settings.push_limits.keys().map(|name| name.as_str().into()));
    let present = state.workers.rows().filter(|worker| !worker.state.is_gone());
    names.extend(present.flat_map(|worker| worker.queues.iter().map(|name| name.as_str().into())));
    let declared = state.definitions().filter_map(|(_, definition, _)| definition.queue.as_deref());
    names.extend(declared.map(Arc::from));
    let paused = state.pauses().filter(|row| row.paused).filter_map(|row| row.scope.parse().ok());
    names.extend(paused.filter_map(|scope| match scope {
        PauseScope::Queue(name) => Some(name),
        PauseScope::All | PauseScope::Asset(_) => None,
    }));
    let mut capacities = Capacities::new(state, &index);
    let load = |name: Arc<str>| {
        let Capacity { workers, outdated, slots, free } = capacities.of(&name);
        let (tasks_waiting, waiting_since) = waiting.get(&name).copied().unwrap_or_default();
        let open = index.open_in_queue.get(&name).copied().unwrap_or_default() as usize;
        let tasks_dispatched = index.unstarted.get(&name).map_or(0, SortedSet::len);
        let limit = state.settings.push_limit(&name);
        QueueLoad {
            tasks_waiting,
            waiting_since,
            tasks_dispatched,
            tasks_running: open.saturating_sub(tasks_dispatched),
            workers,
            outdated_workers: outdated,
            slots,
            free,
            paused: state.pauses.paused(&PauseScope::Queue(name.clone())).cloned(),
            push_limit: (limit > 0).then_some(limit),
            name,
        }
    };
    names.into_iter().map(load).collect()
}
