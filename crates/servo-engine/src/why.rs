//! Why a run or a task does not go on: everything that holds it back, since when, and what would change that.
//!
//! Each reason holds by itself: as long as one of them is there, nothing happens. When all are gone it goes on, unless
//! others that waited for the same go first and take the room; that is the reason then.

mod queues;

pub use queues::{QueueLoad, queues};

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{AssetKey, RunId, TaskKey, Timestamp};

use crate::calls;
use crate::controllers::ready_dispatch::moving_data_of;
use crate::controllers::run_queue::full_labels;
use crate::event::PauseScope;
use crate::lifecycle::{RunState, TaskState};
use crate::rows::PauseRow;
use crate::state::{Capacities, Capacity, Index, Run, RunLane, State, queue_of};

/// Upstream tasks that are named; the others are counted.
const NAMED: usize = 5;

/// A reason to wait, and since when it is one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Wait {
    pub reason: WaitReason,
    pub since: Timestamp,
}

/// The reason why a run or a task waits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WaitReason {
    /// Tasks before it have not ended: the first of them, and how many there are.
    Dependency { first: Vec<TaskKey>, count: usize },
    /// As many runs are at work as may be; so many are queued before it.
    Queue { at_work: u32, limit: u32, before: usize },
    /// As many runs with this label are at work as may be.
    Label { name: String, value: String, at_work: u32, limit: u32 },
    /// As many tasks of the pool are at work as may be.
    Pool { pool: String, at_work: u32, limit: u32 },
    /// As many tasks are at work as may be.
    Quota { at_work: u32, limit: u32 },
    /// As many tasks are on their way to workers as may be.
    QueuedTasks { queued: u32, limit: u32 },
    /// Somebody has paused it.
    Pause { scope: String, by: String, reason: String },
    /// It is in its queue, and no worker has taken it.
    Worker { queue: String },
    /// No worker serves its queue with the code that is deployed: so many serve it with other code, and so many tasks
    /// wait.
    NoWorker { queue: String, outdated: u32, tasks: usize },
    /// Every slot of the workers of its queue is taken.
    Slots { queue: String, workers: u32, slots: u32 },
    /// As many tasks are in its queue, which calls its workers, as may be.
    PushLimit { queue: String, limit: u32 },
    /// Data that it makes or reads is being moved to the new name of this asset.
    Rename { asset: AssetKey },
    /// The first of other partitions that the same call is to make, and that are not ready, and how many there are.
    Call { first: Vec<TaskKey>, count: usize },
    /// It failed, and is tried again at this time.
    Retry { at: Timestamp, failures: u32 },
}

/// Why a run does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct WhyRun {
    pub run_id: RunId,
    pub state: RunState,
    /// Of the run itself; none if it is at work or has ended.
    pub waits: Vec<Wait>,
    /// Its tasks that have not ended and are not running, in the order of their keys.
    pub tasks: Vec<WhyTask>,
    /// Its tasks that are running.
    pub running: usize,
}

/// Why a task does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct WhyTask {
    pub task_key: TaskKey,
    pub state: TaskState,
    pub waits: Vec<Wait>,
}

/// Why a run that is in memory does not go on. Looks at all that is at work: for people, not for controllers.
pub fn why(state: &State, id: RunId) -> Option<WhyRun> {
    let run = state.run(id)?;
    Some(why_with(state, &state.fresh_index(), run))
}

/// The same by these indexes.
pub(crate) fn why_with(state: &State, index: &Index, run: &Run) -> WhyRun {
    let waits = if run.state == RunState::Queued { run_waits(state, index, run) } else { Vec::new() };
    let mut unresolved: Vec<Vec<u32>> = vec![Vec::new(); run.tasks.len()];
    for edge in run.edges.iter().filter(|edge| edge.resolution.is_none()) {
        unresolved[edge.downstream as usize].push(edge.upstream);
    }
    // Of each set the first that are waited for, and how many those are.
    let waited_for: Vec<(Vec<u32>, usize)> = run
        .sets
        .iter()
        .map(|set| {
            let mut open = set.set.upstream.iter().filter(|up| !run.tasks[*up as usize].state.is_terminal());
            let first: Vec<u32> = open.by_ref().take(NAMED).collect();
            let count = first.len() + open.count();
            (first, count)
        })
        .collect();
    let mut queues = Queues::new(state, index);
    let mut running = 0;
    let mut tasks = Vec::new();
    for (position, task) in run.tasks.iter().enumerate() {
        let waits = match task.state {
            TaskState::Running => {
                running += 1;
                continue;
            }
            TaskState::Skipped | TaskState::Cancelled | TaskState::Failed | TaskState::Succeeded => continue,
            TaskState::Planned => waits.clone(),
            TaskState::Blocked => {
                let before = &unresolved[position];
                let sets = run.sets.iter().zip(&waited_for);
                let sets = sets.filter(|(set, _)| set.set.downstream.contains(position as u32));
                let count = before.len() + sets.clone().map(|(_, (_, count))| count).sum::<usize>();
                let named = before.iter().chain(sets.flat_map(|(_, (first, _))| first)).take(NAMED);
                let first = named.map(|up| run.tasks[*up as usize].key.clone()).collect();
                vec![Wait { reason: WaitReason::Dependency { first, count }, since: task.transition_at }]
            }
            TaskState::Ready if !task.has_open_attempt() => {
                ready_waits(state, index, &mut queues, run, position as u32)
            }
            TaskState::Ready | TaskState::Dispatched => {
                let since = task.waits_since().unwrap_or(task.transition_at);
                vec![Wait { reason: WaitReason::Worker { queue: task.queue().to_owned() }, since }]
            }
            TaskState::RetryWait => {
                let at = task.retry_at.unwrap_or(task.transition_at);
                let reason = WaitReason::Retry { at, failures: task.failures };
                vec![Wait { reason, since: task.transition_at }]
            }
        };
        tasks.push(WhyTask { task_key: task.key.clone(), state: task.state, waits });
    }
    WhyRun { run_id: run.id, state: run.state, waits, tasks, running }
}

