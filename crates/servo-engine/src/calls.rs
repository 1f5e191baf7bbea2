//! Calls: attempts of several partitions of an asset that one call of its function makes (ADR-210).
//!
//! Every partition keeps a task of its own, and every attempt its own end. What they share is the message that hands
//! them out: the attempt of the first leads the call, and the others name it in their provenance. Tasks of an asset
//! with `single_call` are dispatched when each of them in the run is ready or has ended, so that a call is given all
//! that it can be given.

use std::collections::BTreeMap;
use std::ops::Range;

use servo_core::RunId;

use crate::lifecycle::TaskState;
use crate::state::{Run, State, Task, TaskRef};

/// The most partitions that one call is given. More of them are several calls: the message and its answers stay small.
pub const MAX_CALL: usize = 1_000;

/// The calls that are possible now, found once for each asset of a run.
pub(crate) struct Calls<'a> {
    state: &'a State,
    /// By run and first task of the asset; empty while one of its tasks is not decided.
    known: BTreeMap<(RunId, u32), Vec<Vec<u32>>>,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(state: &'a State) -> Self {
        Self { state, known: BTreeMap::new() }
    }

    /// The tasks that are dispatched with a ready one, itself first; none while another one leads or has to be waited
    /// for.
    pub(crate) fn led_by(&mut self, task: TaskRef) -> Option<Vec<TaskRef>> {
        let run = self.state.runs.get(&task.run)?;
        if !run.tasks[task.task as usize].options.single_call {
            return Some(vec![task]);
        }
        let tasks = of_asset(run, task.task);
        let calls = self.known.entry((task.run, tasks.start)).or_insert_with(|| calls(run, tasks));
        let call = calls.iter().find(|call| call.first() == Some(&task.task))?;
        Some(call.iter().map(|position| TaskRef { run: task.run, task: *position }).collect())
    }
}

/// The calls of tasks of one asset.
fn calls(run: &Run, tasks: Range<u32>) -> Vec<Vec<u32>> {
    if undecided(run, tasks.clone()).next().is_some() {
        return Vec::new();
    }
    let ready: Vec<u32> = tasks.filter(|at| is_ready(&run.tasks[*at as usize])).collect();
    ready.chunks(MAX_CALL).map(<[u32]>::to_vec).collect()
}

fn is_ready(task: &Task) -> bool {
    task.state == TaskState::Ready && !task.has_open_attempt()
}

fn undecided(run: &Run, tasks: Range<u32>) -> impl Iterator<Item = u32> {
    tasks.filter(|at| {
        let task = &run.tasks[*at as usize];
        !task.state.is_terminal() && !is_ready(task)
    })
}

/// The tasks that a ready one waits for, since they are to be in the same call.
pub(crate) fn waited_for(run: &Run, position: u32) -> Vec<u32> {
    if !run.tasks[position as usize].options.single_call {
        return Vec::new();
    }
    undecided(run, of_asset(run, position)).collect()
}

/// The tasks of the same asset and operation: they are in a row.
fn of_asset(run: &Run, position: u32) -> Range<u32> {
    let key = &run.tasks[position as usize].key;
    let start = run.tasks.partition_point(|task| task.key.asset_str() < key.asset_str());
    let end = run.tasks.partition_point(|task| task.key.asset_str() <= key.asset_str());
    start as u32..end as u32
}

/// The tasks whose open attempts are part of the call that a task leads, without itself.
pub(crate) fn followers<'r>(run: &'r Run, leader: &Task) -> impl Iterator<Item = (u32, &'r Task)> {
    let call = leader.attempt_id.filter(|id| leader.provenance.call == Some(*id));
    let tasks = call.and_then(|_| run.position(&leader.key)).map_or(0..0, |at| of_asset(run, at));
    let tasks = tasks.map(|at| (at, &run.tasks[at as usize]));
    tasks.filter(move |(_, task)| {
        task.leader().is_some_and(|leads| Some(leads) == call) && task.has_open_attempt()
    })
}
