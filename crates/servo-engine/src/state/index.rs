//! Indexes over tasks and runs, so that no controller ever scans them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use servo_core::planted::{self, Mistake};
use servo_core::{EventId, RunId, Timestamp};

use super::Run;
use crate::lifecycle::TaskState;
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

/// Order in which ready tasks get slots: priority of the run, its age, then priority of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadyKey {
    run_priority: Reverse<i32>,
    requested: EventId,
    task_priority: Reverse<i32>,
    pub(crate) task: TaskRef,
}

/// Where one task belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keys {
    ready: Option<ReadyKey>,
    deadline: Option<Timestamp>,
    unarmed: bool,
    outstanding: bool,
}

/// All indexes. Rebuilt from the rows on load, kept up by [`super::State::change_task`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// Ready and not yet on the way to a queue.
    pub(crate) ready: BTreeSet<ReadyKey>,
    /// Deadlines in order of time.
    pub(crate) deadlines: BTreeSet<(Timestamp, Deadline)>,
    /// Waiting for a retry without a timer row.
    pub(crate) unarmed: BTreeSet<TaskRef>,
    /// Tasks that hold a slot.
    pub(crate) outstanding: u32,
}

impl Index {
    pub(crate) fn replace(&mut self, task: TaskRef, before: Keys, after: Keys) {
        if before.ready != after.ready {
            if let Some(key) = before.ready {
                self.ready.remove(&key);
            }
            if let Some(key) = after.ready {
                self.ready.insert(key);
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
        self.outstanding = self.outstanding + u32::from(after.outstanding) - u32::from(before.outstanding);
    }

    pub(crate) fn replace_deadline(
        &mut self,
        about: Deadline,
        before: Option<Timestamp>,
        after: Option<Timestamp>,
    ) {
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
}

/// The keys of a task that does not exist.
pub(crate) const NO_KEYS: Keys = Keys { ready: None, deadline: None, unarmed: false, outstanding: false };

pub(crate) fn keys_of(run: &Run, position: u32, settings: &Settings) -> Keys {
    let task = &run.tasks[position as usize];
    let at = TaskRef { run: run.id, task: position };
    let open = task.has_open_attempt();
    Keys {
        ready: (task.state == TaskState::Ready && !open).then_some(ReadyKey {
            run_priority: Reverse(run.priority),
            requested: run.requested,
            task_priority: Reverse(task.options.priority),
            task: at,
        }),
        deadline: task.deadline(settings).map(|(due, _)| due),
        unarmed: task.state == TaskState::RetryWait && task.timer.is_none(),
        outstanding: open || task.state == TaskState::Cancelled && planted::has(Mistake::SlotLeakedOnCancel),
    }
}
