//! Indexes over tasks and runs, so that no controller ever scans them.
//!
//! Ready tasks and queued runs wait in lanes: whatever waits in one lane waits for the same things, so a lane that is
//! shut costs nothing however much is in it (ADR-097). Everything here follows from the rows; nothing can leak.

mod lanes;

pub(crate) use lanes::{Flow, ReadyKey, RunLane, TaskLane, queue_of};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_core::planted::{self, Mistake};
use servo_core::{AssetKey, BackfillId, EventId, PartitionKey, RunId, ScheduleId, SensorId, Timestamp};

use super::{Pauses, Run, SortedSet, Task};
use crate::lifecycle::{RunState, TaskState};
use crate::settings::Settings;

/// A task by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskRef {
    /// Its run.
    pub run: RunId,
    /// Its position in the run.
    pub task: u32,
}

/// The subject of a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deadline {
    /// A task.
    Task(TaskRef),
    /// A whole run.
    Run(RunId),
}

/// Automation that a controller has something to do for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// A tick of a schedule.
    Schedule(ScheduleId),
    /// An evaluation of a sensor.
    Sensor(SensorId),
}

/// Where one task belongs, as far as that changes: its queue, its pool and its run stay what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// It waits for a slot.
    is_ready: bool,
    deadline: Option<Timestamp>,
    unarmed: bool,
    holds_slot: bool,
    /// The worker that has begun it, while it holds a slot.
    worker: Option<Arc<str>>,
}

/// Where one run belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunKeys {
    queued: Option<(RunLane, QueuedKey)>,
    /// It is at work: its flow, and its labels.
    at_work: Option<(Flow, BTreeMap<String, String>)>,
    deadline: Option<Timestamp>,
}

/// Order of runs in a lane: priority, then age.
pub(crate) type QueuedKey = (std::cmp::Reverse<i32>, EventId, RunId);

/// All indexes. Rebuilt from the rows on load, kept up by [`super::State::change_task`] and
/// [`super::State::change_run`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// Ready and not yet on the way to a queue.
    pub(crate) ready: BTreeMap<TaskLane, SortedSet<ReadyKey>>,
    /// Tasks in these lanes.
    pub(crate) waiting: usize,
    /// Planned and not yet started.
    pub(crate) queued: BTreeMap<RunLane, SortedSet<QueuedKey>>,
    /// Runs in these lanes.
    pub(crate) queued_runs: usize,
    /// Deadlines in order of time.
    pub(crate) deadlines: SortedSet<(Timestamp, Deadline)>,
    /// Schedules and sensors by the time at which there is something to do for them.
    pub(crate) due: BTreeSet<(Timestamp, Due)>,
    /// Assets with a freshness policy by the time at which there is something to look at.
    pub(crate) freshness: BTreeSet<(Timestamp, AssetKey)>,
    /// Partitions by the time at which they expire, of assets whose partitions do.
    pub(crate) expiring: BTreeSet<(Timestamp, AssetKey, Option<PartitionKey>)>,
    /// Backfills that a controller may have something to do for.
    pub(crate) backfills: BTreeSet<BackfillId>,
    /// Chunks of all backfills that are at work.
    pub(crate) chunks_at_work: u32,
    /// Notifications by the time at which they are tried.
    pub(crate) notifications: BTreeSet<(Timestamp, Arc<str>)>,
    /// Waiting for a retry without a timer row.
    pub(crate) unarmed: BTreeSet<TaskRef>,
    /// Tasks that hold a slot.
    pub(crate) outstanding: u32,
    /// The same by flow.
    pub(crate) outstanding_of: BTreeMap<Flow, u32>,
    /// The same by pool.
    pub(crate) in_pool: BTreeMap<Arc<str>, u32>,
    /// The same by queue.
    pub(crate) open_in_queue: BTreeMap<Arc<str>, u32>,
    /// Those that a worker has begun, by worker.
    pub(crate) running_on: BTreeMap<Arc<str>, u32>,
    /// Those that no worker has begun, by queue.
    pub(crate) unstarted: BTreeMap<Arc<str>, SortedSet<TaskRef>>,
    /// Runs at work.
    pub(crate) at_work: u32,
    /// The same by flow.
    pub(crate) at_work_of: BTreeMap<Flow, u32>,
    /// The same by label and value.
    pub(crate) at_work_with: BTreeMap<(String, String), u32>,
}