fn run_waits(state: &State, index: &Index, run: &Run) -> Vec<Wait> {
    let since = run.created_at;
    let mut waits: Vec<Wait> =
        state.pauses.paused(&PauseScope::All).into_iter().map(|row| paused(row, since)).collect();
    let lane = RunLane::of(run, &state.settings);
    for (name, value, limit) in full_labels(&state.settings, &lane, &index.at_work_with) {
        let (name, value) = (name.to_owned(), value.to_owned());
        let at_work = index.at_work_with.get(&(name.clone(), value.clone())).copied().unwrap_or_default();
        waits.push(Wait { reason: WaitReason::Label { name, value, at_work, limit }, since });
    }
    let limit = state.settings.max_concurrent_runs;
    if index.at_work >= limit {
        let mine = (std::cmp::Reverse(run.priority), run.requested, run.id);
        let before =
            index.queued.values().map(|keys| keys.iter().take_while(|key| **key < mine).count()).sum();
        waits.push(Wait { reason: WaitReason::Queue { at_work: index.at_work, limit, before }, since });
    }
    waits
}

fn ready_waits(state: &State, index: &Index, queues: &mut Queues<'_>, run: &Run, position: u32) -> Vec<Wait> {
    let task = &run.tasks[position as usize];
    let since = task.ready_at.unwrap_or(task.transition_at);
    let scopes = [PauseScope::All, PauseScope::Queue(queue_of(task).clone())].into_iter();
    let scopes = scopes.chain(task.assets().map(PauseScope::Asset));
    let mut waits: Vec<Wait> =
        scopes.filter_map(|scope| state.pauses.paused(&scope)).map(|row| paused(row, since)).collect();
    if let Some(pool) = &task.options.pool
        && let Some(limit) = state.settings.pools.get(&**pool).copied()
    {
        let at_work = index.in_pool.get(pool).copied().unwrap_or_default();
        if at_work >= limit {
            let reason = WaitReason::Pool { pool: pool.to_string(), at_work, limit };
            waits.push(Wait { reason, since });
        }
    }
    let (at_work, limit) = (index.outstanding, state.settings.max_concurrent_tasks);
    if at_work >= limit {
        waits.push(Wait { reason: WaitReason::Quota { at_work, limit }, since });
    }
    let (queued, limit) = (index.queued_tasks(), state.settings.max_queued_tasks);
    if queued >= limit {
        waits.push(Wait { reason: WaitReason::QueuedTasks { queued, limit }, since });
    }
    waits.extend(queues.full(queue_of(task)).map(|reason| Wait { reason, since }));
    waits.extend(
        moving_data_of(state, task).map(|asset| Wait { reason: WaitReason::Rename { asset }, since }),
    );
    let others = calls::waited_for(run, position);
    if !others.is_empty() {
        let first = others.iter().take(NAMED).map(|at| run.tasks[*at as usize].key.clone()).collect();
        waits.push(Wait { reason: WaitReason::Call { first, count: others.len() }, since });
    }
    waits
}

fn paused(row: &PauseRow, waits_since: Timestamp) -> Wait {
    let reason = WaitReason::Pause {
        scope: row.scope.clone(),
        by: row.changed_by.to_string(),
        reason: row.reason.clone(),
    };
    Wait { reason, since: row.changed_at.max(waits_since) }
}

/// The capacities of queues, and what waits for them; each is looked at once.
struct Queues<'a> {
    state: &'a State,
    index: &'a Index,
    capacities: Capacities<'a>,
    waiting: BTreeMap<Arc<str>, usize>,
}