impl Index {
    /// Tasks that hold a slot and that no worker has begun.
    pub(crate) fn queued_tasks(&self) -> u32 {
        self.unstarted.values().map(|tasks| tasks.len() as u32).sum()
    }

    /// Follows a task of a run from one place to another.
    pub(crate) fn replace(&mut self, run: &Run, position: u32, pauses: &Pauses, before: Place, after: Place) {
        let task = TaskRef { run: run.id, task: position };
        if before.is_ready != after.is_ready {
            let subject = &run.tasks[position as usize];
            let (lane, key) = (TaskLane::of(run, subject, pauses), ReadyKey::of(run, subject, task));
            if after.is_ready {
                self.waiting += usize::from(put_in(&mut self.ready, &lane, key));
            } else {
                self.waiting -= usize::from(take_out(&mut self.ready, &lane, &key));
            }
        }
        self.replace_deadline(Deadline::Task(task), before.deadline, after.deadline);
        match (before.unarmed, after.unarmed) {
            (false, true) => {
                self.unarmed.insert(task);
            }
            (true, false) => {
                self.unarmed.remove(&task);
            }
            (true, true) | (false, false) => {}
        }
        if before.holds_slot == after.holds_slot && before.worker == after.worker {
            return;
        }
        let subject = &run.tasks[position as usize];
        let queue = queue_of(subject);
        if before.holds_slot {
            match before.worker {
                Some(worker) => count_down(&mut self.running_on, &worker),
                None => drop(take_out(&mut self.unstarted, queue, &task)),
            }
        }
        if after.holds_slot {
            match after.worker {
                Some(worker) => count_up(&mut self.running_on, &worker),
                None => drop(put_in(&mut self.unstarted, queue, task)),
            }
        }
        let (flow, pool) = (Flow::of(&run.source), &subject.options.pool);
        match (before.holds_slot, after.holds_slot) {
            (false, true) => {
                self.outstanding += 1;
                count_up(&mut self.outstanding_of, &flow);
                pool.iter().for_each(|pool| count_up(&mut self.in_pool, pool));
                count_up(&mut self.open_in_queue, queue);
            }
            (true, false) => {
                self.outstanding -= 1;
                count_down(&mut self.outstanding_of, &flow);
                let is_kept =
                    subject.state == TaskState::Cancelled && planted::has(Mistake::PoolSlotKeptAfterCancel);
                pool.iter().filter(|_| !is_kept).for_each(|pool| count_down(&mut self.in_pool, pool));
                count_down(&mut self.open_in_queue, queue);
            }
            (true, true) | (false, false) => {}
        }
    }

    pub(crate) fn replace_run(&mut self, run: RunId, before: RunKeys, after: RunKeys) {
        self.replace_deadline(Deadline::Run(run), before.deadline, after.deadline);
        if before.queued != after.queued {
            if let Some((lane, key)) = before.queued {
                self.queued_runs -= usize::from(take_out(&mut self.queued, &lane, &key));
            }
            if let Some((lane, key)) = after.queued {
                self.queued_runs += usize::from(put_in(&mut self.queued, &lane, key));
            }
        }
        if before.at_work != after.at_work {
            if let Some((flow, labels)) = before.at_work {
                if !planted::has(Mistake::QueuePlaceLeaked) {
                    self.at_work -= 1;
                }
                count_down(&mut self.at_work_of, &flow);
                let is_kept = after.at_work.is_none() && planted::has(Mistake::LabelPlaceKept);
                let freed = labels.into_iter().filter(|_| !is_kept);
                freed.for_each(|label| count_down(&mut self.at_work_with, &label));
            }
            if let Some((flow, labels)) = after.at_work {
                self.at_work += 1;
                count_up(&mut self.at_work_of, &flow);
                labels.into_iter().for_each(|label| count_up(&mut self.at_work_with, &label));
            }
        }
    }

    pub(crate) fn replace_due(&mut self, about: Due, before: Option<Timestamp>, after: Option<Timestamp>) {
        if before == after {
            return;
        }
        if let Some(at) = before {
            self.due.remove(&(at, about));
        }
        if let Some(at) = after {
            self.due.insert((at, about));
        }
    }

    pub(crate) fn replace_expiry(
        &mut self,
        asset: &AssetKey,
        partition: Option<&PartitionKey>,
        before: Option<Timestamp>,
        after: Option<Timestamp>,
    ) {
        if before == after {
            return;
        }
        if let Some(at) = before {
            self.expiring.remove(&(at, asset.clone(), partition.cloned()));
        }
        if let Some(at) = after {
            self.expiring.insert((at, asset.clone(), partition.cloned()));
        }
    }

    pub(crate) fn replace_notification(
        &mut self,
        id: &Arc<str>,
        before: Option<Timestamp>,
        after: Option<Timestamp>,
    ) {
        if let Some(at) = before {
            self.notifications.remove(&(at, id.clone()));
        }
        if let Some(at) = after {
            self.notifications.insert((at, id.clone()));
        }
    }

    fn replace_deadline(&mut self, about: Deadline, before: Option<Timestamp>, after: Option<Timestamp>) {
        if before == after {
            return;
        }
        if let Some(at) = before {
            self.deadlines.remove(&(at, about));
        }
        if let Some(at) = after {
            self.deadlines.insert((at, about));
        }
    }

    /// The indexes over these runs, from nothing.
    pub(crate) fn of<'a>(runs: impl Iterator<Item = &'a Run>, settings: &Settings, pauses: &Pauses) -> Self {
        let mut index = Self::default();
        for run in runs {
            for task in 0..run.tasks.len() as u32 {
                let place = Place::of(&run.tasks[task as usize], settings);
                index.replace(run, task, pauses, NOWHERE, place);
            }
            index.replace_run(run.id, NO_RUN_KEYS, run_keys_of(run, settings));
        }
        index
    }
}

/// Puts a key in its lane; whether it was not there.
fn put_in<L: Ord + Clone, K: Ord>(lanes: &mut BTreeMap<L, SortedSet<K>>, lane: &L, key: K) -> bool {
    match lanes.get_mut(lane) {
        Some(keys) => keys.insert(key),
        None => lanes.entry(lane.clone()).or_default().insert(key),
    }
}

/// Takes a key out of its lane, and the lane away when it is empty; whether it was there.
fn take_out<L: Ord, K: Ord>(lanes: &mut BTreeMap<L, SortedSet<K>>, lane: &L, key: &K) -> bool {
    let Some(keys) = lanes.get_mut(lane) else { return false };
    let was_there = keys.remove(key);
    if keys.is_empty() {
        lanes.remove(lane);
    }
    was_there
}

fn count_up<K: Ord + Clone>(counts: &mut BTreeMap<K, u32>, key: &K) {
    match counts.get_mut(key) {
        Some(count) => *count += 1,
        None => drop(counts.insert(key.clone(), 1)),
    }
}

fn count_down<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The place of a task that does not exist.
const NOWHERE: Place =
    Place { is_ready: false, deadline: None, unarmed: false, holds_slot: false, worker: None };

/// The keys of a run that does not exist.
pub(crate) const NO_RUN_KEYS: RunKeys = RunKeys { queued: None, at_work: None, deadline: None };

impl Place {
    pub(crate) fn of(task: &Task, settings: &Settings) -> Self {
        let open = task.has_open_attempt();
        let holds = open || task.state == TaskState::Cancelled && planted::has(Mistake::SlotLeakedOnCancel);
        // One call takes one slot, however many partitions it makes.
        let holds_slot = holds && task.leader().is_none();
        Self {
            is_ready: task.state == TaskState::Ready && !open,
            deadline: task.deadline(settings).map(|(due, _)| due),
            unarmed: task.state == TaskState::RetryWait && task.timer.is_none(),
            holds_slot,
            worker: task.worker().filter(|_| holds_slot).cloned(),
        }
    }
}

pub(crate) fn run_keys_of(run: &Run, settings: &Settings) -> RunKeys {
    let is_at_work = match run.state {
        RunState::Running | RunState::Cancelling => run.started_at.is_some(),
        RunState::Pending
        | RunState::Queued
        | RunState::Cancelled
        | RunState::TimedOut
        | RunState::Failed
        | RunState::Succeeded => false,
    };
    RunKeys {
        queued: (run.state == RunState::Queued)
            .then(|| (RunLane::of(run, settings), (std::cmp::Reverse(run.priority), run.requested, run.id))),
        at_work: is_at_work.then(|| (Flow::of(&run.source), run.labels.clone())),
        deadline: run.deadline(settings),
    }
}