impl<'a> Queues<'a> {
    fn new(state: &'a State, index: &'a Index) -> Self {
        Self { state, index, capacities: Capacities::new(state, index), waiting: BTreeMap::new() }
    }

    /// Why nothing more is dispatched into a queue, if nothing is.
    fn full(&mut self, queue: &Arc<str>) -> Option<WaitReason> {
        let Capacity { workers, outdated, slots, free } = self.capacities.of(queue);
        let (name, limit) = (queue.to_string(), self.state.settings.push_limit(queue));
        if free > 0 {
            return None;
        }
        Some(if limit > 0 {
            WaitReason::PushLimit { queue: name, limit }
        } else if workers > 0 {
            WaitReason::Slots { queue: name, workers, slots }
        } else {
            WaitReason::NoWorker { queue: name, outdated, tasks: self.waiting(queue) }
        })
    }

    /// How many tasks wait for a queue.
    fn waiting(&mut self, queue: &Arc<str>) -> usize {
        let index = self.index;
        *self.waiting.entry(queue.clone()).or_insert_with(|| {
            index.ready.iter().filter(|(lane, _)| lane.queue == *queue).map(|(_, keys)| keys.len()).sum()
        })
    }
}

/// The hour and the minute of a time.
fn hour(at: Timestamp) -> String {
    let minutes = at.as_millis().div_euclid(60_000);
    format!("{:02}:{:02} UTC", minutes.div_euclid(60).rem_euclid(24), minutes.rem_euclid(60))
}

/// Warnings about an active run: queues that nobody serves, in a sentence each.
pub fn notices(state: &State, id: RunId) -> Vec<String> {
    let Some(run) = state.run(id).filter(|run| !run.state.is_terminal()) else { return Vec::new() };
    let waits = run.tasks.iter().filter(|task| task.state == TaskState::Ready && !task.has_open_attempt());
    let mut unserved: BTreeMap<Arc<str>, (usize, Timestamp)> = BTreeMap::new();
    for task in waits {
        let since = task.ready_at.unwrap_or(task.transition_at);
        let known = unserved.entry(queue_of(task).clone()).or_insert((0, since));
        *known = (known.0 + 1, known.1.min(since));
    }
    if unserved.is_empty() {
        return Vec::new();
    }
    let index = Index::default();
    let mut capacities = Capacities::new(state, &index);
    let mut notices = Vec::new();
    for (queue, (tasks, since)) in unserved {
        let Capacity { workers, outdated, .. } = capacities.of(&queue);
        if state.settings.push_limit(&queue) == 0 && workers == 0 {
            let reason = WaitReason::NoWorker { queue: queue.to_string(), outdated, tasks };
            notices.push(format!("{} since {}", reason.text(), hour(since)));
        }
    }
    notices
}

/// The first of some tasks, and how many more there are.
fn named_tasks(first: &[TaskKey], count: usize) -> String {
    let named: Vec<String> = first.iter().map(TaskKey::subject).collect();
    let more = count.saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

impl WaitReason {
    /// The kind of reason, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            WaitReason::Dependency { .. } | WaitReason::Call { .. } => "dependency",
            WaitReason::Rename { .. } => "rename",
            WaitReason::Queue { .. } => "queue",
            WaitReason::Label { .. } | WaitReason::Quota { .. } | WaitReason::QueuedTasks { .. } => "quota",
            WaitReason::Pool { .. } => "pool",
            WaitReason::Pause { .. } => "pause",
            WaitReason::Worker { .. } | WaitReason::NoWorker { .. } | WaitReason::Slots { .. } => "worker",
            WaitReason::PushLimit { .. } => "quota",
            WaitReason::Retry { .. } => "retry_wait",
        }
    }

    /// The reason in a sentence.
    pub fn text(&self) -> String {
        match self {
            WaitReason::Dependency { first, count } => {
                format!("waits for {}", named_tasks(first, *count))
            }
            WaitReason::Call { first, count } => {
                format!("waits for {}, which the same call is to make", named_tasks(first, *count))
            }
            WaitReason::Rename { asset } => format!("the data of {asset} is being moved to its new name"),
            WaitReason::Queue { at_work, limit, before } => {
                format!("{at_work} runs are at work, {limit} may be; {before} are queued before it")
            }
            WaitReason::Label { name, value, at_work, limit } => {
                format!("{at_work} runs with {name}={value} are at work, {limit} may be")
            }
            WaitReason::Pool { pool, at_work, limit } => {
                format!("pool {pool} is full: {at_work} of {limit} tasks are at work")
            }
            WaitReason::Quota { at_work, limit } => format!("{at_work} tasks are at work, {limit} may be"),
            WaitReason::QueuedTasks { queued, limit } => {
                format!("{queued} tasks are on their way to workers, {limit} may be")
            }
            WaitReason::Pause { scope, by, reason } => {
                let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                format!("{scope} is paused by {by}{why}")
            }
            WaitReason::Worker { queue } => format!("no worker has taken it from queue {queue}"),
            WaitReason::NoWorker { queue, outdated, tasks } => {
                let tasks =
                    if *tasks == 1 { "1 task waits".to_owned() } else { format!("{tasks} tasks wait") };
                let others = match outdated {
                    0 => String::new(),
                    1 => " with the code that is deployed (1 has other code)".to_owned(),
                    n => format!(" with the code that is deployed ({n} have other code)"),
                };
                format!("no worker serves queue {queue}{others}; {tasks}")
            }
            WaitReason::Slots { queue, workers, slots } => {
                let whose =
                    if *workers == 1 { "its worker".to_owned() } else { format!("its {workers} workers") };
                format!("the slots of queue {queue} are taken: {whose} run {slots} at once")
            }
            WaitReason::PushLimit { queue, limit } => {
                format!("{limit} tasks are in queue {queue}, which is the most")
            }
            WaitReason::Retry { at, failures } => {
                let times = if *failures == 1 { "once".to_owned() } else { format!("{failures} times") };
                format!("failed {times}, is tried again at {at}")
            }
        }
    }

    /// The action that would end the wait.
    pub fn remedy(&self) -> String {
        match self {
            WaitReason::Dependency { .. } => "the end of these tasks".to_owned(),
            WaitReason::Call { .. } => "these tasks being ready, or their end".to_owned(),
            WaitReason::Rename { asset } => format!("the end of the move: servo asset show {asset}"),
            WaitReason::Queue { limit, .. } => {
                format!(
                    "the end of a run, or servo config set max_concurrent_runs={}",
                    limit.saturating_add(1)
                )
            }
            WaitReason::Label { name, value, .. } => format!(
                "the end of one of them, or a higher limit: servo config set runs_with.{name}={value}=N or \
                 runs_per.{name}=N"
            ),
            WaitReason::Pool { pool, limit, .. } => {
                format!("the end of one of them, or servo config set pool.{pool}={}", limit.saturating_add(1))
            }
            WaitReason::Quota { limit, .. } => {
                format!(
                    "the end of a task, or servo config set max_concurrent_tasks={}",
                    limit.saturating_add(1)
                )
            }
            WaitReason::QueuedTasks { limit, .. } => format!(
                "a worker that begins one of them, or servo config set max_queued_tasks={}",
                limit.saturating_add(1)
            ),
            WaitReason::Pause { scope, .. } => match scope.split_once(':') {
                Some((what, name)) => format!("servo admin resume --{what} {name}"),
                None => "servo admin resume".to_owned(),
            },
            WaitReason::Worker { queue } => {
                format!("a worker with a free slot: servo worker --queue {queue}")
            }
            WaitReason::NoWorker { queue, .. } => format!("servo worker --queue {queue}"),
            WaitReason::Slots { queue, .. } => {
                format!("the end of a task, or another worker: servo worker --queue {queue}")
            }
            WaitReason::PushLimit { queue, limit } => format!(
                "the end of a task, or servo config set push_limit.{queue}={}",
                limit.saturating_add(1)
            ),
            WaitReason::Retry { .. } => "time".to_owned(),
        }
    }
}

/// How full a workspace is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Load {
    pub runs_at_work: u32,
    pub runs_queued: usize,
    pub tasks_running: usize,
    /// On their way to a worker.
    pub tasks_dispatched: usize,
    /// Ready, without a slot.
    pub tasks_waiting: usize,
    /// Pools that have a limit or tasks at work: name, tasks at work, limit.
    pub pools: Vec<(String, u32, Option<u32>)>,
}

/// How full a workspace is. Looks at all that is at work: for people, not for controllers.
pub fn load(state: &State) -> Load {
    let index = state.fresh_index();
    let active = state.runs().filter(|run| !run.state.is_terminal());
    let running = active.flat_map(|run| &run.tasks).filter(|task| task.state == TaskState::Running).count();
    let names: std::collections::BTreeSet<String> = state
        .settings
        .pools
        .keys()
        .cloned()
        .chain(index.in_pool.keys().map(|pool| pool.to_string()))
        .collect();
    let pool = |name: String| {
        let at_work = index.in_pool.get(name.as_str()).copied().unwrap_or_default();
        let limit = state.settings.pools.get(&name).copied();
        (name, at_work, limit)
    };
    Load {
        runs_at_work: index.at_work,
        runs_queued: index.queued_runs,
        tasks_running: running,
        tasks_dispatched: (index.outstanding as usize).saturating_sub(running),
        tasks_waiting: index.waiting,
        pools: names.into_iter().map(pool).collect(),
    }
}
